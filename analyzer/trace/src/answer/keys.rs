// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes of rows by all that the answer's groups depend on.

use std::hash::{Hash, Hasher};

use mostrace_map::class::Kind;

use crate::attribute::{FileId, HashMap, Op, ProcessId, Row};
use crate::causes::{CauseId, Known};
use crate::labels;
use crate::origins::Base;
use crate::tally::Tally;

/// The words for a row's owner and its layer depend on this; the numbers are those among all recordings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OwnerKey {
    /// The cause.
    pub cause: CauseId,
    /// The submitter.
    pub process: ProcessId,
    /// The file that is written or read.
    pub file: FileId,
    /// The kind of the blocks.
    pub kind: Option<Kind>,
    /// The kind at their home, of copies in a journal.
    pub home_kind: Option<Kind>,
}

impl OwnerKey {
    /// Returns the owner of a row's part that has this cause; `base` is where the recording's numbers begin.
    pub fn new(base: Base, row: &Row, cause: CauseId) -> OwnerKey {
        OwnerKey {
            cause: base.cause(cause),
            process: base.process(row.process),
            file: base.file(row.file),
            kind: row.kind,
            home_kind: row.journal.and_then(|journal| journal.home_kind),
        }
    }
}

/// The groups of a row depend on this alone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// The owner.
    pub owner: OwnerKey,
    /// The certainty of the cause.
    pub known: Known,
    /// The operation.
    pub op: Op,
}

/// A key is hashed as two numbers, because every row is looked up.
impl Hash for Key {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let owner = self.owner;
        let code = |kind: Option<Kind>| kind.map_or(0, labels::kind_code);
        let codes = [
            code(owner.kind),
            code(owner.home_kind),
            self.known as u64,
            self.op as u64,
        ];
        let codes = codes.iter().fold(0, |all, code| all << 8 | code);
        hasher.write_u64(u64::from(owner.cause.0) << 32 | u64::from(owner.process.0));
        hasher.write_u64(u64::from(owner.file.0) << 32 | codes);
    }
}

/// The most that waits to be added up. Nearly every sum is in no cache; if many are added to in one go, several are fetched at once.
const WAITING: usize = 64;

/// Sums by key.
#[derive(Default)]
pub(super) struct ByKey {
    waiting: Vec<(Key, u32)>,
    /// The cause whose number lies before the first one in `of_causes`.
    before: u32,
    /// The first key of each known cause. Most have no other, and a place in a list is found faster than a hash.
    of_causes: Vec<Option<(Key, u64)>>,
    /// All other keys.
    others: HashMap<Key, u64>,
}

impl ByKey {
    /// Begins a recording, whose numbers begin at `base`.
    pub fn begin(&mut self, base: Base) {
        if self.of_causes.is_empty() {
            self.before = base.causes;
        }
    }

    /// Adds bytes.
    #[inline]
    pub fn add(&mut self, key: Key, bytes: u32) {
        self.waiting.push((key, bytes));
        if self.waiting.len() >= WAITING {
            self.add_up();
        }
    }

    fn add_up(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for (key, bytes) in waiting.drain(..) {
            let first = self.place(key.owner.cause);
            let first = first.and_then(|at| self.of_causes.get_mut(at));
            let sum = match first.map(|first| first.get_or_insert((key, 0))) {
                Some((first, sum)) if *first == key => sum,
                _ => self.others.entry(key).or_default(),
            };
            sum.tally(bytes.into());
        }
        self.waiting = waiting;
    }

    /// Returns the place of a cause in `of_causes`; None for the unknown one.
    fn place(&mut self, CauseId(cause): CauseId) -> Option<usize> {
        let at = cause.checked_sub(self.before)?.checked_sub(1)? as usize;
        if at >= self.of_causes.len() {
            self.of_causes.resize(at.saturating_add(1), None);
        }
        Some(at)
    }

    /// Returns each key with its sum; what waits comes on its own.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, u64)> {
        let first = self.of_causes.iter().flatten();
        let others = self.others.iter().map(|(key, sum)| (key, *sum));
        let waiting = self.waiting.iter();
        let waiting = waiting.map(|(key, bytes)| (key, u64::from(*bytes)));
        let first = first.map(|(key, sum)| (key, *sum));
        first.chain(others).chain(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each key has all its bytes, whether it is the first of its cause, another one, or of no known cause.
    #[test]
    fn sums_are_those_of_their_keys() {
        let mut sums = ByKey::default();
        let mut right: HashMap<Key, u64> = HashMap::default();
        for (recording, causes) in [(0, 0), (1, 5)] {
            let base = Base {
                causes,
                ..Base::default()
            };
            sums.begin(base);
            for nth in 0..500 {
                let row = Row {
                    file: FileId(nth % 3 + recording),
                    ..Row::default()
                };
                let owner = OwnerKey::new(base, &row, CauseId(nth % 5));
                let (known, op) = (Known::default(), row.op);
                let key = Key { owner, known, op };
                sums.add(key, nth);
                *right.entry(key).or_default() += u64::from(nth);
            }
        }
        let mut found: HashMap<Key, u64> = HashMap::default();
        for (key, bytes) in sums.iter() {
            *found.entry(*key).or_default() += bytes;
        }
        assert_eq!(found.len(), right.len());
        assert!(right.iter().all(|(key, sum)| found.get(key) == Some(sum)));
    }
}

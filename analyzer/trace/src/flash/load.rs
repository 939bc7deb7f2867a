// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a recording does to a device: which units it writes and discards, and on whose account. It is a fold over the pipeline.

use std::io;
use std::ops::Range;

use mostrace_bundle::blk_io_trace::action::BLK_TC_FUA;
use mostrace_map::class::Kind;
use serde::Serialize;

use crate::attribute::{FileId, HashMap, Op, ProcessId, Row, program};
use crate::causes::{CauseId, Share, Verdicts};
use crate::labels;
use crate::origins::{Base, Origins};
use crate::pipeline::{Fold, Step};
use crate::sums::{Label, layer::Layer};
use crate::tally::Tally;

/// The most writes, discards and flushes that are kept, 24 bytes each.
const MOST: usize = 1 << 24;
const NOBODY: &str = "(nobody known)";
const NO_FILE: &str = "(no file known)";

/// On whose account units were written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Owner {
    /// The layer.
    pub layer: String,
    /// The program that caused it, or that submitted it if no cause is known.
    pub program: String,
    /// The file that the program worked on.
    pub file: String,
}

/// What is done to units, which are counted from the first one that the recording writes; those between are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Units are written on the account of an owner.
    Write {
        /// The first one.
        first: u32,
        /// How many.
        count: u32,
        /// The owner's number; 0 is nobody's, and the first of the list has 1.
        owner: u32,
    },
    /// Units are discarded.
    Discard {
        /// The first one.
        first: u32,
        /// How many.
        count: u32,
    },
    /// What was written is on the media before anything else is.
    Flush,
}

/// One recording.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// What it does, in the order of completion.
    pub acts: Vec<Act>,
    /// Number of different units that it writes.
    pub units: u32,
    /// Number of units that its writes have.
    pub writes: u64,
    /// Number of units that its discards have, of those that it writes.
    pub discards: u64,
    /// Bytes that it writes.
    pub bytes: u64,
    /// From its first completion to the last, ns.
    pub duration_ns: u64,
    /// The owners, each once; the first one has the number 1.
    pub owners: Vec<Owner>,
    /// Runs of its units that the snapshot at its end says are free.
    pub free: Vec<Range<u32>>,
}

/// What was seen, before names are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Account {
    cause: CauseId,
    process: ProcessId,
    file: FileId,
    kind: Option<Kind>,
    home: Option<Kind>,
}

#[derive(Clone, Copy)]
enum What {
    Account(u32),
    Discard,
    Flush,
}

struct Seen {
    first: u64,
    end: u64,
    what: What,
}

/// Takes a recording's requests.
pub struct Taking {
    unit: u64,
    seen: Vec<Seen>,
    accounts: HashMap<Account, u32>,
    bytes: u64,
    span: Option<(u64, u64)>,
}

impl Fold for Taking {
    // One recording is taken, whose own numbers are those of all.
    fn begin(&mut self, _: Base) {}

    fn step(&mut self, step: &Step<'_, '_>) -> io::Result<()> {
        let request = &step.request;
        let (first, _) = self.span.unwrap_or((request.time_ns, 0));
        self.span = Some((first, request.time_ns));
        match request.op {
            Op::Write => {
                // A unit that two rows share is written once.
                let mut done = 0;
                let mut shares = step.verdicts.into_iter().flat_map(Verdicts::iter);
                for row in step.rows {
                    let shares = shares.next().map_or(&[][..], |(_, shares)| shares);
                    done = self.write(row, shares, done);
                }
                if request.action & BLK_TC_FUA != 0 {
                    self.push(0..0, What::Flush);
                }
            }
            // Drives keep nothing for zeros that no data comes with.
            Op::Discard | Op::WriteZeroes => {
                let from = request.sector.saturating_mul(512);
                let to = from.saturating_add(request.bytes.into());
                // What is discarded in part still has data.
                self.push(from.div_ceil(self.unit)..to / self.unit, What::Discard);
            }
            Op::DeviceFlush => self.push(0..0, What::Flush),
            _ => {}
        }
        match self.seen.len() > MOST {
            true => Err(io::Error::other(format!(
                "more than {MOST} writes and discards: name fewer segments"
            ))),
            false => Ok(()),
        }
    }
}

impl Taking {
    /// Takes requests in units of this many bytes.
    pub fn new(unit: u64) -> Taking {
        Taking {
            unit: unit.max(1),
            seen: Vec::new(),
            accounts: HashMap::default(),
            bytes: 0,
            span: None,
        }
    }

    /// Takes a row of a request of which the units before `done` are written; returns where its own end.
    fn write(&mut self, row: &Row, shares: &[Share], done: u64) -> u64 {
        self.bytes.tally(row.bytes.into());
        let from = row.sector.saturating_mul(512);
        let end = from.saturating_add(row.bytes.into()).div_ceil(self.unit);
        let first = (from / self.unit).max(done).min(end);
        let (mut at, mut passed) = (first, 0_u64);
        let unknown = [CauseId::UNKNOWN];
        let each = shares.iter().map(|share| (share.cause, share.bytes));
        let alone = unknown.into_iter().map(|cause| (cause, row.bytes));
        // A block with several causers is divided among them in whole units.
        for (cause, bytes) in each.chain(alone) {
            passed.tally(bytes.into());
            let part = (end - first).saturating_mul(passed);
            let to = part.checked_div(row.bytes.into()).unwrap_or(0);
            let to = first.saturating_add(to).min(end);
            if to > at {
                let account = Account {
                    cause,
                    process: row.process,
                    file: row.file,
                    kind: row.kind,
                    home: row.journal.and_then(|journal| journal.home_kind),
                };
                let next = u32::try_from(self.accounts.len()).unwrap_or(u32::MAX);
                let account = *self.accounts.entry(account).or_insert(next);
                self.push(at..to, What::Account(account));
                at = to;
            }
        }
        end.max(done)
    }

    fn push(&mut self, units: Range<u64>, what: What) {
        let Range { start: first, end } = units;
        let is_flush = |what: &What| matches!(what, What::Flush);
        // A flush after a flush finds nothing to do.
        let again = is_flush(&what) && self.seen.last().is_none_or(|last| is_flush(&last.what));
        if end > first || (is_flush(&what) && !again) {
            self.seen.push(Seen { first, end, what });
        }
    }

    /// Returns the load, given the names that rows refer to and the filesystem's name. `free` are the sectors that the snapshot at the
    /// end says are free.
    pub fn load(self, origins: &Origins, filesystem: &str, free: &[Range<u64>]) -> Load {
        let (numbers, owners) = owners(&self.accounts, origins, filesystem);
        let written = Written::of(&self.seen);
        let mut load = Load {
            units: written.count,
            bytes: self.bytes,
            duration_ns: self
                .span
                .map_or(0, |(first, last)| last.saturating_sub(first)),
            owners,
            ..Load::default()
        };
        for Seen { first, end, what } in &self.seen {
            let Range { start, end } = written.own(*first..*end);
            let count = end - start;
            load.acts.extend(match *what {
                What::Flush => Some(Act::Flush),
                _ if count == 0 => None,
                What::Account(account) => {
                    load.writes.tally(count.into());
                    let owner = numbers.get(account as usize).copied().unwrap_or(0);
                    Some(Act::Write {
                        first: start,
                        count,
                        owner,
                    })
                }
                What::Discard => {
                    load.discards.tally(count.into());
                    Some(Act::Discard {
                        first: start,
                        count,
                    })
                }
            });
        }
        let units = free.iter().map(|sectors| {
            let (from, to) = (
                sectors.start.saturating_mul(512),
                sectors.end.saturating_mul(512),
            );
            written.own(from.div_ceil(self.unit)..to / self.unit)
        });
        load.free = units.filter(|units| !units.is_empty()).collect();
        load
    }
}

/// The runs of units that are written.
struct Written {
    /// The first and the end of each, and how many lie before it.
    runs: Vec<(u64, u64, u32)>,
    count: u32,
}

impl Written {
    fn of(seen: &[Seen]) -> Written {
        let writes = seen
            .iter()
            .filter(|seen| matches!(seen.what, What::Account(_)));
        let mut all: Vec<(u64, u64)> = writes.map(|seen| (seen.first, seen.end)).collect();
        all.sort_unstable();
        let mut runs: Vec<(u64, u64, u32)> = Vec::new();
        for (first, end) in all {
            match runs.last_mut() {
                Some(last) if first <= last.1 => last.1 = last.1.max(end),
                _ => runs.push((first, end, 0)),
            }
        }
        let mut count = 0_u32;
        for (first, end, before) in &mut runs {
            *before = count;
            count.tally(u32::try_from(*end - *first).unwrap_or(u32::MAX));
        }
        Written { runs, count }
    }

    /// Returns the units among these that are written, by their new numbers.
    fn own(&self, units: Range<u64>) -> Range<u32> {
        let number = |unit: u64| {
            let behind = self.runs.partition_point(|(first, ..)| *first <= unit);
            let run = behind.checked_sub(1).and_then(|at| self.runs.get(at));
            run.map_or(0, |(first, end, before)| {
                let inside = unit.min(*end) - first;
                before.saturating_add(u32::try_from(inside).unwrap_or(u32::MAX))
            })
        };
        let first = number(units.start);
        first..number(units.end.max(units.start)).max(first)
    }
}

/// Returns the owner's number of each account, and the owners, the first of which has the number 1.
fn owners(
    accounts: &HashMap<Account, u32>,
    origins: &Origins,
    filesystem: &str,
) -> (Vec<u32>, Vec<Owner>) {
    let who = labels::causes_or_submitters(origins);
    let files = labels::cause_or_final_files(origins);
    let roles = labels::roles(origins);
    let (whos, names, words) = (who.words(), files.words(), roles.words());
    let word = |words: &[Option<String>], code: u32| words.get(code as usize).cloned().flatten();
    let label = |word: Option<&str>| word.map_or(Label::Empty, |word| Label::Text(word.into()));
    let owner = |account: &Account| {
        let [cause, process, file] =
            [account.cause.0, account.process.0, account.file.0].map(u64::from);
        let kind = account.kind.map_or(0, labels::kind_code);
        let role = word(&words, roles.code([kind, file]));
        let layer = Layer::of(&[
            label(account.kind.map(|kind| kind.class().as_str())),
            label(account.kind.map(Into::into)),
            label(role.as_deref()),
            label(account.home.map(Into::into)),
        ]);
        let layer = layer.map(|layer| layer.name(filesystem));
        let process = word(&whos, who.code([cause, process, file]));
        Owner {
            layer: layer.unwrap_or_else(|| "unknown".into()),
            program: process.map_or(NOBODY.into(), |process| program(&process).to_owned()),
            file: word(&names, files.code([cause, file])).unwrap_or_else(|| NO_FILE.into()),
        }
    };
    let mut accounts: Vec<(&Account, u32)> = accounts.iter().map(|(a, n)| (a, *n)).collect();
    accounts.sort_by_key(|(_, number)| *number);
    let mut known: HashMap<Owner, u32> = HashMap::default();
    let mut owners = Vec::new();
    let number = |(account, _): (&Account, u32)| {
        *known.entry(owner(account)).or_insert_with_key(|owner| {
            owners.push(owner.clone());
            u32::try_from(owners.len()).unwrap_or(0)
        })
    };
    (accounts.into_iter().map(number).collect(), owners)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::Known;

    fn account(cause: u32) -> Account {
        Account {
            cause: CauseId(cause),
            process: ProcessId::default(),
            file: FileId::NONE,
            kind: None,
            home: None,
        }
    }

    fn row(sector: u64, bytes: u32) -> Row {
        Row {
            sector,
            bytes,
            op: Op::Write,
            ..Row::default()
        }
    }

    fn runs(taking: &Taking) -> Vec<(u64, u64)> {
        taking
            .seen
            .iter()
            .map(|seen| (seen.first, seen.end))
            .collect()
    }

    #[test]
    fn a_unit_that_two_rows_share_is_written_once() {
        let mut taking = Taking::new(4096);
        let done = taking.write(&row(1, 4096), &[], 0);
        let done = taking.write(&row(9, 512), &[], done);
        let done = taking.write(&row(10, 4096), &[], done);
        assert_eq!((runs(&taking), done), (vec![(0, 2), (2, 3)], 3));
        assert_eq!(taking.bytes, 8704);
    }

    #[test]
    fn causers_share_a_row_in_whole_units() {
        let share = |cause, bytes| Share {
            cause: CauseId(cause),
            known: Known::Shared,
            bytes,
        };
        let mut taking = Taking::new(4096);
        taking.write(&row(0, 16384), &[share(1, 8192), share(2, 4096)], 0);
        taking.write(&row(800, 4096), &[share(1, 2048), share(2, 2048)], 0);
        assert_eq!(runs(&taking), [(0, 2), (2, 3), (3, 4), (100, 101)]);
        let unknown = taking.accounts.len();
        assert_eq!(unknown, 3);
        assert!(taking.accounts.contains_key(&account(0)));
    }

    #[test]
    fn only_units_that_are_written_are_counted() {
        let mut taking = Taking::new(4096);
        taking.write(&row(8 * 1000, 8192), &[], 0);
        taking.push(0..999, What::Discard);
        taking.push(1001..5000, What::Discard);
        taking.push(0..0, What::Flush);
        taking.write(&row(8 * 10, 4096), &[], 0);
        let free = [0..8 * 500, 8 * 1001 + 1..8 * 1002 + 1];
        let load = taking.load(&Origins::default(), "ext4", &free);
        let write = |first, count| Act::Write {
            first,
            count,
            owner: 1,
        };
        let discard = |first, count| Act::Discard { first, count };
        let acts = [
            write(1, 2),
            discard(0, 1),
            discard(2, 1),
            Act::Flush,
            write(0, 1),
        ];
        assert_eq!(load.acts, acts);
        assert_eq!(
            (load.units, load.writes, load.discards, load.bytes),
            (3, 3, 2, 12288)
        );
        // The free sectors of unit 1001 are not all of it.
        assert_eq!(load.free, std::iter::once(0..1).collect::<Vec<_>>());
        assert_eq!(load.owners.len(), 1);
    }

    proptest::proptest! {
        #[test]
        fn no_number_in_a_recording_makes_it_panic(
            rows in proptest::collection::vec((proptest::num::u64::ANY, proptest::num::u32::ANY), 0..20),
            unit in 9_u32..20,
        ) {
            let mut taking = Taking::new(1 << unit);
            for &(sector, bytes) in &rows {
                taking.write(&row(sector, bytes), &[], 0);
                taking.push(sector..sector.saturating_add(bytes.into()), What::Discard);
            }
            let load = taking.load(&Origins::default(), "ext4", std::slice::from_ref(&(0..u64::MAX)));
            for act in &load.acts {
                if let Act::Write { first, count, .. } | Act::Discard { first, count } = act {
                    proptest::prop_assert!(u64::from(*first) + u64::from(*count) <= u64::from(load.units));
                }
            }
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The blocks that were dirtied since they were last written home.

use std::ops::Range;

use super::blame::Blame;
use crate::attribute::HashMap;
use crate::tally::Tally;

/// The most changes that are remembered; beyond it, all are forgotten, and what is written home may be changed by others too. A
/// journal has to write its blocks home before it holds this many changes.
const LIMIT: usize = 1 << 21;

/// The changes that one causer made to a block since then.
struct Change {
    blame: Blame,
    /// The times when the causer first and last dirtied the block, ns.
    first_ns: u64,
    last_ns: u64,
}

/// A block whose changes are in the journal and not written home yet.
#[derive(Default)]
struct Block {
    changes: Vec<Change>,
    /// True if it holds contents of a file (data=journal).
    is_contents: bool,
}

/// The blocks, by the sectors of their homes.
#[derive(Default)]
pub(super) struct Homes {
    blocks: HashMap<u64, Block>,
    count: usize,
    /// Number of changes that were forgotten.
    cut_short: usize,
}

impl Homes {
    /// Notes that a block was dirtied at `time_ns`, in a transaction that is committed by now.
    pub fn dirtied(&mut self, home: u64, time_ns: u64, blame: Blame) {
        if self.count >= LIMIT {
            self.cut_short.tally(self.count);
            self.blocks.clear();
            self.count = 0;
        }
        let changes = &mut self.blocks.entry(home).or_default().changes;
        // A causer that changes a block repeatedly usually does so consecutively.
        if let Some(last) = changes.last_mut().filter(|last| last.blame == blame) {
            last.last_ns = last.last_ns.max(time_ns);
            return;
        }
        self.count.tally(1);
        changes.push(Change {
            blame,
            first_ns: time_ns,
            last_ns: time_ns,
        });
    }

    /// Notes that a block whose changes are about to be committed holds contents of a file.
    pub fn holds_contents(&mut self, home: u64) {
        self.blocks.entry(home).or_default().is_contents = true;
    }

    /// Returns true if a block holds contents of a file whose changes are in the journal.
    pub fn are_contents(&self, home: u64) -> bool {
        let block = self.blocks.get(&home);
        block.is_some_and(|block| block.is_contents && !block.changes.is_empty())
    }

    /// Removes the changes up to `time_ns` of a block that is written home. Returns those after `freed_ns`, when the block was freed
    /// last; the first one comes first.
    pub fn written(&mut self, home: u64, time_ns: u64, freed_ns: Option<u64>) -> Vec<Blame> {
        let Some(Block { changes, .. }) = self.blocks.get_mut(&home) else {
            return Vec::new();
        };
        let before = changes.len();
        let mut taken = Vec::new();
        changes.retain_mut(|change| {
            let is_in_it = freed_ns.is_none_or(|freed_ns| change.last_ns > freed_ns);
            if change.first_ns <= time_ns && is_in_it {
                taken.push(change.blame.clone());
            }
            change.first_ns = change.first_ns.max(time_ns.saturating_add(1));
            change.last_ns >= change.first_ns
        });
        let gone = before.saturating_sub(changes.len());
        self.count = self.count.saturating_sub(gone);
        if changes.is_empty() {
            self.blocks.remove(&home);
        }
        taken
    }

    /// Removes the changes up to `time_ns` of all blocks that begin in a range, a `step` apart.
    pub fn all_written(&mut self, homes: Range<u64>, step: u64, time_ns: u64) {
        let first = homes.start;
        let count = (homes.end.saturating_sub(first)).div_ceil(step.max(1));
        // A damaged request may be of gigabytes, and few blocks are known.
        if usize::try_from(count).is_ok_and(|count| count <= self.blocks.len()) {
            let step = usize::try_from(step).unwrap_or(usize::MAX).max(1);
            homes.step_by(step).for_each(|home| {
                self.written(home, time_ns, None);
            });
            return;
        }
        let is_in_it = |home: &u64| {
            homes.contains(home) && home.saturating_sub(first).is_multiple_of(step.max(1))
        };
        let known: Vec<u64> = self.blocks.keys().copied().filter(is_in_it).collect();
        for home in known {
            self.written(home, time_ns, None);
        }
    }

    /// Returns the number of changes for which there was no room.
    pub fn cut_short(&self) -> usize {
        self.cut_short
    }
}

#[cfg(test)]
mod tests {
    use super::super::CauseId;
    use super::*;

    /// Of three blocks, those in the range are gone, however long it is.
    #[test]
    fn blocks_of_a_range_are_written() {
        for (homes, step, left) in [
            (16..24, 8, vec![8, 32]),
            (8..40, 16, vec![16, 32]),
            (16..u64::MAX, 8, vec![8]),
            (0..u64::MAX, 3, vec![8, 16, 32]),
        ] {
            let mut all = Homes::default();
            for home in [8, 16, 24, 32] {
                all.dirtied(home, 1, Blame::Exact(CauseId(1)));
            }
            all.written(24, 1, None);
            all.all_written(homes.clone(), step, 1);
            let mut known: Vec<u64> = all.blocks.keys().copied().collect();
            known.sort_unstable();
            assert_eq!(known, left, "{homes:?}");
        }
    }

    #[test]
    fn changes_that_are_forgotten_are_counted() {
        let mut homes = Homes::default();
        for home in 0..=LIMIT as u64 {
            homes.dirtied(8 * home, home, Blame::Exact(CauseId(1)));
        }
        assert_eq!(homes.cut_short(), LIMIT);
        assert!(homes.written(0, LIMIT as u64, None).is_empty());
        let last = 8 * LIMIT as u64;
        assert_eq!(
            homes.written(last, LIMIT as u64, None),
            [Blame::Exact(CauseId(1))]
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts about runs of blocks or sectors, as far as events have shown them.

use std::collections::BTreeMap;
use std::ops::Range;

/// A fact about a run.
pub(super) trait Fact: Copy {
    /// Returns the same fact about the rest of the run, which begins `blocks` behind its first block.
    fn later(self, blocks: u64) -> Self;
}

/// The most runs that are kept, which take some 30 MB; one more makes it forget all of them.
const LIMIT: usize = 1 << 18;

/// Disjoint runs of blocks.
#[derive(Debug)]
pub(super) struct Extents<T> {
    /// The runs by their first block: the number behind the last block, and what is known.
    runs: BTreeMap<u64, (u64, T)>,
    /// The number of runs that were forgotten for lack of room.
    pub forgotten: u64,
}

impl<T> Default for Extents<T> {
    fn default() -> Extents<T> {
        Extents {
            runs: BTreeMap::new(),
            forgotten: 0,
        }
    }
}

impl<T: Fact> Extents<T> {
    /// Sets the fact about these blocks, replacing any other.
    pub fn insert(&mut self, blocks: Range<u64>, fact: T) {
        self.remove(&blocks);
        if self.runs.len() >= LIMIT {
            let runs = u64::try_from(self.runs.len()).unwrap_or(u64::MAX);
            self.forgotten = self.forgotten.saturating_add(runs);
            self.runs.clear();
        }
        if !blocks.is_empty() {
            self.runs.insert(blocks.start, (blocks.end, fact));
        }
    }

    /// Forgets what is known about the blocks.
    pub fn remove(&mut self, blocks: &Range<u64>) {
        for (run, fact) in self.overlapping(blocks) {
            self.runs.remove(&run.start);
            if run.start < blocks.start {
                self.runs.insert(run.start, (blocks.start, fact));
            }
            if run.end > blocks.end {
                let behind = fact.later(blocks.end.saturating_sub(run.start));
                self.runs.insert(blocks.end, (run.end, behind));
            }
        }
    }

    /// Returns the facts about these blocks, in the blocks' order.
    pub fn of(&self, blocks: &Range<u64>) -> Vec<(Range<u64>, T)> {
        let runs = self.overlapping(blocks).into_iter();
        runs.map(|(run, fact)| {
            let start = run.start.max(blocks.start);
            (
                start..run.end.min(blocks.end),
                fact.later(start.saturating_sub(run.start)),
            )
        })
        .collect()
    }

    fn overlapping(&self, blocks: &Range<u64>) -> Vec<(Range<u64>, T)> {
        if blocks.is_empty() {
            return Vec::new();
        }
        let before = self.runs.range(..blocks.start).next_back();
        let runs = before.into_iter().chain(self.runs.range(blocks.clone()));
        runs.map(|(&start, &(end, fact))| (start..end, fact))
            .filter(|(run, _)| run.end > blocks.start)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::owner::Owner;
    use super::*;

    fn owner(ino: u64, index: u64) -> Owner {
        Owner {
            ino,
            index,
            is_node: false,
        }
    }

    proptest! {
        #[test]
        fn each_block_is_the_last_owners(
            steps in prop::collection::vec((0u64..60, 0u64..20, 0u64..4), 0..40), asked in 0u64..60,
        ) {
            let mut extents = Extents::default();
            let mut model = [None; 80];
            for (start, len, ino) in steps {
                let blocks = start..start + len;
                for block in blocks.clone() {
                    let owned = owner(ino, 100 + block - start);
                    model[block as usize] = (ino > 0).then_some(owned);
                }
                match ino {
                    0 => extents.remove(&blocks),
                    _ => extents.insert(blocks, owner(ino, 100)),
                }
            }
            let mut found = [None; 80];
            for (run, first) in extents.of(&(asked..80)) {
                for block in run.clone() {
                    found[block as usize] = Some(first.later(block - run.start));
                }
            }
            prop_assert_eq!(&found[asked as usize..], &model[asked as usize..]);
        }
    }
}

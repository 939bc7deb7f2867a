// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose blocks are, as far as the filesystem's events have told by now.

use std::collections::BTreeMap;
use std::ops::Range;

/// A run of blocks of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// 0 of a node, of which no event says whose it is.
    pub ino: u64,
    /// Block of the file, at the run's first one; of a node its number.
    pub index: u64,
    pub is_node: bool,
}

/// More are forgotten, all at once: some 30 MB.
const LIMIT: usize = 1 << 18;

/// Disjoint runs of blocks.
#[derive(Debug, Default)]
pub(super) struct Extents {
    /// First block → one past the last, and whose.
    runs: BTreeMap<u64, (u64, Owner)>,
    /// Runs that were forgotten for want of room.
    pub forgotten: u64,
}

impl Extents {
    /// From now on the blocks are the owner's, and nobody else's.
    pub fn insert(&mut self, blocks: Range<u64>, owner: Owner) {
        self.remove(&blocks);
        if self.runs.len() >= LIMIT {
            self.forgotten += self.runs.len() as u64;
            self.runs.clear();
        }
        if !blocks.is_empty() {
            self.runs.insert(blocks.start, (blocks.end, owner));
        }
    }

    /// From now on nobody is known to have them.
    pub fn remove(&mut self, blocks: &Range<u64>) {
        for (run, owner) in self.overlapping(blocks) {
            self.runs.remove(&run.start);
            if run.start < blocks.start {
                self.runs.insert(run.start, (blocks.start, owner));
            }
            if run.end > blocks.end {
                let behind = later(owner, blocks.end - run.start);
                self.runs.insert(blocks.end, (run.end, behind));
            }
        }
    }

    /// What is known of these blocks, in their order.
    pub fn of(&self, blocks: &Range<u64>) -> Vec<(Range<u64>, Owner)> {
        let runs = self.overlapping(blocks).into_iter();
        runs.map(|(run, owner)| {
            let start = run.start.max(blocks.start);
            (
                start..run.end.min(blocks.end),
                later(owner, start - run.start),
            )
        })
        .collect()
    }

    fn overlapping(&self, blocks: &Range<u64>) -> Vec<(Range<u64>, Owner)> {
        if blocks.is_empty() {
            return Vec::new();
        }
        let before = self.runs.range(..blocks.start).next_back();
        let runs = before.into_iter().chain(self.runs.range(blocks.clone()));
        runs.map(|(&start, &(end, owner))| (start..end, owner))
            .filter(|(run, _)| run.end > blocks.start)
            .collect()
    }
}

fn later(owner: Owner, blocks: u64) -> Owner {
    Owner {
        index: owner.index.saturating_add(blocks),
        ..owner
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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
                    found[block as usize] = Some(later(first, block - run.start));
                }
            }
            prop_assert_eq!(&found[asked as usize..], &model[asked as usize..]);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds when each block is accessed again, by runs of blocks: memory grows with the number of requests, not with their
//! lengths.

use std::collections::BTreeMap;
use std::ops::Range;

/// The blocks that one request accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    /// Seconds since the first access.
    pub seconds: u32,
    /// The first block.
    pub block: u64,
    pub blocks: u64,
    /// Number of the first block's access among all accesses of blocks.
    pub number: u64,
}

/// Blocks of one access that are next accessed consecutively, or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Next {
    pub blocks: Range<u64>,
    /// Number of the next access of the first block.
    pub number: Option<u64>,
}

impl Next {
    /// Returns the number of a block's next access in the format's terms: -1 if there is none.
    pub fn of(&self, block: u64) -> i64 {
        let behind = block.saturating_sub(self.blocks.start);
        let number = self.number.map(|first| first.saturating_add(behind));
        number.map_or(-1, |number| i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// Returns for each access, in their order, its blocks by their next accesses.
pub(super) fn next_accesses(accesses: &[Access]) -> Vec<Vec<Next>> {
    let mut later = Later::default();
    let mut all: Vec<Vec<Next>> = accesses.iter().rev().map(|a| later.put(a)).collect();
    all.reverse();
    all
}

/// The next access of each block, as runs: the key is a run's first block, the value its end and the number of the first
/// block's access.
#[derive(Default)]
struct Later(BTreeMap<u64, (u64, u64)>);

impl Later {
    /// Adds an access that is earlier than all known ones; returns the next accesses of its blocks.
    fn put(&mut self, access: &Access) -> Vec<Next> {
        let end = access.block.saturating_add(access.blocks);
        let blocks = access.block..end;
        self.cut(blocks.start);
        self.cut(blocks.end);
        let runs = self
            .0
            .range(blocks.clone())
            .map(|(&from, &run)| (from, run));
        let runs: Vec<(u64, (u64, u64))> = runs.collect();
        let mut found = Vec::new();
        let mut at = blocks.start;
        for (from, (to, number)) in runs {
            self.0.remove(&from);
            found.extend(none(at..from));
            found.push(Next {
                blocks: from..to,
                number: Some(number),
            });
            at = to;
        }
        found.extend(none(at..blocks.end));
        if !blocks.is_empty() {
            self.0.insert(blocks.start, (end, access.number));
        }
        found
    }

    /// Splits the run that contains block `at` in two.
    fn cut(&mut self, at: u64) {
        let Some((&from, &(to, number))) = self.0.range(..at).next_back() else {
            return;
        };
        if to > at {
            let behind = number.saturating_add(at.saturating_sub(from));
            self.0.insert(from, (at, number));
            self.0.insert(at, (to, behind));
        }
    }
}

fn none(blocks: Range<u64>) -> Option<Next> {
    let some = !blocks.is_empty();
    some.then_some(Next {
        blocks,
        number: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_block_is_told_of_as_one_by_one(requests in prop::collection::vec((0u64..40, 0u64..12), 0..40)) {
            let mut number = 0;
            let accesses: Vec<Access> = requests.iter().map(|&(block, blocks)| {
                let access = Access { seconds: 0, block, blocks, number };
                number += blocks;
                access
            }).collect();
            let single: Vec<u64> = accesses.iter().flat_map(|a| a.block..a.block + a.blocks).collect();
            let expected: Vec<i64> = (0..single.len()).map(|at| {
                let again = single[at + 1..].iter().position(|block| *block == single[at]);
                again.map_or(-1, |behind| (at + 1 + behind) as i64)
            }).collect();
            let told: Vec<i64> = next_accesses(&accesses).into_iter().flatten()
                .flat_map(|next| next.blocks.clone().map(move |block| next.of(block))).collect();
            prop_assert_eq!(told, expected);
        }
    }

    #[test]
    fn long_requests_take_no_more_than_short_ones() {
        let access = |nth: u64| Access {
            seconds: 0,
            block: nth,
            blocks: 1 << 40,
            number: nth << 40,
        };
        let accesses: Vec<Access> = (0..1000).map(access).collect();
        let pieces: usize = next_accesses(&accesses).iter().map(Vec::len).sum();
        assert!(pieces <= 3 * accesses.len(), "{pieces}");
    }
}

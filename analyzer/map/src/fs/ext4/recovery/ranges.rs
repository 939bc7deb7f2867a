// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ranges of one file that fast commits add and delete.

use std::collections::BTreeMap;

use super::super::block_list::{BlockList, Run};
use super::super::numbers::{FileBlock, FsBlock};

/// A change of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    logical: FileBlock,
    blocks: u64,
    /// The new place; None if the range is deleted.
    block: Option<FsBlock>,
}

/// The changes of a file, in their order.
#[derive(Clone, Debug, Default)]
pub struct Ranges(Vec<Range>);

impl Ranges {
    /// Gives a range a new place.
    pub fn add(&mut self, logical: FileBlock, blocks: u64, block: FsBlock) {
        self.0.push(Range {
            logical,
            blocks,
            block: Some(block),
        });
    }

    /// Deletes a range.
    pub fn delete(&mut self, logical: FileBlock, blocks: u64) {
        self.0.push(Range {
            logical,
            blocks,
            block: None,
        });
    }

    /// Changes a list of blocks, of a file that ends before the block `end`. Blocks that are no longer the file's are added to the
    /// freed ones.
    pub fn apply(&self, list: &mut BlockList, end: FileBlock) {
        let mut runs: BTreeMap<FileBlock, Run> =
            list.runs.drain(..).map(|run| (run.logical, run)).collect();
        for range in &self.0 {
            remove(&mut runs, range.logical, range.blocks, &mut list.freed);
            if let Some(block) = range.block {
                let run = Run {
                    logical: range.logical,
                    block,
                    blocks: range.blocks,
                };
                runs.insert(range.logical, run);
            }
        }
        remove(&mut runs, end, u64::MAX, &mut list.freed);
        runs.into_values().for_each(|run| list.push(run));
        if list.runs.is_empty() {
            let nodes = list.tree.drain(..).chain(list.upper_tree.drain(..));
            list.freed.extend(nodes.map(|block| (block, 1)));
        }
    }
}

/// Removes the blocks `from..from + blocks` of a file.
fn remove(
    runs: &mut BTreeMap<FileBlock, Run>,
    from: FileBlock,
    blocks: u64,
    freed: &mut Vec<(FsBlock, u64)>,
) {
    let to = from.plus(blocks);
    let before = runs.range(..from).next_back();
    let before = before.filter(|(_, run)| run.logical.plus(run.blocks) > from);
    let met: Vec<FileBlock> = before
        .into_iter()
        .chain(runs.range(from..to.max(from)))
        .map(|(&logical, _)| logical)
        .collect();
    for logical in met {
        let Some(run) = runs.remove(&logical) else {
            continue;
        };
        let end = run.logical.plus(run.blocks);
        let (first, last) = (from.max(run.logical), to.min(end));
        let part = |from: FileBlock, to: FileBlock| Run {
            logical: from,
            block: run.block.plus(run.logical.up_to(from)),
            blocks: from.up_to(to),
        };
        for kept in [part(run.logical, first), part(last, end)] {
            if kept.blocks > 0 {
                runs.insert(kept.logical, kept);
            }
        }
        let gone = part(first, last);
        freed.push((gone.block, gone.blocks));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_what_block_by_block_changes_give(
            before in prop::collection::vec((0u64..30, 1u64..9), 0..6),
            changes in prop::collection::vec((0u64..40, 1u64..12, any::<bool>()), 0..12),
            end in 0u64..60,
        ) {
            let mut list = BlockList::default();
            let (mut at, mut model) = (0, BTreeMap::new());
            for (gap, blocks) in before {
                let run = Run { logical: FileBlock(at + gap), block: FsBlock(1000 + at + gap), blocks };
                (0..blocks).for_each(|n| { model.insert(at + gap + n, 1000 + at + gap + n); });
                at += gap + blocks;
                list.push(run);
            }
            let mut all: BTreeSet<u64> = model.values().copied().collect();
            let mut ranges = Ranges::default();
            for (nth, (logical, blocks, adds)) in changes.into_iter().enumerate() {
                let place = 2000 + nth as u64 * 50;
                for n in 0..blocks {
                    model.remove(&(logical + n));
                    if adds {
                        model.insert(logical + n, place + n);
                        all.insert(place + n);
                    }
                }
                match adds {
                    true => ranges.add(FileBlock(logical), blocks, FsBlock(place)),
                    false => ranges.delete(FileBlock(logical), blocks),
                }
            }
            model.retain(|&logical, _| logical < end);
            ranges.apply(&mut list, FileBlock(end));
            let found: BTreeMap<u64, u64> = list.runs.iter()
                .flat_map(|run| (0..run.blocks).map(|n| (run.logical.0 + n, run.block.0 + n)))
                .collect();
            let freed: BTreeSet<u64> = list.freed.iter().flat_map(|(block, n)| block.0..block.0 + n).collect();
            let kept: BTreeSet<u64> = model.values().copied().collect();
            prop_assert_eq!(found, model);
            prop_assert_eq!(freed, all.difference(&kept).copied().collect::<BTreeSet<u64>>());
        }
    }
}

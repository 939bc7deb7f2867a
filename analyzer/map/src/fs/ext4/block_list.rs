// SPDX-License-Identifier: MIT OR Apache-2.0
//! The places of an inode's blocks.

use super::numbers::{FileBlock, FsBlock};
use crate::fs::notices::Notices;

/// Consecutive blocks of a file that lie together on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First block, counted in the file.
    pub logical: FileBlock,
    /// First block, counted in the filesystem.
    pub block: FsBlock,
    /// Length in blocks, at least 1.
    pub blocks: u64,
}

/// All blocks of one inode except those of its extended attributes.
#[derive(Clone, Debug, Default)]
pub struct BlockList {
    /// The contents, including preallocated blocks, in file order. Each run is as long as possible.
    pub runs: Vec<Run>,
    /// Extent tree nodes outside the inode, or indirect blocks.
    pub tree: Vec<FsBlock>,
    /// Double and triple indirect blocks.
    pub upper_tree: Vec<FsBlock>,
    /// The faults found in the inode or in its tree.
    pub complaints: Notices,
    /// Number of entries in the tree, including its upper nodes. One entry may hold several runs, or only part of one.
    pub entries: u64,
    /// The blocks behind the end at which the next mount will cut the file: the first one and their number.
    pub freed: Vec<(FsBlock, u64)>,
}

impl BlockList {
    /// Adds a run of contents.
    pub fn push(&mut self, run: Run) {
        self.entries = self.entries.saturating_add(1);
        match self.runs.last_mut() {
            Some(last)
                if last.logical.plus(last.blocks) == run.logical
                    && last.block.plus(last.blocks) == run.block =>
            {
                last.blocks = last.blocks.saturating_add(run.blocks);
            }
            _ => self.runs.push(run),
        }
    }

    /// Returns true if there are blocks and no fault was found.
    pub fn is_sound(&self) -> bool {
        self.entries > 0 && self.complaints.is_empty()
    }

    /// Adds a complaint.
    pub fn complain(&mut self, line: String) {
        self.complaints.push(line);
    }

    /// Returns true if both lists have the same blocks.
    pub fn agrees_with(&self, other: &BlockList) -> bool {
        (&self.runs, &self.tree, &self.upper_tree) == (&other.runs, &other.tree, &other.upper_tree)
    }
}

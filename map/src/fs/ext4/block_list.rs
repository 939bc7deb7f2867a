// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where an inode's blocks are.

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

/// All blocks of one inode but those of its extended attributes.
#[derive(Clone, Debug, Default)]
pub struct BlockList {
    /// The contents, preallocated blocks included, in the order of the file. Each run is as long as it can be.
    pub runs: Vec<Run>,
    /// Extent tree nodes outside the inode, or indirect blocks.
    pub tree: Vec<FsBlock>,
    /// Double and triple indirect blocks.
    pub upper_tree: Vec<FsBlock>,
    /// What is wrong with the inode or its tree.
    pub complaints: Notices,
    /// The entries of the tree, its upper nodes' included: extents of several runs, or of parts of one.
    pub entries: u64,
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

    /// True if there are blocks and nothing is wrong with them.
    pub fn is_sound(&self) -> bool {
        self.entries > 0 && self.complaints.is_empty()
    }

    /// Adds a complaint.
    pub fn complain(&mut self, line: String) {
        self.complaints.push(line);
    }

    /// Whether both list the same blocks.
    pub fn agrees_with(&self, other: &BlockList) -> bool {
        (&self.runs, &self.tree, &self.upper_tree) == (&other.runs, &other.tree, &other.upper_tree)
    }
}

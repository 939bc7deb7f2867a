// SPDX-License-Identifier: MIT OR Apache-2.0
//! What debugfs would come to if it listed an inode's blocks. It follows a tree as it is told, and a few blocks that lead
//! to one another make a tree of billions of nodes. So every tree is walked here first, each block once.

use std::collections::HashSet;

use super::inode::BlockMap;
use super::numbers::FsBlock;
use super::superblock::SuperBlock;
use super::tree::{indices, indirect_node, is_extent_node, root};
use crate::fs::image::Image;
use crate::fs::le::u16_at;

/// The blocks of all trees so far.
pub struct Reach<'a> {
    image: &'a Image,
    sb: &'a SuperBlock,
    nodes: HashSet<FsBlock>,
    /// Lines that debugfs prints about these trees, at most.
    lines: u64,
}

/// A block that has a place in a tree already.
pub struct Twice(pub FsBlock);

impl<'a> Reach<'a> {
    /// No tree so far.
    pub fn new(image: &'a Image, sb: &'a SuperBlock) -> Reach<'a> {
        Reach {
            image,
            sb,
            nodes: HashSet::new(),
            lines: 0,
        }
    }

    /// What [`Reach::lines`] came to.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Walks the tree of an inode.
    ///
    /// # Errors
    /// One of its blocks has been met before, in this tree or another.
    pub fn walk(&mut self, block_map: &BlockMap, i_block: &[u8]) -> Result<(), Twice> {
        match block_map {
            BlockMap::Extents => self.extents(i_block),
            BlockMap::Indirect => self.indirect(i_block),
            BlockMap::None | BlockMap::InInode(_) => Ok(()),
        }
    }

    /// As debugfs does, by the height that the root tells, whatever the nodes below it say of theirs.
    fn extents(&mut self, i_block: &[u8]) -> Result<(), Twice> {
        let height = u16_at(i_block, 6).unwrap_or(0);
        let mut waiting = vec![];
        self.extent_node(i_block, height, &mut waiting);
        while let Some((block, height)) = waiting.pop() {
            if let Some(node) = self.read(block)? {
                self.extent_node(&node, height, &mut waiting);
            }
        }
        Ok(())
    }

    fn extent_node(&mut self, node: &[u8], height: u16, waiting: &mut Vec<(FsBlock, u16)>) {
        if !is_extent_node(node) {
            return;
        }
        self.add(indices(node).count());
        if let Some(below) = height.checked_sub(1) {
            waiting.extend(indices(node).map(|block| (block, below)));
        }
    }

    fn indirect(&mut self, i_block: &[u8]) -> Result<(), Twice> {
        let mut waiting = root(i_block, false);
        self.add(waiting.len());
        while let Some(node) = waiting.pop() {
            let Some(below) = node.height.checked_sub(1) else {
                continue;
            };
            if let Some(buf) = self.read(node.block)? {
                let entries = indirect_node(&buf, below);
                self.add(entries.len());
                waiting.extend(entries.into_iter().filter(|entry| entry.height > 0));
            }
        }
        Ok(())
    }

    fn add(&mut self, lines: usize) {
        let lines = u64::try_from(lines).unwrap_or(u64::MAX);
        self.lines = self.lines.saturating_add(lines);
    }

    /// None where the image ends before it: debugfs says so itself.
    fn read(&mut self, block: FsBlock) -> Result<Option<Vec<u8>>, Twice> {
        if block >= self.sb.end() {
            return Ok(None);
        }
        if !self.nodes.insert(block) {
            return Err(Twice(block));
        }
        Ok(self.sb.read_block(self.image, block, "tree").ok())
    }
}

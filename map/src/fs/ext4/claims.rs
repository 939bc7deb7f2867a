// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who claims which blocks, on the way to the map: the first claim wins.

use super::block_list::Run;
use super::superblock::SuperBlock;
use crate::class::Kind;
use crate::map::Extent;

/// The claims so far, first come first served.
pub struct Claims<'a> {
    sb: &'a SuperBlock,
    start_sector: u64,
    extents: Vec<Extent>,
    /// Claims of damaged inodes: they stand back behind all others.
    doubtful: Vec<Extent>,
}

impl<'a> Claims<'a> {
    /// No claims yet. The filesystem starts at `start_sector` of the disk, and its last sector
    /// must have a number that fits 64 bits.
    pub fn new(sb: &'a SuperBlock, start_sector: u64) -> Claims<'a> {
        Claims {
            sb,
            start_sector,
            extents: Vec::new(),
            doubtful: Vec::new(),
        }
    }

    /// Claims blocks that no file holds; says whether they are inside the filesystem.
    pub fn layout(&mut self, block: u64, blocks: u64, kind: Kind) -> bool {
        self.blocks(block, blocks, kind, 0, None)
    }

    /// Claims blocks for an inode, without a place in its contents.
    pub fn inode(&mut self, block: u64, blocks: u64, kind: Kind, inode: u32) -> bool {
        self.blocks(block, blocks, kind, inode, None)
    }

    /// Claims blocks of an inode's contents.
    pub fn contents(&mut self, run: &Run, kind: Kind, inode: u32) -> bool {
        let offset = run.logical.checked_mul(self.sb.block_size.into());
        self.blocks(run.block, run.blocks, kind, inode, offset)
    }

    /// How many claims there are, for [`Claims::doubt`].
    pub fn count(&self) -> usize {
        self.extents.len()
    }

    /// Lets all claims made since `count` stand back: they win only over nobody.
    pub fn doubt(&mut self, count: usize) {
        self.doubtful
            .extend(self.extents.drain(count.min(self.extents.len())..));
    }

    /// Ends the doubts: what is claimed from here on comes behind the doubtful claims.
    pub fn settle(&mut self) {
        self.extents.append(&mut self.doubtful);
    }

    /// All claims, in the order in which they count.
    pub fn into_extents(self) -> Vec<Extent> {
        self.extents
    }

    fn blocks(
        &mut self,
        block: u64,
        blocks: u64,
        kind: Kind,
        inode: u32,
        file_offset: Option<u64>,
    ) -> bool {
        let end = block.checked_add(blocks);
        if blocks == 0 || end.is_none_or(|end| end > self.sb.s_blocks_count) {
            return false;
        }
        let per_block = self.sb.sectors_per_block();
        self.extents.push(Extent {
            sector: self
                .start_sector
                .saturating_add(block.saturating_mul(per_block)),
            sectors: blocks.saturating_mul(per_block),
            kind,
            inode: inode.into(),
            file_offset,
        });
        true
    }
}

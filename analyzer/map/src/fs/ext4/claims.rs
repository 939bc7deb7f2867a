// SPDX-License-Identifier: MIT OR Apache-2.0
//! The owners of blocks. If two inodes claim a block, it belongs to the one that claimed it first.

use super::block_list::Run;
use super::numbers::{FsBlock, Ino};
use super::superblock::SuperBlock;
use crate::class::Kind;
use crate::extent::Extent;
use crate::fs::volume::Volume;

/// The claims collected so far; the first claim of a block holds.
pub struct Claims<'a> {
    sb: &'a SuperBlock,
    volume: Volume,
    /// One past the last block.
    end: FsBlock,
    extents: Vec<Extent>,
    /// Claims of damaged inodes; all other claims take precedence over them.
    doubtful: Vec<Extent>,
}

impl<'a> Claims<'a> {
    /// Starts without claims.
    pub fn new(sb: &'a SuperBlock, volume: Volume) -> Claims<'a> {
        Claims {
            sb,
            volume,
            end: sb.end(),
            extents: Vec::new(),
            doubtful: Vec::new(),
        }
    }

    /// Claims blocks that no file holds. Returns true if they are inside the filesystem.
    pub fn layout(&mut self, block: FsBlock, blocks: u64, kind: Kind) -> bool {
        self.blocks(block, blocks, kind, Ino(0), None)
    }

    /// Claims blocks for an inode, without a place in its contents.
    pub fn inode(&mut self, block: FsBlock, blocks: u64, kind: Kind, inode: Ino) -> bool {
        self.blocks(block, blocks, kind, inode, None)
    }

    /// Claims blocks of an inode's contents.
    pub fn contents(&mut self, run: &Run, kind: Kind, inode: Ino) -> bool {
        let offset = self.sb.offset_of(run.logical);
        self.blocks(run.block, run.blocks, kind, inode, offset)
    }

    /// Lets these blocks behind the end be claimed too.
    pub fn reach_beyond(&mut self, blocks: u64) {
        self.end = self.end.plus(blocks);
    }

    /// Returns the number of claims, for [`Claims::doubt`].
    pub fn count(&self) -> usize {
        self.extents.len()
    }

    /// Moves all claims made since `count` behind the others, so that they hold only where there is no other claim.
    pub fn doubt(&mut self, count: usize) {
        self.doubtful
            .extend(self.extents.drain(count.min(self.extents.len())..));
    }

    /// Puts all further claims behind the doubtful ones.
    pub fn settle(&mut self) {
        self.extents.append(&mut self.doubtful);
    }

    /// Returns all claims in order of precedence.
    pub fn into_extents(self) -> Vec<Extent> {
        self.extents
    }

    fn blocks(
        &mut self,
        block: FsBlock,
        blocks: u64,
        kind: Kind,
        inode: Ino,
        file_offset: Option<u64>,
    ) -> bool {
        if blocks == 0 || blocks > block.up_to(self.end) {
            return false;
        }
        self.extents.push(Extent {
            inode: inode.into(),
            file_offset,
            ..self.volume.extent(block, blocks, kind)
        });
        true
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which blocks are whose. Where two claim a block it is the first one's.

use super::block_list::Run;
use super::numbers::{FsBlock, Ino};
use super::superblock::SuperBlock;
use crate::class::Kind;
use crate::extent::Extent;
use crate::fs::volume::Volume;

/// The claims so far, first come first served.
pub struct Claims<'a> {
    sb: &'a SuperBlock,
    volume: Volume,
    /// One past the last block.
    end: FsBlock,
    extents: Vec<Extent>,
    /// Claims of damaged inodes: all others come before them.
    doubtful: Vec<Extent>,
}

impl<'a> Claims<'a> {
    /// No claims yet.
    pub fn new(sb: &'a SuperBlock, volume: Volume) -> Claims<'a> {
        Claims {
            sb,
            volume,
            end: sb.end(),
            extents: Vec::new(),
            doubtful: Vec::new(),
        }
    }

    /// Claims blocks that no file holds; says whether they are inside the filesystem.
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

    /// How many claims there are, for [`Claims::doubt`].
    pub fn count(&self) -> usize {
        self.extents.len()
    }

    /// Puts all claims made since `count` behind the others: they count only where no other does.
    pub fn doubt(&mut self, count: usize) {
        self.doubtful
            .extend(self.extents.drain(count.min(self.extents.len())..));
    }

    /// What is claimed from here on comes behind the doubtful claims.
    pub fn settle(&mut self) {
        self.extents.append(&mut self.doubtful);
    }

    /// All claims, in the order in which they count.
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

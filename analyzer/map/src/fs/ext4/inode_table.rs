// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single inodes of the inode tables, by number.

use super::group_desc::GroupDesc;
use super::inode::InodeRecord;
use super::numbers::{FsBlock, Ino};
use super::superblock::SuperBlock;
use crate::fs::image::Image;

/// The inode tables and bitmaps of an image.
#[derive(Clone, Copy)]
pub struct InodeTable<'a> {
    pub image: &'a Image,
    pub sb: &'a SuperBlock,
    /// The group descriptors, by number.
    pub groups: &'a [GroupDesc],
}

/// The place of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InodePlace {
    /// Index of its group's descriptor.
    pub group: usize,
    /// Its bit in the bitmap.
    pub bit: u32,
    /// The block of the table that it lies in, and its first byte there.
    pub block: FsBlock,
    pub byte: usize,
}

impl InodeTable<'_> {
    /// Returns the place of an inode; None if there is no such inode.
    pub fn place(&self, number: Ino) -> Option<InodePlace> {
        let nth = number.0.checked_sub(1)?;
        let group = nth.checked_div(self.sb.s_inodes_per_group)?;
        let bit = nth.checked_rem(self.sb.s_inodes_per_group)?;
        let index = self
            .groups
            .binary_search_by_key(&group, |desc| desc.group)
            .ok()?;
        let size = u64::from(self.sb.s_inode_size);
        let byte = u64::from(bit).checked_mul(size)?;
        let block_size = u64::from(self.sb.block_size);
        let table = self.groups.get(index)?.bg_inode_table;
        Some(InodePlace {
            group: index,
            bit,
            block: table.plus(byte.checked_div(block_size)?),
            byte: usize::try_from(byte.checked_rem(block_size)?).ok()?,
        })
    }

    /// Returns true if the bitmap says that an inode is in use.
    pub fn is_used(&self, number: Ino) -> bool {
        let bit = || {
            let place = self.place(number)?;
            let desc = self.groups.get(place.group)?;
            let at = self.sb.byte_of(desc.bg_inode_bitmap);
            let at = at.checked_add(u64::from(place.bit >> 3))?;
            let byte = self.image.read(at, 1, "inode bitmap").ok()?;
            Some(!desc.inode_uninit && byte.first()? >> (place.bit & 7) & 1 == 1)
        };
        bit().unwrap_or(false)
    }

    /// Returns the bytes of an inode; None if it cannot be read.
    pub fn raw(&self, number: Ino) -> Option<Vec<u8>> {
        let InodePlace { block, byte, .. } = self.place(number)?;
        let at = self
            .sb
            .byte_of(block)
            .checked_add(u64::try_from(byte).ok()?)?;
        let len = usize::from(self.sb.s_inode_size);
        self.image.read(at, len, "inode table").ok()
    }

    /// Returns an inode and its bytes.
    pub fn inode(&self, number: Ino) -> Option<(InodeRecord, Vec<u8>)> {
        let raw = self.raw(number)?;
        let record = InodeRecord::parse(self.sb, number, &raw)?;
        Some((record, raw))
    }
}

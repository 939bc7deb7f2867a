// SPDX-License-Identifier: MIT OR Apache-2.0
//! The inodes in use, from the inode bitmaps and the inode tables.

use super::group_desc::GroupDesc;
use super::numbers::{FsBlock, Ino};
use super::superblock::{SuperBlock, data_blocks, incompat};
use crate::fs::bits;
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::le::{u16_at, u32_at};
use crate::fs::notices::Notices;
use crate::fs::progress::PartProgress;
use crate::fs::seen::Seen;

const EXT4_ENCRYPT_FL: u32 = 0x800;
const EXT4_EXTENTS_FL: u32 = 0x8_0000;
const EXT4_EA_INODE_FL: u32 = 0x20_0000;
const EXT4_INLINE_DATA_FL: u32 = 0x1000_0000;

/// `i_mode`'s file types.
pub mod mode {
    pub const S_IFMT: u16 = 0xf000;
    pub const S_IFIFO: u16 = 0x1000;
    pub const S_IFCHR: u16 = 0x2000;
    pub const S_IFDIR: u16 = 0x4000;
    pub const S_IFBLK: u16 = 0x6000;
    pub const S_IFREG: u16 = 0x8000;
    pub const S_IFLNK: u16 = 0xa000;
    pub const S_IFSOCK: u16 = 0xc000;
}

/// The way in which an inode lists its blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockMap {
    /// It lists none.
    None,
    /// It has the root of an extent tree.
    Extents,
    /// It has direct and indirect blocks.
    Indirect,
}

/// One inode in use: `struct ext4_inode`, the fields used here.
#[derive(Clone, Copy, Debug)]
pub struct InodeRecord {
    pub number: Ino,
    pub i_mode: u16,
    pub i_flags: u32,
    pub i_generation: u32,
    /// The time of the last change, ns since 1970; if the inode stores seconds only, the end of that second.
    pub i_ctime: u64,
    /// Block of extended attributes; 0 if there is none.
    pub i_file_acl: FsBlock,
    pub block_map: BlockMap,
}

impl InodeRecord {
    pub fn parse(sb: &SuperBlock, number: Ino, raw: &[u8]) -> Option<InodeRecord> {
        let i_mode = u16_at(raw, 0x0)?;
        let i_flags = u32_at(raw, 0x20)?;
        let bit64 = sb.incompat(incompat::BIT64);
        let acl_high = if bit64 { u16_at(raw, 0x76)? } else { 0 };
        let i_block = raw.get(0x28..0x64)?;
        Some(InodeRecord {
            number,
            i_mode,
            i_flags,
            i_generation: u32_at(raw, 0x64)?,
            i_ctime: ctime(raw)?,
            i_file_acl: FsBlock(u64::from(acl_high) << 32 | u64::from(u32_at(raw, 0x68)?)),
            block_map: block_map(i_mode, i_flags, u32_at(raw, 0x4)?, i_block),
        })
    }

    /// Returns true if the inode has this file type.
    pub fn is(&self, file_type: u16) -> bool {
        self.i_mode & mode::S_IFMT == file_type
    }

    /// Returns true if the names in this directory are ciphertext.
    pub fn is_encrypted(&self) -> bool {
        self.i_flags & EXT4_ENCRYPT_FL != 0
    }

    /// Returns true if the inode holds the value of one extended attribute.
    pub fn is_ea_inode(&self) -> bool {
        self.i_flags & EXT4_EA_INODE_FL != 0
    }

    /// Returns true if the inode is a directory stored inside itself.
    pub fn is_inline_directory(&self) -> bool {
        self.is(mode::S_IFDIR) && self.i_flags & EXT4_INLINE_DATA_FL != 0
    }
}

/// Parses `i_ctime`, seconds since 1970, and `i_ctime_extra`, which holds bits 32 and 33 of the seconds and then the nanoseconds.
fn ctime(raw: &[u8]) -> Option<u64> {
    let seconds = u64::from(u32_at(raw, 0xc)?);
    // The field is behind the original 128 bytes, if i_extra_isize reaches that far.
    let has_extra = u16_at(raw, 0x80).is_some_and(|extra_isize| extra_isize >= 8);
    let (seconds, ns) = match u32_at(raw, 0x84).filter(|_| has_extra) {
        Some(extra) => (seconds | u64::from(extra & 3) << 32, u64::from(extra >> 2)),
        None => (seconds, 999_999_999),
    };
    Some(seconds.saturating_mul(1_000_000_000).saturating_add(ns))
}

/// Returns the use of `i_block`; devices and short symlinks store other things in it.
fn block_map(i_mode: u16, i_flags: u32, i_size_lo: u32, i_block: &[u8]) -> BlockMap {
    if i_flags & EXT4_INLINE_DATA_FL != 0 {
        return BlockMap::None;
    }
    if i_flags & EXT4_EXTENTS_FL != 0 {
        let eh_entries = u16_at(i_block, 2).unwrap_or(0);
        return if eh_entries == 0 {
            BlockMap::None
        } else {
            BlockMap::Extents
        };
    }
    let file_type = i_mode & mode::S_IFMT;
    let special = [mode::S_IFIFO, mode::S_IFCHR, mode::S_IFBLK, mode::S_IFSOCK];
    let short_symlink = file_type == mode::S_IFLNK && i_size_lo < 60;
    if special.contains(&file_type) || short_symlink || i_block.iter().all(|&byte| byte == 0) {
        return BlockMap::None;
    }
    BlockMap::Indirect
}

/// Calls `each` with every inode in use and its raw bytes, by number. Orphans (files unlinked while open) are in use too. Inodes
/// that are zeros because they lie in a hole of the image are left out. If several groups have a block in their tables, it belongs
/// to the first. A table that cannot be read becomes a notice.
pub fn scan(
    image: &Image,
    sb: &SuperBlock,
    groups: &[GroupDesc],
    notices: &mut Notices,
    mut part: PartProgress,
    mut each: impl FnMut(InodeRecord, &[u8]),
) {
    let mut tables = Seen::default();
    for desc in groups {
        if !desc.inode_uninit {
            let scanned = scan_group(image, sb, desc, &mut tables, &mut each);
            scanned.unwrap_or_else(|error| notices.push(error.to_string()));
        }
        part.add(1);
    }
}

fn scan_group(
    image: &Image,
    sb: &SuperBlock,
    desc: &GroupDesc,
    tables: &mut Seen,
    each: &mut impl FnMut(InodeRecord, &[u8]),
) -> Result<()> {
    let group = desc.group;
    if sb.is_hole(image, desc.bg_inode_bitmap) {
        return Ok(());
    }
    let at = format_args!("inode bitmap of group {group}").to_string();
    let bitmap = bits::lowest_first(&sb.read_block(image, desc.bg_inode_bitmap, at)?);
    let in_use = |bit: u32| usize::try_from(bit).is_ok_and(|bit| bitmap.contains(bit));
    let per_block = sb
        .block_size
        .checked_div(sb.s_inode_size.into())
        .unwrap_or(1);
    let first = Ino(1).plus(group.saturating_mul(sb.s_inodes_per_group));
    let table = desc.bg_inode_table;
    let end = table.plus(sb.inode_table_blocks());
    let unread = tables.take(table.0..end.0).into_iter();
    for block in unread.flat_map(|run| data_blocks(image, sb, run)) {
        let nth_block = table.up_to(block);
        let from = u32::try_from(nth_block)
            .unwrap_or(u32::MAX)
            .saturating_mul(per_block);
        let bits = from..from.saturating_add(per_block).min(sb.s_inodes_per_group);
        if !bits.clone().any(in_use) {
            continue;
        }
        let at = format!("inode table of group {group}, block {nth_block}");
        let table = sb.read_block(image, block, at)?;
        for (bit, raw) in bits.zip(table.chunks_exact(sb.s_inode_size.into())) {
            if in_use(bit) {
                let inode = InodeRecord::parse(sb, first.plus(bit), raw);
                inode.into_iter().for_each(|inode| each(inode, raw));
            }
        }
    }
    Ok(())
}

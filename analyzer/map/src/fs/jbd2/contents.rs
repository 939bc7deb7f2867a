// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recognises a copied block by its own contents: its home may have been freed or reused since.

use crate::class::Kind;
use crate::fs::le::{u16_at, u32_at};

/// `eh_magic` of an extent block, and the length in bytes of its header and of each entry.
const EXT4_EXT_MAGIC: u16 = 0xf30a;
const EXTENT_LEN: usize = 12;
/// `h_magic` of a block of extended attributes.
const EXT4_XATTR_MAGIC: u32 = 0xea02_0000;
/// `det_reserved_ft` of the checksum at the end of a directory block; and that checksum's length in bytes.
const EXT4_FT_DIR_CSUM: u8 = 0xde;
const DIR_TAIL_LEN: u16 = 12;

/// Returns the kind of a block; None if its contents do not tell.
pub fn kind(block: &[u8]) -> Option<Kind> {
    if is_extents(block)? {
        return Some(Kind::ExtentTree);
    }
    if u32_at(block, 0x0)? == EXT4_XATTR_MAGIC {
        return Some(Kind::Xattr);
    }
    (begins_directory(block)? || ends_directory(block)?).then_some(Kind::Directory)
}

/// Recognises `struct ext4_extent_header`, whose maximum must be the number of entries for which there is room.
fn is_extents(block: &[u8]) -> Option<bool> {
    let room = block
        .len()
        .checked_sub(EXTENT_LEN)?
        .checked_div(EXTENT_LEN)?;
    let (entries, max) = (u16_at(block, 0x2)?, u16_at(block, 0x4)?);
    let is_full_size = usize::from(max) == room;
    Some(u16_at(block, 0x0)? == EXT4_EXT_MAGIC && is_full_size && entries <= max)
}

/// Recognises the directory's entry for itself (`.`).
fn begins_directory(block: &[u8]) -> Option<bool> {
    let (rec_len, name_len) = (u16_at(block, 0x4)?, *block.get(0x6)?);
    let name = block.get(0x8..0xa)?;
    Some(u32_at(block, 0x0)? != 0 && rec_len == 12 && name_len == 1 && name == b".\0")
}

/// Recognises the checksum at the end, `struct ext4_dir_entry_tail`.
fn ends_directory(block: &[u8]) -> Option<bool> {
    let at = block.len().checked_sub(DIR_TAIL_LEN.into())?;
    let tail = block.get(at..)?;
    let is_unused = u32_at(tail, 0x0)? == 0 && u16_at(tail, 0x4)? == DIR_TAIL_LEN;
    Some(is_unused && tail.get(0x6..0x8)? == [0, EXT4_FT_DIR_CSUM])
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Directories stored inside their inode (inline_data).
//!
//! The first 60 bytes are `i_block`: the parent's number, then entries. The rest is the value of the attribute `system.data`, in
//! the space behind the inode's fields.

use crate::fs::le::{u16_at, u32_at};

const EXT4_GOOD_OLD_INODE_SIZE: usize = 128;
const EXT4_XATTR_MAGIC: u32 = 0xea02_0000;
const EXT4_XATTR_INDEX_SYSTEM: u8 = 7;

/// Returns the areas of a raw inode that hold directory entries.
pub fn directory_areas(raw: &[u8]) -> impl Iterator<Item = &[u8]> {
    raw.get(0x2c..0x64).into_iter().chain(system_data(raw))
}

/// Returns the value of `system.data` in the inode's own attribute space.
///
/// ```text
/// 128                    + i_extra_isize   + 4
/// | i_extra_isize: u16 … | h_magic: u32    | entries … 0,0,0,0 … values |
/// entry: e_name_len u8, e_name_index u8, e_value_offs u16 (from the first entry),
///        e_value_inum u32, e_value_size u32, e_hash u32, name, padded to 4
/// ```
fn system_data(raw: &[u8]) -> Option<&[u8]> {
    let extra = usize::from(u16_at(raw, EXT4_GOOD_OLD_INODE_SIZE)?);
    let header = EXT4_GOOD_OLD_INODE_SIZE.checked_add(extra)?;
    if u32_at(raw, header)? != EXT4_XATTR_MAGIC {
        return None;
    }
    let space = raw.get(header.checked_add(4)?..)?;
    let mut rest = space;
    while u32_at(rest, 0)? != 0 {
        let name_len = usize::from(*rest.first()?);
        let name = rest.get(16..)?.get(..name_len)?;
        if *rest.get(1)? == EXT4_XATTR_INDEX_SYSTEM && name == b"data" {
            let offset = usize::from(u16_at(rest, 2)?);
            let size = usize::try_from(u32_at(rest, 8)?).ok()?;
            return space.get(offset..)?.get(..size);
        }
        rest = rest.get(name_len.checked_add(16)?.checked_next_multiple_of(4)?..)?;
    }
    None
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct ext4_dir_entry_2`: the names in one directory block.
//!
//! ```text
//! 0        4         6          7           8
//! | inode  | rec_len | name_len | file_type | name …  | (up to rec_len)
//! ```
//! An htree node and the checksum tail look like entries with inode 0.

use crate::fs::le::{u16_at, u32_at};

/// One directory entry in use, `.` and `..` left out.
#[derive(Debug, PartialEq, Eq)]
pub struct Dirent<'a> {
    /// The inode to which the entry leads.
    pub inode: u32,
    /// The name as raw bytes: anything but `/` and NUL unless the directory is encrypted.
    pub name: &'a [u8],
}

/// Parses one block, or one area of an inline directory, and calls `each` for every entry up to the first impossible one, whose
/// offset is the error.
pub fn parse<'a>(area: &'a [u8], mut each: impl FnMut(Dirent<'a>)) -> Result<(), usize> {
    let mut at = 0;
    while at < area.len() {
        let (record, next) = record(area, at).ok_or(at)?;
        if let Some(entry) = entry(record).ok_or(at)? {
            each(entry);
        }
        at = next;
    }
    Ok(())
}

/// Returns the bytes of the entry at `at`, and the offset of the next one.
fn record(area: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = area.get(at..)?;
    let rec_len = match (u16_at(rest, 4)?, area.len()) {
        // This stands for a length that does not fit into 16 bits.
        (0 | 0xffff, 0x10000) => 0x10000,
        (rec_len, _) => usize::from(rec_len),
    };
    let sound = rec_len >= 8 && rec_len.is_multiple_of(4);
    let record = rest.get(..rec_len).filter(|_| sound)?;
    Some((record, at.checked_add(rec_len)?))
}

/// Parses a record. None if it is impossible; Some(None) if it names nothing.
fn entry(record: &[u8]) -> Option<Option<Dirent<'_>>> {
    let inode = u32_at(record, 0)?;
    let name_len = usize::from(*record.get(6)?);
    if inode == 0 {
        return Some(None);
    }
    let name = record.get(8..)?.get(..name_len)?;
    if name.is_empty() {
        return None;
    }
    Some((name != b"." && name != b"..").then_some(Dirent { inode, name }))
}

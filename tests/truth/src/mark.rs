// SPDX-License-Identifier: MIT OR Apache-2.0
//! Metadata that names its owner: names in a directory and values of attributes contain the owner's inode number, and
//! an extent block has its magic number.

use crate::names::Inode;
use crate::stamp::SECTOR;

/// The kind and owner of a sector of metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Directory(Inode),
    Xattr(Inode),
    /// The first sector of an extent block, which does not name its file.
    Extents,
}

const DIRECTORY: &str = "MOSTDIR.";
const XATTR: &str = "MOSTXAT.";

impl Mark {
    /// Returns the kind's name in mostrace's rows.
    pub fn kind(self) -> &'static str {
        match self {
            Mark::Directory(_) => "directory",
            Mark::Xattr(_) => "xattr",
            Mark::Extents => "extent_tree",
        }
    }

    pub fn owner(self) -> Option<Inode> {
        match self {
            Mark::Directory(inode) | Mark::Xattr(inode) => Some(inode),
            Mark::Extents => None,
        }
    }

    /// Returns the mark of each sector of a block that has one. A block is not cleared when it is reused, so in a
    /// directory only names that an entry leads to count.
    pub fn find(block: &[u8]) -> Vec<Option<Mark>> {
        match block {
            [0x0a, 0xf3, ..] => extents(block),
            [0, 0, 2, 0xea, ..] => attributes(block),
            _ => entries(block),
        }
    }
}

fn u16_at(block: &[u8], at: usize) -> Option<usize> {
    Some(u16::from_le_bytes(*block.get(at..)?.first_chunk()?).into())
}

/// Marks the first sector if its maximum is the number of extents that fit into a block of this size.
fn extents(block: &[u8]) -> Vec<Option<Mark>> {
    let is_it = u16_at(block, 4) == Some((block.len() - 12) / 12);
    let first = is_it.then_some(Mark::Extents);
    let others = block.chunks(SECTOR).skip(1).map(|_| None);
    std::iter::once(first).chain(others).collect()
}

fn attributes(block: &[u8]) -> Vec<Option<Mark>> {
    let mark = |sector: &[u8]| {
        let mut tails = (0..sector.len()).filter_map(|at| sector.get(at..));
        let inode = tails.find_map(|tail| numbers(tail.strip_prefix(XATTR.as_bytes())?));
        inode.map(Mark::Xattr)
    };
    block.chunks(SECTOR).map(mark).collect()
}

fn entries(block: &[u8]) -> Vec<Option<Mark>> {
    let mut marks = vec![None; block.len().div_ceil(SECTOR)];
    let mut at = 0;
    // u32 inode, u16 rec_len, u8 name_len, u8 file_type, name
    while let (Some(rec_len), Some(&name_len)) = (u16_at(block, at + 4), block.get(at + 6)) {
        let is_used = block.get(at..at + 4) != Some(&[0; 4]);
        let name = block.get(at + 8..at + 8 + usize::from(name_len));
        let mark = name.and_then(|name| numbers(name.strip_prefix(DIRECTORY.as_bytes())?));
        if let (true, Some(inode)) = (is_used, mark) {
            marks[(at + 8) / SECTOR] = Some(Mark::Directory(inode));
        }
        if rec_len < 8 {
            break;
        }
        at += rec_len;
    }
    marks
}

/// Parses "12.345." as an inode number and a generation.
fn numbers(bytes: &[u8]) -> Option<Inode> {
    let mut parts = bytes.split(|&b| b == b'.');
    let mut number = || std::str::from_utf8(parts.next()?).ok()?.parse::<u64>().ok();
    let (ino, generation) = (number()?, number()?);
    // A number that is cut off at the sector's end has no point behind it.
    parts.next()?;
    Some((ino, u32::try_from(generation).ok()?))
}

/// Returns a marked name for a directory entry; it is too long to be stored in an inode.
pub fn name((ino, generation): Inode, number: u32) -> String {
    let name = format!("{DIRECTORY}{ino}.{generation}.{number}.");
    format!("{name:x<120}")
}

/// Returns a marked value for an attribute; it is too long to be stored in an inode.
pub fn value((ino, generation): Inode, bytes: usize) -> String {
    let mark = format!("{XATTR}{ino}.{generation}.");
    mark.repeat(bytes / mark.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_found_as_it_was_made() {
        let mut block = [0; 1024];
        assert_eq!(Mark::find(&block), [None, None]);
        let name = name((12, 345), 7);
        let entry = |block: &mut [u8], at: usize, rec_len: u16| {
            block[at] = 9;
            block[at + 4..at + 6].copy_from_slice(&rec_len.to_le_bytes());
            block[at + 6] = name.len() as u8;
            block[at + 8..at + 8 + name.len()].copy_from_slice(name.as_bytes());
        };
        entry(&mut block, 0, 512);
        entry(&mut block, 128, 896);
        let first = [Some(Mark::Directory((12, 345))), None];
        assert_eq!(Mark::find(&block), first, "what no entry leads to");
        entry(&mut block, 512, 512);
        assert_eq!(Mark::find(&block), [first[0]; 2]);
        block[..4].copy_from_slice(&[0, 0, 2, 0xea]);
        block[506..1006].copy_from_slice(&value((9, 1), 520).as_bytes()[..500]);
        assert_eq!(Mark::find(&block), [None, Some(Mark::Xattr((9, 1)))]);
        block[..6].copy_from_slice(&[0x0a, 0xf3, 1, 0, 84, 0]);
        assert_eq!(Mark::find(&block), [Some(Mark::Extents), None]);
    }
}

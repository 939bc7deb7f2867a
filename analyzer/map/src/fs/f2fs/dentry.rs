// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct f2fs_dentry_block`, and directory entries inside an inode, which have the same layout.
//!
//! ```text
//! │ bitmap of used slots │ reserved │ slots of 11 bytes: hash, ino, length, type │ names, 8 bytes a slot │
//! ```

use super::block::{part, u16_of, u32_of};
use super::numbers::Ino;
use crate::fs::bits;

const SIZE_OF_DIR_ENTRY: usize = 11;
const F2FS_SLOT_LEN: usize = 8;
const F2FS_NAME_LEN: usize = 255;
/// Bits that a slot takes (`NR_DENTRY_IN_BLOCK`, `NR_INLINE_DENTRY`): entry, name, and one bit of the bitmap.
const BITS_PER_SLOT: usize = (SIZE_OF_DIR_ENTRY + F2FS_SLOT_LEN) * 8 + 1;

/// A name, as its raw bytes on the disk, and its inode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dentry {
    pub ino: Ino,
    pub name: Box<[u8]>,
}

/// Appends the entries of a directory's block, or of the area inside an inode, to `entries`, without `.` and `..`. The error is the
/// slot of the first bad entry; the entries behind it cannot be read.
pub fn parse(area: &[u8], entries: &mut Vec<Dentry>) -> Result<(), usize> {
    let slots = area.len().saturating_mul(8) / BITS_PER_SLOT;
    let used = bits::lowest_first(part(area, 0, slots.div_ceil(8)));
    // The names are at the end of the area.
    let names_at = area
        .len()
        .saturating_sub(slots.saturating_mul(F2FS_SLOT_LEN));
    let dentries_at = names_at.saturating_sub(slots.saturating_mul(SIZE_OF_DIR_ENTRY));
    let mut slot = 0usize;
    while slot < slots {
        if !used.contains(slot) {
            slot = slot.saturating_add(1);
            continue;
        }
        let at = dentries_at.saturating_add(slot.saturating_mul(SIZE_OF_DIR_ENTRY));
        let dentry = part(area, at, SIZE_OF_DIR_ENTRY);
        let len = usize::from(u16_of(dentry, 8));
        let end = slot.saturating_add(len.div_ceil(F2FS_SLOT_LEN));
        if len == 0 || len > F2FS_NAME_LEN || end > slots {
            return Err(slot);
        }
        let at = names_at.saturating_add(slot.saturating_mul(F2FS_SLOT_LEN));
        let name = part(area, at, len);
        if name != b"." && name != b".." {
            let ino = Ino(u32_of(dentry, 4));
            let name = name.into();
            entries.push(Dentry { ino, name });
        }
        slot = end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(len: usize, slots: usize, entries: &[(usize, u32, &[u8])]) -> Vec<u8> {
        let mut area = vec![0; len];
        let (names, dentries) = (len - slots * 8, len - slots * 19);
        for &(slot, ino, name) in entries {
            area[slot / 8] |= 1 << (slot % 8);
            area[dentries + slot * 11 + 4..][..4].copy_from_slice(&ino.to_le_bytes());
            area[dentries + slot * 11 + 8] = name.len() as u8;
            let room = area[names + slot * 8..].iter_mut();
            room.zip(name).for_each(|(to, from)| *to = *from);
        }
        area
    }

    #[test]
    fn a_long_name_takes_more_slots() {
        let long = [b'x'; 255];
        // The numbers come from the kernel: 214 slots in a block of 4 KiB, 856 in one of 16 KiB, 182 in an inode with 50 words of
        // xattr.
        for (len, slots) in [(4096, 214), (16384, 856), ((923 - 50 - 1) * 4, 182)] {
            let at = slots - 32;
            let entries = [
                (0, 3, &b"."[..]),
                (1, 3, b".."),
                (5, 77, b"a"),
                (at, 78, &long),
            ];
            let area = area(len, slots, &entries);
            let mut found = vec![];
            assert_eq!(parse(&area, &mut found), Ok(()));
            let found: Vec<_> = found.iter().map(|e| (e.ino.0, &*e.name)).collect();
            assert_eq!(found, [(77, &b"a"[..]), (78, &long)]);
        }
    }

    #[test]
    fn a_name_beyond_the_last_slot_ends_the_block() {
        let area = area(
            4096,
            214,
            &[(0, 5, b"good"), (213, 6, b"ninebytes"), (3, 7, b"")],
        );
        let mut found = vec![];
        assert_eq!(parse(&area, &mut found), Err(3));
        assert_eq!(found.len(), 1);
        let area = self::area(4096, 214, &[(213, 6, b"ninebytes")]);
        assert_eq!(parse(&area, &mut found), Err(213));
    }
}

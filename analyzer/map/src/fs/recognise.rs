// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recognises the filesystem of an image by its first blocks.

use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::le;

/// A filesystem that can be recognised, though not necessarily mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filesystem {
    /// ext2, ext3 or ext4.
    Ext,
    /// f2fs.
    F2fs,
    /// FAT12, FAT16 or FAT32.
    Fat,
    /// exFAT.
    ExFat,
}

/// Returns the filesystem of an image; None if it is not recognised.
pub fn recognise(image: &Image) -> Result<Option<Filesystem>> {
    let len = image.bytes().min(8192);
    let head = image.read(0, usize::try_from(len).unwrap_or(0), "first blocks")?;
    let f2fs = || has_f2fs_copy(image).then_some(Filesystem::F2fs);
    let fat = || has_fat_backup(image).then_some(Filesystem::Fat);
    Ok(filesystem(&head).or_else(f2fs).or_else(fat))
}

fn filesystem(head: &[u8]) -> Option<Filesystem> {
    let has = |at: usize, magic: &[u8]| head.get(at..).is_some_and(|rest| rest.starts_with(magic));
    // s_magic of ext2_super_block; then magic of f2fs_super_block.
    if has(1080, &[0x53, 0xef]) {
        Some(Filesystem::Ext)
    } else if has(1024, F2FS_SUPER_MAGIC) {
        Some(Filesystem::F2fs)
    } else if has(3, b"EXFAT   ") {
        Some(Filesystem::ExFat)
    } else if is_fat(head) {
        Some(Filesystem::Fat)
    } else {
        None
    }
}

const F2FS_SUPER_MAGIC: &[u8] = &[0x10, 0x20, 0xf5, 0xf2];

/// Looks for the second copy of f2fs's superblock, which is in its second block, of 4 to 64 KiB.
fn has_f2fs_copy(image: &Image) -> bool {
    (12..=16).any(|log| {
        let at = (1u64 << log).saturating_add(1024);
        let magic = image.read(at, F2FS_SUPER_MAGIC.len(), "second superblock");
        magic.is_ok_and(|magic| magic == F2FS_SUPER_MAGIC)
    })
}

/// Looks for FAT32's backup of the boot record, which is in sector 6 whatever the sector size.
fn has_fat_backup(image: &Image) -> bool {
    [512u16, 1024, 2048, 4096].into_iter().any(|size| {
        let at = u64::from(size).saturating_mul(6);
        let sector = image.read(at, 512, "backup of the boot record");
        sector.is_ok_and(|sector| is_fat(&sector) && le::u16_at(&sector, 11) == Some(size))
    })
}

/// Recognises a boot record by its fields, because Microsoft's specification says that the type's name in it is not
/// reliable. A partition table has the same signature, but neither a jump instruction nor a sector size.
fn is_fat(head: &[u8]) -> bool {
    let signed = head.get(510..512) == Some(&[0x55, 0xaa]);
    let jumps = matches!(head, [0xeb, _, 0x90, ..] | [0xe9, ..]);
    let sector = le::u16_at(head, 11).unwrap_or(0);
    let fats = head.get(16).copied().unwrap_or(0);
    signed && jumps && sector.is_power_of_two() && (512..=4096).contains(&sector) && fats > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filesystems_are_told_apart() {
        let head = |marks: &[(usize, &[u8])]| {
            let mut head = vec![0; 8192];
            for (at, mark) in marks {
                head[*at..at + mark.len()].copy_from_slice(mark);
            }
            filesystem(&head)
        };
        assert_eq!(head(&[(1080, &[0x53, 0xef])]), Some(Filesystem::Ext));
        assert_eq!(head(&[(1024, F2FS_SUPER_MAGIC)]), Some(Filesystem::F2fs));
        let record = [&[0xeb, 0x3c, 0x90][..], &[0; 9], &[0x02, 1, 1, 0, 2]].concat();
        let fat = head(&[(0, &record), (510, &[0x55, 0xaa])]);
        assert_eq!(fat, Some(Filesystem::Fat));
        assert_eq!(head(&[(3, b"EXFAT   ")]), Some(Filesystem::ExFat));
        assert_eq!(head(&[(510, &[0x55, 0xaa])]), None);
        assert_eq!(filesystem(b"short"), None);
    }

    #[test]
    fn an_f2fs_is_known_by_its_second_superblock() {
        for (block, known) in [(4096, true), (16384, true), (65536, true), (6144, false)] {
            let mut bytes = vec![0; 1 << 17];
            bytes[block + 1024..block + 1028].copy_from_slice(F2FS_SUPER_MAGIC);
            let image = Image::new("x".as_ref(), 1 << 17, bytes);
            let expected = known.then_some(Filesystem::F2fs);
            assert_eq!(recognise(&image).expect("read"), expected, "{block}");
        }
    }

    #[test]
    fn a_fat_is_known_by_the_copy_of_its_boot_record() {
        let image = |size: u16, at: usize| {
            let [low, high] = size.to_le_bytes();
            let mut bytes = vec![0; 1 << 16];
            bytes[at..at + 17].copy_from_slice(&[
                0xeb, 0x58, 0x90, 0, 0, 0, 0, 0, 0, 0, 0, low, high, 1, 1, 0, 2,
            ]);
            bytes[at + 510..at + 512].copy_from_slice(&[0x55, 0xaa]);
            recognise(&Image::new("x".as_ref(), 1 << 16, bytes)).expect("read")
        };
        for size in [512, 1024, 2048, 4096] {
            let at = usize::from(size) * 6;
            assert_eq!(image(size, at), Some(Filesystem::Fat));
            assert_eq!(image(size, at + 512), None);
            assert_eq!(image(size ^ 0x1800, at), None);
        }
    }
}

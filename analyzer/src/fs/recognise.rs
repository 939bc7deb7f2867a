// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which filesystem an image holds, by its first blocks.

use super::Result;
use super::image::Image;

/// A filesystem that is known at least by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filesystem {
    /// ext4, ext3, ext2.
    Ext,
    /// f2fs.
    F2fs,
    /// FAT12, FAT16, FAT32.
    Fat,
    /// exFAT.
    ExFat,
}

/// None if nothing is recognised.
pub fn recognise(image: &Image) -> Result<Option<Filesystem>> {
    let len = image.bytes().min(8192);
    let head = image.read(0, usize::try_from(len).unwrap_or(0), "first blocks")?;
    Ok(filesystem(&head))
}

fn filesystem(head: &[u8]) -> Option<Filesystem> {
    let has = |at: usize, magic: &[u8]| head.get(at..).is_some_and(|rest| rest.starts_with(magic));
    // s_magic of ext2_super_block; magic of f2fs_super_block, and of its second copy.
    if has(1080, &[0x53, 0xef]) {
        Some(Filesystem::Ext)
    } else if has(1024, F2FS_SUPER_MAGIC) || has(4096 + 1024, F2FS_SUPER_MAGIC) {
        Some(Filesystem::F2fs)
    } else if has(3, b"EXFAT   ") {
        Some(Filesystem::ExFat)
    } else if is_fat(head) || head.get(FAT32_BACKUP..).is_some_and(is_fat) {
        Some(Filesystem::Fat)
    } else {
        None
    }
}

const F2FS_SUPER_MAGIC: &[u8] = &[0x10, 0x20, 0xf5, 0xf2];

/// Where FAT32 keeps the copy of its boot record, with sectors of 512 bytes.
const FAT32_BACKUP: usize = 6 * 512;

/// The type's name in the boot record is not to be relied on, says Microsoft's specification.
/// A partition table has the same signature, but neither a jump nor sectors.
fn is_fat(head: &[u8]) -> bool {
    let signed = head.get(510..512) == Some(&[0x55, 0xaa]);
    let jumps = matches!(head, [0xeb, _, 0x90, ..] | [0xe9, ..]);
    let sector = super::le::u16_at(head, 11).unwrap_or(0);
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
        for copy in [1024, 4096 + 1024] {
            assert_eq!(head(&[(copy, F2FS_SUPER_MAGIC)]), Some(Filesystem::F2fs));
        }
        let fat = |at: usize| {
            let sector = [0xeb, 0x3c, 0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x02, 1, 1, 0, 2];
            head(&[(at, &sector), (at + 510, &[0x55, 0xaa])])
        };
        assert_eq!(fat(0), Some(Filesystem::Fat));
        assert_eq!(fat(FAT32_BACKUP), Some(Filesystem::Fat));
        assert_eq!(head(&[(3, b"EXFAT   ")]), Some(Filesystem::ExFat));
        assert_eq!(head(&[(510, &[0x55, 0xaa])]), None);
        assert_eq!(filesystem(b"short"), None);
    }
}

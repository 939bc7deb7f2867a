// SPDX-License-Identifier: MIT OR Apache-2.0
//! Says what an image without a mappable filesystem is, by the magic numbers of formats (as in file(1)'s database).

use crate::fs::image::Image;

/// A format: where its number stands, the number, and what it is.
type Magic = (u64, &'static [u8], &'static str);

/// The numbers, the more telling ones first.
const KNOWN: &[Magic] = &[
    (0, b"XFSB", "XFS"),
    (0x1_0040, b"_BHRfS_M", "btrfs"),
    (
        0,
        b"LUKS\xba\xbe",
        "LUKS: open it with cryptsetup, and map the device that this makes",
    ),
    (
        512,
        b"LABELONE",
        "a physical volume of LVM: map the logical volume",
    ),
    (4086, b"SWAPSPACE2", "swap space"),
    (4086, b"SWAP-SPACE", "swap space"),
    (3, b"NTFS    ", "NTFS"),
    (3, b"EXFAT   ", "exFAT"),
    (3, b"-FVE-FS-", "BitLocker"),
    (0x8001, b"CD001", "ISO 9660"),
    (0x8001, b"BEA01", "UDF"),
    (0, b"hsqs", "SquashFS"),
    (1024, &[0xe2, 0xe1, 0xf5, 0xe0], "EROFS"),
    (
        4096,
        &[0xfc, 0x4e, 0x2b, 0xa9],
        "a member of an md RAID: map the array",
    ),
    (
        0,
        &[0xfc, 0x4e, 0x2b, 0xa9],
        "a member of an md RAID: map the array",
    ),
    (
        4096,
        &[0x67, 0x44, 0x6c, 0x61],
        "Android's super partition: unpack it with lpunpack",
    ),
    (32, b"NXSB", "APFS"),
    (1024, b"H+\0\x04", "HFS+"),
    (1024, b"HX\0\x05", "HFS+"),
    (0x1_0034, b"ReIsErFs", "ReiserFS"),
    (0x1_0034, b"ReIsEr2Fs", "ReiserFS"),
    (0x8000, b"JFS1", "JFS"),
    (1030, &[0x34, 0x34], "NILFS2"),
    (0, b"UBI#", "a UBI image"),
    (0, b"UBI!", "a UBI image"),
    (0, &[0x45, 0x3d, 0xcd, 0x28], "cramfs"),
    (0, b"-rom1fs-", "romfs"),
    (0, &[0x85, 0x19], "JFFS2"),
    (0, b"ANDROID!", "an Android boot image"),
    (
        0,
        b"CrAU",
        "an Android update: unpack it with payload-dumper-go",
    ),
    (0, b"PK\x03\x04", "a zip archive: unpack it"),
    (0, b"\xfd7zXZ\0", "xz data: unpack it with xz -d"),
    (
        0,
        &[0x28, 0xb5, 0x2f, 0xfd],
        "zstd data: unpack it with zstd -d",
    ),
    (0, b"BZh", "bzip2 data: unpack it with bzip2 -d"),
    (
        0,
        &[0x04, 0x22, 0x4d, 0x18],
        "lz4 data: unpack it with lz4 -d",
    ),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive: unpack it"),
    (0, b"Rar!\x1a\x07", "a rar archive: unpack it"),
    (257, b"ustar", "a tar archive: unpack it"),
    (
        0,
        b"EVF\x09\x0d\x0a\xff\0",
        "an EnCase image (E01): convert it with ewfexport -f raw",
    ),
    (
        0,
        b"# Disk DescriptorFile",
        "a VMDK descriptor: convert it with qemu-img convert -O raw",
    ),
    (
        0,
        b"vhdxfile",
        "a VHDX image: convert it with qemu-img convert -f vhdx -O raw",
    ),
    (0, b"\x7fELF", "an ELF file"),
];

/// Returns what the image is; None if no number tells.
pub fn what(image: &Image) -> Option<&'static str> {
    if image.bytes() == 0 {
        return Some("an empty file");
    }
    let is = |(at, magic, _): &&Magic| {
        let read = image.read(*at, magic.len(), "first blocks");
        read.is_ok_and(|bytes| bytes == *magic)
    };
    KNOWN.iter().find(is).map(|(.., what)| *what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_told_by_its_number() {
        for (at, magic, what_it_is) in KNOWN {
            let at = usize::try_from(*at).unwrap();
            let mut bytes = vec![0; at + magic.len()];
            bytes[at..].copy_from_slice(magic);
            let image = Image::new("x".as_ref(), bytes.len() as u64, bytes);
            assert_eq!(what(&image), Some(*what_it_is));
        }
        assert_eq!(what(&Image::new("x".as_ref(), 9, vec![0; 9])), None);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! From an image or a device to the map of the filesystem on it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail};
use mostrace::fs::{self, ext4};
use mostrace::map::Map;

/// A filesystem, by what its first bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recognised {
    Ext,
    NotYet(&'static str),
}

/// Builds the map of an image or a device that begins at `start_sector` of its disk.
pub fn build(image: &Path, start_sector: u64) -> anyhow::Result<Map> {
    match recognise(image)? {
        Some(Recognised::Ext) => Ok(ext4::build(image, start_sector)?),
        Some(Recognised::NotYet(name)) => {
            bail!(
                "{}: {name}: not yet: only ext4, ext3 and ext2 can be mapped",
                image.display()
            )
        }
        None => bail!("{}: no filesystem recognised", image.display()),
    }
}

fn recognise(image: &Path) -> anyhow::Result<Option<Recognised>> {
    let named = || image.display().to_string();
    // Opening a FIFO would wait for ever, and a folder opens but cannot be read.
    let kind = std::fs::metadata(image).with_context(named)?.file_type();
    if kind.is_dir() || is_stream(&kind) {
        bail!(
            "{}: neither an image file nor a block device",
            image.display()
        );
    }
    let mut head = Vec::new();
    File::open(image)
        .and_then(|f| f.take(2048).read_to_end(&mut head))
        .with_context(named)?;
    Ok(filesystem(&head))
}

#[cfg(unix)]
fn is_stream(kind: &std::fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_fifo() || kind.is_char_device() || kind.is_socket()
}

#[cfg(not(unix))]
fn is_stream(_: &std::fs::FileType) -> bool {
    false
}

fn filesystem(head: &[u8]) -> Option<Recognised> {
    let has = |at: usize, magic: &[u8]| head.get(at..).is_some_and(|rest| rest.starts_with(magic));
    // s_magic of ext2_super_block; f2fs_super_block.magic; the names in a boot record.
    if has(1080, &[0x53, 0xef]) {
        Some(Recognised::Ext)
    } else if has(1024, &[0x10, 0x20, 0xf5, 0xf2]) {
        Some(Recognised::NotYet("f2fs"))
    } else if has(3, b"EXFAT   ") {
        Some(Recognised::NotYet("exFAT"))
    } else if has(510, &[0x55, 0xaa]) && (has(54, b"FAT") || has(82, b"FAT32")) {
        Some(Recognised::NotYet("FAT"))
    } else {
        None
    }
}

/// Whether an error means that the filesystem is sound but that no map of it can be made.
pub fn is_unsupported(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(fs::Error::Unsupported { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filesystems_are_told_apart() {
        let head = |marks: &[(usize, &[u8])]| {
            let mut head = vec![0; 2048];
            for (at, mark) in marks {
                head[*at..at + mark.len()].copy_from_slice(mark);
            }
            head
        };
        assert_eq!(
            filesystem(&head(&[(1080, &[0x53, 0xef])])),
            Some(Recognised::Ext)
        );
        let f2fs = 0xF2F5_2010_u32.to_le_bytes();
        assert_eq!(
            filesystem(&head(&[(1024, &f2fs)])),
            Some(Recognised::NotYet("f2fs"))
        );
        let fat = head(&[(82, b"FAT32   "), (510, &[0x55, 0xaa])]);
        assert_eq!(filesystem(&fat), Some(Recognised::NotYet("FAT")));
        assert_eq!(
            filesystem(&head(&[(3, b"EXFAT   ")])),
            Some(Recognised::NotYet("exFAT"))
        );
        assert_eq!(filesystem(&head(&[(510, &[0x55, 0xaa])])), None);
        assert_eq!(filesystem(b"short"), None);
    }
}

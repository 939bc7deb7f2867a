// SPDX-License-Identifier: MIT OR Apache-2.0
//! The identity of the disk behind a device: a loop device may get another image, a drive another medium, a disk another
//! filesystem.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::error::read_line;
use crate::machine::device::Device;
use crate::machine::filesystem;

/// Marks that distinguish one disk from another. A mark that is not known is None.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Medium {
    /// A number that the kernel increases whenever the disk may be another one; from 5.15 on.
    diskseq: Option<String>,
    /// The image of a loop device.
    backing_file: Option<String>,
    /// The file of that image, if it is found by its name. The kernel does not say that it became shorter.
    image: Option<Image>,
    /// The size in sectors.
    size: Option<String>,
    /// The number that the filesystem was given when it was made.
    filesystem: Option<Vec<u8>>,
}

/// A file, and how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Image {
    /// Device and inode.
    identity: (u64, u64),
    bytes: u64,
}

impl Image {
    fn of(path: &str) -> Option<Image> {
        let meta = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        Some(Image {
            identity: (meta.dev(), meta.ino()),
            bytes: meta.len(),
        })
    }
}

impl Medium {
    /// Returns the present identity of `device`; `of_filesystem` is the device that holds the filesystem.
    pub fn of(device: &Device, of_filesystem: &Device) -> Medium {
        let disk = device.disk_sysfs();
        let backing_file = read_line(disk.join("loop/backing_file")).ok();
        Medium {
            diskseq: read_line(disk.join("diskseq")).ok(),
            image: backing_file.as_deref().and_then(Image::of),
            // An image that has lost its name is still the same image.
            backing_file: backing_file.map(|file| file.trim_end_matches(" (deleted)").to_owned()),
            size: read_line(device.sysfs.join("size")).ok(),
            filesystem: filesystem::number(of_filesystem.node()),
        }
    }

    /// Returns the marks that differ `now`, in a few words each. The names of images count only if there is no number, because a
    /// file may be renamed.
    pub fn changes(&self, now: &Medium) -> Vec<String> {
        let mut changes = Vec::new();
        let is_other = match (&self.diskseq, &now.diskseq) {
            (Some(before), Some(now)) => before != now,
            _ => self.backing_file != now.backing_file,
        };
        if is_other {
            let image = |file: &Option<String>| file.clone().unwrap_or_else(|| "nothing".into());
            changes.push(match (&self.backing_file, &now.backing_file) {
                (None, None) => "the kernel counts another disk".into(),
                (before, now) => format!("behind it was {}, then {}", image(before), image(now)),
            });
        }
        if self.size != now.size {
            let sectors = |size: &Option<String>| size.clone().unwrap_or_else(|| "no".into());
            let (before, now) = (sectors(&self.size), sectors(&now.size));
            changes.push(format!("it had {before} sectors, then {now}"));
        }
        if let (Some(before), Some(now)) = (self.image, now.image)
            && before.identity == now.identity
            && before.bytes > now.bytes
        {
            let (before, now) = (before.bytes, now.bytes);
            changes.push(format!("its image had {before} bytes, then {now}"));
        }
        match (&self.filesystem, &now.filesystem) {
            (before, now) if before == now => {}
            (None, _) => changes.push("it has a filesystem that it had not".into()),
            (_, None) => changes.push("its filesystem is gone".into()),
            _ => changes.push("its filesystem is another one".into()),
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn medium(diskseq: Option<&str>, backing_file: &str) -> Medium {
        Medium {
            diskseq: diskseq.map(Into::into),
            backing_file: Some(backing_file.into()),
            image: None,
            size: Some("8".into()),
            filesystem: Some(vec![1]),
        }
    }

    #[test]
    fn another_disk_is_told_by_its_number_else_by_its_image() {
        let first = medium(Some("4"), "/a");
        assert_eq!(first.changes(&first), [""; 0]);
        assert_eq!(first.changes(&medium(Some("4"), "/renamed")), [""; 0]);
        let other = ["behind it was /a, then /b"];
        assert_eq!(first.changes(&medium(Some("5"), "/b")), other);
        assert_eq!(medium(None, "/a").changes(&medium(None, "/b")), other);
    }

    #[test]
    fn an_image_that_became_shorter_is_told() {
        let image = |inode, bytes| Medium {
            image: Some(Image {
                identity: (1, inode),
                bytes,
            }),
            ..medium(Some("4"), "/a")
        };
        let first = image(7, 4096);
        assert_eq!(
            first.changes(&image(7, 512)),
            ["its image had 4096 bytes, then 512"]
        );
        for same in [image(7, 8192), image(8, 512), medium(Some("4"), "/a")] {
            assert_eq!(first.changes(&same), [""; 0]);
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(9).unwrap();
        assert_eq!(Image::of(file.path().to_str().unwrap()).unwrap().bytes, 9);
        assert_eq!(Image::of("/"), None);
    }

    #[test]
    fn another_size_and_filesystem_are_told() {
        let first = medium(Some("4"), "/a");
        let now = Medium {
            size: Some("16".into()),
            filesystem: Some(vec![2]),
            ..first.clone()
        };
        assert_eq!(
            first.changes(&now),
            ["it had 8 sectors, then 16", "its filesystem is another one"]
        );
        let gone = first.changes(&Medium::default());
        assert_eq!(gone.len(), 3, "{gone:?}");
        assert_eq!(gone[0], "behind it was /a, then nothing");
    }
}

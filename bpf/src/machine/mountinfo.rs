// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mounts that this process sees: proc_pid_mountinfo(5).

use std::fs;
use std::path::{Path, PathBuf};

/// A mount as this process sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mounted {
    /// `major:minor` of the files in it; for some filesystems (btrfs) this is not a block device.
    pub dev: String,
    /// The folder of the filesystem that is mounted.
    pub root: String,
    pub point: String,
    pub kind: String,
    /// The source of the mount, which for many filesystems is the node of a device.
    pub source: String,
    /// The options of the mount, then those of the filesystem.
    pub options: String,
}

/// Returns all mounts, in the kernel's order; none if they cannot be read.
pub(crate) fn all() -> Vec<Mounted> {
    let text = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    text.lines().filter_map(parse).collect()
}

/// Returns the mount that contains a resolved path: the deepest one, and the last one if there are several at the same point.
pub(crate) fn of(path: &Path) -> Option<Mounted> {
    let resolved = fs::canonicalize(path).ok()?;
    let mut mounts = all();
    mounts.retain(|mounted| resolved.starts_with(&mounted.point));
    mounts
        .into_iter()
        .max_by_key(|mounted| Path::new(&mounted.point).components().count())
}

impl Mounted {
    /// Returns the folder to which an overlay writes; None if it cannot be written, and for any other filesystem.
    pub fn upper(&self) -> Option<PathBuf> {
        if self.kind != "overlay" {
            return None;
        }
        let upper = self
            .options
            .split(',')
            .find_map(|o| o.strip_prefix("upperdir="))?;
        Some(unescape(upper).into())
    }
}

/// Parses a line such as `36 35 98:0 /root /mnt opts … - type source superopts`.
fn parse(line: &str) -> Option<Mounted> {
    let (head, tail) = line.split_once(" - ")?;
    let head: Vec<&str> = head.split(' ').collect();
    let tail: Vec<&str> = tail.split(' ').collect();
    Some(Mounted {
        dev: (*head.get(2)?).to_owned(),
        root: unescape(head.get(3)?),
        point: unescape(head.get(4)?),
        kind: (*tail.first()?).to_owned(),
        source: unescape(tail.get(1)?),
        options: format!("{},{}", head.get(5)?, tail.get(2)?),
    })
}

/// Decodes space, tab, newline and backslash, which are written as octal numbers.
fn unescape(field: &str) -> String {
    [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ]
    .iter()
    .fold(field.to_owned(), |text, (code, plain)| {
        text.replace(code, plain)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_has_optional_fields_and_escapes() {
        let line = "36 35 98:0 / /mnt/a\\040b\\134c rw,noatime master:1 shared:2 - ext4 /dev/sda1 rw,discard";
        let expected = Mounted {
            dev: "98:0".into(),
            root: "/".into(),
            point: "/mnt/a b\\c".into(),
            kind: "ext4".into(),
            source: "/dev/sda1".into(),
            options: "rw,noatime,rw,discard".into(),
        };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse("36 35 98:0 / /mnt"), None);
    }

    #[test]
    fn an_overlay_names_the_folder_above() {
        let line =
            "36 35 0:41 / /m rw - overlay overlay rw,lowerdir=/a,upperdir=/b\\040c,workdir=/w";
        let mounted = parse(line).unwrap();
        assert_eq!(mounted.upper(), Some("/b c".into()));
        assert_eq!(
            parse("36 35 0:41 / /m rw - overlay o ro,lowerdir=/a")
                .unwrap()
                .upper(),
            None
        );
        assert_eq!(of(Path::new("/proc/self")).unwrap().kind, "proc");
    }

    proptest! {
        #[test]
        fn any_text_is_a_mount_or_none(text: String) {
            parse(&text);
        }
    }
}

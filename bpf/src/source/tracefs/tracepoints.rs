// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tracepoints from which entries come, as this kernel has them.

use mostrace_bundle::DeviceNumber;
use std::collections::HashSet;
use std::path::Path;

use mostrace_bundle::tracepoints::{EVENTS, FOLLOWING, Fields, PATHS, Tells, Volume};

use super::format::Format;
use crate::error::Result;
use crate::machine::mountinfo::{self, Mounted};

/// An enabled tracepoint.
#[derive(Debug)]
pub(super) struct Event {
    pub tells: Tells,
    pub format: Format,
}

/// A record of an event.
pub(super) struct Told<'a> {
    pub format: &'a Format,
    pub bytes: &'a [u8],
}

impl Fields for Told<'_> {
    fn number(&self, field: &str) -> Option<u64> {
        self.format.find(field)?.number(self.bytes)
    }

    fn signed(&self, field: &str) -> Option<i64> {
        Some(self.format.find(field)?.signed(self.bytes)?.into())
    }

    fn text(&self, field: &str) -> Option<&[u8]> {
        self.format.find(field)?.text(self.bytes)
    }

    fn has_flag(&self, field: &str, names: &[&str]) -> Option<bool> {
        Some(self.number(field)? & self.format.flags(names) != 0)
    }

    fn thread(&self) -> Option<u32> {
        u32::try_from(self.number("common_pid")?).ok()
    }
}

/// Finds the tracepoints that the kernel has and that are useful.
///
/// # Errors
/// Returns an error if the kernel has no tracepoint of bios.
pub(super) fn find(root: &Path, volume: Option<&Volume>) -> Result<Vec<(&'static str, Event)>> {
    let mut found = Vec::new();
    let of_bios = |tells| matches!(tells, Tells::Queue);
    for (name, tells) in EVENTS {
        if volume.is_none() && !of_bios(tells) {
            continue;
        }
        match Format::read(root, name) {
            Ok(format) => found.push((name, Event { tells, format })),
            Err(e) if of_bios(tells) => return Err(e),
            Err(_) => {}
        }
    }
    if let Some(volume) = volume {
        let dev = DeviceNumber::of(volume.dev).to_string();
        found.extend(of_paths(root, &mountinfo::all(), &dev));
    }
    Ok(found)
}

/// Finds the tracepoints that tell a path of the filesystem on the device `dev`, and those that then show whose it is: another
/// filesystem has the same inodes' numbers.
fn of_paths(root: &Path, mounts: &[Mounted], dev: &str) -> Vec<(&'static str, Event)> {
    let ours = mounts.iter().find(|mount| mount.dev == dev);
    let kind = ours.map_or("", |mount| mount.kind.as_str());
    let event = |name, tells| {
        Some((
            name,
            Event {
                tells,
                format: Format::read(root, name).ok()?,
            },
        ))
    };
    let mut found: Vec<_> = PATHS
        .iter()
        .filter(|(_, kinds)| kinds.contains(&kind))
        .filter_map(|(name, kinds)| match filesystems(mounts, kinds) {
            1 => event(*name, Tells::Path),
            _ => event(*name, Tells::PathOfSome),
        })
        .collect();
    if found
        .iter()
        .any(|(_, event)| event.tells == Tells::PathOfSome)
    {
        found.extend(
            FOLLOWING
                .iter()
                .filter_map(|name| event(*name, Tells::Regular)),
        );
    }
    found
}

/// Returns the number of mounted filesystems of these kinds, each of which may be mounted several times.
fn filesystems(mounts: &[Mounted], kinds: &[&str]) -> usize {
    let of_kind = mounts.iter().filter(|m| kinds.contains(&m.kind.as_str()));
    let devs: HashSet<&str> = of_kind.map(|m| m.dev.as_str()).collect();
    devs.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filesystem_counts_once_however_often_it_is_mounted() {
        let mount = |dev: &str, kind: &str| Mounted {
            dev: dev.into(),
            kind: kind.into(),
            ..Mounted::default()
        };
        let mut mounts = vec![
            mount("7:0", "f2fs"),
            mount("7:0", "f2fs"),
            mount("7:1", "ext4"),
        ];
        assert_eq!(filesystems(&mounts, &["f2fs"]), 1);
        assert_eq!(filesystems(&mounts, &["f2fs", "ext4"]), 2);
        mounts.push(mount("7:2", "f2fs"));
        assert_eq!(filesystems(&mounts, &["f2fs"]), 2);
        assert_eq!(filesystems(&mounts, &["xfs"]), 0);
    }

    /// The formats are those of android-4.19.
    #[test]
    fn a_path_is_used_whichever_filesystems_tell_it() {
        let tracefs = tempfile::tempdir().unwrap();
        let describe = |event: &str, id: u16, fields: &str| {
            let folder = tracefs.path().join("events").join(event);
            std::fs::create_dir_all(&folder).unwrap();
            let common = "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
            let text = format!("name: x\nID: {id}\nformat:\n{common}{fields}\nprint fmt: \"\"\n");
            std::fs::write(folder.join("format"), text).unwrap();
        };
        describe(
            "android_fs/android_fs_datawrite_start",
            70,
            "\tfield:__data_loc char[] pathbuf;\toffset:8;\tsize:4;\tsigned:1;\n\
             \tfield:loff_t offset;\toffset:16;\tsize:8;\tsigned:1;\n\
             \tfield:int bytes;\toffset:24;\tsize:4;\tsigned:1;\n\
             \tfield:ino_t ino;\toffset:32;\tsize:8;\tsigned:0;\n",
        );
        describe(
            "ext4/ext4_da_write_begin",
            71,
            "\tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
             \tfield:ino_t ino;\toffset:16;\tsize:8;\tsigned:0;\n\
             \tfield:loff_t pos;\toffset:24;\tsize:8;\tsigned:1;\n",
        );
        let mount = |dev: &str, kind: &str| Mounted {
            dev: dev.into(),
            kind: kind.into(),
            ..Mounted::default()
        };
        let tells = |mounts: &[Mounted]| -> Vec<Tells> {
            let found = of_paths(tracefs.path(), mounts, "253:1");
            found.iter().map(|(_, event)| event.tells).collect()
        };
        let data = [mount("253:1", "f2fs"), mount("253:1", "f2fs")];
        assert_eq!(tells(&data), [Tells::Path]);
        let several = [mount("253:1", "f2fs"), mount("259:2", "ext4")];
        assert_eq!(tells(&several), [Tells::PathOfSome, Tells::Regular]);

        // Another filesystem tells these paths.
        assert_eq!(tells(&[mount("253:1", "xfs"), mount("259:2", "f2fs")]), []);

        let found = of_paths(tracefs.path(), &several, "253:1");
        let (told, begun) = (&found[0].1, &found[1].1);
        let mut record = vec![0; 40];
        record[4..8].copy_from_slice(&9u32.to_le_bytes());
        record[8..12].copy_from_slice(&[40, 0, 6, 0]);
        record[16..24].copy_from_slice(&4096u64.to_le_bytes());
        record[24..28].copy_from_slice(&100u32.to_le_bytes());
        record[32..40].copy_from_slice(&12u64.to_le_bytes());
        record.extend(b"/a.db\0");
        let fields = Told {
            format: &told.format,
            bytes: &record,
        };
        assert_eq!(fields.text("pathbuf"), Some(&b"/a.db"[..]));
        let numbers = ["ino", "offset", "bytes"].map(|name| fields.number(name));
        assert_eq!(numbers, [Some(12), Some(4096), Some(100)]);
        assert_eq!(fields.thread(), Some(9));
        assert!(begun.format.find("pos").is_some());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mounts that this process sees: proc_pid_mountinfo(5).
//!
//! Everything here comes from the kernel's table. No path of a mount is used, because the filesystem there may not answer, and because
//! a path leads to what is mounted on top.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A mount as this process sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mounted {
    /// The mount's number.
    pub id: u64,
    /// The number of the mount that contains this one's point.
    pub parent: u64,
    /// `major:minor` of the files in it; for some filesystems (btrfs) this is not a block device.
    pub dev: String,
    /// The folder of the filesystem that is mounted.
    pub root: PathBuf,
    pub point: PathBuf,
    pub kind: String,
    /// The source of the mount, which for many filesystems is the node of a device.
    pub source: PathBuf,
    /// The options of the mount, then those of the filesystem.
    pub options: String,
}

/// Returns all mounts, in the kernel's order; none if they cannot be read.
pub(crate) fn all() -> Vec<Mounted> {
    let text = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let lines = text.split(|&byte| byte == b'\n');
    lines.filter_map(parse).collect()
}

/// Returns the mounts to which a path leads, at most one for each point; the others are covered.
pub(crate) fn reachable() -> Vec<Mounted> {
    uncovered(all())
}

/// Returns the mount that contains a path without symbolic links.
pub(crate) fn holding<'m>(mounts: &'m [Mounted], path: &Path) -> Option<&'m Mounted> {
    let above = mounts.iter().filter(|one| path.starts_with(&one.point));
    above.max_by_key(|one| one.point.components().count())
}

/// Returns the mount that contains a file or folder.
pub(crate) fn of(path: &Path) -> Option<Mounted> {
    let resolved = fs::canonicalize(path).ok()?;
    holding(&reachable(), &resolved).cloned()
}

/// Leaves out what lies below another mount at the same point, and what is mounted in a folder that another mount covers.
fn uncovered(mounts: Vec<Mounted>) -> Vec<Mounted> {
    let by_id: HashMap<u64, &Mounted> = mounts.iter().map(|one| (one.id, one)).collect();
    let taken: HashSet<(u64, &Path)> = mounts
        .iter()
        .filter(|one| one.id != one.parent)
        .map(|one| (one.parent, one.point.as_path()))
        .collect();
    // On the way from the parent's point to the mount's own, no other mount of the parent's may begin.
    let is_entered = |one: &Mounted| {
        let mut above = one.point.ancestors().skip(1);
        !above.any(|folder| taken.contains(&(one.parent, folder)))
    };
    let is_reachable = |one: &&Mounted| {
        let mut step = *one;
        let mut is_entered_so_far = !taken.contains(&(one.id, &one.point));
        // A table of a kernel has no circles, but its mounts may change while it is read.
        for _ in 0..mounts.len() {
            is_entered_so_far = is_entered_so_far && is_entered(step);
            match by_id.get(&step.parent) {
                Some(parent) if is_entered_so_far && parent.id != step.id => step = parent,
                _ => break,
            }
        }
        is_entered_so_far
    };
    mounts.iter().filter(is_reachable).cloned().collect()
}

impl Mounted {
    /// Returns true for a filesystem that a daemon serves.
    pub fn is_fuse(&self) -> bool {
        self.kind == "fuse" || self.kind == "fuseblk" || self.kind.starts_with("fuse.")
    }

    /// Returns the folder to which an overlay writes; None if it cannot be written, and for any other filesystem.
    pub fn upper(&self) -> Option<PathBuf> {
        if self.kind != "overlay" {
            return None;
        }
        let upper = self
            .options
            .split(',')
            .find_map(|o| o.strip_prefix("upperdir="))?;
        Some(unescape(upper.as_bytes()).into())
    }
}

/// Parses a line such as `36 35 98:0 /root /mnt opts … - type source superopts`.
fn parse(line: &[u8]) -> Option<Mounted> {
    let mut words = line.split(|&byte| byte == b' ');
    let mut next = || words.next();
    let number = |word: &[u8]| std::str::from_utf8(word).ok()?.parse().ok();
    let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
    let (id, parent) = (number(next()?)?, number(next()?)?);
    let (dev, root, point) = (text(next()?), unescape(next()?), unescape(next()?));
    let options = text(next()?);
    while next()? != b"-" {}
    let (kind, source) = (text(next()?), unescape(next()?));
    Some(Mounted {
        id,
        parent,
        dev,
        root: root.into(),
        point: point.into(),
        kind,
        source: source.into(),
        options: format!("{options},{}", text(next()?)),
    })
}

/// Decodes `\040` and the like, as which the kernel writes what would divide fields.
fn unescape(field: &[u8]) -> OsString {
    let octal = |code: &[u8]| {
        let digits = std::str::from_utf8(code.strip_prefix(b"\\")?).ok()?;
        u8::from_str_radix(digits, 8).ok()
    };
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, behind)) = rest.split_first() {
        let code = rest.split_at_checked(4);
        let decoded = code.and_then(|(code, behind)| Some((octal(code)?, behind)));
        let (byte, behind) = decoded.unwrap_or((first, behind));
        plain.push(byte);
        rest = behind;
    }
    OsString::from_vec(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_line_has_optional_fields_and_escapes() {
        let line = b"36 35 98:0 / /mnt/a\\040b\\134c\xff rw,noatime master:1 shared:2 - ext4 /dev/sda1 rw,discard";
        let expected = Mounted {
            id: 36,
            parent: 35,
            dev: "98:0".into(),
            root: "/".into(),
            point: OsString::from_vec(b"/mnt/a b\\c\xff".to_vec()).into(),
            kind: "ext4".into(),
            source: "/dev/sda1".into(),
            options: "rw,noatime,rw,discard".into(),
        };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse(b"36 35 98:0 / /mnt"), None);
        assert_eq!(unescape(b"a\\043\\13\\134040"), *"a#\\13\\040");
    }

    #[test]
    fn an_overlay_names_the_folder_above() {
        let line =
            b"36 35 0:41 / /m rw - overlay overlay rw,lowerdir=/a,upperdir=/b\\040c,workdir=/w";
        let mounted = parse(line).unwrap();
        assert_eq!(mounted.upper(), Some("/b c".into()));
        assert_eq!(
            parse(b"36 35 0:41 / /m rw - overlay o ro,lowerdir=/a")
                .unwrap()
                .upper(),
            None
        );
        assert_eq!(of(Path::new("/proc/self")).unwrap().kind, "proc");
    }

    /// The numbers of the mounts that can be reached, given number, parent and point of all.
    fn reached(mounts: &[(u64, u64, &str)]) -> Vec<u64> {
        let mounts = mounts.iter().map(|&(id, parent, point)| Mounted {
            id,
            parent,
            point: point.into(),
            ..Mounted::default()
        });
        let reached = uncovered(mounts.collect());
        reached.iter().map(|one| one.id).collect()
    }

    #[test]
    fn a_path_leads_to_what_is_mounted_on_top() {
        // The second mount at a point has the first one as its parent.
        assert_eq!(reached(&[(1, 0, "/"), (2, 1, "/p"), (3, 2, "/p")]), [1, 3]);
        // Three, and what was mounted in the first one is out of reach.
        let in_first = [(1, 0, "/"), (2, 1, "/p"), (5, 2, "/p/q"), (3, 2, "/p")];
        assert_eq!(reached(&in_first), [1, 3]);
        // A folder above a mount point was mounted over later.
        let above = [(1, 0, "/"), (2, 1, "/a/b"), (4, 2, "/a/b/c"), (3, 1, "/a")];
        assert_eq!(reached(&above), [1, 3]);
        // Beside each other; the root of a container is its own parent.
        assert_eq!(
            reached(&[(1, 1, "/"), (2, 1, "/a"), (3, 1, "/ab"), (4, 2, "/a/b")]),
            [1, 2, 3, 4]
        );
        // A root that is mounted over.
        assert_eq!(reached(&[(1, 0, "/"), (2, 1, "/"), (3, 2, "/p")]), [2, 3]);
    }

    #[test]
    fn a_path_is_in_the_innermost_mount() {
        let mounts = [("/", "a"), ("/m", "b"), ("/m/n", "c")].map(|(point, kind)| Mounted {
            point: point.into(),
            kind: kind.into(),
            ..Mounted::default()
        });
        let kind = |path: &str| Some(holding(&mounts, Path::new(path))?.kind.as_str());
        assert_eq!(kind("/m/nn"), Some("b"));
        assert_eq!(kind("/m/n/x"), Some("c"));
        assert_eq!(kind("/x"), Some("a"));
    }

    proptest! {
        #[test]
        fn any_line_is_a_mount_or_none(line: Vec<u8>) {
            parse(&line);
            unescape(&line);
        }

        #[test]
        fn any_table_has_an_end(table in proptest::collection::vec((0..5u64, 0..5u64, "(/a?){0,3}"), 0..8)) {
            let mounts = table.iter().map(|(id, parent, point)| (*id, *parent, point.as_str()));
            reached(&mounts.collect::<Vec<_>>());
        }
    }
}

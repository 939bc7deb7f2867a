// SPDX-License-Identifier: MIT OR Apache-2.0
//! Walks a tree, which may belong to anybody. It follows no symbolic link, enters no other filesystem, opens only regular files and
//! folders, and reads only a limited amount.

use std::os::fd::OwnedFd;
use std::path::Path;

use mostrace_bundle::entry::{NONE, Origin, RawFile, RawHead, Stage, TYPE_FILE, What};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, RawMode, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;
use zerocopy::IntoBytes;

use super::fscrypt;
use crate::error::{At, Result};
use crate::machine::dev::dev_of_stat;

/// The most names that one walk stores.
const MOST: u64 = 1 << 20;
/// The longest path, bytes (`PATH_MAX`); longer ones cannot be opened either.
const LONGEST: usize = 4096;
/// The most entries that are examined to find a file that shows whether a folder is locked.
const LOOKED_AT: usize = 1 << 12;

/// The result of a walk: what it has named, and what it has not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Walked {
    pub named: u64,
    /// The number of folders whose names are encrypted.
    pub locked: u64,
    /// The number of files that cannot be opened.
    pub unread: u64,
    /// The number of files beyond a limit.
    pub left_out: u64,
}

/// A walk.
pub(super) struct Walk {
    s_dev: u32,
    time_ns: u64,
    walked: Walked,
}

/// A folder that has not yet been read.
struct Folder {
    /// Its path from the tree's own folder, without a leading `/`.
    path: Vec<u8>,
    /// True if it is encrypted and its key is available; this then holds for everything in it.
    is_unlocked: bool,
}

impl Walk {
    /// Starts a walk on the filesystem `s_dev`; the names are valid as of `time_ns`.
    pub fn new(s_dev: u32, time_ns: u64, walked: Walked) -> Walk {
        Walk {
            s_dev,
            time_ns,
            walked,
        }
    }

    pub fn into_walked(self) -> Walked {
        self.walked
    }

    /// Passes on a record for each regular file and folder below `root`, whose path from the filesystem's root is `from_root`.
    ///
    /// # Errors
    /// Returns an error if a record cannot be stored.
    pub fn tree(
        &mut self,
        root: &OwnedFd,
        from_root: &[u8],
        keep: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut left = vec![Folder {
            path: Vec::new(),
            is_unlocked: false,
        }];
        while let Some(folder) = left.pop() {
            let Some(open) = open(root, &folder.path) else {
                self.walked.unread += 1;
                continue;
            };
            let is_encrypted = fscrypt::is_encrypted(&open);
            if is_encrypted && !folder.is_unlocked && !is_unlocked(&open) {
                self.walked.locked += 1;
                continue;
            }
            for (name, kind) in entries(&open) {
                if self.walked.named >= MOST || folder.path.len() + name.len() + 1 >= LONGEST {
                    self.walked.left_out += 1;
                    continue;
                }
                let path = join(&folder.path, &name);
                match self.record(&open, &name, kind, &[from_root, b"/", &path].concat()) {
                    Some(record) => {
                        keep(&record)?;
                        self.walked.named += 1;
                    }
                    None => self.walked.unread += 1,
                }
                if kind == FileType::Directory {
                    left.push(Folder {
                        path,
                        is_unlocked: is_encrypted,
                    });
                }
            }
        }
        Ok(())
    }

    /// Makes the entry of a file that was not written, with its path. None if the file cannot be opened, has been replaced, or is
    /// on another filesystem, or if the path is too long.
    fn record(
        &self,
        folder: &OwnedFd,
        name: &[u8],
        kind: FileType,
        path: &[u8],
    ) -> Option<Vec<u8>> {
        let file = openat(folder, name, flags_of(kind), Mode::empty()).ok()?;
        let stat = fstat(&file).ok()?;
        let is_same = FileType::from_raw_mode(stat.st_mode as RawMode) == kind;
        if !is_same || dev_of_stat(stat.st_dev) != self.s_dev {
            return None;
        }
        let what = match kind {
            FileType::Directory => What::DIRECTORY,
            _ => What::REGULAR,
        };
        let size = size_of::<RawFile>() + path.len().next_multiple_of(8);
        let raw = RawFile {
            head: RawHead {
                kind: TYPE_FILE.into(),
                size: u16::try_from(size).ok()?.into(),
                dev: self.s_dev.into(),
                time_ns: self.time_ns.into(),
                sector: NONE.into(),
                stage: Stage::QUEUE,
                ..RawHead::default()
            },
            ino: stat.st_ino.into(),
            offset: NONE.into(),
            generation: fscrypt::generation(&file).ok()?.into(),
            s_dev: self.s_dev.into(),
            name_len: u16::try_from(path.len()).ok()?.into(),
            origin: Origin::UNKNOWN,
            what,
            ..RawFile::default()
        };
        let mut record = raw.as_bytes().to_vec();
        record.extend_from_slice(path);
        record.resize(size, 0);
        Some(record)
    }
}

/// The walk changes nothing, not even access times.
fn flags() -> OFlags {
    OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOATIME | OFlags::DIRECTORY
}

fn flags_of(kind: FileType) -> OFlags {
    let of_kind = match kind {
        FileType::Directory => OFlags::DIRECTORY,
        // These flags matter if the file has become a pipe.
        _ => OFlags::NONBLOCK | OFlags::NOCTTY,
    };
    OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOATIME | OFlags::NOFOLLOW | of_kind
}

/// Opens the folder at which a walk begins.
///
/// # Errors
/// Returns an error if the folder cannot be opened.
pub(super) fn open_root(path: &Path) -> Result<OwnedFd> {
    openat(CWD, path, flags(), Mode::empty()).at(path)
}

/// Opens a folder below `root`, without following links, and on the same mount.
fn open(root: &OwnedFd, path: &[u8]) -> Option<OwnedFd> {
    let path = if path.is_empty() { b"." } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    openat2(root, path, flags(), Mode::empty(), resolve).ok()
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    match folder {
        [] => name.to_vec(),
        _ => [folder, b"/", name].concat(),
    }
}

/// Returns the regular files and folders; what cannot be read is left out.
fn entries(folder: &OwnedFd) -> Vec<(Vec<u8>, FileType)> {
    let Ok(dir) = Dir::read_from(folder) else {
        return Vec::new();
    };
    let wanted = [FileType::RegularFile, FileType::Directory];
    dir.filter_map(|entry| {
        let entry = entry.ok()?;
        let name = entry.file_name().to_bytes();
        let is_wanted = wanted.contains(&entry.file_type()) && ![&b"."[..], b".."].contains(&name);
        is_wanted.then(|| (name.to_vec(), entry.file_type()))
    })
    .collect()
}

/// Returns true if an encrypted folder's key is available. If the filesystem does not report this, a file shows it, because no file
/// can be opened without the key. For a folder without files it is unknown, and the folder counts as locked.
fn is_unlocked(folder: &OwnedFd) -> bool {
    fscrypt::has_key(folder) || opens_a_file(folder, &mut LOOKED_AT.clone()).unwrap_or(false)
}

/// Returns true if the first file in the folder or below it can be opened; None if there is none.
fn opens_a_file(folder: &OwnedFd, left: &mut usize) -> Option<bool> {
    for (name, kind) in entries(folder) {
        *left = left.checked_sub(1)?;
        let opened = openat(folder, &name[..], flags_of(kind), Mode::empty());
        match (kind, opened) {
            (FileType::RegularFile, Ok(_)) => return Some(true),
            (FileType::RegularFile, Err(Errno::NOKEY)) => return Some(false),
            (FileType::Directory, Ok(below)) => {
                if let Some(known) = opens_a_file(&below, left) {
                    return Some(known);
                }
            }
            _ => {}
        }
    }
    None
}

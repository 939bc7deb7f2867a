// SPDX-License-Identifier: MIT OR Apache-2.0
//! Paths below one folder that lead nowhere else, whatever symbolic links are there (`RESOLVE_IN_ROOT` of openat2).

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, Result};

use crate::{Error, Name};

/// A folder that paths are relative to, including paths in symbolic links that begin with a slash.
#[derive(Debug)]
pub(crate) struct Beneath {
    root: OwnedFd,
}

/// A folder, which may be the root itself.
pub(crate) enum Folder<'a> {
    Root(BorrowedFd<'a>),
    Below(OwnedFd),
}

impl AsFd for Folder<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Folder::Root(folder) => *folder,
            Folder::Below(folder) => folder.as_fd(),
        }
    }
}

/// The number of times that a path is looked up if a rename elsewhere makes the result doubtful (EAGAIN of openat2).
const ATTEMPTS: u32 = 16;

impl Beneath {
    pub(crate) fn new(root: &Path) -> crate::Result<Beneath> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = fs::open(root, flags, Mode::empty());
        let root = opened.map_err(Error::io(root))?;
        Ok(Beneath { root })
    }

    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    pub(crate) fn open(&self, name: &Path, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        let open = || fs::openat2(&self.root, name, flags, mode, resolve);
        let mut opened = open();
        for _ in 0..ATTEMPTS {
            if !matches!(opened, Err(Errno::AGAIN)) {
                break;
            }
            opened = open();
        }
        opened
    }

    /// Returns the folder in which a name lies, and its last component, for calls that do not follow it.
    pub(crate) fn entry<'a>(&'a self, name: &'a Name) -> Result<(Folder<'a>, &'a Path)> {
        let path = name.as_path();
        let (Some(parent), Some(last)) = (path.parent(), path.file_name()) else {
            return Ok((Folder::Root(self.root()), path));
        };
        if parent.as_os_str().is_empty() {
            return Ok((Folder::Root(self.root()), path));
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let folder = self.open(parent, flags, Mode::empty())?;
        Ok((Folder::Below(folder), Path::new(last)))
    }

    /// Makes a new file to be written to.
    pub(crate) fn create(&self, name: &Name) -> Result<OwnedFd> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        self.open(name.as_path(), flags, Mode::from_raw_mode(0o644))
    }

    pub(crate) fn link(&self, from: &Name, to: &Name) -> Result<()> {
        let (from_folder, last) = self.entry(from)?;
        // linkat looks the file up before the folder of its new name.
        let to = self.entry(to);
        let (to_folder, to) = to.or_else(|errno| self.handle(from, false).and(Err(errno)))?;
        let from = last;
        fs::linkat(from_folder, from, to_folder, to, AtFlags::empty())
    }

    /// Gives an open file a name. Its link in /proc needs no privilege, while an empty path does before Linux 6.10.
    pub(crate) fn link_open(&self, from: &OwnedFd, to: &Name) -> Result<()> {
        let (folder, last) = self.entry(to)?;
        fs::linkat(fs::CWD, reopen(from), folder, last, AtFlags::SYMLINK_FOLLOW)
    }

    pub(crate) fn chmod(&self, name: &Name, mode: u32) -> Result<()> {
        let file = self.handle(name, true)?;
        fs::chmod(reopen(&file), Mode::from_raw_mode(mode))
    }

    /// Returns a handle of a file, or of the symbolic link itself. It cannot be read or written; calls that take a path get one
    /// from [`reopen`].
    pub(crate) fn handle(&self, name: &Name, follow: bool) -> Result<OwnedFd> {
        let mut flags = OFlags::PATH;
        flags.set(OFlags::NOFOLLOW, !follow);
        self.open(name.as_path(), flags, Mode::empty())
    }
}

/// Returns a path that leads to exactly the file of a handle.
pub(crate) fn reopen(handle: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()))
}

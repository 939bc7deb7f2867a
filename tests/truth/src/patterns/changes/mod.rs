// SPDX-License-Identifier: MIT OR Apache-2.0
//! Patterns in which several processes change the same blocks of a file. They log every change, and are compared with the
//! causes of rows.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use super::Pattern;
use crate::names::Inode;
use crate::site::{Site, inode_in_memory};

mod copied;
mod delayed;
mod pages;
mod removed;
mod skipped;
mod stores;

pub const ALL: &[Pattern] = &[
    copied::PATTERN,
    delayed::PATTERN,
    pages::PATTERN,
    removed::PATTERN,
    skipped::PATTERN,
    stores::PATTERN,
];

/// A file whose changes are logged.
struct Changed<'a> {
    site: &'a Site,
    file: File,
    inode: Inode,
}

impl<'a> Changed<'a> {
    /// Opens a file, and makes it if it does not exist.
    fn open(site: &'a Site, path: &str) -> io::Result<Changed<'a>> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(site.at(path))?;
        let inode = inode_in_memory(&file)?;
        Ok(Changed { site, file, inode })
    }

    /// Makes a file of this many bytes, all of them written and synced.
    fn synced(site: &'a Site, path: &str, bytes: u64) -> io::Result<Changed<'a>> {
        let made = Changed::open(site, path)?;
        made.write(0..bytes)?;
        made.file.sync_all()?;
        Ok(made)
    }

    /// Writes these bytes of the file, by one call.
    fn write(&self, range: Range<u64>) -> io::Result<()> {
        let bytes = vec![std::process::id() as u8; (range.end - range.start) as usize];
        let at = range.start;
        self.change(range, || self.file.write_all_at(&bytes, at))
    }

    /// Makes a change of these bytes, and logs it.
    fn change<T>(
        &self,
        range: Range<u64>,
        change: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        self.site.changes.make(self.inode, range, change)
    }
}

/// Does the work in this many processes at once, each with its number, and waits for them.
fn processes(count: u64, work: impl Fn(u64) -> io::Result<()>) -> io::Result<()> {
    let fork = |number| {
        // SAFETY: this process has one thread, so the child may do everything.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let done = work(number);
                if let Err(error) = &done {
                    eprintln!("truth: {error}");
                }
                // SAFETY: this ends the child without running what its parent has to run.
                unsafe { libc::_exit(done.is_err().into()) }
            }
            child => Ok(child),
        }
    };
    let children: io::Result<Vec<_>> = (0..count).map(fork).collect();
    for child in children? {
        let mut status = 0;
        // SAFETY: the kernel writes an int.
        let ended = unsafe { libc::waitpid(child, &raw mut status, 0) };
        if ended != child || status != 0 {
            return Err(io::Error::other("a process of a part failed"));
        }
    }
    Ok(())
}

/// Does the work in another process, and waits for it.
fn another(work: impl Fn() -> io::Result<()>) -> io::Result<()> {
    processes(1, |_| work())
}

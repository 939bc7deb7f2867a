// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replacements for the system calls that SQLite makes through a table of its own. They make the same calls and log
//! what is written, and the names that files gain and lose.

use std::collections::HashMap;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::fs::File;
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use rusqlite::ffi;

use crate::contents::checksum;
use crate::names::Inode;
use crate::site::{Site, inode_of};
use crate::stamp::{How, SECTOR, Stamp, now_ns};

struct Shim {
    site: &'static Site,
    how: How,
    /// The files that SQLite opened, by their paths in the filesystem.
    open: Mutex<HashMap<String, Inode>>,
}

static SHIM: OnceLock<Shim> = OnceLock::new();
static WRITES: AtomicU64 = AtomicU64::new(0);

/// Lets SQLite open, write and remove files through the functions below from now on.
pub fn install(site: &'static Site, how: How) -> io::Result<()> {
    let shim = Shim {
        site,
        how,
        open: Mutex::default(),
    };
    let _ = SHIM.set(shim);
    // SAFETY: each function is called as SQLite's table declares the call of that name (os_unix.c, aSyscall), whatever
    // type it has while it is passed through the table.
    unsafe {
        type Call = unsafe extern "C" fn();
        let calls: [(&CStr, *const ()); 3] = [
            (c"open", open as *const ()),
            (c"pwrite", pwrite as *const ()),
            (c"unlink", unlink as *const ()),
        ];
        let vfs = ffi::sqlite3_vfs_find(c"unix".as_ptr());
        let set = vfs.as_ref().and_then(|vfs| vfs.xSetSystemCall);
        let set = set.ok_or_else(|| io::Error::other("SQLite has no table of system calls"))?;
        for (name, call) in calls {
            let call = std::mem::transmute::<*const (), Call>(call);
            if set(vfs, name.as_ptr(), Some(call)) != ffi::SQLITE_OK {
                return Err(io::Error::other(format!("SQLite has no call {name:?}")));
            }
        }
    }
    Ok(())
}

/// Returns the number of writes that SQLite made.
pub fn writes() -> u64 {
    WRITES.load(Ordering::Relaxed)
}

/// Aborts the process on an error. SQLite would only see a failed call, and the process would continue without a
/// complete log.
fn must(done: io::Result<()>) {
    if let Err(error) = done {
        eprintln!("truth: SQLite's calls cannot be logged: {error}");
        std::process::abort();
    }
}

unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_int) -> c_int {
    // SAFETY: these are SQLite's arguments, with which it would make the call itself.
    let fd = unsafe { libc::open(path, flags, mode) };
    if let (true, Some(shim)) = (fd >= 0, SHIM.get()) {
        // SAFETY: open() has just read that string.
        must(shim.opened(unsafe { path_of(path) }, fd));
    }
    fd
}

unsafe extern "C" fn pwrite(fd: c_int, data: *const c_void, bytes: usize, offset: i64) -> isize {
    let time_ns = now_ns();
    // SAFETY: these are SQLite's arguments, with which it would make the call itself.
    let written = unsafe { libc::pwrite(fd, data, bytes, offset) };
    if let (Some(shim), Ok(written @ 1..)) = (SHIM.get(), u64::try_from(written)) {
        must(shim.wrote(fd, offset as u64, written, time_ns));
    }
    written
}

unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: this is SQLite's argument, with which it would make the call itself.
    let result = unsafe { libc::unlink(path) };
    if let (0, Some(shim)) = (result, SHIM.get()) {
        // SAFETY: unlink() has just read that string.
        must(shim.unlinked(unsafe { path_of(path) }));
    }
    result
}

unsafe fn path_of(path: *const c_char) -> PathBuf {
    // SAFETY: the caller passes a C string.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// Wraps SQLite's descriptor without taking ownership: it stays open.
fn borrow(fd: c_int) -> ManuallyDrop<File> {
    // SAFETY: SQLite keeps it open during its call, and it is not closed here.
    ManuallyDrop::new(unsafe { File::from_raw_fd(fd) })
}

impl Shim {
    /// Returns the path within the filesystem; None for a file elsewhere.
    fn inside(&self, path: &Path) -> Option<String> {
        let path = path.strip_prefix(&self.site.root).ok()?;
        Some(format!("/{}", path.display()))
    }

    fn opened(&self, path: PathBuf, fd: c_int) -> io::Result<()> {
        let Some(path) = self.inside(&path) else {
            return Ok(());
        };
        let file = borrow(fd);
        if !file.metadata()?.is_file() {
            return Ok(());
        }
        let inode = inode_of(&file)?;
        let mut open = self.open.lock().unwrap_or_else(|e| e.into_inner());
        if open.insert(path.clone(), inode) == Some(inode) {
            return Ok(());
        }
        // Processes share this file as memory in WAL mode.
        if path.ends_with("-shm") {
            self.site.contents.mapped(inode)?;
        }
        self.site.names.gains(inode, &path)
    }

    fn unlinked(&self, path: PathBuf) -> io::Result<()> {
        let mut open = self.open.lock().unwrap_or_else(|e| e.into_inner());
        let gone = self.inside(&path).and_then(|path| open.remove_entry(&path));
        match gone {
            Some((path, inode)) => self.site.names.loses(inode, &path),
            None => Ok(()),
        }
    }

    /// Logs whole sectors, which are read back, because SQLite may have written parts of them.
    fn wrote(&self, fd: c_int, offset: u64, bytes: u64, time_ns: u64) -> io::Result<()> {
        WRITES.fetch_add(1, Ordering::Relaxed);
        // Opening and closing the file again would drop SQLite's locks, so its own descriptor is used.
        let file = borrow(fd);
        let first = offset / SECTOR as u64 * SECTOR as u64;
        let sectors = (offset + bytes - first).div_ceil(SECTOR as u64);
        let stamp = Stamp::new(inode_of(&file)?, time_ns, self.how);
        let at = (0..sectors).map(|at| first + at * SECTOR as u64);
        let noted: io::Result<Vec<_>> = at
            .map(|offset| Ok((checksum(&sector(&file, offset)?), Stamp { offset, ..stamp })))
            .collect();
        self.site.contents.note(&noted?)
    }
}

/// Reads one sector; beyond the file's end it is zeroes.
fn sector(file: &File, offset: u64) -> io::Result<[u8; SECTOR]> {
    let mut sector = [0; SECTOR];
    let mut read = 0;
    while read < SECTOR {
        match file.read_at(&mut sector[read..], offset + read as u64)? {
            0 => break,
            bytes => read += bytes,
        }
    }
    Ok(sector)
}

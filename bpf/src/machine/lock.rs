// SPDX-License-Identifier: MIT OR Apache-2.0
//! Locks for what only one recorder at a time may use: the block tracer of a disk's queue, an instance of tracefs, and a setting of
//! the kernel's while it is changed.
//!
//! A lock is flock(2) on a file in a folder that only root can use, or on an instance's folder. The kernel releases it when the
//! last process that has it open ends, in whatever way. The file's text names the holder, and counts only while the lock is held.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use mostrace_bundle::manifest::Device;

use crate::error::{At, Error, Result};

/// The folders of the lock files; the second one is for machines without /run, such as Android.
const FOLDERS: [&str; 2] = ["/run/mostrace", "/dev/.mostrace"];

/// How often a lock that others hold for moments is tried, and after which time.
const PATIENCE: u32 = 2500;
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// A lock; it is held as long as a clone of it exists.
#[derive(Clone, Debug)]
pub(crate) struct Lock {
    file: Arc<File>,
    path: PathBuf,
}

impl Lock {
    /// Locks the block tracer of the queue of `device`'s disk, for `source`.
    ///
    /// # Errors
    /// Returns an error if another recorder holds the lock, or if its file cannot be made.
    pub fn of_queue(device: &Device, source: &str) -> Result<Lock> {
        let path = folder()?.join(queue_name(&device.disk_dev));
        let what = format!("the block tracer of {} is taken", device.disk);
        Lock::of_file(&path, &what, &holder(device, source))
    }

    /// Returns the file of a lock with this name.
    ///
    /// # Errors
    /// Returns an error if its folder cannot be made.
    pub fn file_of(name: &str) -> Result<PathBuf> {
        Ok(folder()?.join(name))
    }

    /// Locks a file that other recorders lock for moments. Returns the file's text too.
    ///
    /// # Errors
    /// Returns an error if the file cannot be made, or if another process holds the lock for long.
    pub fn waited_for(path: &Path) -> Result<(Lock, String)> {
        let file = open_file(path)?;
        let mut tries = PATIENCE;
        while !try_lock(&file, path)? {
            tries -= 1;
            if tries == 0 {
                return Err(Error::Busy {
                    what: path.display().to_string(),
                    by: "another recorder".into(),
                });
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok((Lock::new(file, path), said_by(path)))
    }

    /// Locks a file and writes the holder's name to it. `what` says what is taken if another process holds the lock.
    fn of_file(path: &Path, what: &str, holder: &str) -> Result<Lock> {
        let file = open_file(path)?;
        if !try_lock(&file, path)? {
            return Err(Error::Busy {
                what: what.to_owned(),
                by: said_by(path),
            });
        }
        // Written before it is cut, so that whoever is refused meanwhile reads a name.
        file.write_all_at(holder.as_bytes(), 0).at(path)?;
        file.set_len(holder.len() as u64).at(path)?;
        Ok(Lock::new(file, path))
    }

    /// Locks a folder; None if another process has it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened.
    pub fn of_folder(path: &Path) -> Result<Option<Lock>> {
        let file = open_folder(path)?;
        let is_locked = try_lock(&file, path)?;
        Ok(is_locked.then(|| Lock::new(file, path)))
    }

    /// Locks a folder as soon as nobody else has it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened.
    pub fn of_own_folder(path: &Path) -> Result<Lock> {
        let file = open_folder(path)?;
        file.lock().at(path)?;
        Ok(Lock::new(file, path))
    }

    fn new(file: File, path: &Path) -> Lock {
        Lock {
            file: Arc::new(file),
            path: path.to_owned(),
        }
    }

    /// Returns a copy for a process that is to hold the lock too.
    ///
    /// # Errors
    /// Returns an error if no file descriptor is left.
    pub fn for_child(&self) -> Result<Stdio> {
        Ok(self.file.try_clone().at(&self.path)?.into())
    }
}

/// Locks a file; false if another process has the lock.
fn try_lock(file: &File, path: &Path) -> Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(e)) => Err(e).at(path),
    }
}

/// Opens the file of a lock, which is made if it is not there.
fn open_file(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    options.open(path).at(path)
}

fn open_folder(path: &Path) -> Result<File> {
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::NOFOLLOW;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    options.open(path).at(path)
}

/// Returns the name of the holder of the block tracer of the disk `dev` (major:minor), if another recorder has it. The lock is not
/// tried, so nobody is disturbed.
pub(crate) fn recorder_of(dev: &str) -> Option<String> {
    let folders = FOLDERS.iter().map(Path::new);
    folders
        .map(|folder| folder.join(queue_name(dev)))
        .find_map(|path| another_at(&path))
}

/// Returns the name of the holder of a lock file, unless that is this process.
fn another_at(path: &Path) -> Option<String> {
    let said = is_held(path).then(|| said_by(path))?;
    (!said.starts_with(&this_process())).then_some(said)
}

fn this_process() -> String {
    format!("pid {} ", std::process::id())
}

fn queue_name(dev: &str) -> String {
    format!("queue-{}", dev.replace(':', "-"))
}

fn holder(device: &Device, source: &str) -> String {
    format!("{}records {} by {source}", this_process(), device.path)
}

/// Returns the text of a lock's file, which names the holder.
fn said_by(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.trim_end().to_owned()
}

fn is_held(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| lock_holder(&meta).is_some())
}

/// Returns the number of the process that has locked a file with flock(2), from /proc/locks: `1: FLOCK  ADVISORY  WRITE 4711
/// 00:1a:1234 0 EOF`, where the file is major:minor:inode. The lock is not tried.
#[must_use]
pub fn lock_holder(meta: &Metadata) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
    let file = format!("{major:02x}:{minor:02x}:{}", meta.ino());
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let mut words = line
            .split_ascii_whitespace()
            .skip_while(|&word| word != "FLOCK");
        let pid = words.nth(3)?.parse().ok()?;
        (words.next() == Some(&file)).then_some(pid)
    })
}

/// Returns the folder, which no other user may enter.
fn folder() -> Result<PathBuf> {
    let [first, second] = FOLDERS.map(Path::new);
    let folder = match first.parent().is_some_and(Path::is_dir) {
        true => first,
        false => second,
    };
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(e) if e.kind() != ErrorKind::AlreadyExists => Err(e).at(folder),
        _ => Ok(folder.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_support::wait;

    /// Tries to take the lock `x` in a folder.
    fn lock(folder: &Path, holder: &str) -> Result<Lock> {
        Lock::of_file(&folder.join("x"), "x is taken", holder)
    }

    /// Takes a lock that is free. The child of another test may have its file open between its fork and its exec.
    fn taken(folder: &Path, holder: &str) -> Lock {
        let mut taken = None;
        wait::until("the lock is free", || {
            taken = lock(folder, holder).ok();
            taken.is_some()
        });
        taken.unwrap()
    }

    fn refusal(folder: &Path) -> String {
        lock(folder, "pid 9").unwrap_err().to_string()
    }

    #[test]
    fn a_lock_is_one_holders_and_says_whose() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        assert!(!is_held(&path));
        let first = lock(dir.path(), "pid 1, a longer text");
        assert!(is_held(&path));
        assert_eq!(refusal(dir.path()), "x is taken: pid 1, a longer text");
        drop(first);
        wait::until("it is free", || !is_held(&path));
        let _second = taken(dir.path(), "pid 2");
        assert_eq!(refusal(dir.path()), "x is taken: pid 2");
    }

    #[test]
    fn a_lock_of_ones_own_is_nobody_elses() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        assert_eq!(another_at(&path), None);
        let own = lock(dir.path(), &format!("{}records", this_process()));
        assert_eq!(another_at(&path), None);
        drop(own);
        let _other = taken(dir.path(), "pid 0 records");
        assert_eq!(another_at(&path).as_deref(), Some("pid 0 records"));
    }

    #[test]
    fn a_folder_is_one_holders() {
        let dir = tempfile::tempdir().unwrap();
        let held = Lock::of_own_folder(dir.path()).unwrap();
        assert!(Lock::of_folder(dir.path()).unwrap().is_none());
        drop(held);
        wait::until("it is free", || {
            Lock::of_folder(dir.path()).unwrap().is_some()
        });
        assert!(Lock::of_folder(&dir.path().join("none")).is_err());
    }

    #[test]
    fn a_child_holds_it_on() {
        let dir = tempfile::tempdir().unwrap();
        let first = lock(dir.path(), "pid 1").unwrap();
        let mut child = std::process::Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(first.for_child().unwrap())
            .spawn()
            .unwrap();
        drop(first);
        refusal(dir.path());
        drop(child.stdin.take());
        child.wait().unwrap();
        taken(dir.path(), "pid 2");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What one recorder at a time may have: the block tracer of a disk's queue, and ftrace's `blk` tracer.
//!
//! A lock is flock(2) on a file in a folder of root's own. The kernel releases it when the last process that has the file
//! open ends, however it ends; what the file says of its holder counts only as long as the lock is held.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use mostrace_bundle::manifest::Device;

use crate::error::{At, Error, Result};
use crate::openers;

/// The second one is for machines without /run, as Android.
const FOLDERS: [&str; 2] = ["/run/mostrace", "/dev/.mostrace"];
const BLK_TRACER: &str = "blk-tracer";

/// A lock that is held.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// The block tracer of the queue of `device`'s disk, for `source`.
    ///
    /// # Errors
    /// Another recorder has it; or the lock file cannot be made.
    pub fn of_queue(device: &Device, source: &str) -> Result<Lock> {
        let file = LockFile::open(&queue_name(&device.disk_dev))?;
        let what = format!("the block tracer of {} is taken", device.disk);
        file.alone(&what, &holder(device, source))
    }

    /// ftrace's `blk` tracer: it takes the events of every queue.
    ///
    /// # Errors
    /// Another recorder has it, or has a tracer that it would take the events from.
    pub fn of_blk_tracer(device: &Device) -> Result<Lock> {
        let file = LockFile::open(BLK_TRACER)?;
        file.alone("ftrace's blk tracer is taken", &holder(device, "ftrace"))
    }

    /// That nobody takes ftrace's `blk` tracer; several may have this.
    ///
    /// # Errors
    /// Somebody has taken it.
    pub fn against_blk_tracer() -> Result<Lock> {
        LockFile::open(BLK_TRACER)?.shared("ftrace's blk tracer takes the events of every disk")
    }

    /// For a process that is to hold the lock too.
    ///
    /// # Errors
    /// No file descriptor is left.
    pub fn for_child(&self) -> Result<Stdio> {
        Ok(self.file.try_clone().at(&self.path)?.into())
    }
}

/// Who has the block tracer of the disk `dev` (major:minor), if another recorder has it. Nothing is disturbed: the lock is
/// not tried.
pub(crate) fn recorder_of(dev: &str) -> Option<String> {
    let folders = FOLDERS.iter().map(Path::new);
    folders
        .map(|folder| folder.join(queue_name(dev)))
        .find_map(|path| another_at(&path))
}

/// Who holds a lock file, if that is not this process.
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

/// What the file says of its holder; those that share a lock say nothing, but have it open.
fn said_by(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    match text.trim_end() {
        "" => openers::named(|open| open == path).map_or_else(
            || "other recordings by blktrace".into(),
            |who| format!("recordings by blktrace: {who}"),
        ),
        said => said.to_owned(),
    }
}

/// /proc/locks: `1: FLOCK  ADVISORY  WRITE 4711 00:1a:1234 0 EOF`, the file as major:minor:inode.
fn is_held(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(meta) = std::fs::metadata(path) else {
        return false;
    };
    let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
    let file = format!(" {major:02x}:{minor:02x}:{} ", meta.ino());
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    locks
        .lines()
        .any(|line| line.contains("FLOCK") && line.contains(&file))
}

/// A lock file that is open.
struct LockFile {
    file: File,
    path: PathBuf,
}

impl LockFile {
    fn open(name: &str) -> Result<LockFile> {
        LockFile::open_in(&folder()?, name)
    }

    fn open_in(folder: &Path, name: &str) -> Result<LockFile> {
        let path = folder.join(name);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(&path)
            .at(&path)?;
        Ok(LockFile { file, path })
    }

    fn alone(self, what: &str, holder: &str) -> Result<Lock> {
        let tried = self.file.try_lock();
        let mut lock = self.locked(tried, what)?;
        lock.say(&format!("{holder}\n"))?;
        Ok(lock)
    }

    fn shared(self, what: &str) -> Result<Lock> {
        let tried = self.file.try_lock_shared();
        let mut lock = self.locked(tried, what)?;
        lock.say("")?;
        Ok(lock)
    }

    fn locked(self, tried: std::result::Result<(), TryLockError>, what: &str) -> Result<Lock> {
        let LockFile { file, path } = self;
        match tried {
            Ok(()) => Ok(Lock { file, path }),
            Err(TryLockError::WouldBlock) => Err(Error::Busy {
                what: what.to_owned(),
                by: said_by(&path),
            }),
            Err(TryLockError::Error(e)) => Err(e).at(&path),
        }
    }
}

impl Lock {
    fn say(&mut self, text: &str) -> Result<()> {
        self.file.set_len(0).at(&self.path)?;
        self.file.write_all(text.as_bytes()).at(&self.path)
    }
}

/// The folder, which no other user may enter.
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

    fn file(folder: &Path) -> LockFile {
        LockFile::open_in(folder, "x").unwrap()
    }

    /// Takes a lock that is free: the child of another test may have its file open between its fork and its exec.
    fn taken(folder: &Path, holder: &str) -> Lock {
        let mut lock = None;
        wait::until("the lock is free", || {
            lock = file(folder).alone("x is taken", holder).ok();
            lock.is_some()
        });
        lock.unwrap()
    }

    fn refusal(result: Result<Lock>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn a_lock_is_one_holders_and_says_whose() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        assert!(!is_held(&path));
        let first = file(dir.path()).alone("x is taken", "pid 1, a longer text");
        assert!(is_held(&path));
        let said = refusal(file(dir.path()).alone("x is taken", "pid 2"));
        assert_eq!(said, "x is taken: pid 1, a longer text");
        let said = refusal(file(dir.path()).shared("x is taken"));
        assert_eq!(said, "x is taken: pid 1, a longer text");
        drop(first);
        wait::until("it is free", || !is_held(&path));
        let _second = taken(dir.path(), "pid 2");
        let said = refusal(file(dir.path()).alone("x is taken", "pid 3"));
        assert_eq!(said, "x is taken: pid 2");
    }

    #[test]
    fn a_lock_of_ones_own_is_nobody_elses() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        assert_eq!(another_at(&path), None);
        let own = file(dir.path()).alone("x is taken", &format!("{}records", this_process()));
        assert_eq!(another_at(&path), None);
        drop(own);
        let _other = taken(dir.path(), "pid 0 records");
        assert_eq!(another_at(&path).as_deref(), Some("pid 0 records"));
    }

    #[test]
    fn several_share_a_lock_against_one() {
        let dir = tempfile::tempdir().unwrap();
        drop(file(dir.path()).alone("x is taken", "pid 1"));
        wait::until("it is free", || !is_held(&dir.path().join("x")));
        let shared = [(); 2].map(|()| file(dir.path()).shared("x is taken").unwrap());
        let said = refusal(file(dir.path()).alone("x is taken", "pid 2"));
        assert!(said.starts_with("x is taken: "), "{said}");
        let mut child = std::process::Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(shared[0].for_child().unwrap())
            .spawn()
            .unwrap();
        let said = refusal(file(dir.path()).alone("x is taken", "pid 2"));
        let who = format!("pid {} (cat)", child.id());
        assert!(said.contains("recordings by blktrace: ") && said.contains(&who));
        child.kill().unwrap();
        child.wait().unwrap();
        drop(shared);
        taken(dir.path(), "pid 2");
    }

    #[test]
    fn a_child_holds_it_on() {
        let dir = tempfile::tempdir().unwrap();
        let lock = file(dir.path()).alone("x is taken", "pid 1").unwrap();
        let mut child = std::process::Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(lock.for_child().unwrap())
            .spawn()
            .unwrap();
        drop(lock);
        refusal(file(dir.path()).alone("x is taken", "pid 2"));
        drop(child.stdin.take());
        child.wait().unwrap();
        taken(dir.path(), "pid 2");
    }
}

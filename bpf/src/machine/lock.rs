// SPDX-License-Identifier: MIT OR Apache-2.0
//! Locks for what only one recorder at a time may use: the block tracer of a disk's queue, and ftrace's `blk` tracer.
//!
//! A lock is flock(2) on a file in a folder that only root can use, or on an instance's folder. The kernel releases it when the
//! last process that has it open ends, in whatever way. The first line of the file names the holder, and counts only while the lock
//! is held. The second line is what a holder stores for the next one, and counts until it is removed.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use mostrace_bundle::manifest::Device;

use crate::error::{At, Error, Result};
use crate::machine::openers;

/// The folders of the lock files; the second one is for machines without /run, such as Android.
const FOLDERS: [&str; 2] = ["/run/mostrace", "/dev/.mostrace"];
const BLK_TRACER: &str = "blk-tracer";

/// A lock; it is held as long as a clone of it exists.
#[derive(Clone, Debug)]
pub(crate) struct Lock {
    file: Arc<File>,
    path: PathBuf,
    /// The line in the lock's file that names the holder.
    holder: String,
}

impl Lock {
    /// Locks the block tracer of the queue of `device`'s disk, for `source`.
    ///
    /// # Errors
    /// Returns an error if another recorder holds the lock, or if its file cannot be made.
    pub fn of_queue(device: &Device, source: &str) -> Result<Lock> {
        let file = LockFile::open(&queue_name(&device.disk_dev))?;
        let what = format!("the block tracer of {} is taken", device.disk);
        file.alone(&what, &holder(device, source))
    }

    /// Locks ftrace's `blk` tracer, which takes the events of every queue.
    ///
    /// # Errors
    /// Returns an error if another recorder has this tracer, or has a tracer whose events it would take.
    pub fn of_blk_tracer(device: &Device) -> Result<Lock> {
        let file = LockFile::open(BLK_TRACER)?;
        file.alone("ftrace's blk tracer is taken", &holder(device, "ftrace"))
    }

    /// Prevents others from taking ftrace's `blk` tracer. Several recorders may hold this lock.
    ///
    /// # Errors
    /// Returns an error if somebody has the tracer.
    pub fn against_blk_tracer() -> Result<Lock> {
        LockFile::open(BLK_TRACER)?.shared("ftrace's blk tracer takes the events of every disk")
    }

    /// Locks a folder; None if another process has it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened.
    pub fn of_folder(path: &Path) -> Result<Option<Lock>> {
        let file = open_folder(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock::new(file, path))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(e).at(path),
        }
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
            holder: String::new(),
        }
    }

    /// Returns the lock's file, and the line in it that names the holder.
    pub fn said(&self) -> (&Path, &str) {
        (&self.path, &self.holder)
    }

    /// Returns the text that this holder or an earlier one has stored in the file.
    pub fn kept(&self) -> Option<String> {
        kept_in(&self.path)
    }

    /// Stores a line in the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn keep(&self, line: &str) -> Result<()> {
        self.say(Some(line))
    }

    /// Returns a copy for a process that is to hold the lock too.
    ///
    /// # Errors
    /// Returns an error if no file descriptor is left.
    pub fn for_child(&self) -> Result<Stdio> {
        Ok(self.file.try_clone().at(&self.path)?.into())
    }
}

/// Returns true if a recorder that has ended has stored something with the lock of ftrace's `blk` tracer. The lock is not tried.
pub(crate) fn is_blk_tracer_left() -> bool {
    let files = FOLDERS.map(|folder| Path::new(folder).join(BLK_TRACER));
    files
        .iter()
        .any(|file| kept_in(file).is_some() && !is_held(file))
}

fn kept_in(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.lines().nth(1)?.to_owned())
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

/// Returns the line in a file that names its holder. Holders that share a lock write no line, but have the file open.
fn said_by(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    match text.lines().next().unwrap_or_default() {
        "" => openers::named(|open| open == path).map_or_else(
            || "other recordings by blktrace".into(),
            |who| format!("recordings by blktrace: {who}"),
        ),
        said => said.to_owned(),
    }
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

/// An open lock file.
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
        self.locked(tried, what, holder)
    }

    fn shared(self, what: &str) -> Result<Lock> {
        let tried = self.file.try_lock_shared();
        self.locked(tried, what, "")
    }

    fn locked(
        self,
        tried: std::result::Result<(), TryLockError>,
        what: &str,
        holder: &str,
    ) -> Result<Lock> {
        let LockFile { file, path } = self;
        match tried {
            Ok(()) => {
                let mut lock = Lock::new(file, &path);
                holder.clone_into(&mut lock.holder);
                lock.say(lock.kept().as_deref())?;
                Ok(lock)
            }
            Err(TryLockError::WouldBlock) => Err(Error::Busy {
                what: what.to_owned(),
                by: said_by(&path),
            }),
            Err(TryLockError::Error(e)) => Err(e).at(&path),
        }
    }
}

impl Lock {
    /// Writes the lines. It writes before it truncates, so that what was stored stays, in whatever way this process ends.
    fn say(&self, kept: Option<&str>) -> Result<()> {
        let lines = [Some(self.holder.as_str()), kept].into_iter().flatten();
        let text: String = lines.map(|line| format!("{line}\n")).collect();
        self.file.write_all_at(text.as_bytes(), 0).at(&self.path)?;
        self.file.set_len(text.len() as u64).at(&self.path)
    }
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

    fn file(folder: &Path) -> LockFile {
        LockFile::open_in(folder, "x").unwrap()
    }

    /// Takes a lock that is free. The child of another test may have its file open between its fork and its exec.
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
    fn what_is_kept_outlives_its_holder() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let first = taken(dir.path(), "pid 1, a longer text");
        assert_eq!(first.kept(), None);
        first.keep("[1]").unwrap();
        let said = refusal(file(dir.path()).alone("x is taken", "pid 2"));
        assert_eq!(said, "x is taken: pid 1, a longer text");
        drop(first);
        let second = taken(dir.path(), "pid 2");
        assert_eq!(second.kept().as_deref(), Some("[1]"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "pid 2\n[1]\n");
        drop(second);
        let mut shared = None;
        wait::until("it is free", || {
            shared = file(dir.path()).shared("x is taken").ok();
            shared.is_some()
        });
        assert_eq!(kept_in(&path).as_deref(), Some("[1]"));
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lock of a ledger's folder, which the recorder that keeps the ledger holds.
//!
//! The folder may be another user's, so the lock counts only if it is a file of this user's that nobody else can open. The line in it
//! is `PID START`, the holder's number and the time at which it started, in ticks since the boot.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use anyhow::{Context, bail};
use mostrace_bundle::Folder;
use mostrace_bundle::folder::Identity;
use mostrace_capture::lock_holder;
use mostrace_tables::ledger::LOCK;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How often a lock may be replaced while it is opened.
const TRIES: usize = 8;

/// The lock, held for as long as this lives.
pub struct Lock {
    file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A child that has not called execve(2) yet would hold the lock for a moment longer.
        let _ = self.file.unlock();
    }
}

impl Lock {
    /// Locks a folder; None if another process of this user keeps a ledger there.
    pub fn take(folder: &Folder) -> anyhow::Result<Option<Lock>> {
        for _ in 0..TRIES {
            let mut file = folder.own(LOCK)?;
            let is_locked = is_free(&file)?;
            let named = folder.identity_of(LOCK.as_ref())?;
            let is_in_place = named == Some(Identity::of(&file.metadata()?));
            match (is_locked, is_in_place) {
                (_, false) => {}
                (true, true) => {
                    file.set_len(0)?;
                    file.write_all(Process::this().line().as_bytes())?;
                    return Ok(Some(Lock { file }));
                }
                (false, true) if is_strangers(&file)? => folder.remove(LOCK)?,
                (false, true) => return Ok(None),
            }
        }
        bail!("{}: others replace it", folder.path().join(LOCK).display())
    }

    /// Returns the number of the process that keeps the ledger, as far as it is known; None if nobody does. The lock is not tried, so
    /// this needs no right to open it.
    pub fn holder(folder: &Path) -> anyhow::Result<Option<u32>> {
        let path = folder.join(LOCK);
        let meta = match fs::symlink_metadata(&path) {
            // A copy of a ledger has none.
            Err(why) if why.kind() == ErrorKind::NotFound => return Ok(None),
            meta => meta.with_context(|| path.display().to_string())?,
        };
        if !meta.is_file() {
            bail!("{}: is not a file that a ledger made", path.display());
        }
        Ok(lock_holder(&meta))
    }

    /// Asks the process that keeps the ledger to end, and waits until it has.
    pub fn end_holder(folder: &Folder) -> anyhow::Result<()> {
        let shown = folder.path().display();
        if !folder.has(LOCK)? {
            bail!("{shown}: nobody keeps a ledger here");
        }
        let mut file = folder.own(LOCK)?;
        if is_free(&file)? {
            bail!("{shown}: nobody keeps this ledger now");
        }
        let mut line = String::new();
        (&mut file).take(64).read_to_string(&mut line)?;
        let Some(process) = Process::parse(&line) else {
            bail!("{shown}: the process that keeps this ledger is not known");
        };
        process.terminate()?;
        file.lock().with_context(|| shown.to_string())
    }
}

/// Locks a file; false if another process has it.
fn is_free(file: &File) -> anyhow::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(why)) => Err(why.into()),
    }
}

/// Returns true if a process of another user may have locked the file. Versions before 0.9 made it with a mode with which others could.
fn is_strangers(file: &File) -> anyhow::Result<bool> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    const OF_OTHERS: u32 = 0o077;
    let meta = file.metadata()?;
    let is_open = meta.permissions().mode() & OF_OTHERS != 0;
    let is_own =
        |pid: u32| fs::metadata(format!("/proc/{pid}")).is_ok_and(|of| of.uid() == meta.uid());
    Ok(is_open && !lock_holder(&meta).is_some_and(is_own))
}

/// A process of this boot. Its number alone may be another's later.
#[derive(Debug, PartialEq, Eq)]
struct Process {
    pid: i32,
    start: u64,
}

impl Process {
    fn this() -> Process {
        let pid = rustix::process::getpid().as_raw_nonzero().get();
        Process {
            pid,
            start: started(pid).unwrap_or(0),
        }
    }

    fn line(&self) -> String {
        format!("{} {}\n", self.pid, self.start)
    }

    fn parse(line: &str) -> Option<Process> {
        let (pid, start) = line.trim_end().split_once(' ')?;
        Some(Process {
            pid: pid.parse().ok()?,
            start: start.parse().ok()?,
        })
    }

    /// Sends SIGTERM to this very process.
    fn terminate(&self) -> anyhow::Result<()> {
        let what = || format!("process {}", self.pid);
        let pid = Pid::from_raw(self.pid).with_context(what)?;
        // The descriptor stays with the process that has the number now, and the start tells whether that is the one.
        let process = pidfd_open(pid, PidfdFlags::empty()).with_context(what)?;
        if started(self.pid) != Some(self.start) {
            bail!(
                "process {} is another one by now, and gets no signal",
                self.pid
            );
        }
        pidfd_send_signal(process, Signal::TERM).with_context(what)
    }
}

/// Returns when a process started, in ticks since the boot: the 22nd field of proc_pid_stat(5). The second one may contain anything.
fn started(pid: i32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let behind = stat.rsplit(|&byte| byte == b')').next()?;
    let text = std::str::from_utf8(behind).ok()?;
    text.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_not_its_number() {
        let this = Process::this();
        assert!(this.start > 0);
        assert_eq!(Process::parse(&this.line()), Some(Process::this()));
        assert_eq!(Process::parse(""), None);
        let another = Process {
            start: this.start + 1,
            ..this
        };
        let refused = another.terminate().unwrap_err().to_string();
        assert!(
            refused.ends_with("is another one by now, and gets no signal"),
            "{refused}"
        );
    }

    #[test]
    fn a_folder_has_one_holder() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let held = Lock::take(&folder).unwrap().unwrap();
        assert!(Lock::take(&folder).unwrap().is_none());
        let path = dir.path().join(LOCK);
        let said = fs::read_to_string(&path).unwrap();
        assert_eq!(Process::parse(&said), Some(Process::this()));
        drop(held);
        assert!(Lock::take(&folder).unwrap().is_some());
    }

    #[test]
    fn only_a_file_of_this_users_is_a_lock() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let (lock, aim) = (dir.path().join(LOCK), dir.path().join("aim"));
        std::os::unix::fs::symlink(&aim, &lock).unwrap();
        assert!(Lock::take(&folder).is_err());
        assert!(Lock::holder(dir.path()).is_err());
        assert!(Lock::end_holder(&folder).is_err());
        assert!(!aim.exists());
        fs::remove_file(&lock).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &lock,
            rustix::fs::FileType::Fifo,
            0o600.into(),
            0,
        )
        .unwrap();
        assert!(Lock::take(&folder).is_err());
        assert!(Lock::end_holder(&folder).is_err());
    }
}

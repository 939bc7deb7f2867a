// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lock of a ledger's folder, which the recorder that keeps the ledger holds.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use anyhow::Context;
use mostrace_capture::lock_holder;

/// The file that is locked while a ledger is kept.
const LOCK: &str = "lock";

/// The lock's file; opening it does not lock it.
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Opens the lock of a folder, and makes it if it is missing.
    pub fn create(folder: &Path) -> anyhow::Result<Lock> {
        Lock::open(
            folder,
            File::options().create(true).truncate(false).write(true),
        )
    }

    /// Opens the lock of a folder in which a ledger was kept before.
    pub fn find(folder: &Path) -> anyhow::Result<Lock> {
        Lock::open(folder, File::options().read(true))
    }

    fn open(folder: &Path, options: &std::fs::OpenOptions) -> anyhow::Result<Lock> {
        let path = folder.join(LOCK);
        let file = options
            .open(&path)
            .with_context(|| path.display().to_string())?;
        Ok(Lock { file, path })
    }

    /// Locks the folder for as long as this lives. Returns false if another process has locked it.
    pub fn take(&self) -> anyhow::Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(why)) => {
                Err(why).with_context(|| self.path.display().to_string())
            }
        }
    }

    /// Returns the process that has locked the folder, if it is known.
    pub fn holder(&self) -> Option<u32> {
        lock_holder(&self.path)
    }

    /// Waits until no other process has locked the folder.
    pub fn wait(&self) -> anyhow::Result<()> {
        self.file
            .lock()
            .with_context(|| self.path.display().to_string())
    }
}

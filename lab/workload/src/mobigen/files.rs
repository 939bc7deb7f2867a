// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of a replay: their paths, and the open ones.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::{Error, Result};
use mostrace_replay::mobigen::Flags;

/// The open files, shared by all threads, as the threads of a process share one table of descriptors.
pub(super) struct Files {
    root: PathBuf,
    /// Stands for every descriptor that is not open: a call on it is really made, and fails.
    nowhere: Arc<File>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    open: HashMap<i64, Arc<File>>,
    /// Files whose number was opened again: the script never closes them, so they stay open.
    left: Vec<Arc<File>>,
}

impl Files {
    /// Starts with no open file; `root` must be an existing folder.
    pub fn new(root: &Path) -> Result<Self> {
        // read(2), write(2) and fsync(2) fail with EBADF on a descriptor that was opened with O_PATH.
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let nowhere = openat(CWD, root, flags, Mode::empty());
        let nowhere = nowhere.map_err(|e| Error::io(root)(e.into()))?;
        Ok(Self {
            root: root.to_owned(),
            nowhere: Arc::new(nowhere.into()),
            table: Mutex::default(),
        })
    }

    /// Returns a path of the script below the folder; `..` is dropped.
    pub fn below(&self, path: &str) -> PathBuf {
        below(&self.root, path)
    }

    /// Returns the path of a file that belongs to one thread.
    pub fn own(&self, thread: u32, number: u64) -> PathBuf {
        self.root.join(format!("temp_{thread}_{number}.dat"))
    }

    /// Returns the file of a descriptor; for one that is not open, a file on which every operation fails.
    pub fn get(&self, descriptor: i64) -> Arc<File> {
        let table = self.table();
        let file = table.open.get(&descriptor);
        Arc::clone(file.unwrap_or(&self.nowhere))
    }

    /// Returns a file on which reads and writes fail.
    pub fn nowhere(&self) -> Arc<File> {
        Arc::clone(&self.nowhere)
    }

    /// Stores an open file; None as descriptor means that no call will name it.
    pub fn put(&self, descriptor: Option<i64>, file: File) {
        let (mut table, file) = (self.table(), Arc::new(file));
        let replaced = match descriptor {
            Some(descriptor) => table.open.insert(descriptor, file),
            None => Some(file),
        };
        table.left.extend(replaced);
    }

    /// Removes a file from the table, so that the caller closes it.
    pub fn take(&self, descriptor: i64) -> Option<Arc<File>> {
        self.table().open.remove(&descriptor)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a path below `root`; see [`Files::below`].
pub(super) fn below(root: &Path, path: &str) -> PathBuf {
    let path = Path::new(path.trim_matches('"'));
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    root.join(names.collect::<PathBuf>())
}

/// Opens a file with one call. A file that is opened for writing is created or truncated, whatever its flags, as
/// Mobibench does.
pub(super) fn open(path: &Path, flags: Flags) -> std::io::Result<File> {
    let mut given = OFlags::CLOEXEC;
    given |= match flags.writes {
        true => OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC,
        false => OFlags::RDONLY,
    };
    given.set(OFlags::CREATE, flags.writes || flags.creates);
    given.set(OFlags::EXCL, !flags.writes && flags.exclusive);
    let mode = Mode::from_raw_mode(0o666);
    Ok(openat(CWD, path, given, mode)?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leads_out_of_the_folder() {
        assert_eq!(
            below(Path::new("/x"), "\"/data/../../etc/passwd\""),
            Path::new("/x/data/etc/passwd")
        );
    }
}

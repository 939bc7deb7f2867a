// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files of a replay: where they are, and those that are open.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::script::Flags;
use crate::{Error, Result};

/// What is open, for all threads: a process has one table of descriptors.
pub(super) struct Files {
    root: PathBuf,
    /// Stands for every descriptor that is not open: what is asked of it fails, and really is asked.
    nowhere: Arc<File>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    open: HashMap<i64, Arc<File>>,
    /// Opened again under the same number: the script does not close them, so they stay open.
    left: Vec<Arc<File>>,
}

impl Files {
    /// Of a folder that is there.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn new(root: &Path) -> Result<Self> {
        // read(2), write(2) and fsync(2) fail with EBADF on a descriptor that is a path alone.
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let nowhere = openat(CWD, root, flags, Mode::empty());
        let nowhere = nowhere.map_err(|e| Error::io(root)(e.into()))?;
        Ok(Self {
            root: root.to_owned(),
            nowhere: Arc::new(nowhere.into()),
            table: Mutex::default(),
        })
    }

    /// A path of the script's below the folder: `..` leads nowhere.
    pub fn below(&self, path: &str) -> PathBuf {
        below(&self.root, path)
    }

    /// A file of a thread's own.
    pub fn own(&self, thread: u32, number: u64) -> PathBuf {
        self.root.join(format!("temp_{thread}_{number}.dat"))
    }

    /// The file of a descriptor; of one that is not open, a file of which nothing can be had.
    pub fn get(&self, descriptor: i64) -> Arc<File> {
        let table = self.table();
        let file = table.open.get(&descriptor);
        Arc::clone(file.unwrap_or(&self.nowhere))
    }

    /// A file that nothing can be read from or written to.
    pub fn nowhere(&self) -> Arc<File> {
        Arc::clone(&self.nowhere)
    }

    /// Remembers an open file; None is a descriptor that nobody will name.
    pub fn put(&self, descriptor: Option<i64>, file: File) {
        let (mut table, file) = (self.table(), Arc::new(file));
        let replaced = match descriptor {
            Some(descriptor) => table.open.insert(descriptor, file),
            None => Some(file),
        };
        table.left.extend(replaced);
    }

    /// Takes a file out of the table, so that the caller closes it.
    pub fn take(&self, descriptor: i64) -> Option<Arc<File>> {
        self.table().open.remove(&descriptor)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See [`Files::below`].
pub(super) fn below(root: &Path, path: &str) -> PathBuf {
    let path = Path::new(path.trim_matches('"'));
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    root.join(names.collect::<PathBuf>())
}

/// Opens a file by one call. For writing it is made, or emptied, as Mobibench does whatever the flags.
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files and folders that must have existed before the first operation.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{self, Mode};

use crate::beneath::Beneath;
use crate::bytes::{Bytes, Contents};
use crate::deduce::Deduction;
use crate::tree::{Kind, ObjectId};
use crate::{Error, Name, Recorded, Result};

/// A regular file that existed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartFile {
    /// Its size: the size that was seen before an operation changed it, otherwise the least that explains the operations; 0 if the
    /// first open truncated it.
    pub bytes: u64,
    /// Its permissions; None if they are unknown.
    pub mode: Option<u32>,
}

/// What must have existed before the first operation, deduced from the operations. It does not include anything that no operation
/// used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// The folders without the root, and their permissions; None if they are unknown.
    pub folders: BTreeMap<Name, Option<u32>>,
    /// The regular files.
    pub files: BTreeMap<Name, StartFile>,
    /// Further names of those files (hard links); each has a name that is in `files`.
    pub links: BTreeMap<Name, Name>,
}

impl Start {
    /// Deduces the start from operations that are ordered by the time at which they began. A path existed if an operation found it
    /// before any operation made it. A name that was absent at its first use did not exist.
    pub fn of(recorded: &Recorded) -> Start {
        let mut deduction = Deduction::default();
        for operation in &recorded.operations {
            deduction.step(operation);
        }
        Start::deduced(deduction)
    }

    pub(crate) fn deduced(mut deduction: Deduction) -> Start {
        deduction.finish();
        let mut start = Start::default();
        for id in deduction.tree.ids() {
            start.add(&deduction, id);
        }
        start
    }

    fn add(&mut self, deduction: &Deduction, id: ObjectId) {
        let object = deduction.tree.object(id);
        let bytes = object.size.at_start();
        if object.start.is_empty() || object.presumed_made && bytes == 0 {
            return;
        }
        let mut names = deduction.tree.start_names(id).into_iter();
        let Some(name) = names.next() else {
            return;
        };
        let mode = object.mode.flatten();
        if object.is_folder() {
            self.folders.insert(name, mode);
        } else if matches!(object.kind, Kind::File | Kind::Unknown) {
            self.links.extend(names.map(|other| (other, name.clone())));
            self.files.insert(name, StartFile { bytes, mode });
        }
    }

    /// Makes the files and folders in the empty folder `root`, and waits until they are on the storage.
    ///
    /// # Errors
    /// Returns an error if the filesystem has less free space than the files have bytes, or if it cannot be written.
    pub fn make(&self, root: &Path, contents: Contents) -> Result<()> {
        self.refuse_too_much(root)?;
        self.make_in(root, &Beneath::new(root)?, &Bytes::new(contents))
    }

    pub(crate) fn make_in(&self, root: &Path, beneath: &Beneath, bytes: &Bytes) -> Result<()> {
        let at = |name: &Name| root.join(name.as_path());
        // A folder's name is less than those below it.
        for name in self.folders.keys() {
            let made = beneath
                .entry(name)
                .and_then(|(folder, last)| fs::mkdirat(folder, last, Mode::from_raw_mode(0o755)));
            made.map_err(|errno| Error::io(&at(name))(errno.into()))?;
        }
        for (name, file) in &self.files {
            let made = make_file(beneath, bytes, name, file);
            made.map_err(|errno| Error::io(&at(name))(errno.into()))?;
        }
        for (name, existing) in &self.links {
            let linked = beneath.link(existing, name);
            linked.map_err(|errno| Error::io(&at(name))(errno.into()))?;
        }
        for (name, mode) in self.folders.iter().rev() {
            let made = mode.map_or(Ok(()), |mode| beneath.chmod(name, mode));
            made.map_err(|errno| Error::io(&at(name))(errno.into()))?;
        }
        let synced = fs::syncfs(beneath.root());
        synced.map_err(|errno| Error::io(root)(errno.into()))
    }

    pub(crate) fn refuse_too_much(&self, root: &Path) -> Result<()> {
        let space = fs::statvfs(root).map_err(|errno| Error::io(root)(errno.into()))?;
        let free = u128::from(space.f_bavail).saturating_mul(space.f_frsize.into());
        let all = self.files.values().map(|file| u128::from(file.bytes));
        let all: u128 = all.sum();
        let greatest = self.files.iter().max_by_key(|(_, file)| file.bytes);
        match greatest {
            Some((name, file)) if all > free => Err(Error::Refused {
                path: root.join(name.as_path()),
                why: format!(
                    "the files that must exist before the first operation have {all} bytes, this one {}, but the \
                     filesystem has {free} bytes free",
                    file.bytes
                ),
            }),
            _ => Ok(()),
        }
    }
}

pub(crate) fn make_file(
    beneath: &Beneath,
    bytes: &Bytes,
    name: &Name,
    file: &StartFile,
) -> rustix::io::Result<()> {
    let made = beneath.create(name)?;
    fill(&made, bytes, 0, file.bytes)?;
    match file.mode {
        Some(mode) => fs::fchmod(&made, Mode::from_raw_mode(mode)),
        None => Ok(()),
    }
}

/// Writes a file's contents from one offset to another.
pub(crate) fn fill(file: &OwnedFd, bytes: &Bytes, from: u64, to: u64) -> rustix::io::Result<()> {
    let mut done = from;
    while done < to {
        let part = bytes.first(to.saturating_sub(done));
        let written = rustix::io::retry_on_intr(|| rustix::io::pwrite(file, part, done))?;
        if written == 0 {
            return Err(rustix::io::Errno::NOSPC);
        }
        done = done.saturating_add(written as u64);
    }
    Ok(())
}

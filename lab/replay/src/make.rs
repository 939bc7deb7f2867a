// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes what existed before the first operation. The filesystem may have files already: a fresh one has what mkfs made, such as
//! `lost+found`, and an image the recorded filesystem's files as they lay when its recording ended.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::{self, Errno};

use crate::beneath::Beneath;
use crate::bytes::{Bytes, Contents};
use crate::operation::{Call, Change, Operation, Target};
use crate::start::StartFile;
use crate::{Error, Name, Result, Start};

impl Start {
    /// Turns the state of the filesystem at `root` into the state that the operations found, and waits until it is on the storage.
    /// What has a name that the operations found absent, or of another kind, is removed. A file that they found keeps its blocks
    /// and gets its size back. What is missing is made. All other files stay.
    ///
    /// # Errors
    /// Returns an error if the filesystem has less free space than the files need, if a folder that must go has files that the
    /// operations do not name, or if the filesystem cannot be written.
    pub fn make(&self, root: &Path, contents: Contents, operations: &[Operation]) -> Result<()> {
        let (beneath, bytes) = (Beneath::new(root)?, Bytes::new(contents));
        self.make_in(root, &beneath, &bytes, operations)
    }

    pub(crate) fn make_in(
        &self,
        root: &Path,
        beneath: &Beneath,
        bytes: &Bytes,
        operations: &[Operation],
    ) -> Result<()> {
        let at = |name: &Name| root.join(name.as_path());
        self.make_room(root, beneath, operations)?;
        self.refuse_too_much(root, beneath)?;
        // A folder's name is less than those below it.
        for name in self.folders.keys() {
            make_folder(beneath, name).map_err(Error::io(&at(name)))?;
        }
        for (name, file) in &self.files {
            fit(beneath, bytes, name, file).map_err(Error::io(&at(name)))?;
        }
        for (name, existing) in &self.links {
            let linked = match beneath.link(existing, name) {
                Err(Errno::EXIST) => Ok(()),
                linked => linked,
            };
            linked.map_err(Error::io(&at(name)))?;
        }
        for (name, mode) in self.folders.iter().rev() {
            let made = mode.map_or(Ok(()), |mode| beneath.chmod(name, mode));
            made.map_err(Error::io(&at(name)))?;
        }
        fs::syncfs(beneath.root()).map_err(Error::io(root))
    }

    /// Removes what has a name that was absent, or that something of another kind had.
    fn make_room(&self, root: &Path, beneath: &Beneath, operations: &[Operation]) -> Result<()> {
        let there = entries(root)?;
        // On a fresh filesystem there is little to look for.
        let is_below = |name: &Name| {
            let first = name.as_path().components().next();
            first.is_some_and(|first| there.contains(first.as_os_str()))
        };
        let mut used = names(operations);
        used.extend(self.folders.keys().cloned());
        used.extend(self.files.keys().chain(self.links.keys()).cloned());
        // The contents of a folder sort behind it.
        for name in used.iter().rev().filter(|name| is_below(name)) {
            let made = match self.may_stay(beneath, name) {
                true => Ok(()),
                false => remove(beneath, name),
            };
            made.map_err(Error::io(&root.join(name.as_path())))?;
        }
        Ok(())
    }

    fn may_stay(&self, beneath: &Beneath, name: &Name) -> bool {
        let is_folder = || {
            let found = beneath.handle(name, true).and_then(fs::fstat);
            found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Directory)
        };
        match self.folders.contains_key(name) {
            true => is_folder(),
            false => {
                let was_there = self.files.contains_key(name) || self.links.contains_key(name);
                was_there && !is_folder()
            }
        }
    }

    /// Refuses files for which the filesystem has no room. Those that exist already have theirs.
    fn refuse_too_much(&self, root: &Path, beneath: &Beneath) -> Result<()> {
        let space = fs::statvfs(root).map_err(Error::io(root))?;
        let free = u128::from(space.f_bavail).saturating_mul(space.f_frsize.into());
        let is_all_free = entries(root)?.is_empty();
        let missing = |(name, file): (&Name, &StartFile)| {
            let found = (!is_all_free).then(|| beneath.handle(name, false).and_then(fs::fstat));
            let size = found.and_then(|found| u64::try_from(found.ok()?.st_size).ok());
            u128::from(file.bytes.saturating_sub(size.unwrap_or(0)))
        };
        let all: u128 = self.files.iter().map(missing).sum();
        let greatest = self.files.iter().max_by_key(|(_, file)| file.bytes);
        match greatest {
            Some((name, file)) if all > free => Err(Error::Refused {
                path: root.join(name.as_path()),
                why: format!(
                    "the files that must exist before the first operation need {all} bytes, this one has {}, but the \
                     filesystem has {free} bytes free",
                    file.bytes
                ),
            }),
            _ => Ok(()),
        }
    }
}

/// Returns the names in a folder.
fn entries(folder: &Path) -> Result<HashSet<OsString>> {
    let entries = std::fs::read_dir(folder).map_err(Error::io(folder))?;
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    names
        .collect::<std::io::Result<_>>()
        .map_err(Error::io(folder))
}

/// Returns the names that operations may have made, without the root.
fn names(operations: &[Operation]) -> BTreeSet<Name> {
    let mut names = BTreeSet::new();
    for operation in operations {
        match &operation.call {
            Call::Open(opened) | Call::Opened(opened) => names.extend(opened.path.clone()),
            Call::Rename { from, to, .. } => names.extend([from.clone(), to.clone()]),
            Call::Link { from, to, .. } => {
                names.insert(to.clone());
                if let Target::Path(from) = from {
                    names.insert(from.clone());
                }
            }
            Call::Symlink { path, .. }
            | Call::Unlink(path)
            | Call::Rmdir(path)
            | Call::Mkdir { path, .. }
            | Call::Mknod { path, .. }
            | Call::Change(Target::Path(path), Change::Truncate(_)) => {
                names.insert(path.clone());
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_root());
    names
}

fn remove(beneath: &Beneath, name: &Name) -> io::Result<()> {
    let absent = |errno| matches!(errno, Errno::NOENT | Errno::NOTDIR);
    let (folder, last) = match beneath.entry(name) {
        Err(errno) if absent(errno) => return Ok(()),
        found => found?,
    };
    match fs::unlinkat(&folder, last, AtFlags::empty()) {
        Err(Errno::ISDIR) => fs::unlinkat(folder, last, AtFlags::REMOVEDIR),
        Err(errno) if absent(errno) => Ok(()),
        done => done,
    }
}

fn make_folder(beneath: &Beneath, name: &Name) -> io::Result<()> {
    let (folder, last) = beneath.entry(name)?;
    match fs::mkdirat(folder, last, Mode::from_raw_mode(0o755)) {
        Err(Errno::EXIST) => Ok(()),
        made => made,
    }
}

/// Gives an existing file its size at the start, and makes one that is missing.
fn fit(beneath: &Beneath, bytes: &Bytes, name: &Name, file: &StartFile) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let existing = match beneath.open(name.as_path(), flags, Mode::empty()) {
        Err(Errno::NOENT) => return make_file(beneath, bytes, name, file),
        opened => opened?,
    };
    let found = fs::fstat(&existing)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(Errno::NXIO);
    }
    let size = u64::try_from(found.st_size).unwrap_or(0);
    match size > file.bytes {
        true => fs::ftruncate(&existing, file.bytes)?,
        false => fill(&existing, bytes, size, file.bytes)?,
    }
    set_mode(&existing, file)
}

fn make_file(beneath: &Beneath, bytes: &Bytes, name: &Name, file: &StartFile) -> io::Result<()> {
    let made = beneath.create(name)?;
    fill(&made, bytes, 0, file.bytes)?;
    set_mode(&made, file)
}

fn set_mode(made: &OwnedFd, file: &StartFile) -> io::Result<()> {
    let mode = file.mode.map(Mode::from_raw_mode);
    mode.map_or(Ok(()), |mode| fs::fchmod(made, mode))
}

/// Writes a file's contents from one offset to another.
fn fill(file: &OwnedFd, bytes: &Bytes, from: u64, to: u64) -> io::Result<()> {
    let mut done = from;
    while done < to {
        let part = bytes.first(to.saturating_sub(done));
        let written = io::retry_on_intr(|| io::pwrite(file, part, done))?;
        if written == 0 {
            return Err(Errno::NOSPC);
        }
        done = done.saturating_add(written as u64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::operation::{FileId, Opened};

    fn name(path: &str) -> Name {
        Name::new(path.as_bytes()).unwrap()
    }

    fn operation(call: Call) -> Operation {
        Operation {
            thread: 1,
            process: 1,
            begin_ns: 0,
            end_ns: 0,
            call,
            result: 0,
        }
    }

    fn start() -> Start {
        let mut start = Start::default();
        let file = |bytes| StartFile { bytes, mode: None };
        start.files.insert(name("longer"), file(10));
        start.files.insert(name("shorter"), file(9000));
        start.files.insert(name("f/removed"), file(5));
        start.folders.insert(name("f"), None);
        start
    }

    #[test]
    fn what_was_made_goes_and_what_was_found_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir(root.join("made")).unwrap();
        for (path, bytes) in [
            ("made/x", 1),
            ("longer", 7000),
            ("shorter", 20),
            ("other", 3),
        ] {
            fs::write(root.join(path), vec![1; bytes]).unwrap();
        }
        let opened = Opened {
            file: Some(FileId(1)),
            path: Some(name("made/x")),
            flags: 0o101,
            mode: 0o644,
            i_mode: 0,
            size: None,
            created: true,
            inode: (0, 0),
        };
        let mkdir = Call::Mkdir {
            path: name("made"),
            mode: 0o755,
        };
        let operations = [mkdir, Call::Open(opened)].map(operation);
        start().make(root, Contents::Random, &operations).unwrap();
        let size = |path: &str| fs::metadata(root.join(path)).map(|meta| meta.len()).ok();
        assert!(!root.join("made").exists());
        let sizes = ["longer", "shorter", "f/removed", "other"].map(size);
        assert_eq!(sizes, [Some(10), Some(9000), Some(5), Some(3)]);
        assert_eq!(fs::read(root.join("shorter")).unwrap()[..20], [1; 20]);
    }

    #[test]
    fn no_link_leads_out() {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let victim = outside.path().join("victim");
        fs::write(&victim, "kept").unwrap();
        std::os::unix::fs::symlink(&victim, dir.path().join("longer")).unwrap();
        std::os::unix::fs::symlink(outside.path(), dir.path().join("f")).unwrap();
        let unlink = Call::Unlink(name("f/victim"));
        assert!(
            start()
                .make(dir.path(), Contents::Random, &[operation(unlink)])
                .is_err()
        );
        assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }

    /// mkfs makes `lost+found`; the application found a folder, nothing, a file or a link of that name.
    #[test]
    fn what_mkfs_made_is_what_was_found_of_that_name() {
        let lost = || name("lost+found");
        let made = |start: Start, operations: &[Operation]| {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir(dir.path().join("lost+found")).unwrap();
            start
                .make(dir.path(), Contents::Random, operations)
                .unwrap();
            let found = fs::metadata(dir.path().join("lost+found"));
            let of =
                |found: fs::Metadata| (found.is_dir(), found.len() * u64::from(found.is_file()));
            found.ok().map(of)
        };
        let mkdir = || {
            [operation(Call::Mkdir {
                path: lost(),
                mode: 0o700,
            })]
        };
        let folder = Start {
            folders: [(lost(), Some(0o700))].into(),
            files: [(name("lost+found/#12"), StartFile::default())].into(),
            ..Start::default()
        };
        let file = StartFile {
            bytes: 7,
            mode: None,
        };
        let of_file = Start {
            files: [(lost(), file)].into(),
            ..Start::default()
        };
        let link = Start {
            files: [(name("a"), file)].into(),
            links: [(lost(), name("a"))].into(),
            ..Start::default()
        };
        assert_eq!(made(folder, &[]), Some((true, 0)));
        assert_eq!(made(Start::default(), &mkdir()), None);
        assert_eq!(made(of_file, &[]), Some((false, 7)));
        assert_eq!(made(link, &[]), Some((false, 7)));
        // What no operation names stays.
        assert_eq!(made(Start::default(), &[]), Some((true, 0)));
    }

    /// A file became a folder, and the other way round, while the recording ran.
    #[test]
    fn what_became_another_kind_is_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("longer")).unwrap();
        fs::write(root.join("f"), "file").unwrap();
        start().make(root, Contents::Random, &[]).unwrap();
        assert_eq!(fs::metadata(root.join("longer")).unwrap().len(), 10);
        assert!(root.join("f/removed").is_file());
    }
}

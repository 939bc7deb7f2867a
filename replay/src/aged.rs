// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prepares a replay on a filesystem that holds the recorded one's files as they lay when its recording ended.

use std::collections::BTreeSet;
use std::path::Path;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::{self, Errno};

use crate::beneath::Beneath;
use crate::bytes::{Bytes, Contents};
use crate::operation::{Call, Operation, Target};
use crate::start::{self, StartFile};
use crate::{Error, Name, Result, Start};

impl Start {
    /// Turns the state that the operations left, on the filesystem at `root`, back into the state that they found: what they made
    /// is removed, a file that they found keeps its blocks and gets its size back, and what they removed is made again. All other
    /// files stay.
    ///
    /// # Errors
    /// Returns an error if a folder that the operations made has files that they do not name, if there is less free space than
    /// needed, or if the filesystem cannot be written.
    pub fn make_aged(
        &self,
        root: &Path,
        contents: Contents,
        operations: &[Operation],
    ) -> Result<()> {
        let (beneath, bytes) = (Beneath::new(root)?, Bytes::new(contents));
        let at = |name: &Name| root.join(name.as_path());
        let is_there = |name: &Name| {
            self.folders.contains_key(name)
                || self.files.contains_key(name)
                || self.links.contains_key(name)
        };
        // The contents of a folder sort behind it.
        let made = names(operations);
        for name in made.iter().rev().filter(|name| !is_there(name)) {
            remove(&beneath, name).map_err(|errno| Error::io(&at(name))(errno.into()))?;
        }
        for (name, mode) in &self.folders {
            let made = make_folder(&beneath, name, *mode);
            made.map_err(|errno| Error::io(&at(name))(errno.into()))?;
        }
        for (name, file) in &self.files {
            let made = fit(&beneath, &bytes, name, file);
            made.map_err(|errno| Error::io(&at(name))(errno.into()))?;
        }
        for (name, existing) in &self.links {
            let linked = match beneath.link(existing, name) {
                Err(Errno::EXIST) => Ok(()),
                linked => linked,
            };
            linked.map_err(|errno| Error::io(&at(name))(errno.into()))?;
        }
        fs::syncfs(beneath.root()).map_err(|errno| Error::io(root)(errno.into()))
    }
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
            | Call::Unlink { path }
            | Call::Rmdir { path }
            | Call::Mkdir { path, .. }
            | Call::Mknod { path, .. }
            | Call::Truncate {
                target: Target::Path(path),
                ..
            } => {
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

fn make_folder(beneath: &Beneath, name: &Name, mode: Option<u32>) -> io::Result<()> {
    let (folder, last) = beneath.entry(name)?;
    match fs::mkdirat(folder, last, Mode::from_raw_mode(0o755)) {
        Err(Errno::EXIST) => {}
        made => made?,
    }
    mode.map_or(Ok(()), |mode| beneath.chmod(name, mode))
}

/// Gives an existing file its size at the start, and makes one that is missing.
fn fit(beneath: &Beneath, bytes: &Bytes, name: &Name, file: &StartFile) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let existing = match beneath.open(name.as_path(), flags, Mode::empty()) {
        Err(Errno::NOENT) => return start::make_file(beneath, bytes, name, file),
        opened => opened?,
    };
    let found = fs::fstat(&existing)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(Errno::NXIO);
    }
    let size = u64::try_from(found.st_size).unwrap_or(0);
    match size > file.bytes {
        true => fs::ftruncate(&existing, file.bytes)?,
        false => start::fill(&existing, bytes, size, file.bytes)?,
    }
    match file.mode {
        Some(mode) => fs::fchmod(&existing, Mode::from_raw_mode(mode)),
        None => Ok(()),
    }
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
        start()
            .make_aged(root, Contents::Random, &operations)
            .unwrap();
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
        let unlink = Call::Unlink {
            path: name("f/victim"),
        };
        assert!(
            start()
                .make_aged(dir.path(), Contents::Random, &[operation(unlink)])
                .is_err()
        );
        assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }
}

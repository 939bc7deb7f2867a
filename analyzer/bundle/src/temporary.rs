// SPDX-License-Identifier: MIT OR Apache-2.0
//! Temporary folders. A folder is removed when it is dropped; a folder that a killed process left is removed when the
//! next process makes one.
//!
//! Each folder is locked while its process lives, and the kernel drops the lock however that ends. So a folder that has
//! such a name, belongs to the caller alone and can be locked is left over.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Once;

use rustix::fs::OFlags;
use tempfile::TempDir;

use crate::error::{At, Error};

/// Places in memory: that for POSIX shared memory, shm_overview(7), which Android does not have, and the folder of device nodes.
const IN_MEMORY: [&str; 2] = ["/dev/shm", "/dev"];
const PREFIX: &str = "mostrace-temporary-";
/// Length of the random end of a name, bytes.
const RANDOM: usize = 6;
const MODE: u32 = 0o700;
/// The mode bits for reading or writing by others; others may have the bit for entering the folder.
const OPEN_TO_OTHERS: u32 = 0o066;

/// A temporary folder that only the caller can use.
#[derive(Debug)]
pub struct TempFolder {
    dir: TempDir,
    /// The folder's open descriptor, which holds the lock.
    _held: File,
}

impl TempFolder {
    /// Makes a folder in the environment's place for temporary files (`$TMPDIR`).
    pub fn new() -> Result<TempFolder, Error> {
        static SWEPT: Once = Once::new();
        Self::in_swept(&std::env::temp_dir(), &SWEPT)
    }

    /// Makes a folder whose files are kept in memory (/dev/shm, /dev); where there is no such place, does the same as
    /// [`TempFolder::new`].
    pub fn in_memory() -> Result<TempFolder, Error> {
        static SWEPT: Once = Once::new();
        match IN_MEMORY
            .map(Path::new)
            .into_iter()
            .find(|place| is_memory(place))
        {
            Some(place) => Self::in_swept(place, &SWEPT),
            None => Self::new(),
        }
    }

    fn in_swept(place: &Path, swept: &Once) -> Result<TempFolder, Error> {
        let folder = Self::within(place)?;
        swept.call_once(|| sweep(place, &folder));
        Ok(folder)
    }

    fn within(place: &Path) -> Result<TempFolder, Error> {
        loop {
            let dir = tempfile::Builder::new()
                .prefix(PREFIX)
                .rand_bytes(RANDOM)
                .permissions(Permissions::from_mode(MODE))
                .tempdir_in(place)
                .at(place)?;
            // Until the folder is locked, another process may take it for a leftover and remove it.
            let held = match hold(dir.path()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                held => held.at(dir.path())?,
            };
            held.lock().at(dir.path())?;
            if dir.path().exists() {
                return Ok(TempFolder { dir, _held: held });
            }
        }
    }

    /// Returns the folder's path.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// A temporary file in a temporary folder of its own.
#[derive(Debug)]
pub struct TempFile {
    file: File,
    path: PathBuf,
    /// The folder, which is removed together with the file.
    _folder: TempFolder,
}

impl TempFile {
    /// Makes an empty file.
    pub fn new() -> Result<TempFile, Error> {
        let folder = TempFolder::new()?;
        let path = folder.path().join("file");
        let file = File::create_new(&path).at(&path)?;
        Ok(TempFile {
            file,
            path,
            _folder: folder,
        })
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file, open for reading and writing.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }
}

/// Returns true for a folder of a tmpfs; devtmpfs has its number.
fn is_memory(place: &Path) -> bool {
    const TMPFS_MAGIC: u64 = 0x0102_1994;
    rustix::fs::statfs(place)
        .is_ok_and(|found| u64::try_from(found.f_type).is_ok_and(|t| t == TMPFS_MAGIC))
}

/// Opens a folder; a link is not followed.
fn hold(folder: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let mut options = File::options();
    options.read(true).custom_flags(flags.bits().cast_signed());
    options.open(folder)
}

fn is_such_a_name(name: &OsStr) -> bool {
    let random = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
    random.is_some_and(|r| r.len() == RANDOM && r.bytes().all(|b| b.is_ascii_alphanumeric()))
}

/// Removes the folders that killed processes of the same user left in `place`. The owner of `own` tells which they are.
fn sweep(place: &Path, own: &TempFolder) {
    let (Ok(entries), Ok(mine)) = (fs::read_dir(place), fs::metadata(own.path())) else {
        return;
    };
    for entry in entries.flatten() {
        if !is_such_a_name(&entry.file_name()) {
            continue;
        }
        let path = entry.path();
        let Ok(folder) = hold(&path) else {
            continue;
        };
        let is_mine = folder
            .metadata()
            .is_ok_and(|meta| meta.uid() == mine.uid() && meta.mode() & OPEN_TO_OTHERS == 0);
        if is_mine && folder.try_lock().is_ok() {
            // Another process may be removing the same folder.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Until a new folder is locked, another thread's sweep may take it for a leftover.
    #[test]
    fn those_that_are_made_while_others_sweep_are_there() {
        const FOLDERS: usize = 300;
        let tmp = tempfile::tempdir().unwrap();
        let make = || {
            for _ in 0..FOLDERS {
                let folder = TempFolder::within(tmp.path()).unwrap();
                sweep(tmp.path(), &folder);
                assert!(folder.path().exists());
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(make);
            }
        });
        assert_eq!(fs::read_dir(tmp.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_nobody_holds_goes_and_nothing_else() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        let living = TempFolder::within(tmp.path()).unwrap();
        let left = TempFolder::within(tmp.path()).unwrap();
        fs::write(left.path().join("file"), "x").unwrap();
        let TempFolder { dir, _held } = left;
        let left = dir.keep();
        drop(_held);
        // Names that a user may have chosen.
        let not_ours = [
            "other",
            "target",
            "mostrace-results",
            "mostrace-temporary-results",
            "mostrace-temporary-",
        ];
        for name in not_ours {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("file"), "x").unwrap();
            fs::set_permissions(at(name), Permissions::from_mode(MODE)).unwrap();
        }
        let [link, file, open] = ["aaaaaa", "bbbbbb", "cccccc"].map(|end| format!("{PREFIX}{end}"));
        symlink(at("target"), at(&link)).unwrap();
        fs::write(at(&file), "x").unwrap();
        fs::create_dir(at(&open)).unwrap();
        fs::set_permissions(at(&open), Permissions::from_mode(0o755)).unwrap();
        sweep(tmp.path(), &living);
        assert!(!left.exists());
        assert!(living.path().exists());
        for name in not_ours {
            assert!(at(name).join("file").exists(), "{name}");
        }
        for name in [link, file, open] {
            assert!(at(&name).exists(), "{name}");
        }
    }
}

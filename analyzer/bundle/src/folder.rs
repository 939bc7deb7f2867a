// SPDX-License-Identifier: MIT OR Apache-2.0
//! A folder that is held open. Files are made through its descriptor, whatever its path leads to by then, and no
//! symbolic link is followed: the recorder is root and works in folders that others can write to.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, Stat, mkdirat, openat, renameat,
    renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use crate::error::{At, Error};

/// Mode of new files: only the owner may read and write.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Mode of new folders: only the owner may enter, read and write.
const FOLDER_MODE: Mode = Mode::RWXU;
/// The name of a new folder until it is moved to its final name.
const NEW: &str = "new";

/// The user and group that are to own new files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// The identity of a file or folder: device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity(u64, u64);

impl Identity {
    /// Returns the identity of an open file from its metadata.
    #[must_use]
    pub fn of(meta: &Metadata) -> Identity {
        Identity(meta.dev(), meta.ino())
    }

    fn of_stat(stat: &Stat) -> Identity {
        // macOS has other types here.
        #[allow(clippy::unnecessary_cast, clippy::as_conversions)]
        Identity(stat.st_dev as u64, stat.st_ino as u64)
    }
}

/// A folder that is held open. A clone refers to the same folder.
#[derive(Clone, Debug)]
pub struct Folder {
    fd: Arc<OwnedFd>,
    path: PathBuf,
}

impl Folder {
    /// Opens a folder, and makes it and those above it if they are missing, with mode 0700. A symbolic link is followed only if it is
    /// root's or the caller's: in a folder of others, the last part of a path may lead anywhere.
    ///
    /// # Errors
    /// Returns an error if a link is another user's, or if a folder cannot be made or opened.
    pub fn make(path: &Path) -> Result<Folder, Error> {
        let Some(name) = path.file_name() else {
            // The root, or a path that ends in `..`.
            return Folder::open(path);
        };
        let above = path.parent().unwrap_or(Path::new(""));
        let parent = match above.as_os_str().is_empty() {
            true => Folder::open(above)?,
            false => Folder::make(above)?,
        };
        match statat(&parent.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => parent.make_folder(name),
            Err(e) => Err(e).at(path),
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink => {
                parent.open_folder(name)
            }
            Ok(stat) if [0, rustix::process::geteuid().as_raw()].contains(&stat.st_uid) => {
                Folder::open(&parent.handle().join(name)).map(|made| Folder {
                    path: path.to_owned(),
                    ..made
                })
            }
            Ok(_) => Err(Error::corrupt(path, "is a symbolic link of another user's")),
        }
    }

    /// Opens an existing folder; symbolic links in `path` are followed. An empty path means the current folder.
    pub fn open(path: &Path) -> Result<Folder, Error> {
        let here = path.as_os_str().is_empty();
        let named = if here { Path::new(".") } else { path };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(CWD, named, flags, Mode::empty()).at(named)?;
        Ok(Folder {
            fd: Arc::new(fd),
            path: path.to_owned(),
        })
    }

    /// Returns the path with which the folder was opened; for messages only.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a path to this very folder (`/proc/PID/fd/N`) for other programs, valid while this process holds it
    /// open. Linux only.
    pub fn handle(&self) -> PathBuf {
        let (process, fd) = (std::process::id(), self.fd.as_raw_fd());
        PathBuf::from(format!("/proc/{process}/fd/{fd}"))
    }

    /// Makes a folder in this one, with mode 0700.
    ///
    /// mkdirat(2) returns no descriptor, and anybody who may write here can replace the new folder before it is opened.
    /// So it is made in an outer folder to which nobody else may write, opened there, and then moved to its name. If the process is
    /// killed meanwhile, the outer folder (`.mostrace-…`) stays, without any file.
    ///
    /// # Errors
    /// Returns an error if the name is taken (also by a dangling link), or if nothing can be made here.
    pub fn make_folder(&self, name: &OsStr) -> Result<Folder, Error> {
        let outer = self.make_outer()?;
        let made = outer.make_within(self, name);
        let outer_name = outer.path.file_name().unwrap_or_default();
        // The outer folder is empty, unless somebody put another in its place, which must then stay.
        let _ = unlinkat(&self.fd, outer_name, AtFlags::REMOVEDIR);
        made
    }

    /// Makes a folder with a random name and opens it. Somebody may have replaced it meanwhile; it is an error if
    /// others may use the one that was opened.
    fn make_outer(&self) -> Result<Folder, Error> {
        let chance = RandomState::new().hash_one(0);
        let name = format!(".mostrace-{chance:016x}");
        let path = self.path.join(&name);
        mkdirat(&self.fd, &name, FOLDER_MODE).at(&path)?;
        let outer = self.open_folder(name.as_ref())?;
        let stat = rustix::fs::fstat(&outer.fd).at(&path)?;
        let is_ours = stat.st_uid == rustix::process::geteuid().as_raw();
        let of_others = Mode::from_raw_mode(stat.st_mode) & (Mode::RWXG | Mode::RWXO);
        match is_ours && of_others.is_empty() {
            true => Ok(outer),
            false => Err(Error::corrupt(
                &path,
                "somebody put another folder in its place",
            )),
        }
    }

    /// Makes a folder in this one, to which nobody else may write, and moves it to `name` in `parent`.
    fn make_within(&self, parent: &Folder, name: &OsStr) -> Result<Folder, Error> {
        let path = parent.path.join(name);
        mkdirat(&self.fd, NEW, FOLDER_MODE).at(&path)?;
        let made = self.open_folder(NEW.as_ref()).and_then(|made| {
            rename_new(&self.fd, NEW.as_ref(), &parent.fd, name).at(&path)?;
            Ok(Folder { path, ..made })
        });
        if made.is_err() {
            // The error to report is the one of the move.
            let _ = unlinkat(&self.fd, NEW, AtFlags::REMOVEDIR);
        }
        made
    }

    /// Opens a folder in this one; a link is not followed.
    ///
    /// # Errors
    /// Returns an error if the name does not exist, is a link, or is not a folder.
    pub fn open_folder(&self, name: &OsStr) -> Result<Folder, Error> {
        let path = self.path.join(name);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(&self.fd, name, flags, Mode::empty()).at(&path)?;
        Ok(Folder {
            fd: Arc::new(fd),
            path,
        })
    }

    /// Returns the identity of the file or folder called `name` in this folder; None if there is none. For a symbolic link, it is
    /// the identity of the link itself.
    pub fn identity_of(&self, name: &OsStr) -> Result<Option<Identity>, Error> {
        match statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Identity::of_stat(&stat))),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(e).at(&self.path.join(name)),
        }
    }

    /// Returns the identity of this folder.
    pub fn identity(&self) -> Result<Identity, Error> {
        let stat = rustix::fs::fstat(&self.fd).at(&self.path)?;
        Ok(Identity::of_stat(&stat))
    }

    /// Makes a file in this folder, with mode 0600.
    ///
    /// # Errors
    /// Returns an error if the name is taken (also by a dangling link), or if nothing can be made here.
    pub fn create(&self, name: impl AsRef<OsStr>) -> Result<File, Error> {
        let name = name.as_ref();
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.fd, name, flags, FILE_MODE)
            .map(File::from)
            .at(&self.path.join(name))
    }

    /// Makes a file as [`Folder::create`] does; a file that has the name already is removed first.
    pub fn replace(&self, name: impl AsRef<OsStr>) -> Result<File, Error> {
        self.remove(name.as_ref())?;
        self.create(name)
    }

    /// Opens a file in this folder for appending; makes it if there is none.
    pub fn append(&self, name: impl AsRef<OsStr>) -> Result<File, Error> {
        self.open_own(name.as_ref(), OFlags::WRONLY | OFlags::APPEND)
    }

    /// Opens a file of the caller's in this folder for reading and writing; makes it if there is none.
    ///
    /// # Errors
    /// Returns an error if the name is a link or anything else than a file, if the file is another user's or has several names, or
    /// if nothing can be made here.
    pub fn own(&self, name: impl AsRef<OsStr>) -> Result<File, Error> {
        self.open_own(name.as_ref(), OFlags::RDWR)
    }

    fn open_own(&self, name: &OsStr, flags: OFlags) -> Result<File, Error> {
        let path = self.path.join(name);
        let file = self.open_at_once(name, flags | OFlags::CREATE)?;
        match is_own(&file.metadata().at(&path)?) {
            true => Ok(file),
            false => Err(Error::corrupt(&path, "is not a file of this user's own")),
        }
    }

    /// Opens a file in this folder for reading; a link is not followed.
    ///
    /// # Errors
    /// Returns an error if the name does not exist, or is a link or anything else than a file.
    pub fn read(&self, name: impl AsRef<OsStr>) -> Result<File, Error> {
        let name = name.as_ref();
        let path = self.path.join(name);
        let file = self.open_at_once(name, OFlags::RDONLY)?;
        match file.metadata().at(&path)?.is_file() {
            true => Ok(file),
            false => Err(Error::corrupt(&path, "is not a regular file")),
        }
    }

    /// Opens what has this name without waiting, as one would for the other end of a pipe; a link is not followed.
    fn open_at_once(&self, name: &OsStr, flags: OFlags) -> Result<File, Error> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        openat(&self.fd, name, flags, FILE_MODE)
            .map(File::from)
            .at(&self.path.join(name))
    }

    /// Returns true if the name is taken, also by a dangling link.
    pub fn has(&self, name: impl AsRef<OsStr>) -> Result<bool, Error> {
        Ok(self.identity_of(name.as_ref())?.is_some())
    }

    /// Returns the length in bytes of a file in this folder.
    pub fn len_of(&self, name: &str) -> Result<u64, Error> {
        let stat = statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).at(&self.path.join(name))?;
        Ok(u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// Writes to the disk which names the folder has.
    pub fn sync(&self) -> Result<(), Error> {
        rustix::fs::fsync(&self.fd).at(&self.path)
    }

    /// Renames a file in this folder; a file that has the new name already is replaced.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        renameat(&self.fd, from, &self.fd, to).at(&self.path.join(to))
    }

    /// Renames what has the name `from`, whatever it is, to a name that is not taken: `to`, or `to-2` and so on. Returns that name.
    ///
    /// # Errors
    /// Returns an error if `from` does not exist, or if too many of the names are taken.
    pub fn set_aside(&self, from: &str, to: &str) -> Result<String, Error> {
        const MOST: usize = 1000;
        let names = (2..MOST).map(|n| format!("{to}-{n}"));
        for name in std::iter::once(to.to_owned()).chain(names) {
            match rename_new(&self.fd, from.as_ref(), &self.fd, name.as_ref()) {
                Err(Errno::EXIST) => {}
                moved => return moved.at(&self.path.join(from)).map(|()| name),
            }
        }
        Err(Error::corrupt(
            &self.path.join(from),
            "too many files were set aside",
        ))
    }

    /// Renames `file`, which this folder has under the name `from`, to a name that is not taken.
    ///
    /// # Errors
    /// Returns an error if the new name is taken, or if `from` is no longer `file`.
    pub fn rename_new(&self, file: &File, from: &OsStr, to: &OsStr) -> Result<(), Error> {
        let path = self.path.join(from);
        if self.identity_of(from)? != Some(Identity::of(&file.metadata().at(&path)?)) {
            return Err(Error::corrupt(
                &path,
                "somebody put another file in its place",
            ));
        }
        rename_new(&self.fd, from, &self.fd, to).at(&self.path.join(to))
    }

    /// Removes a file if it exists; a symbolic link is removed itself.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> Result<(), Error> {
        let name = name.as_ref();
        match unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(e).at(&self.path.join(name)),
        }
    }

    /// Removes the files in `folder`, a folder in this one, and then `folder` by its name. A non-empty folder or a link
    /// that has taken the name meanwhile stays.
    ///
    /// # Errors
    /// Returns an error if `folder` holds anything but files.
    pub fn remove_folder(&self, folder: &Folder) -> Result<(), Error> {
        for name in folder.names()? {
            folder.remove(&name)?;
        }
        let name = folder.path.file_name().unwrap_or_default();
        unlinkat(&self.fd, name, AtFlags::REMOVEDIR).at(&folder.path)
    }

    /// Returns the names of the files in this folder, unordered, without those that are not UTF-8.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd).at(&self.path)? {
            let entry = entry.at(&self.path)?;
            if let Ok(name) = entry.file_name().to_str()
                && ![".", ".."].contains(&name)
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// Gives the folder and the files in it to `owner`, and makes the files readable by nobody else. The folder is given last:
    /// until then nobody else can put anything into it. A reader of the recording may remove it as soon as it is complete, so files
    /// that are gone are skipped.
    ///
    /// # Errors
    /// Returns an error if the caller may not change owners, or if the folder holds something that is not the caller's
    /// own.
    pub fn give_to(&self, owner: Option<Owner>) -> Result<(), Error> {
        for name in self.names()? {
            let path = self.path.join(&name);
            let file = match self.open_at_once(name.as_ref(), OFlags::RDONLY) {
                Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                    continue;
                }
                read => read?,
            };
            give_own(&file, &path, owner)?;
        }
        match owner {
            Some(Owner { uid, gid }) => fchown(&self.fd, Some(uid), Some(gid)).at(&self.path),
            None => Ok(()),
        }
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Renames to a name that is not taken.
fn rename_new(from: &OwnedFd, name: &OsStr, to: &OwnedFd, new: &OsStr) -> rustix::io::Result<()> {
    match renameat_with(from, name, to, new, RenameFlags::NOREPLACE) {
        // Some filesystems do not support the flag.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
        moved => return moved,
    }
    match statat(to, new, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => renameat(from, name, to, new),
        Err(e) => Err(e),
        Ok(_) => Err(Errno::EXIST),
    }
}

/// Returns true for a regular file of the caller's that has no other link.
fn is_own(meta: &Metadata) -> bool {
    let is_callers = meta.uid() == rustix::process::geteuid().as_raw();
    is_callers && meta.is_file() && meta.nlink() == 1
}

/// Gives a file that was made here to `owner`, unless it has been removed.
fn give_own(file: &File, path: &Path, owner: Option<Owner>) -> Result<(), Error> {
    let meta = file.metadata().at(path)?;
    if meta.nlink() == 0 {
        return Ok(());
    }
    match is_own(&meta) {
        true => give(file, owner).at(path),
        false => Err(Error::corrupt(path, "is not a file that was made here")),
    }
}

/// Sets a file's mode to 0600 and gives it to `owner`.
pub fn give(file: &File, owner: Option<Owner>) -> io::Result<()> {
    rustix::fs::fchmod(file, FILE_MODE)?;
    match owner {
        Some(Owner { uid, gid }) => fchown(file, Some(uid), Some(gid)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn no_link_is_followed_and_nothing_written_over() {
        let tmp = tempfile::tempdir().unwrap();
        let victim = tmp.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let parent = Folder::open(tmp.path()).unwrap();
        for (name, target) in [("to", "victim"), ("dangling", "not-there")] {
            symlink(tmp.path().join(target), tmp.path().join(name)).unwrap();
            assert!(parent.has(name).unwrap(), "{name}");
            assert!(parent.create(name).is_err(), "{name}");
            assert!(parent.read(name).is_err(), "{name}");
            assert!(parent.make_folder(name.as_ref()).is_err(), "{name}");
            drop(parent.replace(name).unwrap());
            assert!(
                fs::symlink_metadata(tmp.path().join(name))
                    .unwrap()
                    .is_file()
            );
            assert_eq!(mode(&tmp.path().join(name)), 0o600);
        }
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert!(!tmp.path().join("not-there").exists());
        assert!(parent.create("victim").is_err());
        assert!(!parent.has("not-there").unwrap());
    }

    #[test]
    fn no_file_is_passed_on_to_a_command() {
        let tmp = tempfile::tempdir().unwrap();
        let folder = Folder::open(tmp.path()).unwrap();
        let files = [
            folder.create("made").unwrap(),
            folder.read("made").unwrap(),
            folder.append("made").unwrap(),
        ];
        for file in &files {
            let flags = rustix::io::fcntl_getfd(file).unwrap();
            assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        }
    }

    /// Runs `make` again and again while another thread exchanges a non-empty folder of the caller's for the new ones.
    fn while_exchanged(
        new: impl Fn(&Folder) -> Vec<String> + Sync,
        make: impl Fn(&Folder, usize) -> bool,
        tries: usize,
    ) {
        let tmp = tempfile::tempdir().unwrap();
        let parent = Folder::open(tmp.path()).unwrap();
        let at = |name: &str| tmp.path().join(name);
        fs::create_dir(at("secret")).unwrap();
        fs::set_permissions(at("secret"), Permissions::from_mode(0o700)).unwrap();
        fs::write(at("secret/file"), "").unwrap();
        let is_over = AtomicBool::new(false);
        let made = thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    // Without a pause the exchanging thread would keep the folder locked for itself.
                    thread::sleep(Duration::from_micros(5));
                    for name in new(&parent) {
                        // Either name may be gone by now.
                        let flags = RenameFlags::EXCHANGE;
                        let _ = renameat_with(&parent.fd, name, &parent.fd, "secret", flags);
                    }
                }
            });
            let _over = SetAtEnd(&is_over);
            let mut made = 0;
            for at in 0..tries {
                made += usize::from(make(&parent, at));
                for name in parent.names().unwrap() {
                    // This fails for the folder that is not empty, which stays.
                    let _ = unlinkat(&parent.fd, &name, AtFlags::REMOVEDIR);
                }
                for name in parent.names().unwrap() {
                    let _ = renameat(&parent.fd, name, &parent.fd, "secret");
                }
            }
            made
        });
        assert!(made > 0);
    }

    /// Sets the flag also on a panic: the other thread runs until it is set.
    struct SetAtEnd<'f>(&'f AtomicBool);

    impl Drop for SetAtEnd<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    fn is_made_empty(parent: &Folder, name: &str) -> bool {
        let made = parent.make_folder(name.as_ref());
        made.is_ok_and(|folder| {
            assert_eq!(folder.names().unwrap(), [""; 0]);
            true
        })
    }

    #[test]
    fn what_is_made_is_what_is_held() {
        let same = |_: &Folder| vec!["x.most".to_owned()];
        while_exchanged(same, |parent, _| is_made_empty(parent, "x.most"), 300);
        let outer = |parent: &Folder| {
            let mut names = parent.names().unwrap();
            names.retain(|name| name.starts_with('.'));
            names
        };
        let make = |parent: &Folder, at| is_made_empty(parent, &format!("{at}.most"));
        while_exchanged(outer, make, 100);
    }

    #[test]
    fn what_is_removed_meanwhile_need_not_be_given() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("f");
        let file = File::create(&path).unwrap();
        fs::remove_file(&path).unwrap();
        give_own(&file, &path, None).unwrap();
        // A reader removes all of it at any moment.
        for round in 0..40 {
            let parent = Folder::open(tmp.path()).unwrap();
            let folder = parent.make_folder("x.most".as_ref()).unwrap();
            for n in 0..100 {
                fs::write(folder.path().join(n.to_string()), "").unwrap();
            }
            let path = folder.path().to_owned();
            let reader = std::thread::spawn(move || {
                std::thread::sleep(std::time::Duration::from_micros(10 * round));
                fs::remove_dir_all(path).unwrap();
            });
            folder.give_to(None).unwrap();
            reader.join().unwrap();
        }
    }

    #[test]
    fn only_what_was_made_there_is_given() {
        let tmp = tempfile::tempdir().unwrap();
        let parent = Folder::open(tmp.path()).unwrap();
        let folder = parent.make_folder("x.most".as_ref()).unwrap();
        fs::write(tmp.path().join("precious"), "").unwrap();
        fs::hard_link(tmp.path().join("precious"), folder.path().join("f")).unwrap();
        let error = folder.give_to(None).unwrap_err().to_string();
        assert!(
            error.ends_with("x.most/f: is not a file that was made here"),
            "{error}"
        );
        fs::remove_file(tmp.path().join("precious")).unwrap();
        folder.give_to(None).unwrap();
    }

    #[test]
    fn a_new_name_is_not_somebody_elses() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        let parent = Folder::open(tmp.path()).unwrap();
        let file = parent.create("part").unwrap();
        fs::write(at("whole"), "precious").unwrap();
        assert!(
            parent
                .rename_new(&file, "part".as_ref(), "whole".as_ref())
                .is_err()
        );
        assert_eq!(fs::read_to_string(at("whole")).unwrap(), "precious");
        fs::remove_file(at("whole")).unwrap();
        let another = parent.replace("part").unwrap();
        assert!(
            parent
                .rename_new(&file, "part".as_ref(), "whole".as_ref())
                .is_err()
        );
        parent
            .rename_new(&another, "part".as_ref(), "whole".as_ref())
            .unwrap();
        assert!(at("whole").exists() && !at("part").exists());
    }

    #[test]
    fn a_folder_that_was_moved_away_is_still_the_one_that_is_meant() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        let parent = Folder::open(tmp.path()).unwrap();
        let folder = parent.make_folder("x.most".as_ref()).unwrap();
        assert_eq!(mode(&at("x.most")), 0o700);
        fs::rename(at("x.most"), at("moved")).unwrap();
        fs::create_dir(at("elsewhere")).unwrap();
        symlink(at("elsewhere"), at("x.most")).unwrap();
        drop(folder.create("manifest.json").unwrap());
        fs::write(folder.handle().join("by-handle"), "").unwrap();
        assert!(at("moved/manifest.json").exists() && at("moved/by-handle").exists());
        assert_eq!(folder.names().unwrap().len(), 2);
        assert_eq!(fs::read_dir(at("elsewhere")).unwrap().count(), 0);
        // The name is now a link and no folder: it stays, and so does its target.
        assert!(parent.remove_folder(&folder).is_err());
        assert!(at("elsewhere").exists() && at("moved").exists());
        assert_eq!(folder.names().unwrap().len(), 0);
    }

    #[test]
    fn what_is_given_is_its_owners_alone() {
        let tmp = tempfile::tempdir().unwrap();
        let parent = Folder::open(tmp.path()).unwrap();
        let folder = parent.make_folder("x.most".as_ref()).unwrap();
        // Another program makes its files with this mode.
        let path = tmp.path().join("x.most/trace.blktrace.0");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        let is_root = rustix::process::geteuid().is_root();
        let owner = is_root.then_some(Owner {
            uid: 65534,
            gid: 65533,
        });
        folder.give_to(owner).unwrap();
        assert_eq!(mode(&path), 0o600);
        if let Some(Owner { uid, gid }) = owner {
            for path in [&path, &tmp.path().join("x.most")] {
                let meta = fs::metadata(path).unwrap();
                assert_eq!((meta.uid(), meta.gid()), (uid, gid), "{}", path.display());
            }
        }
    }
}

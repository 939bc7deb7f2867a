// SPDX-License-Identifier: MIT OR Apache-2.0
//! A folder that is held open. What is made in it is made there, whatever has its path by then, and
//! no symbolic link is followed: a recorder is root, and works in folders that others can write to.

use std::ffi::OsStr;
use std::fs::{File, Metadata, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, Dir, Mode, OFlags, RenameFlags, mkdirat, openat, renameat, renameat_with, statat,
    unlinkat,
};
use rustix::io::Errno;

use crate::error::{At, Error};

/// Of a file: its owner alone reads and writes it.
const FILE_MODE: u32 = 0o600;
/// The same of a folder.
const FOLDER_MODE: u32 = 0o700;
/// What a folder is called until it has its own name.
const NEW: &str = "new";

/// Who is to own what was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// A file or folder: device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity(u64, u64);

impl Identity {
    /// Of an open file.
    #[must_use]
    pub fn of(meta: &Metadata) -> Identity {
        Identity(meta.dev(), meta.ino())
    }
}

/// A folder, held open. A clone holds the same one.
#[derive(Clone, Debug)]
pub struct Folder {
    fd: Arc<OwnedFd>,
    path: PathBuf,
}

impl Folder {
    /// Opens a folder that is there; symbolic links on the way to it are followed. An empty path is
    /// the current folder.
    ///
    /// # Errors
    /// Missing, or no folder.
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

    /// As it was named; for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path of this very folder, for other programs, as long as this process holds it. Linux only.
    pub fn handle(&self) -> PathBuf {
        let (process, fd) = (std::process::id(), self.fd.as_raw_fd());
        PathBuf::from(format!("/proc/{process}/fd/{fd}"))
    }

    /// Makes a folder in it that is its owner's alone.
    ///
    /// mkdirat(2) gives no descriptor, and whoever may write here can put another folder in its place before it is opened. So it is
    /// made in an outer one that nobody else may write to, and moved from there, held already.
    ///
    /// # Errors
    /// The name is taken, be it by a dangling link, or nothing can be made here.
    pub fn make_folder(&self, name: &OsStr) -> Result<Folder, Error> {
        let outer = self.make_outer()?;
        let made = outer.make_within(self, name);
        let outer_name = outer.path.file_name().unwrap_or_default();
        // It is empty, unless somebody put another one in its place, which is none of ours.
        let _ = unlinkat(&self.fd, outer_name, AtFlags::REMOVEDIR);
        made
    }

    /// A folder under a name of chance. It may be another than the one that was made, but none that others may write to.
    fn make_outer(&self) -> Result<Folder, Error> {
        let chance = RandomState::new().hash_one(0);
        let name = format!(".mostrace-{chance:016x}");
        let path = self.path.join(&name);
        mkdirat(&self.fd, &name, Mode::from_raw_mode(FOLDER_MODE)).at(&path)?;
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

    /// Makes a folder in this one, where nobody else may write, and moves it to its name in `parent`.
    fn make_within(&self, parent: &Folder, name: &OsStr) -> Result<Folder, Error> {
        let path = parent.path.join(name);
        mkdirat(&self.fd, NEW, Mode::from_raw_mode(FOLDER_MODE)).at(&path)?;
        let made = self.open_folder(NEW.as_ref()).and_then(|made| {
            rename_new(&self.fd, NEW.as_ref(), &parent.fd, name).at(&path)?;
            Ok(Folder { path, ..made })
        });
        if made.is_err() {
            // The error to report is why it has not its name.
            let _ = unlinkat(&self.fd, NEW, AtFlags::REMOVEDIR);
        }
        made
    }

    /// Opens a folder in it; not through a link.
    ///
    /// # Errors
    /// Missing, a link, or no folder.
    pub fn open_folder(&self, name: &OsStr) -> Result<Folder, Error> {
        let path = self.path.join(name);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = openat(&self.fd, name, flags, Mode::empty()).at(&path)?;
        Ok(Folder {
            fd: Arc::new(fd),
            path,
        })
    }

    /// Which file or folder has a name in it, whatever that is called elsewhere; None if there is none. Of a link, the link.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn identity_of(&self, name: &OsStr) -> Result<Option<Identity>, Error> {
        match statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Identity(stat.st_dev, stat.st_ino))),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(e).at(&self.path.join(name)),
        }
    }

    /// Which folder it is.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn identity(&self) -> Result<Identity, Error> {
        let stat = rustix::fs::fstat(&self.fd).at(&self.path)?;
        Ok(Identity(stat.st_dev, stat.st_ino))
    }

    /// Makes a file in it that is its owner's alone.
    ///
    /// # Errors
    /// The name is taken, be it by a dangling link, or nothing can be made here.
    pub fn create(&self, name: impl AsRef<OsStr>) -> Result<File, Error> {
        let name = name.as_ref();
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.fd, name, flags, Mode::from_raw_mode(FILE_MODE))
            .map(File::from)
            .at(&self.path.join(name))
    }

    /// As [`Folder::create`]; what has the name goes before.
    ///
    /// # Errors
    /// Nothing can be made here.
    pub fn replace(&self, name: impl AsRef<OsStr>) -> Result<File, Error> {
        self.remove(name.as_ref())?;
        self.create(name)
    }

    /// Opens a file in it for writing at its end; makes it if there is none.
    ///
    /// # Errors
    /// The name is a link's, or nothing can be made here.
    pub fn append(&self, name: impl AsRef<OsStr>) -> Result<File, Error> {
        let name = name.as_ref();
        let flags =
            OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.fd, name, flags, Mode::from_raw_mode(FILE_MODE))
            .map(File::from)
            .at(&self.path.join(name))
    }

    /// Opens a file in it for reading; not through a link.
    ///
    /// # Errors
    /// Missing, or a link.
    pub fn read(&self, name: impl AsRef<OsStr>) -> Result<File, Error> {
        let name = name.as_ref();
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        openat(&self.fd, name, flags, Mode::empty())
            .map(File::from)
            .at(&self.path.join(name))
    }

    /// Whether the name is taken, be it by a dangling link.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn has(&self, name: impl AsRef<OsStr>) -> Result<bool, Error> {
        let name = name.as_ref();
        match statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(e) => Err(e).at(&self.path.join(name)),
        }
    }

    /// Length of a file in it, bytes.
    ///
    /// # Errors
    /// Missing.
    pub fn len_of(&self, name: &str) -> Result<u64, Error> {
        let stat = statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).at(&self.path.join(name))?;
        Ok(u64::try_from(stat.st_size).unwrap_or(0))
    }

    /// Gives a file in it another name, whose file goes.
    ///
    /// # Errors
    /// Missing.
    pub fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        renameat(&self.fd, from, &self.fd, to).at(&self.path.join(to))
    }

    /// Gives `file`, which is in it as `from`, another name, which is not taken.
    ///
    /// # Errors
    /// The name is taken, or something else is in the file's place.
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

    /// Removes a file, if it is there; of a link, the link.
    ///
    /// # Errors
    /// It is a folder, or cannot be removed.
    pub fn remove(&self, name: impl AsRef<OsStr>) -> Result<(), Error> {
        let name = name.as_ref();
        match unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(e).at(&self.path.join(name)),
        }
    }

    /// Removes the files of `folder`, which this folder has under its name, and then that itself.
    /// What has come to its name meanwhile stays.
    ///
    /// # Errors
    /// There is more than files in it.
    pub fn remove_folder(&self, folder: &Folder) -> Result<(), Error> {
        for name in folder.names()? {
            folder.remove(&name)?;
        }
        let name = folder.path.file_name().unwrap_or_default();
        unlinkat(&self.fd, name, AtFlags::REMOVEDIR).at(&folder.path)
    }

    /// The names of what is in it, unordered; those that are no UTF-8 are left out.
    ///
    /// # Errors
    /// It cannot be read.
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

    /// Gives it and the files in it to `owner`, whose alone they are then. The folder comes last: until
    /// then nobody else can put anything into it.
    ///
    /// # Errors
    /// The caller may not, or there is something in it that is not the caller's own.
    pub fn give_to(&self, owner: Option<Owner>) -> Result<(), Error> {
        for name in self.names()? {
            let (file, path) = (self.read(&name)?, self.path.join(&name));
            if !is_own(&file.metadata().at(&path)?) {
                return Err(Error::corrupt(&path, "is not a file that was made here"));
            }
            give(&file, owner).at(&path)?;
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

/// Moves to a name that is not taken.
fn rename_new(from: &OwnedFd, name: &OsStr, to: &OwnedFd, new: &OsStr) -> rustix::io::Result<()> {
    match renameat_with(from, name, to, new, RenameFlags::NOREPLACE) {
        // Filesystems of other machines do not know the flag.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
        moved => return moved,
    }
    match statat(to, new, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => renameat(from, name, to, new),
        Err(e) => Err(e),
        Ok(_) => Err(Errno::EXIST),
    }
}

/// Whether it is a file of the caller's, and of no other folder.
fn is_own(meta: &Metadata) -> bool {
    let is_callers = meta.uid() == rustix::process::geteuid().as_raw();
    is_callers && meta.is_file() && meta.nlink() == 1
}

/// Makes a file its owner's alone, and gives it to `owner`.
///
/// # Errors
/// The caller may not.
pub fn give(file: &File, owner: Option<Owner>) -> io::Result<()> {
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    match owner {
        Some(Owner { uid, gid }) => fchown(file, Some(uid), Some(gid)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
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
    }

    /// A folder in which somebody exchanges a folder of the caller's, which is not empty, for the new ones, as long as `make` runs.
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
                    // One who never lets go of the folder keeps everybody from it.
                    thread::sleep(Duration::from_micros(5));
                    for name in new(&parent) {
                        // Either may be gone by now.
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
                    // Not the one that is not empty.
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

    /// Also of a panic: the other thread goes on until then.
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
        // The link is no folder: it stays, and so does what it leads to.
        assert!(parent.remove_folder(&folder).is_err());
        assert!(at("elsewhere").exists() && at("moved").exists());
        assert_eq!(folder.names().unwrap().len(), 0);
    }

    #[test]
    fn what_is_given_is_its_owners_alone() {
        let tmp = tempfile::tempdir().unwrap();
        let parent = Folder::open(tmp.path()).unwrap();
        let folder = parent.make_folder("x.most".as_ref()).unwrap();
        // As another program makes one.
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

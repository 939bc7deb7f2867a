// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of results, which the user names by a path, and which may exist already.
//!
//! For an ordinary user these functions behave like the shell's `>` and `>>`. Root may write in somebody else's folder,
//! where a link to any file can have that name. So root follows no link that others can change, writes to no file that
//! has several names, and, in a folder that all may write to, to nobody else's file. These are the cases that the
//! kernel forbids if `fs.protected_*` are set.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawMode, Stat, fstat, openat, statat, unlinkat};
use rustix::io::Errno;

/// The mode bits of a folder for everybody: sticky and writable by all, as /tmp.
const FOR_EVERYBODY: RawMode = 0o1002;
/// The mode bits for writing by a group or by all.
const WRITTEN_BY_OTHERS: RawMode = 0o022;
const STICKY: RawMode = 0o1000;

/// Opens a file for writing and empties it.
///
/// # Errors
/// Returns an error if the system refuses, or if root would write to a file that others chose.
pub fn create(path: &Path) -> io::Result<File> {
    let file = open(path, OFlags::WRONLY)?;
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Opens a file for reading and appending.
///
/// # Errors
/// Returns an error as [`create`] does, or if the path is not a regular file.
pub fn extend(path: &Path) -> io::Result<File> {
    // Opening a pipe or a device may block.
    let file = open(path, OFlags::RDWR | OFlags::APPEND | OFlags::NONBLOCK)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("is not a file")),
    }
}

/// Removes the file that was opened as `path`, if it still has that name; another file in its place stays.
pub fn remove(path: &Path, file: &File) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(());
    };
    let folder = open_folder(parent)?;
    let (named, made) = (
        statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?,
        fstat(file)?,
    );
    if (named.st_dev, named.st_ino) == (made.st_dev, made.st_ino) {
        unlinkat(&folder, name, AtFlags::empty())?;
    }
    Ok(())
}

/// Opens a folder; an empty path is the current one.
fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let here = path.as_os_str().is_empty();
    let path = if here { Path::new(".") } else { path };
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::CREATE | OFlags::CLOEXEC;
    match rustix::process::geteuid().is_root() {
        true => carefully(path, flags),
        false => follow(path, flags),
    }
}

fn follow(path: &Path, flags: OFlags) -> io::Result<File> {
    let opened = openat(CWD, path, flags, mode())?;
    Ok(opened.into())
}

/// The mode of new files before the umask is applied.
fn mode() -> Mode {
    Mode::from_raw_mode(0o666)
}

fn carefully(path: &Path, flags: OFlags) -> io::Result<File> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return follow(path, flags);
    };
    let parent = open_folder(parent)?;
    let folder = fstat(&parent)?;
    let file = match openat(&parent, name, flags | OFlags::NOFOLLOW, mode()) {
        Err(Errno::LOOP) => {
            let link = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
            return match link.st_uid == 0 && is_roots_alone(&folder) {
                true => follow(path, flags),
                false => Err(io::Error::other(
                    "is a symbolic link that others can change: root does not write through it",
                )),
            };
        }
        opened => File::from(opened?),
    };
    check(&file.metadata()?, &folder)?;
    Ok(file)
}

/// Returns true if nobody but root can replace a file of root's in the folder.
fn is_roots_alone(folder: &Stat) -> bool {
    folder.st_uid == 0 && (folder.st_mode & WRITTEN_BY_OTHERS == 0 || folder.st_mode & STICKY != 0)
}

fn check(file: &Metadata, folder: &Stat) -> io::Result<()> {
    if file.is_file() && file.nlink() > 1 {
        return Err(io::Error::other(
            "has another name too: root does not write to it",
        ));
    }
    let is_expected = [0, folder.st_uid].contains(&file.uid());
    if folder.st_mode & FOR_EVERYBODY == FOR_EVERYBODY && !is_expected {
        return Err(io::Error::other(
            "is somebody else's, in a folder for everybody: root does not write to it",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::io::{Read, Write};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    /// The functions that open a file.
    type Open = fn(&Path) -> io::Result<File>;
    const WAYS: [Open; 2] = [create, extend];

    #[test]
    fn one_is_emptied_and_one_goes_on() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("f");
        create(&path).unwrap().write_all(b"one").unwrap();
        let mut file = extend(&path).unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        file.write_all(b" two").unwrap();
        assert_eq!(
            (text.as_str(), fs::read_to_string(&path).unwrap().as_str()),
            ("one", "one two")
        );
        create(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        assert!(create(Path::new("/dev/null")).is_ok());
        assert!(extend(Path::new("/dev/null")).is_err());
        for way in WAYS {
            assert!(way(tmp.path()).is_err() && way(&tmp.path().join("no/f")).is_err());
        }
    }

    #[test]
    fn one_is_removed_as_long_as_it_has_its_name() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("f");
        let file = create(&path).unwrap();
        fs::rename(&path, tmp.path().join("g")).unwrap();
        fs::write(&path, "another").unwrap();
        remove(&path, &file).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "another");
        remove(&tmp.path().join("g"), &file).unwrap();
        assert!(!tmp.path().join("g").exists());
    }

    /// Root refuses what an attacker may leave in a folder that is not root's; the test does nothing for other users.
    #[test]
    fn root_is_led_nowhere() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let tmp = tempfile::tempdir().unwrap();
        let victim = tmp.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let folder = tmp.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let at = |name: &str| folder.join(name);
        for name in ["link", "dangling"] {
            let target = if name == "link" {
                "victim"
            } else {
                "not-there"
            };
            symlink(tmp.path().join(target), at(name)).unwrap();
        }
        fs::hard_link(&victim, at("hard")).unwrap();
        fs::write(at("of-nobody"), "theirs").unwrap();
        chown(at("of-nobody"), Some(65534), None).unwrap();
        chown(&folder, Some(65534), None).unwrap();
        for way in WAYS {
            for name in ["link", "dangling", "hard"] {
                assert!(way(&at(name)).is_err(), "{name}");
            }
            way(&at("mine")).unwrap();
        }
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert!(!tmp.path().join("not-there").exists());
        // The file lies in its owner's own folder; in a folder for everybody it would be refused.
        assert!(extend(&at("of-nobody")).is_ok());
        chown(&folder, Some(0), None).unwrap();
        fs::set_permissions(&folder, Permissions::from_mode(0o1777)).unwrap();
        assert!(create(&at("of-nobody")).is_err());
        assert_eq!(fs::read_to_string(at("of-nobody")).unwrap(), "theirs");
        // Root's own link, which nobody else can change, as /dev/stdout is one.
        fs::remove_file(at("hard")).unwrap();
        extend(&at("link")).unwrap().write_all(b"!").unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious!");
        // Now everybody can put another link there.
        fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
        assert!(extend(&at("link")).is_err());
    }
}

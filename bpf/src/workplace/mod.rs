// SPDX-License-Identifier: MIT OR Apache-2.0
//! A copy of the caller's folder on the measured filesystem, mounted over the folder so that only this process and its children see
//! it. A command runs where it would have run and finds the same files, but what it writes lands on the measured filesystem. The
//! folder itself does not change.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io::{self, Seek, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use mostrace_bundle::Folder;
use mostrace_bundle::folder::Identity;
use mostrace_bundle::manifest::Copied;
use rustix::mount::{UnmountFlags, mount_bind, unmount};

use crate::error::{At, Error, Result};
use crate::machine::tool;
use crate::machine::user::User;

mod aside;
mod chosen;
mod prepare;
mod site;

use self::chosen::Chosen;
pub use aside::aside;
pub use prepare::prepare;
pub use site::{FreshKind, FreshOptions, Site, settle};

/// The copy may take one part in this many of the filesystem; the rest is for what the command writes.
const PART_OF_THE_FILESYSTEM: u64 = 2;

/// The copy, which replaces the folder until it is dropped.
#[derive(Debug)]
pub struct Workplace {
    /// The original folder below the copy.
    below: Folder,
    /// The root of the copy, once it is mounted.
    above: Folder,
    /// What was copied.
    chosen: Chosen,
}

impl Workplace {
    /// Copies this process's folder to a fresh filesystem, as `user` if one is named, and mounts the copy over the folder.
    ///
    /// # Errors
    /// Returns an error if the folder is too large for the filesystem, cannot be read by the user, or holds the folder for
    /// temporary files, or if the kernel refuses.
    pub fn new(site: &Site, user: Option<&User>) -> Result<Workplace> {
        let path = std::env::current_dir().at(".")?;
        let below = Folder::open(&path)?;
        if site.path().starts_with(&path) {
            return Err(Error::HoldsTemporaries(path));
        }
        let most = site.size() / PART_OF_THE_FILESYSTEM;
        let chosen = Chosen::of(&path, most).at(&path)?;
        if chosen.room > most {
            return Err(Error::TooLarge { path, most });
        }
        let copy = copy(&path, &chosen, site.path(), user)?;
        mount_bind(&copy, below.handle())
            .map_err(std::io::Error::from)
            .at(&path)?;
        // Open it by a path whose components belong to the user; it may lead elsewhere by now.
        let above = Folder::open(&path)?;
        let is_the_copy = Identity::of(&fs::metadata(above.handle()).at(&path)?)
            == Identity::of(&fs::metadata(&copy).at(&copy)?);
        let workplace = Workplace {
            below,
            above,
            chosen,
        };
        match is_the_copy {
            true => {
                workplace.enter()?;
                Ok(workplace)
            }
            false => Err(Error::Moved(path)),
        }
    }

    /// Returns the folder's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.above.path()
    }

    /// Returns what was copied.
    #[must_use]
    pub fn copied(&self) -> Copied {
        self.chosen.copied
    }

    /// Returns what was left out of the copy, because this program made it.
    #[must_use]
    pub fn left_out(&self) -> &[PathBuf] {
        &self.chosen.left_out
    }

    fn enter(&self) -> Result<()> {
        std::env::set_current_dir(self.path()).at(self.path())
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        // If processes that a command left running are in there, it vanishes with the last of them.
        let away = unmount(self.above.handle(), UnmountFlags::DETACH);
        let back = std::env::set_current_dir(self.below.handle());
        let path = self.path().display();
        if let Err(e) = away.map_err(std::io::Error::from).and(back) {
            log::warn!("{path}: the copy is not taken away: {e}");
        }
    }
}

/// Copies what was chosen of a folder to one with the same name, owner and mode; other filesystems mounted below it are left out.
fn copy(path: &Path, chosen: &Chosen, to: &Path, user: Option<&User>) -> Result<PathBuf> {
    let name = path.file_name().unwrap_or(OsStr::new("root"));
    let copy = to.join(name);
    match fs::create_dir(&copy) {
        // The folder may be called `lost+found`, which mkfs makes too.
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && copy.is_dir() => {}
        made => made.at(&copy)?,
    }
    let meta = fs::metadata(path).at(path)?;
    // The user who copies must be able to write here.
    let (uid, gid) = user.map_or((meta.uid(), meta.gid()), |user| {
        (user.owner.uid, user.owner.gid)
    });
    chown(&copy, Some(uid), Some(gid)).at(&copy)?;
    fs::set_permissions(&copy, Permissions::from_mode(meta.mode() & 0o7777)).at(&copy)?;
    // The path is the user's own, and the user reads what it leads to.
    let mut cp = tool::command("xargs")?;
    cp.args(["-0", "cp", "-a", "-x", "--parents", "-t"])
        .arg(&copy)
        .arg("--");
    prepare::run(&mut cp, "cp -a -x", path, user, listed(&chosen.whole)?)?;
    if !chosen.is_all() {
        let mut mkdir = tool::command("xargs")?;
        mkdir.args(["-0", "mkdir", "-p", "--"]);
        prepare::run(&mut mkdir, "mkdir -p", &copy, user, listed(&chosen.parts)?)?;
    }
    settle(&copy)?;
    Ok(copy)
}

/// Returns a file with these paths for xargs.
fn listed(paths: &[PathBuf]) -> Result<Stdio> {
    let mut file = tempfile::tempfile().at("temporary file")?;
    for path in paths {
        let path = Path::new(".").join(path);
        let line = [path.as_os_str().as_bytes(), b"\0"].concat();
        file.write_all(&line).at("temporary file")?;
    }
    file.rewind().at("temporary file")?;
    Ok(file.into())
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The caller's folder on the filesystem that is measured: a copy of it, mounted over it where this process and its children
//! alone see it. A command runs where it is, finds what is there, and what it writes lands on that filesystem. The folder itself
//! stays as it is.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use mostrace_bundle::Folder;
use mostrace_bundle::folder::Identity;
use rustix::mount::{UnmountFlags, mount_bind, unmount};

use crate::error::{At, Error, Result};
use crate::machine::tool;
use crate::machine::user::User;

mod aside;
mod prepare;
mod site;

pub use aside::aside;
pub use prepare::prepare;
pub use site::{FreshKind, FreshOptions, Site, settle};

/// The copy may have one part in so many of the filesystem: the rest is for what the command writes.
const PART_OF_THE_FILESYSTEM: u64 = 2;

/// The copy, in place of the folder until it is dropped.
#[derive(Debug)]
pub struct Workplace {
    /// The folder itself, below the copy.
    below: Folder,
    /// The copy's root, once it is mounted.
    above: Folder,
}

impl Workplace {
    /// Copies this process's folder to a fresh filesystem, as that user if one is named, and puts the copy in its place.
    ///
    /// # Errors
    /// The folder is too large for the filesystem, cannot be read by the user, or holds the folder of temporary files; or the kernel
    /// refuses.
    pub fn new(site: &Site, user: Option<&User>) -> Result<Workplace> {
        let path = std::env::current_dir().at(".")?;
        let below = Folder::open(&path)?;
        if site.path().starts_with(&path) {
            return Err(Error::HoldsTemporaries(path));
        }
        check_size(&path, site.size(), user)?;
        let copy = copy(&path, site.path(), user)?;
        mount_bind(&copy, below.handle())
            .map_err(std::io::Error::from)
            .at(&path)?;
        // By a path, whose parts are the user's: it may lead elsewhere by now.
        let above = Folder::open(&path)?;
        let is_the_copy = Identity::of(&fs::metadata(above.handle()).at(&path)?)
            == Identity::of(&fs::metadata(&copy).at(&copy)?);
        let workplace = Workplace { below, above };
        match is_the_copy {
            true => {
                workplace.enter()?;
                Ok(workplace)
            }
            false => Err(Error::Moved(path)),
        }
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.above.path()
    }

    fn enter(&self) -> Result<()> {
        std::env::set_current_dir(self.path()).at(self.path())
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        // What a command left running may be in there: then it is gone with the last of those.
        let away = unmount(self.above.handle(), UnmountFlags::DETACH);
        let back = std::env::set_current_dir(self.below.handle());
        let path = self.path().display();
        if let Err(e) = away.map_err(std::io::Error::from).and(back) {
            log::warn!("{path}: the copy is not taken away: {e}");
        }
    }
}

/// Refuses a folder that has more than its part of the filesystem.
fn check_size(path: &Path, size: u64, user: Option<&User>) -> Result<()> {
    let mut du = tool::command("du")?;
    du.args(["-sx", "--block-size=1", "."]).current_dir(path);
    if let Some(user) = user {
        user.take_over(&mut du);
    }
    let output = du.output().at("du")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let bytes = text.split_whitespace().next().and_then(|n| n.parse().ok());
    let most = size / PART_OF_THE_FILESYSTEM;
    match bytes {
        Some(bytes) if bytes <= most => Ok(()),
        bytes => Err(Error::TooLarge {
            path: path.to_owned(),
            bytes,
            most,
        }),
    }
}

/// Copies the folder to one of the same name, owner and mode; what lies on other filesystems below it is left out.
fn copy(path: &Path, to: &Path, user: Option<&User>) -> Result<PathBuf> {
    let name = path.file_name().unwrap_or(OsStr::new("root"));
    let copy = to.join(name);
    fs::create_dir(&copy).at(&copy)?;
    let meta = fs::metadata(path).at(path)?;
    // Whoever copies must be able to write here.
    let (uid, gid) = user.map_or((meta.uid(), meta.gid()), |user| {
        (user.owner.uid, user.owner.gid)
    });
    chown(&copy, Some(uid), Some(gid)).at(&copy)?;
    fs::set_permissions(&copy, Permissions::from_mode(meta.mode() & 0o7777)).at(&copy)?;
    // By a path: it is the user's own, who reads what it leads to.
    let source = path.to_string_lossy().replace('\'', r"'\''");
    prepare(&format!("cp -a -x -- '{source}/.' ."), &copy, user)?;
    Ok(copy)
}

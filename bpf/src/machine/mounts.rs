// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's own filesystems that tracing needs; they are mounted if they are not yet.

use std::path::Path;

use crate::error::{Error, Result};
use crate::machine::mountinfo::{self, Mounted};
use crate::machine::tool;

/// The folder at which tracefs is mounted.
pub(crate) const TRACEFS: &str = "/sys/kernel/tracing";

/// One of the kernel's own filesystems, mounted.
#[derive(Debug)]
pub(crate) struct Mount {
    path: &'static Path,
    is_ours: bool,
}

impl Mount {
    /// Mounts debugfs, if it is not mounted.
    ///
    /// # Errors
    /// Returns an error if the kernel has no debugfs.
    pub fn debugfs() -> Result<Mount> {
        Mount::of("debugfs", Path::new("/sys/kernel/debug"))
    }

    /// Mounts tracefs, if it is not mounted.
    ///
    /// # Errors
    /// Returns an error if the kernel has no tracefs.
    pub fn tracefs() -> Result<Mount> {
        Mount::of("tracefs", Path::new(TRACEFS))
    }

    fn of(kind: &'static str, path: &'static Path) -> Result<Mount> {
        let is_mounted = is_mounted(kind, path);
        // Use mount(8) and not mount(2), so that the mount table stays right.
        if !is_mounted {
            let mounted = tool::command("mount")?
                .args(["-t", kind, "nodev"])
                .arg(path)
                .output();
            if !mounted.is_ok_and(|o| o.status.success()) {
                return Err(Error::NotMounted { path, kind });
            }
        }
        Ok(Mount {
            path,
            is_ours: !is_mounted,
        })
    }

    /// Returns the folder at which it is mounted.
    pub fn path(&self) -> &'static Path {
        self.path
    }

    /// Restores the state in which it was found, unless somebody uses it by now.
    pub fn undo(self) {
        if self.is_ours
            && let Ok(mut umount) = tool::command("umount")
        {
            // If this fails, it is busy.
            let _ = umount.arg(self.path).output();
        }
    }
}

fn is_mounted(kind: &str, path: &Path) -> bool {
    let mounts = mountinfo::all();
    let is_it = |mounted: &Mounted| mounted.kind == kind && mounted.point == path;
    mounts.iter().any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mounted_is_found_by_its_place_and_kind() {
        assert!(is_mounted("proc", Path::new("/proc")));
        assert!(!is_mounted("debugfs", Path::new("/proc")));
        assert!(!is_mounted("proc", Path::new("/sys/kernel/debug")));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's own filesystems that tracing needs, mounted if they are not.

use std::path::Path;

use crate::error::{Error, Result};
use crate::machine::mountinfo::{self, Mounted};
use crate::machine::tool;

/// The folder that tracefs is mounted at.
pub(crate) const TRACEFS: &str = "/sys/kernel/tracing";

/// A filesystem of the kernel's own that is mounted.
#[derive(Debug)]
pub(crate) struct Mount {
    path: &'static Path,
    is_ours: bool,
}

impl Mount {
    /// debugfs.
    ///
    /// # Errors
    /// The kernel has none.
    pub fn debugfs() -> Result<Mount> {
        Mount::of("debugfs", Path::new("/sys/kernel/debug"))
    }

    /// tracefs.
    ///
    /// # Errors
    /// The kernel has none.
    pub fn tracefs() -> Result<Mount> {
        Mount::of("tracefs", Path::new(TRACEFS))
    }

    fn of(kind: &'static str, path: &'static Path) -> Result<Mount> {
        let is_mounted = is_mounted(kind, path);
        // mount(8) and not mount(2): the mount table stays right.
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

    /// The folder that it is mounted at.
    pub fn path(&self) -> &'static Path {
        self.path
    }

    /// Leaves it as it was found. Whoever came to use it meanwhile keeps it.
    pub fn undo(self) {
        if self.is_ours
            && let Ok(mut umount) = tool::command("umount")
        {
            // It is busy then.
            let _ = umount.arg(self.path).output();
        }
    }
}

fn is_mounted(kind: &str, path: &Path) -> bool {
    let mounts = mountinfo::all();
    let is_it = |mounted: &Mounted| mounted.kind == kind && Path::new(&mounted.point) == path;
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

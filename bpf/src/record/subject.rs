// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is to be recorded, looked at before anything is traced or written.

use std::path::Path;

use mostrace_bundle::manifest::Filesystem;

use super::Options;
use crate::command;
use crate::device::Device;
use crate::error::{Error, Result};
use crate::filesystem;
use crate::names::NameFilter;
use crate::snapshot;
use crate::tool;
use crate::user::User;

/// The device and what lies on it, and the names to keep.
pub(super) struct Subject {
    pub device: Device,
    pub filesystem: Option<Filesystem>,
    pub names: NameFilter,
    /// Whom the command runs as, if not as the recorder.
    pub user: Option<User>,
}

impl Subject {
    /// Looks everything up that can keep a capture from being made.
    ///
    /// # Errors
    /// What is missing.
    pub fn find(options: &Options) -> Result<Subject> {
        if !rustix::process::geteuid().is_root() {
            return Err(Error::NoPrivilege {
                what: "record needs root".into(),
            });
        }
        let names = NameFilter::parse(&options.files)?;
        let device = Device::open(&options.device)?;
        command::check(&options.argv)?;
        let user = options.user.as_deref().map(User::find).transpose()?;
        let filesystem = filesystem::find(&device)?;
        if options.snapshot {
            check_snapshot(options, filesystem.as_ref())?;
        }
        Ok(Subject {
            device,
            filesystem,
            names,
            user,
        })
    }

    /// Where the filesystem is mounted, if it is.
    pub fn mount_point(&self) -> Option<&Path> {
        let mount = self.filesystem.as_ref()?.mount_point.as_ref()?;
        Some(Path::new(mount))
    }
}

fn check_snapshot(options: &Options, filesystem: Option<&Filesystem>) -> Result<()> {
    let Some(filesystem) = filesystem else {
        return Err(Error::NoFilesystem {
            device: options.device.clone(),
        });
    };
    if snapshot::is_ext4(&filesystem.kind) {
        tool::find("e2image").map_err(|_| Error::ToolMissing {
            tool: "e2image",
            package: "e2fsprogs",
            option: "--no-snapshot",
        })?;
    }
    Ok(())
}

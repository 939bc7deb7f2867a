// SPDX-License-Identifier: MIT OR Apache-2.0
//! ext4, ext3 and ext2, through `e2image -r`.

use std::path::Path;
use std::process::Command;

use mostrace_bundle::layout;
use mostrace_bundle::manifest::Snapshot;

use super::pack::pack;
use super::{described, scratch};
use crate::device::Device;
use crate::error::{Error, Result};

const TOOL: &str = "e2image";

/// Saves the filesystem's metadata into the bundle in `dir`.
///
/// e2image reads the device through its page cache, where a mounted ext4 keeps its
/// metadata buffers, so the extents are the live ones. -f because it is mounted.
///
/// # Errors
/// e2image is missing or fails, or the bundle cannot be written.
pub fn save(device: &Device, dir: &Path) -> Result<Snapshot> {
    let raw = scratch(dir)?;
    let out = Command::new(TOOL)
        .arg("-rf")
        .arg(device.node())
        .arg(raw.path())
        .output()
        .map_err(|e| failed(format!("{e} (package e2fsprogs)")))?;
    if !out.status.success() {
        let text = String::from_utf8_lossy(&out.stderr);
        let line = text
            .lines()
            .filter(|l| !l.starts_with("e2image "))
            .find(|l| !l.trim().is_empty());
        let why = line.unwrap_or("failed without a message").trim();
        return Err(failed(why.to_owned()));
    }
    pack(raw.as_file(), device.bytes(), &dir.join(layout::SNAPSHOT))?;
    Ok(described(device, "e2image"))
}

fn failed(why: String) -> Error {
    Error::ToolFailed { tool: TOOL, why }
}

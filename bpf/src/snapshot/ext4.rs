// SPDX-License-Identifier: MIT OR Apache-2.0
//! ext4, ext3 and ext2, through `e2image -r`.

use std::os::fd::AsRawFd;
use std::process;

use mostrace_bundle::Folder;
use mostrace_bundle::manifest::Snapshot;

use super::pack::pack;
use super::{described, scratch};
use crate::device::Device;
use crate::error::{Error, Result};
use crate::tool;

const TOOL: &str = "e2image";

/// Saves the filesystem's metadata into the bundle in `folder`.
///
/// e2image reads the device through its page cache, where a mounted ext4 keeps its
/// metadata buffers, so the extents are the live ones. -f because it is mounted.
///
/// # Errors
/// e2image is missing or fails, or the bundle cannot be written.
pub fn save(device: &Device, folder: &Folder) -> Result<Snapshot> {
    let raw = scratch(folder)?;
    let out = tool::command(TOOL)?
        .arg("-rf")
        .arg(device.node())
        .arg(format!("/proc/{}/fd/{}", process::id(), raw.as_raw_fd()))
        .output()
        .map_err(|e| failed(e.to_string()))?;
    if !out.status.success() {
        let text = String::from_utf8_lossy(&out.stderr);
        let line = text
            .lines()
            .filter(|l| !l.starts_with("e2image "))
            .find(|l| !l.trim().is_empty());
        let why = line.unwrap_or("failed without a message").trim();
        return Err(failed(why.to_owned()));
    }
    pack(&raw, device.bytes(), folder)?;
    Ok(described(device, "e2image"))
}

fn failed(why: String) -> Error {
    Error::ToolFailed { tool: TOOL, why }
}

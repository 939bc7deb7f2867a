// SPDX-License-Identifier: MIT OR Apache-2.0
//! The preparation of what a measured command finds, ahead of the recording.

use std::path::Path;
use std::process::Command;

use super::site::settle;
use crate::error::{At, Error, Result};
use crate::machine::user::User;

/// Runs a shell's script in a folder, as that user if one is named, and has what it wrote reach the device.
///
/// # Errors
/// The script ends with anything but 0.
pub fn prepare(script: &str, folder: &Path, user: Option<&User>) -> Result<()> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-ec", script]).current_dir(folder);
    if let Some(user) = user {
        user.take_over(&mut shell);
    }
    let output = shell.output().at("/bin/sh")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr)
            .trim()
            .replace('\n', "; ");
        return Err(Error::Prepare {
            script: script.into(),
            status: output.status.to_string(),
            said,
        });
    }
    settle(folder)
}

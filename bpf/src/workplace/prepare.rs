// SPDX-License-Identifier: MIT OR Apache-2.0
//! Prepares what a measured command needs, before the recording.

use std::path::Path;
use std::process::Command;

use super::site::settle;
use crate::error::{At, Error, Result};
use crate::machine::user::User;

/// Runs a shell script in a folder, as `user` if one is named, and writes its data back to the device.
///
/// # Errors
/// Returns an error if the script's exit status is not 0.
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

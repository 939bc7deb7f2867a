// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bundle that was made elsewhere, kept.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use anyhow::Context;
use mostrace_bundle::archive;

/// Puts the bundle in the folder `from` to NAME.most or NAME.most.tar.zst, where there is none yet.
///
/// # Errors
/// It is there already, or cannot be written.
pub fn keep(from: &Path, to: &Path) -> anyhow::Result<()> {
    if to.extension().is_some_and(|ending| ending == "zst") {
        return Ok(archive::pack(from, to)?);
    }
    let mut folder = DirBuilder::new();
    folder
        .mode(0o700)
        .create(to)
        .with_context(|| to.display().to_string())?;
    for file in fs::read_dir(from)? {
        let file = file?;
        let to = to.join(file.file_name());
        fs::copy(file.path(), &to).with_context(|| to.display().to_string())?;
    }
    Ok(())
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps a bundle that was made elsewhere.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use anyhow::Context;
use mostrace_bundle::{Folder, archive};

/// Copies the bundle in the directory `from` to NAME.most or packs it into NAME.most.tar.zst, which must not exist yet.
///
/// # Errors
/// Returns an error if the target exists or cannot be written.
pub fn keep(from: &Path, to: &Path) -> anyhow::Result<()> {
    if to.extension().is_some_and(|ending| ending == "zst") {
        return Ok(archive::pack(from, to)?);
    }
    let parent = Folder::open(to.parent().unwrap_or(Path::new("")))?;
    keep_in(&parent, to.file_name().unwrap_or_default(), from)
}

fn keep_in(parent: &Folder, name: &OsStr, from: &Path) -> anyhow::Result<()> {
    let from = Folder::open(from)?;
    let to = parent.make_folder(name)?;
    for name in from.names()? {
        let path = || to.path().join(&name).display().to_string();
        io::copy(&mut from.read(&name)?, &mut to.create(&name)?).with_context(path)?;
    }
    Ok(())
}

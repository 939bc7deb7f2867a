// SPDX-License-Identifier: MIT OR Apache-2.0
//! A local file that gets its name when it is complete.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use mostrace_bundle::Folder;

/// The file; unless it is finished, nothing is left of it.
pub struct Output {
    path: PathBuf,
    folder: Folder,
    part: Option<OsString>,
    pub file: File,
}

impl Output {
    /// Creates the file's partial version, replacing one that an earlier run left.
    pub fn create(path: &Path) -> anyhow::Result<Output> {
        let name = path.file_name().unwrap_or_default();
        let folder = Folder::open(path.parent().unwrap_or(Path::new("")))?;
        if folder.has(name)? {
            bail!("{}: exists, and is not overwritten", path.display());
        }
        let mut part = name.to_owned();
        part.push(".part");
        Ok(Output {
            path: path.to_owned(),
            file: folder.replace(&part)?,
            folder,
            part: Some(part),
        })
    }

    /// Gives the file its name.
    pub fn finish(mut self) -> anyhow::Result<()> {
        let path = || self.path.display().to_string();
        self.file.sync_all().with_context(path)?;
        let name = self.path.file_name().unwrap_or_default();
        let part = self.part.as_ref().context("finished")?;
        self.folder.rename_new(&self.file, part, name)?;
        self.part = None;
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // The error to report is the one that prevented the file.
        let _ = self.part.take().map(|part| self.folder.remove(part));
    }
}

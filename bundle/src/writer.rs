// SPDX-License-Identifier: MIT OR Apache-2.0
//! Making a bundle's folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::error::{At, Error};
use crate::layout;
use crate::manifest::Manifest;

/// A bundle being written.
#[derive(Debug)]
pub struct Writer {
    dir: PathBuf,
}

impl Writer {
    /// Creates the folder.
    ///
    /// # Errors
    /// It exists already, or cannot be made.
    pub fn create(dir: &Path) -> Result<Writer, Error> {
        fs::create_dir(dir).at(dir)?;
        Ok(Writer {
            dir: dir.to_owned(),
        })
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Path of one of the bundle's files.
    pub fn path(&self, name: &str) -> PathBuf {
        debug_assert!(layout::is_known(name));
        self.dir.join(name)
    }

    /// Writes the manifest in one step: a reader sees the old one or the new one.
    ///
    /// # Errors
    /// The disk is full, or the like.
    pub fn put_manifest(&self, manifest: &Manifest) -> Result<(), Error> {
        let to = self.path(layout::MANIFEST);
        let temporary = self.dir.join(".manifest.new");
        let file = File::create(&temporary).at(&temporary)?;
        serde_json::to_writer_pretty(&file, manifest)
            .map_err(Into::into)
            .at(&temporary)?;
        file.sync_all().at(&temporary)?;
        fs::rename(&temporary, &to).at(&to)
    }
}

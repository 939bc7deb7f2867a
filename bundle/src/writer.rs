// SPDX-License-Identifier: MIT OR Apache-2.0
//! Making a bundle's folder.

use std::collections::BTreeMap;
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

    /// Sizes of what has been written beside the manifest, bytes, by name.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn sizes(&self) -> Result<BTreeMap<String, u64>, Error> {
        let names = layout::files_in(&self.dir)?.into_iter();
        names
            .filter(|name| name != layout::MANIFEST)
            .map(|name| {
                let path = self.dir.join(&name);
                Ok((name, fs::metadata(&path).at(&path)?.len()))
            })
            .collect()
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

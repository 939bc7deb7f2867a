// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writing a bundle's folder.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::error::{At, Error};
use crate::folder::Folder;
use crate::layout;
use crate::manifest::Manifest;

/// A bundle that is being written; only its owner can read it.
#[derive(Debug)]
pub struct Writer {
    folder: Folder,
}

impl Writer {
    /// Creates the bundle's folder.
    ///
    /// # Errors
    /// Returns an error if the folder exists already or cannot be made.
    pub fn create(dir: &Path) -> Result<Writer, Error> {
        let name = dir.file_name().unwrap_or_default();
        let parent = Folder::open(dir.parent().unwrap_or(dir))?;
        let folder = parent.make_folder(name)?;
        Ok(Writer { folder })
    }

    /// Writes a bundle into a folder that was made for it.
    pub fn within(folder: Folder) -> Writer {
        Writer { folder }
    }

    /// Returns the bundle's folder.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Returns the folder's path; for messages.
    pub fn dir(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of one of the bundle's files; for messages.
    pub fn path(&self, name: &str) -> PathBuf {
        debug_assert!(layout::is_known(name));
        self.dir().join(name)
    }

    /// Returns the names of the bundle's files, unordered.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let mut names = self.folder.names()?;
        names.retain(|name| layout::is_known(name));
        Ok(names)
    }

    /// Returns the sizes in bytes of the files written so far, by name, without the manifest.
    pub fn sizes(&self) -> Result<BTreeMap<String, u64>, Error> {
        let names = self.names()?.into_iter();
        names
            .filter(|name| name != layout::MANIFEST)
            .map(|name| {
                let len = self.folder.len_of(&name)?;
                Ok((name, len))
            })
            .collect()
    }

    /// Writes the manifest atomically: a reader sees the old one or the new one.
    pub fn put_manifest(&self, manifest: &Manifest) -> Result<(), Error> {
        let temporary = ".manifest.new";
        let mut file = self.folder.replace(temporary)?;
        let path = self.path(layout::MANIFEST);
        // At once: a writer without a buffer is called for each word.
        let text = serde_json::to_vec_pretty(manifest).at(&path)?;
        file.write_all(&text).at(&path)?;
        file.sync_all().at(&path)?;
        self.folder.rename(temporary, layout::MANIFEST)
    }
}

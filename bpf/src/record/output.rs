// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the bundle goes: a folder, packed at the end if it is to be one file.

use std::fs;
use std::path::{Path, PathBuf};

use mostrace_bundle::{Writer, archive, layout};

use crate::error::{At, Error, Result};
use crate::progress::Packing;

/// The place of one bundle.
pub(super) struct Output {
    writer: Writer,
    /// The archive, if there is to be one.
    packed: Option<PathBuf>,
}

impl Output {
    /// Makes the folder: `NAME.most`, also of `NAME.most.tar.zst`.
    ///
    /// # Errors
    /// The folder or the archive is there already, or the folder cannot be made.
    pub fn create(output: &Path) -> Result<Output> {
        let text = output.to_string_lossy();
        let (folder, packed) = match text.strip_suffix(".tar.zst") {
            Some(folder) => (PathBuf::from(folder), Some(output.to_owned())),
            None => (output.to_owned(), None),
        };
        if packed.is_some() && output.exists() {
            return Err(Error::OutputExists {
                path: output.to_owned(),
            });
        }
        let writer = Writer::create(&folder)?;
        Ok(Output { writer, packed })
    }

    /// The bundle's folder.
    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Packs what was recorded, if it is to be packed.
    ///
    /// # Errors
    /// The archive cannot be written; the folder stays then.
    pub fn finish(self) -> Result<()> {
        let folder = self.writer.dir();
        if let Some(packed) = self.packed {
            let bytes = self.writer.sizes()?.values().sum();
            let mut progress = Packing::new(bytes);
            archive::pack_telling(folder, &packed, |bytes| progress.advance(bytes))?;
            fs::remove_dir_all(folder).at(folder)?;
        }
        Ok(())
    }

    /// Leaves nothing behind if nothing was recorded: no source was running yet.
    pub fn abandon(self) {
        if !self.writer.path(layout::MANIFEST).exists() {
            // The error to report is the one that kept the capture from being made.
            let _ = fs::remove_dir_all(self.writer.dir());
        }
    }
}

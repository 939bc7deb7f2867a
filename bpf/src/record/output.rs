// SPDX-License-Identifier: MIT OR Apache-2.0
//! The place to which the bundle is written: a folder, which is packed at the end if it should be one file. Only root can read it
//! while it is written; then it belongs to the user who called sudo. The folder may be in memory until tracing has ended, because
//! its own writes would be in the trace.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use mostrace_bundle::folder::{self, Folder, Identity, Owner};
use mostrace_bundle::temporary::TempFolder;
use mostrace_bundle::{Manifest, Writer, archive, layout};

use super::progress::Packing;
use crate::error::{At, Error, Result};
use crate::machine::user;

/// The place of one bundle.
pub(super) struct Output {
    /// The folder that contains the bundle.
    parent: Folder,
    writer: Writer,
    /// The place in memory with the bundle's folder, if it is not in `parent`.
    memory: Option<TempFolder>,
    /// The folder's name.
    name: OsString,
    /// Name of the archive, if there will be one.
    archive: Option<OsString>,
    owner: Option<Owner>,
}

/// Returns the name of the folder, and that of the archive if there will be one.
///
/// # Errors
/// Returns an error if the name is neither NAME.most nor NAME.most.tar.zst.
fn names(output: &Path) -> Result<(OsString, Option<OsString>)> {
    let name = output.file_name().unwrap_or_default();
    let text = name.as_encoded_bytes();
    let is_named = |folder: &[u8]| folder.len() > b".most".len() && folder.ends_with(b".most");
    match text.strip_suffix(b".tar.zst") {
        Some(folder) if is_named(folder) => {
            let folder = Path::new(name).with_extension("").with_extension("");
            Ok((folder.into(), Some(name.to_owned())))
        }
        None if is_named(text) => Ok((name.to_owned(), None)),
        _ => Err(Error::OutputName(output.to_owned())),
    }
}

/// Checks that a bundle can have this name.
///
/// # Errors
/// Returns an error if the name is neither NAME.most nor NAME.most.tar.zst.
pub fn check_output(output: &Path) -> Result<()> {
    names(output).map(drop)
}

impl Output {
    /// Makes the folder `NAME.most`; also for `NAME.most.tar.zst`. With `in_memory` it is not yet where it will be.
    ///
    /// # Errors
    /// Returns an error if the name has another form, if the folder or the archive exists already, if the folder cannot be made, or
    /// if it is not known who called sudo.
    pub fn create(output: &Path, in_memory: bool) -> Result<Output> {
        let (folder, archive) = names(output)?;
        let parent = Folder::open(output.parent().unwrap_or(Path::new("")))?;
        for name in [Some(&folder), archive.as_ref()].into_iter().flatten() {
            if parent.has(name)? {
                let path = parent.path().join(name);
                return Err(Error::OutputExists(path));
            }
        }
        let owner = user::of_sudo()?;
        let memory = in_memory.then(TempFolder::in_memory).transpose();
        let memory = memory.unwrap_or_else(|why| {
            log::warn!("no place in memory, so the recorder's own writes are in the trace: {why}");
            None
        });
        let made = match &memory {
            Some(memory) => Folder::open(memory.path())?.make_folder(&folder)?,
            None => parent.make_folder(&folder)?,
        };
        Ok(Output {
            parent,
            writer: Writer::within(made),
            memory,
            name: folder,
            archive,
            owner,
        })
    }

    /// Returns the folder in which the bundle will be.
    pub fn parent(&self) -> &Folder {
        &self.parent
    }

    pub fn is_in_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Moves what is in memory to its place on the disk.
    ///
    /// # Errors
    /// Returns an error if the disk is full.
    pub fn leave_memory(&mut self) -> Result<()> {
        let Some(memory) = self.memory.take() else {
            return Ok(());
        };
        let on_disk = Writer::within(self.parent.make_folder(&self.name)?);
        for name in self.writer.names()? {
            let mut from = self.writer.folder().read(&name)?;
            let mut to = on_disk.folder().create(&name)?;
            io::copy(&mut from, &mut to).at(on_disk.path(&name))?;
        }
        self.writer = on_disk;
        drop(memory);
        Ok(())
    }

    /// Returns the bundle's folder.
    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// Returns the path that the bundle will have.
    pub fn path(&self) -> PathBuf {
        match &self.archive {
            Some(archive) => self.parent.path().join(archive),
            None => self.parent.path().join(&self.name),
        }
    }

    /// Packs what was recorded, if it should be packed, and gives it to its owner. The manifest says that it is complete, so whoever
    /// follows the recording may remove the folder at any time.
    ///
    /// # Errors
    /// Returns an error if the archive cannot be written; the folder stays then.
    pub fn finish(mut self, manifest: &Manifest, progress: Packing) -> Result<Finished> {
        let Some(archive) = &self.archive else {
            self.leave_memory()?;
            self.writer.folder().give_to(self.owner)?;
            return Ok(Finished {
                identity: self.writer.folder().identity()?,
                bytes: manifest.files.values().sum(),
                name: self.name,
                parent: self.parent,
            });
        };
        let identity = match self.pack(archive, progress) {
            Ok(identity) => identity,
            Err(error) => {
                self.writer.folder().give_to(self.owner)?;
                return Err(error);
            }
        };
        if self.memory.is_none() {
            self.parent.remove_folder(self.writer.folder())?;
        }
        Ok(Finished {
            identity,
            bytes: self.parent.len_of(&archive.to_string_lossy())?,
            name: archive.clone(),
            parent: self.parent,
        })
    }

    /// Packs the folder. An archive that cannot be written is removed again, and a file that has its name already stays.
    fn pack(&self, archive: &OsStr, progress: Packing) -> Result<Identity> {
        let file = self.parent.create(archive)?;
        let packed = self.pack_into(&file, archive, progress);
        if packed.is_err() {
            self.parent.remove(archive)?;
        }
        packed
    }

    fn pack_into(&self, file: &File, archive: &OsStr, mut progress: Packing) -> Result<Identity> {
        let path = self.parent.path().join(archive);
        progress.expect(self.writer.sizes()?.values().sum());
        archive::pack_telling(&self.writer, file, &path, |bytes| progress.advance(bytes))?;
        folder::give(file, self.owner).at(&path)?;
        Ok(Identity::of(&file.metadata().at(&path)?))
    }

    /// Returns true if the bundle has contents.
    pub fn is_begun(&self) -> bool {
        self.writer.folder().has(layout::MANIFEST).unwrap_or(true)
    }

    /// Removes the place again if nothing was recorded: no source was running yet, or the command could not be started.
    pub fn abandon(mut self, why: &Error) {
        // The error to report is the one that prevented the capture.
        if self.is_begun() && !matches!(why, Error::Command { .. }) {
            let _ = self.leave_memory();
            let _ = self.writer.folder().give_to(self.owner);
        } else if !self.is_in_memory() {
            let _ = self.parent.remove_folder(self.writer.folder());
        }
    }
}

/// A finished bundle.
pub(super) struct Finished {
    parent: Folder,
    name: OsString,
    identity: Identity,
    /// The size of its files.
    pub bytes: u64,
}

impl Finished {
    /// Removes the bundle. If somebody has moved it away or put something in its place, that stays.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be removed.
    pub fn remove(self) -> Result<()> {
        if self.parent.identity_of(&self.name)? != Some(self.identity) {
            return Ok(());
        }
        if self.name.as_encoded_bytes().ends_with(b".tar.zst") {
            return Ok(self.parent.remove(&self.name)?);
        }
        let folder = self.parent.open_folder(&self.name)?;
        match folder.identity()? == self.identity {
            true => Ok(self.parent.remove_folder(&folder)?),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_a_most_folder_or_its_archive() {
        let names = |name: &str| names(Path::new(name)).map_err(|e| e.to_string());
        assert_eq!(names("a/b.most"), Ok(("b.most".into(), None)));
        assert_eq!(
            names("/a/b.c.most.tar.zst"),
            Ok(("b.c.most".into(), Some("b.c.most.tar.zst".into())))
        );
        for wrong in [
            "x.tar.gz",
            "x.tar.zst",
            "x",
            ".most",
            ".most.tar.zst",
            "/",
            "a.most/..",
        ] {
            assert_eq!(
                names(wrong),
                Err(format!(
                    "{wrong}: a bundle is NAME.most, a folder, or NAME.most.tar.zst, one file"
                ))
            );
        }
    }

    /// Who follows a recording removes each segment as soon as its manifest says that it is complete.
    #[test]
    fn a_complete_bundle_may_be_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.most");
        let output = Output::create(&path, false).unwrap();
        let mut manifest = Manifest::default();
        manifest.files.insert("x".into(), 17);
        output.writer().put_manifest(&manifest).unwrap();
        std::fs::remove_dir_all(&path).unwrap();
        let finished = output.finish(&manifest, Packing::new(false)).unwrap();
        assert_eq!(finished.bytes, 17);
        finished.remove().unwrap();
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opening a bundle, be it a folder or an archive.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::archive::{self, Cut, Unpacked};
use crate::error::{At, Error};
use crate::layout;
use crate::manifest::{Manifest, SCHEMA, State};
use crate::packages::{self, Packages};
use crate::shortfall::{self, Shortfall};
use crate::sparse;
use crate::table::TableReader;
use crate::temporary::TempFile;

/// The largest manifest that is read, bytes.
const MANIFEST_LIMIT: u64 = 16 << 20;
/// The largest device that a snapshot may describe, bytes: ext4's largest file, since the snapshot is restored to a
/// file.
const DEVICE_LIMIT: u64 = 16 << 40;

/// A bundle that can be read.
#[derive(Debug)]
pub struct Bundle {
    path: PathBuf,
    dir: PathBuf,
    manifest: Manifest,
    events: Vec<PathBuf>,
    /// The unpacked archive, which lives as long as the bundle.
    unpacked: Option<Unpacked>,
}

impl Bundle {
    /// Returns true if `path` looks like a bundle: a folder, or an archive by its bytes. What is called `.zst` and is none is taken
    /// for a damaged one.
    pub fn is_bundle(path: &Path) -> bool {
        let is_called = || path.extension().is_some_and(|e| e == "zst");
        path.is_dir() || archive::is_archive(path) || is_called()
    }

    /// Opens a folder or a `.tar.zst`. An archive that was cut is opened up to the cut; see [`Bundle::shortfalls`].
    ///
    /// # Errors
    /// Returns an error if the bundle does not exist, has no manifest, is of a newer version, or is damaged.
    pub fn open(path: &Path) -> Result<Bundle, Error> {
        let unpacked = match path.is_dir() {
            true => None,
            false => Some(archive::unpack(path)?),
        };
        let dir = match &unpacked {
            Some(unpacked) => unpacked.dir.path().to_owned(),
            None => path.to_owned(),
        };
        if let Some(cut) = unpacked.as_ref().and_then(|u| u.cut.as_ref()) {
            check_has_manifest(cut, &dir, path)?;
        }
        let manifest = read_manifest(&dir, path)?;
        let events = event_files(&dir)?;
        Ok(Bundle {
            path: path.to_owned(),
            dir,
            manifest,
            events,
            unpacked,
        })
    }

    /// Returns the path as given to [`Bundle::open`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns true if the recorder was not stopped in order or the archive was cut: files may end in the middle of a
    /// record.
    pub fn is_cut(&self) -> bool {
        self.manifest.state == State::Recording || self.cut().is_some()
    }

    /// Returns the place where the archive was cut, if it was.
    fn cut(&self) -> Option<&Cut> {
        self.unpacked.as_ref()?.cut.as_ref()
    }

    /// Returns what is missing of the recording, judged by the files' names and sizes; no file is read. If the recorder
    /// was not stopped in order, the manifest lists no files and only the cut of the archive is known.
    pub fn shortfalls(&self) -> Vec<Shortfall> {
        shortfall::find(&self.dir, &self.manifest, self.cut())
    }

    /// Returns the event files, by CPU. If they are empty, or there are none, and there are no [`Bundle::shortfalls`],
    /// then no IO happened.
    pub fn event_files(&self) -> &[PathBuf] {
        &self.events
    }

    /// Returns the names and paths of all files of the bundle, by name.
    pub fn files(&self) -> Result<Vec<(String, PathBuf)>, Error> {
        let mut names = layout::files_in(&self.dir)?;
        names.sort();
        let path = |name: String| (name.clone(), self.dir.join(name));
        Ok(names.into_iter().map(path).collect())
    }

    /// Opens a table by its name in [`layout`]; None if the bundle does not have it. With `allow_cut`, a last entry
    /// that is cut short is accepted.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is not a table.
    pub fn table(&self, name: &str, allow_cut: bool) -> Result<Option<TableReader<File>>, Error> {
        let path = self.dir.join(name);
        if !path.is_file() {
            return Ok(None);
        }
        let file = File::open(&path).at(&path)?;
        TableReader::new(file, &path, allow_cut).map(Some)
    }

    /// Opens a file of the bundle at the place where this segment's own records begin; the records ahead of it repeat
    /// those of the segment before. Returns its path too. None if the bundle has no file of this name.
    pub fn own(&self, name: &str) -> Result<Option<(PathBuf, File)>, Error> {
        let Some((path, own_from)) = self.place(name) else {
            return Ok(None);
        };
        let mut file = File::open(&path).at(&path)?;
        file.seek(SeekFrom::Start(own_from)).at(&path)?;
        Ok(Some((path, file)))
    }

    /// Opens a file of the bundle as [`Bundle::own`] does, but at its begin.
    pub fn whole(&self, name: &str) -> Result<Option<(PathBuf, File)>, Error> {
        let Some((path, _)) = self.place(name) else {
            return Ok(None);
        };
        let file = File::open(&path).at(&path)?;
        Ok(Some((path, file)))
    }

    /// Returns the path of a file of the bundle, and the byte offset at which this segment's own records begin; see
    /// [`Bundle::own`].
    pub fn place(&self, name: &str) -> Option<(PathBuf, u64)> {
        let path = self.dir.join(name);
        if !layout::is_known(name) || !path.is_file() {
            return None;
        }
        let segment = self.manifest.segment.as_ref();
        let own_from = segment.and_then(|segment| segment.own_from.get(name));
        Some((path, own_from.copied().unwrap_or(0)))
    }

    /// Returns the apps of the Android device on which the bundle was recorded; None for any other machine.
    pub fn packages(&self) -> Result<Option<Packages>, Error> {
        let path = self.dir.join(layout::PACKAGES);
        if !path.is_file() {
            return Ok(None);
        }
        let mut text = Vec::new();
        let file = File::open(&path).at(&path)?;
        file.take(packages::LIMIT)
            .read_to_end(&mut text)
            .at(&path)?;
        Ok(Some(Packages::parse(&text)))
    }

    /// Restores the snapshot into a temporary sparse file. None if the bundle has no snapshot, or if the archive was
    /// cut within it: the missing part would read as zeros.
    ///
    /// # Errors
    /// Returns an error if the snapshot is damaged, or if there is no space left.
    pub fn snapshot(&self) -> Result<Option<TempFile>, Error> {
        let path = self.dir.join(layout::SNAPSHOT);
        let is_cut = self
            .cut()
            .is_some_and(|cut| cut.within.as_deref() == Some(layout::SNAPSHOT));
        if is_cut || !path.is_file() {
            return Ok(None);
        }
        let mut image = TempFile::new()?;
        let input = File::open(&path).at(&path)?;
        let len = input.metadata().at(&path)?.len();
        // A snapshot that the archive compressed further came in no more bytes than the archive has.
        let packed = self.unpacked.as_ref().map_or(len, |u| u.packed.min(len));
        let limits = sparse::Limits::new(DEVICE_LIMIT, packed);
        sparse::restore(input, &path, image.file(), limits)?;
        Ok(Some(image))
    }
}

/// Fails if the archive was cut before the end of its manifest, which is its first member.
fn check_has_manifest(cut: &Cut, dir: &Path, shown: &Path) -> Result<(), Error> {
    let is_whole = cut.within.as_deref() != Some(layout::MANIFEST);
    if is_whole && dir.join(layout::MANIFEST).is_file() {
        return Ok(());
    }
    let at = cut.at;
    let what = format!("cut short at byte {at}, before the end of its manifest");
    Err(Error::corrupt(shown, what))
}

fn read_manifest(dir: &Path, shown: &Path) -> Result<Manifest, Error> {
    let path = dir.join(layout::MANIFEST);
    if !path.is_file() {
        return Err(Error::corrupt(
            shown,
            "no manifest.json in it: not a mostrace bundle",
        ));
    }
    let mut text = Vec::new();
    File::open(&path)
        .and_then(|f| f.take(MANIFEST_LIMIT).read_to_end(&mut text))
        .at(&path)?;
    let shown = shown.join(layout::MANIFEST);
    let value: serde_json::Value =
        serde_json::from_slice(&text).map_err(|e| Error::corrupt(&shown, e.to_string()))?;
    // The version is checked first: a newer manifest may have another shape.
    let schema = value.get("schema").and_then(serde_json::Value::as_u64);
    match schema {
        None => Err(Error::corrupt(&shown, "no schema version")),
        Some(v) if v > u64::from(SCHEMA) => Err(Error::unsupported(
            &shown,
            format!(
                "schema version {v}; this program reads up to {SCHEMA}: a newer mostrace is needed"
            ),
        )),
        Some(_) => serde_json::from_value(value).map_err(|e| Error::corrupt(&shown, e.to_string())),
    }
}

fn event_files(dir: &Path) -> Result<Vec<PathBuf>, Error> {
    let names = layout::files_in(dir)?.into_iter();
    let of_cpu = |name: String| Some((layout::cpu_of(&name)?, dir.join(name)));
    let mut found: Vec<_> = names.filter_map(of_cpu).collect();
    found.sort();
    let paths = found.into_iter().map(|(_, path)| path);
    Ok(paths.filter(|path| path.is_file()).collect())
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace as it lies on the disk: a bundle, or the bare files of blktrace.

use std::fs::File;
use std::path::{Path, PathBuf};

use mostrace_bundle::table::TableReader;
use mostrace_bundle::{Bundle, Manifest};

use crate::blktrace::{self, Notice, Partial, Trace};

/// Why a trace cannot be read; one line that names the file and the place.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bundle's manifest, its tables or its snapshot.
    #[error(transparent)]
    Bundle(#[from] mostrace_bundle::Error),
    /// The event files.
    #[error(transparent)]
    Events(#[from] blktrace::Error),
    /// A bundle without event files.
    #[error("{}: no block events in it (trace.blktrace.N){missing}", path.display())]
    NoEvents {
        /// The bundle.
        path: PathBuf,
        /// What else it lacks.
        missing: String,
    },
}

/// A trace that was opened, of which nothing but the manifest was read yet.
pub struct Recording {
    path: PathBuf,
    bundle: Option<Bundle>,
    cut: bool,
}

impl Recording {
    /// Opens a bundle (a folder or a .tar.zst) or a bare blktrace (`x` for `x.blktrace.N`, or one file). Bare files that end
    /// within a record are read up to there; with `partial`, also what is damaged is read up to its last whole record.
    ///
    /// # Errors
    /// It is a bundle, and its manifest cannot be read.
    pub fn open(path: &Path, partial: bool) -> Result<Recording, Error> {
        let bundle = match Bundle::is_bundle(path) {
            true => Some(Bundle::open(path)?),
            false => None,
        };
        Ok(Recording {
            path: path.to_owned(),
            cut: partial || bundle.as_ref().is_some_and(Bundle::is_cut),
            bundle,
        })
    }

    /// None of a bare trace.
    pub fn bundle(&self) -> Option<&Bundle> {
        self.bundle.as_ref()
    }

    /// The same, for keeps.
    pub fn into_bundle(self) -> Option<Bundle> {
        self.bundle
    }

    /// None of a bare trace.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.bundle().map(Bundle::manifest)
    }

    /// Whether files may end within a record.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// The block events, from the first one.
    ///
    /// # Errors
    /// There are none, or a file cannot be opened.
    pub fn events(&self) -> Result<Trace, Error> {
        let files = match &self.bundle {
            Some(bundle) => bundle.event_files().to_vec(),
            None => blktrace::find(&self.path)?,
        };
        // Nothing may have been written: then there is no file either.
        let counted = |manifest: &Manifest| manifest.counts.get("events").copied();
        let nothing = self.manifest().and_then(counted) == Some(0);
        if files.is_empty() && !nothing {
            let shortfalls = self.bundle().map(Bundle::shortfalls).unwrap_or_default();
            return Err(Error::NoEvents {
                path: self.path.clone(),
                missing: shortfalls
                    .iter()
                    .map(|lacks| format!("; {lacks}"))
                    .collect(),
            });
        }
        let partial = match (self.cut, &self.bundle) {
            (true, _) => Partial::Allowed,
            // A bundle says whether its recorder came to its end, bare files do not.
            (false, None) => Partial::CutAtEnd,
            (false, Some(_)) => Partial::Refused,
        };
        Ok(Trace::open_with(&files, partial)?)
    }

    /// A table of entries; None where the bundle has none of that name, or there is no bundle.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn table(&self, name: &str) -> Result<Option<TableReader<File>>, Error> {
        let read = |bundle: &Bundle| bundle.table(name, self.cut);
        Ok(self.bundle().map_or(Ok(None), read)?)
    }

    /// What the readers of its events had to say: what makes the figures incomplete, and what else there is. Of a bundle the
    /// manifest says the former.
    pub fn told(&self, notices: &[Notice]) -> [Vec<String>; 2] {
        let is_bare = self.bundle.is_none();
        let (missing, others): (Vec<&Notice>, Vec<&Notice>) = notices
            .iter()
            .partition(|notice| is_bare && matches!(notice, Notice::LeftOut { .. }));
        let others = others
            .iter()
            .map(|notice| self.in_the_users_words(&notice.to_string()));
        let missing = missing.iter().map(|notice| format!("INCOMPLETE: {notice}"));
        [missing.collect(), others.collect()]
    }

    /// What was said of its files, with the name that the user gave: the folder that an archive is unpacked into is
    /// nothing that the user knows of.
    pub fn in_the_users_words(&self, text: &str) -> String {
        let file = self
            .bundle()
            .and_then(|bundle| bundle.event_files().first());
        match file.and_then(|file| file.parent()) {
            Some(folder) => text.replace(&*folder.to_string_lossy(), &self.path.to_string_lossy()),
            None => text.to_owned(),
        }
    }
}

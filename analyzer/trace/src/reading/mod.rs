// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opens the traces that the user named, and reads each once with its map and its tables: every answer is a [`Fold`] of this.

mod maps;
mod reader;
mod remarks;
mod together;

use std::io;
use std::path::PathBuf;

use mostrace_bundle::Manifest;
use mostrace_map::fs;

use crate::about;
use crate::blktrace;
use crate::causes::Sharing;
use crate::origins::{Origin, Origins};
use crate::pipeline::Fold;
use crate::recording::{self, Recording};
use crate::tally::Tally;
use crate::text::escape;
use crate::transactions::Database;
pub use maps::{Source, map_of, map_of_snapshot, opened};
use reader::{Ended, Reader};
use remarks::Remarks;
pub use remarks::{Remarked, notices, warnings, warnings_of};

/// Reports how far the reading has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The name of the current step.
    pub step: &'static str,
    /// Units done so far, out of `total`.
    pub done: u64,
    /// Units to be done; 0 if unknown.
    pub total: u64,
}

/// Options for reading a trace.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Map the blocks by this image or device instead of the bundle's snapshot.
    pub image: Option<PathBuf>,
    /// The state of the image's filesystem that counts.
    pub state: fs::State,
    /// First sector of the image's filesystem on the traced disk; None if the recording's is right.
    pub start_sector: Option<u64>,
    /// The partition of an image of a whole disk.
    pub partition: Option<u32>,
    /// Do not build a map of the filesystem.
    pub no_map: bool,
    /// Read damaged files up to their last whole record; a bare blktrace that ends within a record is always read that way.
    pub partial: bool,
    /// For tables: track which blocks were written before.
    pub locality: bool,
    /// For tables: look for programs' files, for the functions of stacks, in these folders ahead of the places that the recording
    /// names.
    pub programs: Vec<PathBuf>,
    /// Find the causes of the rows; the value says how the bytes of a block that several tasks changed are shared.
    pub causes: Option<Sharing>,
}

/// Why a trace cannot be analysed; one line that names the file and the place.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The bundle or its events cannot be read.
    #[error(transparent)]
    Recording(#[from] recording::Error),
    /// The image given has no map.
    #[error(transparent)]
    Map(#[from] fs::Error),
    /// The bundle's snapshot has no map.
    #[error("{0} (--no-map reads the trace without a map)")]
    Snapshot(String),
}

type Result<T> = std::result::Result<T, Error>;

impl From<mostrace_bundle::Error> for Error {
    fn from(error: mostrace_bundle::Error) -> Error {
        Error::Recording(error.into())
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Recording(error.into())
    }
}

impl From<blktrace::Error> for Error {
    fn from(error: blktrace::Error) -> Error {
        Error::Recording(error.into())
    }
}

/// One recording or several that were read to their end; the fold has their rows.
#[derive(Default)]
pub struct Reading {
    /// The recordings that were read.
    pub recordings: Vec<Recording>,
    /// The names and causes that the rows refer to.
    pub origins: Origins,
    /// The manifest; for several recordings, what all have in common and their sums. None if one of them has no manifest.
    pub manifest: Option<Manifest>,
    /// Lines that say what makes the figures incomplete.
    pub warnings: Vec<String>,
    /// The reader's notices, which are not in the manifest.
    pub notices: Vec<String>,
    /// True if every recording had a map.
    pub mapped: bool,
    /// What processes asked of their files, with the transactions of SQLite databases; empty without a table of calls.
    pub databases: Vec<Database>,
}

/// Reads and attributes recordings, one after the other. `watcher` is called with the progress, because a long trace takes seconds.
///
/// # Errors
/// Returns an error if a trace cannot be read or is damaged, or if the fold fails.
pub fn read(
    recordings: Vec<Recording>,
    options: &Options,
    watcher: &dyn Fn(Progress),
    fold: &mut impl Fold,
) -> Result<Reading> {
    recording::check_distinct(&recordings)?;
    let names = names_of(&recordings);
    let mut all = Reading {
        mapped: !recordings.is_empty(),
        manifest: manifest_of(&recordings, &names),
        ..Reading::default()
    };
    let mut requests: u32 = 0;
    for (recording, name) in recordings.iter().zip(names) {
        let mut remarks = Remarks::of(recording);
        let reader = Reader {
            options,
            recording,
            watcher,
        };
        let map = reader.map(&mut remarks.notices)?;
        if let Some((map, _)) = &map {
            remarks.notices.extend(map.notices().iter().cloned());
        } else if recordings.len() > 1 {
            remarks.notices.push(remarks::NO_MAP.into());
        }
        all.mapped &= map.is_some();
        let (map, journal) = map.unzip();
        let base = all.origins.next(requests);
        let ended = reader.fold(fold, base, map.as_ref(), journal.as_ref(), &mut remarks)?;
        let ahead = match recordings.len() {
            1 => String::new(),
            _ => format!("{name}: "),
        };
        let lines = |lines: Vec<String>| lines.into_iter().map(|line| format!("{ahead}{line}"));
        all.warnings.extend(lines(remarks.warnings));
        all.notices.extend(lines(remarks.notices));
        let Ended {
            origin,
            names,
            databases,
            causes,
            requests: more,
        } = ended;
        all.databases
            .extend(databases.into_iter().map(|of| Database {
                bundle: name.as_str().into(),
                ..of
            }));
        all.origins.push(Origin { name, ..origin }, names, causes);
        requests.tally(more);
    }
    if recordings.len() > 1 {
        all.databases.sort_by_key(Database::rank);
    }
    Ok(Reading { recordings, ..all })
}

impl Reading {
    /// Returns all notices: those of the reader and the recorder, and of entries without a completion.
    pub fn all_notices(&self) -> Vec<String> {
        notices(Remarked {
            manifest: self.manifest.as_ref(),
            warnings: &self.warnings,
            notices: &self.notices,
            mapped: self.mapped,
            leftovers: self.origins.names.leftovers,
        })
    }
}

/// Returns a name for each recording: its label or its file's name, or its path where these are not unique.
fn names_of(recordings: &[Recording]) -> Vec<String> {
    let name = |one: &Recording| about::name(one.path(), one.manifest());
    let names: Vec<String> = recordings.iter().map(name).collect();
    let is_one = |name: &String| names.iter().filter(|other| *other == name).count() == 1;
    let path = |one: &Recording| escape(one.path().as_os_str().as_encoded_bytes());
    let each = recordings.iter().zip(&names);
    each.map(|(one, name)| match is_one(name) {
        true => name.clone(),
        false => path(one),
    })
    .collect()
}

/// Returns the manifest of the only recording, or what several have in common. None if one of them has none.
fn manifest_of(recordings: &[Recording], names: &[String]) -> Option<Manifest> {
    let all: Option<Vec<&Manifest>> = recordings.iter().map(Recording::manifest).collect();
    match &all?[..] {
        [one] => Some((*one).clone()),
        several => together::of(several, names),
    }
}

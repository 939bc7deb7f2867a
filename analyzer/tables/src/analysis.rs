// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opens the traces that the user named and turns them into facts: the library's entry point.
//!
//! ```
//! use mostrace_tables::analysis::{Analysis, Options};
//! use mostrace_tables::facts::Column;
//! use mostrace_tables::tables::{Grouping, summed};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample-traces");
//! # let path = std::path::Path::new(folder).join("wal.most.tar.zst");
//! // let path = Path::new("wal.most.tar.zst");
//! let analysis = Analysis::open(&path, &Options::default())?;
//! let role = Column::find("role").expect("is in the catalogue");
//! let grouping = Grouping { by: vec![role], top: None, every: None };
//! let roles = summed(&analysis.facts, grouping, None)?;
//! for (labels, totals) in &roles.groups {
//!     println!("{:?} {}", labels[0].text(), totals.write_bytes);
//! }
//! # assert!(roles.groups.iter().any(|(labels, _)| labels[0].text().as_deref() == Some("wal")));
//! # Ok(())
//! # }
//! ```

mod anonymous;
mod maps;
mod reader;
mod remarks;
mod together;

use std::path::{Path, PathBuf};

use mostrace_bundle::{Manifest, layout};
use mostrace_map::fs;
use polars::prelude::PolarsError;

use crate::facts::{self, Committed, Facts};
use crate::tables::about;
use crate::tables::summary::{NO_MAP, Trace};
use crate::tables::waits::Waits;
pub use anonymous::{hidden_manifest, shown};
pub use maps::{Source, map_of, on_the_disk, opened};
use mostrace_trace::blktrace;
use mostrace_trace::causes::Sharing;
use mostrace_trace::recording::{self, Joined, Recording, Table};
use mostrace_trace::text::escape;
use mostrace_trace::transactions::{self, Database};
use reader::Reader;
use remarks::Remarks;
pub use remarks::warnings;

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
    /// Track which blocks were written before.
    pub locality: bool,
    /// Look for programs' files, for the functions of stacks, in these folders ahead of the places that the recording names.
    pub programs: Vec<PathBuf>,
    /// Find the causes of the rows; the value says how the bytes of a block that several tasks changed are shared.
    pub causes: Option<Sharing>,
}

/// One recording or several, read to their end.
pub struct Analysis {
    /// The rows; those of several recordings follow one another.
    pub facts: Facts,
    /// Lines that say what makes the figures incomplete.
    pub warnings: Vec<String>,
    /// Lines for the reader that are not in the manifest.
    pub notices: Vec<String>,
    /// True if every recording had a map.
    pub mapped: bool,
    recordings: Vec<Recording>,
    manifest: Option<Manifest>,
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
    /// The rows could not be kept.
    #[error("temporary files: {0}")]
    Rows(#[from] PolarsError),
}

type Result<T> = std::result::Result<T, Error>;

impl From<mostrace_bundle::Error> for Error {
    fn from(error: mostrace_bundle::Error) -> Error {
        Error::Recording(error.into())
    }
}

impl From<blktrace::Error> for Error {
    fn from(error: blktrace::Error) -> Error {
        Error::Recording(error.into())
    }
}

impl Analysis {
    /// Reads and attributes a bundle (a folder or a .tar.zst), the segments of a recording with this name, or a bare
    /// blktrace (`x` for `x.blktrace.N`, or one file).
    ///
    /// # Errors
    /// Returns an error if the trace cannot be read or is damaged.
    pub fn open(path: &Path, options: &Options) -> Result<Analysis> {
        Analysis::open_with(&[path.to_owned()], options, &|_| {})
    }

    /// Reads several traces and adds them up: segments that follow one another are read as one recording, other recordings
    /// each by itself. `watcher` is called with the progress, because a long trace takes seconds.
    ///
    /// # Errors
    /// Fails as [`Analysis::open`] does.
    pub fn open_with(
        paths: &[PathBuf],
        options: &Options,
        watcher: &dyn Fn(Progress),
    ) -> Result<Analysis> {
        let recordings = Recording::open_all(paths, options.partial)?;
        Analysis::of(recordings, options, watcher)
    }

    /// Attributes recordings that are already open and adds them up.
    ///
    /// # Errors
    /// Fails as [`Analysis::open`] does.
    pub fn of(
        recordings: Vec<Recording>,
        options: &Options,
        watcher: &dyn Fn(Progress),
    ) -> Result<Analysis> {
        recording::check_distinct(&recordings)?;
        let names = names_of(&recordings);
        let mut facts = facts::Builder::new(options.locality);
        let (mut warnings, mut notices) = (Vec::new(), Vec::new());
        let mut mapped = !recordings.is_empty();
        for (recording, name) in recordings.iter().zip(&names) {
            let mut of_one = Remarks::of(recording);
            let reader = Reader {
                options,
                recording,
                watcher,
            };
            let map = reader.map(&mut of_one.notices)?;
            if let Some((map, _)) = &map {
                of_one.notices.extend(map.notices().iter().cloned());
            } else if recordings.len() > 1 {
                of_one.notices.push(NO_MAP.into());
            }
            mapped &= map.is_some();
            let (map, journal) = map.unzip();
            facts.begin(name);
            facts = reader.attribute(facts, map.as_ref(), journal.as_ref(), &mut of_one)?;
            let ahead = match recordings.len() {
                1 => String::new(),
                _ => format!("{name}: "),
            };
            warnings.extend(of_one.warnings.iter().map(|line| format!("{ahead}{line}")));
            notices.extend(of_one.notices.iter().map(|line| format!("{ahead}{line}")));
        }
        let mut facts = facts.build()?;
        facts.look_for_programs(&options.programs);
        Ok(Analysis {
            facts,
            warnings,
            notices,
            mapped,
            manifest: manifest_of(&recordings, &names),
            recordings,
        })
    }

    /// Returns the manifest; for several recordings, what all have in common and their sums. None if one of them has no
    /// manifest.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    /// Returns what a summary says of the trace beside its rows; without the databases, which take time to find.
    pub fn trace(&self) -> Trace<'_> {
        Trace {
            manifest: self.manifest(),
            warnings: self.warnings.clone(),
            notices: self.notices.clone(),
            mapped: self.mapped,
            databases: Vec::new(),
        }
    }

    /// Returns the recordings that were read.
    pub fn recordings(&self) -> &[Recording] {
        &self.recordings
    }

    /// Returns true if there are several recordings; their times, process numbers and inode numbers are unrelated.
    pub fn is_of_several(&self) -> bool {
        self.recordings.len() > 1
    }

    /// Returns true if files of a recording may end within a record.
    pub fn is_cut(&self) -> bool {
        self.recordings.iter().any(Recording::is_cut)
    }

    /// Returns the table of calls if there is exactly one recording and it has one.
    ///
    /// # Errors
    /// Returns an error if the table cannot be opened.
    pub fn calls(&self) -> std::result::Result<Option<Table>, recording::Error> {
        match &self.recordings[..] {
            [one] => one.calls(),
            _ => Ok(None),
        }
    }

    /// Returns what divides the calls for durability of the recording at index `nth` among what they waited for.
    ///
    /// # Errors
    /// Returns an error if a table cannot be opened.
    pub fn waits(&self, nth: usize) -> std::result::Result<Waits<'_, Joined>, recording::Error> {
        let table = |name| match self.recordings.get(nth) {
            Some(recording) => recording.table(name),
            None => Ok(None),
        };
        let (handles, steps) = (table(layout::HANDLE)?, table(layout::F2FS)?);
        Ok(Waits::new(&self.facts, nth, handles, steps))
    }

    /// Returns what processes asked of their files, with the transactions of SQLite databases; empty without a table of
    /// calls.
    ///
    /// # Errors
    /// Returns an error if a table of calls cannot be read.
    pub fn databases(&self) -> Result<Vec<Database>> {
        let mut all = Vec::new();
        for (nth, recording) in self.recordings.iter().enumerate() {
            let Some(mut calls) = recording.calls()? else {
                continue;
            };
            let (names, process_names) = (self.facts.names_of(nth), self.facts.process_names(nth));
            for database in transactions::databases(&mut calls, &names, process_names)? {
                all.push(Database {
                    bundle: self.facts.name_of(nth).into(),
                    comm: self.facts.shown(&database.comm),
                    ..database
                });
            }
        }
        if self.is_of_several() {
            all.sort_by_key(|d| std::cmp::Reverse((d.commits.transactions(), d.total().bytes)));
        }
        Ok(all)
    }

    /// Finds each transaction of SQLite databases in the calls, for the table `transactions`; call it before names are hidden,
    /// by which the databases are found.
    ///
    /// # Errors
    /// Returns an error if a table of calls cannot be read.
    pub fn find_transactions(&mut self) -> Result<()> {
        let mut all = Vec::new();
        for (origin, recording) in self.recordings.iter().enumerate() {
            let Some(mut calls) = recording.calls()? else {
                continue;
            };
            let names = self.facts.names_of(origin);
            let spans = transactions::spans(&mut calls, &names.files)?;
            all.extend(spans.into_iter().map(|span| Committed {
                origin,
                task: span.task,
                file: span.file,
                start_ns: span.start_ns,
                end_ns: span.end_ns,
            }));
        }
        self.facts.keep_transactions(all);
        Ok(())
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

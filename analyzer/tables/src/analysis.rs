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

use std::path::{Path, PathBuf};

use mostrace_bundle::{Manifest, layout};

use crate::facts::{self, Committed, Facts};
use crate::tables::waits::Waits;
pub use anonymous::{hidden_manifest, shown};
use mostrace_trace::pipeline::{Both, Fold};
use mostrace_trace::reading::{self, Reading, Remarked};
pub use mostrace_trace::reading::{Error, Options, Progress};
use mostrace_trace::recording::{self, Joined, Recording, Table};
use mostrace_trace::transactions::{self, Database};

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
    /// What processes asked of their files, with the transactions of SQLite databases; empty without a table of calls.
    pub databases: Vec<Database>,
    recordings: Vec<Recording>,
    manifest: Option<Manifest>,
}

type Result<T> = std::result::Result<T, Error>;

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
        Analysis::beside(recordings, options, watcher, &mut None::<facts::Builder>)
    }

    /// Does the same, and has another fold take what is read.
    ///
    /// # Errors
    /// Fails as [`Analysis::open`] does.
    pub fn beside(
        recordings: Vec<Recording>,
        options: &Options,
        watcher: &dyn Fn(Progress),
        other: &mut Option<impl Fold>,
    ) -> Result<Analysis> {
        let mut rows = facts::Builder::new(options.locality);
        let mut both = Both(&mut rows, other);
        let read = reading::read(recordings, options, watcher, &mut both)?;
        let Reading {
            recordings,
            origins,
            manifest,
            warnings,
            notices,
            mapped,
            databases,
        } = read;
        let mut facts = rows.build(origins).map_err(std::io::Error::other)?;
        facts.look_for_programs(&options.programs);
        Ok(Analysis {
            facts,
            warnings,
            notices,
            mapped,
            databases,
            recordings,
            manifest,
        })
    }

    /// Returns the manifest; for several recordings, what all have in common and their sums. None if one of them has no
    /// manifest.
    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }

    /// Returns all notices: those of the readers and the recorder, of entries without a completion, and of writes that were not
    /// tracked.
    pub fn all_notices(&self) -> Vec<String> {
        let mut notices = reading::notices(Remarked {
            manifest: self.manifest(),
            warnings: &self.warnings,
            notices: &self.notices,
            mapped: self.mapped,
            leftovers: self.facts.names().leftovers,
        });
        let missed = self.facts.locality().map_or(0, |locality| locality.missed);
        if missed > 0 {
            notices.push(format!(
                "rewrites: {missed} writes were not tracked, because they are too long or too far apart"
            ));
        }
        notices
    }

    /// Returns the recordings that were read.
    pub fn recordings(&self) -> &[Recording] {
        &self.recordings
    }

    /// Returns true if there are several recordings; their times, process numbers and inode numbers are unrelated.
    pub fn is_of_several(&self) -> bool {
        self.recordings.len() > 1
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
            let names = self.facts.origins.names_of(origin);
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opens the traces that the user named and turns them into facts: the library's entry point.
//!
//! ```
//! use mostrace::analysis::{Analysis, Options};
//! use mostrace::facts::Column;
//! use mostrace::tables::{Grouping, Groups};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../sample-traces");
//! # let path = std::path::Path::new(folder).join("wal.most.tar.zst");
//! // let path = Path::new("wal.most.tar.zst");
//! let analysis = Analysis::open(&path, &Options::default())?;
//! let role = Column::find("role").expect("is in the catalogue");
//! let grouping = Grouping { by: vec![role], top: None };
//! let roles = Groups::new(&analysis.facts, grouping, None)?;
//! for (labels, totals) in &roles.groups {
//!     println!("{:?} {}", labels[0].text(), totals.write_bytes);
//! }
//! # assert!(roles.groups.iter().any(|(labels, _)| labels[0].text().as_deref() == Some("wal")));
//! # Ok(())
//! # }
//! ```

mod anonymous;
mod together;

use std::path::{Path, PathBuf};

use mostrace_bundle::{Bundle, Manifest, layout};
use mostrace_map::fs::jbd2::Journal;
use mostrace_map::fs::{self, Image};
use mostrace_map::{Map, Piece};
use polars::prelude::PolarsError;

use crate::attribute::{Attributor, Family, Loops};
use crate::blktrace::{self, Completions};
use crate::causes::{self, Causer, Sharing};
use crate::facts::{self, Facts};
use crate::recording::{self, Recording, Table};
use crate::tables::about;
use crate::tables::summary::{NO_MAP, Summary};
use crate::text::escape;
use crate::transactions::{self, Database};
pub use anonymous::shown;

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
    /// First sector of the image's filesystem on the traced disk.
    pub start_sector: u64,
    /// Do not build a map of the filesystem.
    pub no_map: bool,
    /// Read damaged files up to their last whole record; a bare blktrace that ends within a record is always read that way.
    pub partial: bool,
    /// Track which blocks were written before.
    pub locality: bool,
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
            let mut of_one = Told::of(recording);
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
        Ok(Analysis {
            facts: facts.build()?,
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
            for database in transactions::databases(&mut calls, &self.facts.names_of(nth))? {
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

/// Collects the warnings and notices of one recording.
#[derive(Default)]
struct Told {
    warnings: Vec<String>,
    notices: Vec<String>,
}

impl Told {
    fn of(recording: &Recording) -> Told {
        Told {
            warnings: warnings(recording),
            notices: Vec::new(),
        }
    }
}

/// Returns what makes a trace's figures incomplete; for segments, each line begins with the segment's name.
pub fn warnings(recording: &Recording) -> Vec<String> {
    let of_bundle = |bundle: &Bundle| {
        let mut warnings = Summary::warnings(Some(bundle.manifest()));
        let shortfalls = bundle.shortfalls();
        let shortfalls = shortfalls.iter();
        warnings.extend(shortfalls.map(|shortfall| format!("INCOMPLETE: {shortfall}")));
        warnings
    };
    match recording.bundles() {
        [one] => of_bundle(one),
        segments => {
            let named = segments.iter().flat_map(|segment| {
                let name = segment.path().file_name().unwrap_or_default();
                let name = escape(name.as_encoded_bytes());
                let each = of_bundle(segment).into_iter();
                each.map(move |line| format!("{name}: {line}"))
            });
            let gaps = recording.gaps().into_iter();
            named
                .chain(gaps.map(|gap| format!("INCOMPLETE: {gap}")))
                .collect()
        }
    }
}

struct Reader<'a> {
    options: &'a Options,
    recording: &'a Recording,
    watcher: &'a dyn Fn(Progress),
}

impl Reader<'_> {
    /// Adds the recording's rows to the facts.
    fn attribute(
        &self,
        mut facts: facts::Builder,
        map: Option<&Map>,
        journal: Option<&Journal>,
        told: &mut Told,
    ) -> Result<facts::Builder> {
        let manifest = self.recording.manifest();
        let mut completions = Completions::new(self.recording.events()?);
        let mut tables = Vec::new();
        for name in layout::TABLES {
            tables.extend(self.recording.table(name)?.map(|table| (name, table)));
        }
        let packages = self.recording.last().map_or(Ok(None), Bundle::packages)?;
        facts = facts.with_packages(packages);
        let loops = manifest.map_or(&[][..], |manifest| &manifest.loops);
        facts = facts.with_loops(Loops::new(loops));
        let readers = tables.iter_mut().map(|(_, table)| table).collect();
        let mut attributor = Attributor::new(readers, map);
        if let Some(s_dev) = manifest.and_then(Manifest::filesystem_dev) {
            attributor = attributor.of_filesystem(s_dev);
        }
        if let Some(filesystem) = manifest.and_then(|manifest| manifest.filesystem.as_ref()) {
            attributor = attributor.of_kind(&filesystem.kind);
        }
        if let Some(table) = self.recording.table(layout::NAMES)?.as_mut() {
            attributor = attributor.with_tree(table)?;
        }
        if let Some(table) = self.recording.table(layout::CALLED)?.as_mut() {
            attributor = attributor.with_called(table)?;
        }
        if let Some(family) = self.family()? {
            attributor = attributor.with_family(family);
        }
        let [mut handles, mut dirtied, mut calls, mut f2fs] = self.tables_of_causes()?;
        let mut causer = self.options.causes.map(|sharing| {
            let tables = causes::Tables {
                handles: handles.as_mut(),
                dirtied: dirtied.as_mut(),
                calls: calls.as_mut(),
                f2fs: f2fs.as_mut(),
            };
            let functions = manifest.map_or(&[][..], |manifest| &manifest.functions);
            Causer::new(tables, functions, sharing)
        });
        if let Some(journal) = journal {
            attributor = attributor.with_journal(journal);
        }
        if let Some(clock) = manifest.map(|manifest| &manifest.clock)
            && clock.start_unix_ns != 0
        {
            attributor = attributor.with_clock(clock.start_mono_ns, clock.start_unix_ns);
        }
        // Other recorders leave this table empty even if blocks were given back.
        let tells = manifest.is_some_and(|manifest| manifest.sources.entries == "bpf");
        if tells && let Some(table) = self.recording.table(layout::FREED)?.as_mut() {
            attributor = attributor.with_freed(table)?;
        }
        while completions.step()? {
            attributor.hear(completions.names());
            let completion = completions.completion();
            if let Some(causer) = &mut causer {
                causer.pull(completion.time_ns, &mut attributor)?;
                let (request, _) = attributor.push(&completion)?;
                let verdicts = causer.push(&request, attributor.rows(), &attributor);
                facts.push_caused(&request, attributor.rows(), Some(verdicts))?;
            } else {
                let (request, rows) = attributor.push(&completion)?;
                facts.push(&request, rows)?;
            }
            if facts.requests().is_multiple_of(TELL) {
                (self.watcher)(Progress {
                    step: "reading events",
                    done: completions.bytes_read(),
                    total: completions.bytes_total(),
                });
            }
        }
        if let Some(causer) = causer {
            facts = facts.with_causes(causer.finish());
        }
        let names = attributor.finish(Some(completions.names()))?;
        let [missing, others] = self.recording.told(completions.notices());
        told.warnings.extend(missing);
        told.notices.extend(others);
        for (name, table) in &tables {
            if let Some(at) = table.cut_at() {
                told.notices.push(format!(
                    "{name}: cut short at byte {at}; what follows is left out"
                ));
            }
        }
        let noted = completions.wall_clock().map(|clock| {
            let unix_ns = u64::from(clock.seconds) * 1_000_000_000 + u64::from(clock.nanoseconds);
            (clock.time_ns, unix_ns)
        });
        let clock = manifest.map(|manifest| manifest.clock);
        let clock = clock.map(|clock| (clock.start_mono_ns, clock.start_unix_ns));
        let clock = clock.filter(|&(_, unix_ns)| unix_ns != 0).or(noted);
        Ok(facts.end(names, clock)?)
    }

    /// Returns the command's process tree if causes are asked for and the recording has it.
    fn family(&self) -> Result<Option<Family>> {
        let manifest = self.recording.manifest();
        let manifest = manifest.filter(|_| self.options.causes.is_some());
        let Some(losses) = manifest.map(|manifest| &manifest.losses) else {
            return Ok(None);
        };
        // A recorder that was killed leaves no counts of losses.
        let is_whole = FORKS_LOST.iter().all(|name| losses.get(*name) == Some(&0));
        let mut table = self.recording.table(layout::FORK)?;
        let family = table.as_mut().map(|table| Family::read(table, is_whole));
        Ok(family.transpose()?)
    }

    /// Opens those tables of causes that the bundle has, if causes are asked for.
    fn tables_of_causes(&self) -> Result<[Option<Table>; layout::CAUSES.len()]> {
        let mut tables = [const { None }; layout::CAUSES.len()];
        if self.options.causes.is_some() {
            for (table, name) in tables.iter_mut().zip(layout::CAUSES) {
                *table = self.recording.table(name)?;
            }
        }
        Ok(tables)
    }

    /// Returns the map and the journal of the image given, or else of the bundle's snapshot.
    fn map(&self, notices: &mut Vec<String>) -> Result<Option<(Map, Journal)>> {
        if self.options.no_map {
            return Ok(None);
        }
        if let Some(image) = &self.options.image {
            let start = self.options.start_sector;
            let map = map_of(image, start, self.watcher)?;
            let journal = journal_of(image, start, &map, notices);
            return Ok(Some((map, journal)));
        }
        let Some(bundle) = self.recording.last() else {
            return Ok(None);
        };
        let image = match bundle.snapshot() {
            Ok(Some(image)) => image,
            Ok(None) => return Ok(None),
            Err(error) if self.recording.is_cut() => {
                notices.push(error.to_string());
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let start = bundle.manifest().snapshot.as_ref();
        let start = start.map_or(0, |s| s.start_sector);
        match map_of(image.path(), start, self.watcher) {
            Ok(map) => {
                let journal = journal_of(image.path(), start, &map, notices);
                let map = on_the_disk(map, bundle.manifest());
                let journal = journal.through(&map);
                Ok(Some((map, journal)))
            }
            Err(error) => {
                // The user does not know the path of the restored image.
                let snapshot = bundle.path().join(layout::SNAPSHOT).display().to_string();
                let temporary = image.path().display().to_string();
                let text = error.to_string().replace(&temporary, &snapshot);
                if matches!(error, fs::Error::Unsupported { .. }) {
                    notices.push(text);
                    return Ok(None);
                }
                Err(Error::Snapshot(text))
            }
        }
    }
}

/// Reads the journal of an image with this map. If it cannot be read, adds a notice and returns an empty journal.
fn journal_of(image: &Path, start_sector: u64, map: &Map, notices: &mut Vec<String>) -> Journal {
    let journal = Image::open(image).and_then(|image| Journal::read(&image, map, start_sector));
    journal.unwrap_or_else(|error| {
        notices.push(format!("the journal cannot be read: {error}"));
        Journal::default()
    })
}

/// The manifest's names of the losses that may include entries of the command's processes.
const FORKS_LOST: [&str; 2] = ["causes_ring", "probe_misses"];

/// Requests between two reports of progress.
const TELL: u64 = 1 << 14;

/// Moves the map of a bundle's snapshot to the sectors of the traced disk: the filesystem may lie on a mapped device above
/// that disk.
pub fn on_the_disk(map: Map, manifest: &Manifest) -> Map {
    let here = manifest
        .mapping
        .iter()
        .filter(|m| m.lower_disk_dev == manifest.device.disk_dev);
    let pieces: Vec<_> = here
        .map(|m| Piece {
            upper: m.start_sector,
            sectors: m.sectors,
            lower: m.lower_start_sector,
        })
        .collect();
    if manifest.mapping.is_empty() {
        map
    } else {
        map.through(&pieces)
    }
}

/// Builds the map of an image or a device that begins at sector `start_sector` of its disk; `watcher` is called with the
/// progress.
///
/// # Errors
/// Returns an error if the image cannot be read or holds no known filesystem.
pub fn map_of(image: &Path, start_sector: u64, watcher: &dyn Fn(Progress)) -> fs::Result<Map> {
    let told = |progress: fs::Progress| {
        watcher(Progress {
            step: progress.what,
            done: progress.done,
            total: progress.total,
        });
    };
    fs::build_with(&Image::open(image)?, start_sector, &told)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments that name a trace.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use mostrace_tables::analysis::{self, Analysis, Options};

use super::bar::Bar;
use super::names;
use crate::{UsageError, shell, usage};
use mostrace_map::fs::State;
use mostrace_tables::facts::{Column, Filter};
use mostrace_trace::causes::Sharing;
use mostrace_trace::recording::Recording;

/// The traces, and how to read them.
#[derive(clap::Args)]
pub struct SourceArgs {
    /// Bundles (folders or .tar.zst), or bare blktraces (x for x.blktrace.N, or one file); globs; or the name of a recording
    /// in segments: run.most for run.0001.most and those after it. Segments that follow one another are read as one
    /// recording; other recordings are read each by itself and added up. The column `bundle` says which one a row comes
    /// from; without it, --by adds up what is equal, such as the same path in two recordings
    #[arg(required = true, value_name = "BUNDLE")]
    bundles: Vec<PathBuf>,
    /// Map the blocks by this image or device instead of the bundle's snapshot
    #[arg(long, value_name = "FILE-OR-DEVICE", conflicts_with = "no_map")]
    image: Option<PathBuf>,
    /// First sector of the image's filesystem on the traced disk [default: the recording's, or 0]
    #[arg(long, value_name = "N", requires = "image")]
    start_sector: Option<u64>,
    /// The partition, if the image is of a whole disk
    #[arg(long, value_name = "N", requires = "image")]
    partition: Option<u32>,
    /// Map what lies in the image, without the journal that the next mount would replay
    #[arg(long, requires = "image")]
    as_is: bool,
    /// Do not build a map of the filesystem: what no probe saw stays unmapped
    #[arg(long)]
    no_map: bool,
    /// Read damaged files up to their last whole record; those of a killed recorder, and bare ones that end within a record,
    /// are always read that way
    #[arg(long)]
    partial: bool,
    /// Look for programs, and for the symbols that were stripped from them, in this folder too: by name, by path, or by build
    /// id as in /usr/lib/debug. A stack's functions are known if a file with the program's build id is found. May be given
    /// several times
    #[arg(long, value_name = "FOLDER")]
    symbols: Vec<PathBuf>,
    /// The task that is charged for a block that several tasks had changed by the time it was written
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    share: Sharing,
}

impl SourceArgs {
    /// Returns the first trace's name as the user gave it.
    pub fn path(&self) -> &Path {
        self.bundles.first().map_or(Path::new(""), PathBuf::as_path)
    }

    /// Returns all names as the user gave them.
    pub fn paths(&self) -> &[PathBuf] {
        &self.bundles
    }

    /// Returns the options as a shell reads them, without the names; empty if none was given.
    pub fn options(&self) -> String {
        let mut words = Vec::new();
        let mut add = |option: &str, value: Option<String>| {
            words.push(option.to_owned());
            words.extend(value.map(|value| shell::plain(&value)));
        };
        let paths = self.symbols.iter().map(|path| ("--symbols", path));
        let paths = self.image.iter().map(|path| ("--image", path)).chain(paths);
        for (option, path) in paths {
            add(option, Some(path.display().to_string()));
        }
        if let Some(sector) = self.start_sector {
            add("--start-sector", Some(sector.to_string()));
        }
        if let Some(partition) = self.partition {
            add("--partition", Some(partition.to_string()));
        }
        let flags = [
            ("--as-is", self.as_is),
            ("--no-map", self.no_map),
            ("--partial", self.partial),
        ];
        for (option, _) in flags.into_iter().filter(|(_, is_given)| *is_given) {
            add(option, None);
        }
        if let Some(how) = Some(self.share).filter(|how| *how != Sharing::default())
            && let Some(how) = how.to_possible_value()
        {
            add("--share", Some(how.get_name().to_owned()));
        }
        words.join(" ")
    }

    /// Takes away the last of several names, for a command whose last argument is something else.
    pub fn take_last(&mut self) -> Option<OsString> {
        match &self.bundles[..] {
            [] | [_] => None,
            _ => self.bundles.pop().map(PathBuf::into_os_string),
        }
    }

    /// Returns true if damaged recordings are to be read as far as they can be.
    pub fn partial(&self) -> bool {
        self.partial
    }

    /// Reads and attributes the traces, and determines what these columns need.
    pub fn read_for<'c>(
        &self,
        columns: impl Iterator<Item = &'c &'static Column>,
    ) -> anyhow::Result<Analysis> {
        let needs = |(locality, causes): (bool, bool), column: &&Column| {
            let needs_locality = locality || column.needs_locality();
            (needs_locality, causes || column.needs_causes())
        };
        let (locality, causes) = columns.fold((false, false), needs);
        self.read(locality, causes)
    }

    /// Reads and attributes the traces. `locality` tracks which blocks were written before; `causes` finds who caused each
    /// row.
    pub fn read(&self, locality: bool, causes: bool) -> anyhow::Result<Analysis> {
        self.attribute(self.open_all()?, locality, causes)
    }

    /// Opens the recordings.
    pub fn open_all(&self) -> anyhow::Result<Vec<Recording>> {
        names::open(&self.bundles, self.partial)
    }

    /// Attributes recordings that are open already, as [`read`](Self::read) does.
    pub fn attribute(
        &self,
        recordings: Vec<Recording>,
        locality: bool,
        causes: bool,
    ) -> anyhow::Result<Analysis> {
        let bar = Bar::new();
        if recordings.len() > 1 && self.image.is_some() {
            usage!("--image has the filesystem of one recording: name one recording");
        }
        let analysis = Analysis::of(
            recordings,
            &Options {
                image: self.image.clone(),
                state: state(self.as_is),
                start_sector: self.start_sector,
                partition: self.partition,
                no_map: self.no_map,
                partial: self.partial,
                locality,
                programs: self.symbols.clone(),
                causes: causes.then_some(self.share),
            },
            &|progress| bar.at(progress),
        )?;
        drop(bar);
        // Tables cannot show what makes them incomplete, so it is logged.
        let cut = self.partial || analysis.is_cut();
        let notices = analysis.notices.iter().filter(|_| cut);
        warn(
            analysis.recordings(),
            analysis.warnings.iter().chain(notices),
        );
        Ok(analysis)
    }

    /// Opens the only recording, for formats that are made of its events alone.
    pub fn open(&self) -> anyhow::Result<Recording> {
        let mut recordings = names::open(&self.bundles, self.partial)?;
        let (Some(recording), true) = (recordings.pop(), recordings.is_empty()) else {
            return Err(several().into());
        };
        let warnings = analysis::warnings(&recording);
        warn(std::slice::from_ref(&recording), warnings.iter());
        Ok(recording)
    }
}

/// Returns the state of a filesystem that an image is to show.
pub fn state(as_is: bool) -> State {
    match as_is {
        true => State::AsIs,
        false => State::NextMount,
    }
}

/// Logs lines with the recording's path, unless the lines name their recordings themselves.
fn warn<'l>(recordings: &[Recording], lines: impl Iterator<Item = &'l String>) {
    for line in lines {
        match recordings {
            [one] => log::warn!("{}: {line}", one.path().display()),
            _ => log::warn!("{line}"),
        }
    }
}

/// Returns the error for commands that take only one recording.
pub fn several() -> UsageError {
    let what = "this needs a single recording, because several have neither time nor place in common: name one, or the segments of one";
    UsageError(what.into())
}

/// The condition on rows.
#[derive(clap::Args)]
pub struct WhereArgs {
    /// Only rows for which this holds: an SQL expression over the columns of `events`, for example
    /// "role = 'wal' AND bytes > 4096". It applies to whole rows, whatever is summed; for bytes with several causers,
    /// conditions on the cause apply to each share
    #[arg(long = "where", value_name = "EXPR")]
    condition: Option<String>,
}

impl WhereArgs {
    /// Returns the option as a shell reads it; empty if there is no condition.
    pub fn option(&self) -> String {
        let option = |text: &String| format!("--where {}", shell::plain(text));
        self.condition.as_ref().map(option).unwrap_or_default()
    }

    /// Returns the condition, if there is one.
    pub fn filter(&self) -> anyhow::Result<Option<Filter>> {
        let parse =
            |text: &String| Filter::parse(text).map_err(|e| UsageError(e.to_string()).into());
        self.condition.as_ref().map(parse).transpose()
    }
}

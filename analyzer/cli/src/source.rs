// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments that name a trace.

use std::path::PathBuf;

use clap::ValueEnum;
use mostrace_map::fs::State;
use mostrace_trace::answer::Summing;
use mostrace_trace::causes::Sharing;
use mostrace_trace::pipeline::Fold;
use mostrace_trace::reading::{self, Options, Reading};
use mostrace_trace::recording::Recording;

use crate::bar::Bar;
use crate::brief::Brief;
use crate::{names, shell, usage};

/// The traces, and how to read them.
#[derive(clap::Args)]
pub struct SourceArgs {
    /// Bundles (folders or .tar.zst), or bare blktraces (x for x.blktrace.N, or one file); globs; or the name of a recording
    /// in segments: run.most for run.0001.most and those after it. Segments that follow one another are read as one
    /// recording; other recordings are read each by itself and added up. The column `bundle` says which one a row comes
    /// from; without it, --by adds up what is equal, such as the same path in two recordings
    #[arg(required = true, value_name = "BUNDLE")]
    pub bundles: Vec<PathBuf>,
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
    pub partial: bool,
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

    /// Opens the recordings.
    pub fn open_all(&self) -> anyhow::Result<Vec<Recording>> {
        names::open(&self.bundles, self.partial)
    }

    /// Reads the traces with the causes of their rows.
    pub fn read(&self, fold: &mut impl Fold) -> anyhow::Result<Reading> {
        let recordings = self.open_all()?;
        let options = self.reading(&recordings, true)?;
        let bar = Bar::new();
        let reading = reading::read(recordings, &options, &|progress| bar.at(progress), fold)?;
        drop(bar);
        self.warn_of(&reading.recordings, &reading.warnings, &reading.notices);
        Ok(reading)
    }

    /// Reads the traces and sums them up for the short output.
    pub fn brief(&self) -> anyhow::Result<Brief> {
        let mut summing = Summing::default();
        let reading = self.read(&mut summing)?;
        let sums = summing.finish(&reading.origins);
        Ok(Brief::of(&reading, &sums, &reading.databases))
    }

    /// Returns the options for reading these recordings; `causes` finds who caused each row.
    pub fn reading(&self, recordings: &[Recording], causes: bool) -> anyhow::Result<Options> {
        if recordings.len() > 1 && self.image.is_some() {
            usage!("--image has the filesystem of one recording: name one recording");
        }
        Ok(Options {
            image: self.image.clone(),
            state: state(self.as_is),
            start_sector: self.start_sector,
            partition: self.partition,
            no_map: self.no_map,
            partial: self.partial,
            programs: self.symbols.clone(),
            causes: causes.then_some(self.share),
            ..Options::default()
        })
    }

    /// Logs what makes figures incomplete, because tables cannot show it.
    pub fn warn_of(&self, recordings: &[Recording], warnings: &[String], notices: &[String]) {
        let cut = self.partial || recordings.iter().any(Recording::is_cut);
        let notices = notices.iter().filter(|_| cut);
        warn(recordings, warnings.iter().chain(notices));
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
pub fn warn<'l>(recordings: &[Recording], lines: impl Iterator<Item = &'l String>) {
    for line in lines {
        match recordings {
            [one] => log::warn!("{}: {line}", one.path().display()),
            _ => log::warn!("{line}"),
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments that name a trace.

use std::path::{Path, PathBuf};

use mostrace::analysis::{self, Analysis, Options};

use super::UsageError;
use super::bar::Bar;
use mostrace::causes::Sharing;
use mostrace::facts::{Column, Filter};
use mostrace::recording::Recording;

/// The trace, and how to read it.
#[derive(clap::Args)]
pub struct SourceArgs {
    /// A bundle (a folder or a .tar.zst), or a bare blktrace: x for x.blktrace.N, or one file
    bundle: PathBuf,
    /// Map the blocks by this image or device instead of the bundle's snapshot
    #[arg(long, value_name = "FILE-OR-DEVICE", conflicts_with = "no_map")]
    image: Option<PathBuf>,
    /// First sector of the image's filesystem on the traced disk
    #[arg(long, value_name = "N", default_value_t = 0, requires = "image")]
    start_sector: u64,
    /// Do without a map of the filesystem: what no probe saw stays unmapped
    #[arg(long)]
    no_map: bool,
    /// Read damaged files up to their last whole record; those of a killed recorder, and bare ones that end within a record, are read so anyway
    #[arg(long)]
    partial: bool,
    /// Who is charged for a block that several had changed by the time it was written
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Share::First)]
    share: Share,
}

/// Who pays.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Share {
    /// Who changed it first
    First,
    /// All of them, equally
    Equal,
}

impl From<Share> for Sharing {
    fn from(share: Share) -> Sharing {
        match share {
            Share::First => Sharing::First,
            Share::Equal => Sharing::Equal,
        }
    }
}

impl SourceArgs {
    /// As the user named it.
    pub fn path(&self) -> &Path {
        &self.bundle
    }

    /// Reads the trace and attributes it, and finds out what else these columns need.
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

    /// Reads the trace and attributes it. With `locality`, it is followed which blocks were written
    /// before; with `causes`, who caused each row.
    pub fn read(&self, locality: bool, causes: bool) -> anyhow::Result<Analysis> {
        let bar = Bar::new();
        let analysis = Analysis::open_with(
            &self.bundle,
            &Options {
                image: self.image.clone(),
                start_sector: self.start_sector,
                no_map: self.no_map,
                partial: self.partial,
                locality,
                causes: causes.then_some(self.share.into()),
            },
            &|progress| bar.at(progress),
        )?;
        drop(bar);
        // A table has no place for what makes it incomplete.
        let cut = self.partial || analysis.bundle.as_ref().is_some_and(|b| b.is_cut());
        let notices = analysis.notices.iter().filter(|_| cut);
        self.warn(analysis.warnings.iter().chain(notices));
        Ok(analysis)
    }

    /// Opens the trace, for what is made of its events alone.
    pub fn open(&self) -> anyhow::Result<Recording> {
        let recording = Recording::open(&self.bundle, self.partial)?;
        self.warn(analysis::warnings(&recording).iter());
        Ok(recording)
    }

    fn warn<'l>(&self, lines: impl Iterator<Item = &'l String>) {
        for line in lines {
            log::warn!("{}: {line}", self.bundle.display());
        }
    }
}

/// Which rows are looked at.
#[derive(clap::Args)]
pub struct WhereArgs {
    /// Only rows for which this holds: columns of `events`, SQL's operators.
    /// For example: "role = 'wal' AND bytes > 4096". It is asked of whole rows, whatever is summed; of bytes that several
    /// have caused, who caused them is asked of each one's share
    #[arg(long = "where", value_name = "EXPR")]
    condition: Option<String>,
}

impl WhereArgs {
    /// The condition, if there is one.
    pub fn filter(&self) -> anyhow::Result<Option<Filter>> {
        let parse =
            |text: &String| Filter::parse(text).map_err(|e| UsageError(e.to_string()).into());
        self.condition.as_ref().map(parse).transpose()
    }
}

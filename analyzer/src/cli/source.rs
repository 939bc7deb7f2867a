// SPDX-License-Identifier: MIT OR Apache-2.0
//! The arguments that name a trace.

use std::path::{Path, PathBuf};

use mostrace::analysis::{Analysis, Options};

use super::UsageError;
use super::bar::Bar;
use mostrace::facts::Filter;

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
    /// Read files that were cut short up to their last whole record
    #[arg(long)]
    partial: bool,
}

impl SourceArgs {
    /// As the user named it.
    pub fn path(&self) -> &Path {
        &self.bundle
    }

    /// Reads the trace and attributes it. With `locality`, it is followed which blocks were written
    /// before.
    pub fn read(&self, locality: bool) -> anyhow::Result<Analysis> {
        let bar = Bar::new();
        let analysis = Analysis::open_with(
            &self.bundle,
            &Options {
                image: self.image.clone(),
                start_sector: self.start_sector,
                no_map: self.no_map,
                partial: self.partial,
                locality,
            },
            &|progress| bar.at(progress),
        )?;
        drop(bar);
        // A table has no place for what makes it incomplete.
        let cut = self.partial || analysis.bundle.as_ref().is_some_and(|b| b.is_cut());
        let notices = analysis.notices.iter().filter(|_| cut);
        for line in analysis.warnings.iter().chain(notices) {
            log::warn!("{}: {line}", self.bundle.display());
        }
        Ok(analysis)
    }
}

/// Which rows are looked at.
#[derive(clap::Args)]
pub struct WhereArgs {
    /// Only rows for which this holds: columns of `events`, SQL's operators.
    /// For example: "role = 'wal' AND bytes > 4096"
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

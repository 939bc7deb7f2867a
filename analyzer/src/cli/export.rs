// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace export`: the trace in other tools' formats.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use mostrace::analysis::Analysis;
use mostrace::export::{Dataset, Foreign, Output};

use super::UsageError;
use super::source::SourceArgs;

/// Write the trace in another tool's format: flame graphs, fio, cache simulators, a Parquet data set
///
/// What a format has no place for is counted on stderr.
///
/// Examples:
///   mostrace export run.most --format folded | flamegraph.pl > run.svg
///   mostrace export run.most --format iolog --target /mnt/scratch -o run.iolog
///   fio --name=replay --read_iolog=run.iolog
///   mostrace export run.most --format oracle-general -o run.oracleGeneral
///   mostrace export run.most --format perfetto -o run.pftrace
///   mostrace export run.most --format dataset -o traces     (traces/events/bundle=run/0.parquet …)
///   mostrace export run.most --format msr --anonymize -o run.csv
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Export {
    #[command(flatten)]
    source: SourceArgs,
    /// How to write
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Format,
    /// Where to write; - is the standard output. Of a data set, the folder
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Of an iolog, the file or device that fio is to write to
    #[arg(long, value_name = "PATH", default_value = "scratch")]
    target: String,
    /// Names of processes, apps and of paths become their keyed hash; extensions are kept
    #[arg(long)]
    anonymize: bool,
    /// The key, any file of at least 32 bytes: with one key names are equal in several exports. Without, one is made and forgotten
    #[arg(long, value_name = "FILE", requires = "anonymize")]
    key: Option<PathBuf>,
}

/// Formats of one file, and the data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Stacks for flame graphs (flamegraph.pl, speedscope): process;file;role;class;kind, and bytes written
    Folded,
    /// fio's iolog, version 3, for --read_iolog
    Iolog,
    /// Block traces as Alibaba publishes them
    Alibaba,
    /// Block traces as Microsoft Research Cambridge publishes them
    Msr,
    /// libCacheSim's oracleGeneral, a record for each block of 4 KiB
    OracleGeneral,
    /// Perfetto's trace format, for ui.perfetto.dev and trace_processor: calls, requests, counters, and flows between them
    Perfetto,
    /// Parquet files of events, requests, causes, processes and files, partitioned by bundle
    Dataset,
}

impl Format {
    /// None of the data set.
    fn of_one_file(self) -> Option<Foreign> {
        Some(match self {
            Format::Folded => Foreign::Folded,
            Format::Iolog => Foreign::Iolog,
            Format::Alibaba => Foreign::Alibaba,
            Format::Msr => Foreign::Msr,
            Format::OracleGeneral => Foreign::OracleGeneral,
            Format::Perfetto => Foreign::Perfetto,
            Format::Dataset => return None,
        })
    }

    fn has_causes(self) -> bool {
        matches!(self, Format::Folded | Format::Perfetto | Format::Dataset)
    }
}

impl Export {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        let key = self
            .anonymize
            .then(|| key(self.key.as_deref()))
            .transpose()?;
        let read = || -> anyhow::Result<Analysis> {
            let locality = self.format == Format::Dataset;
            let mut analysis = self.source.read(locality, self.format.has_causes())?;
            if let Some(key) = &key {
                analysis.facts.anonymize(key);
            }
            Ok(analysis)
        };
        let Some(format) = self.format.of_one_file() else {
            let Some(folder) = &self.output else {
                let what = "a data set is a folder: name it with -o";
                return Err(UsageError(what.into()).into());
            };
            let dataset = Dataset::create(folder, self.source.path())?;
            return Ok(dataset.write(&read()?.facts)?);
        };
        if self.target.contains(char::is_whitespace) {
            let what = "--target: an iolog has no name with blanks in it";
            return Err(UsageError(what.into()).into());
        }
        let mut out = Output::create(self.output.as_deref())?;
        if matches!(format, Foreign::OracleGeneral | Foreign::Perfetto) && out.is_terminal() {
            let what = "this format is not for terminals: write it to a file (-o FILE) or a pipe";
            return Err(UsageError(what.into()).into());
        }
        for left_out in format.write(&read()?, &self.target, &mut out)? {
            log::warn!("{}: {left_out}", self.source.path().display());
        }
        Ok(())
    }
}

/// Of a file, or a new one.
fn key(path: Option<&Path>) -> anyhow::Result<[u8; 32]> {
    let from = path.unwrap_or(Path::new("/dev/urandom"));
    let name = || from.display().to_string();
    let mut file = fs::File::open(from).with_context(name)?;
    let mut key = [0; 32];
    file.read_exact(&mut key).with_context(name)?;
    Ok(key)
}

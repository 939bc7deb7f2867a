// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace export`: writes the trace in other tools' formats.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use anyhow::bail;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use mostrace_bundle::temporary::TempFolder;
use mostrace_tables::analysis::{Analysis, shown};
use mostrace_tables::export::{
    Dataset, Foreign, ForeignError, Output, blkparse, blktrace, day_of, identity, operations,
};
use mostrace_tables::facts::Key;
use mostrace_trace::text::escape;

use super::hide::HideArgs;
use super::source::{SourceArgs, several};
use super::wrote;
use crate::keep::keep;
use crate::{UsageError, shell, usage};

/// Write the trace in another tool's format: flame graphs, fio, cache simulators, blktrace's files, a Parquet data set
///
/// With several recordings, `folded` adds them up, and `dataset` has files for each; the other formats
/// are of one disk's time and take one recording. What a format cannot hold is counted on stderr.
///
/// Examples:
///   mostrace export run.most --format folded | flamegraph.pl > run.svg
///   mostrace export run.most --format iolog --target /mnt/scratch -o run.iolog
///   fio --name=replay --read_iolog=run.iolog
///   mostrace export run.most --format oracle-general -o run.oracleGeneral
///   mostrace export run.most --format perfetto -o run.pftrace
///   mostrace export run.most --format blkparse | grep ' D '
///   mostrace export run.most --format blktrace -o run && blkparse -i run
///   mostrace export run.most --format dataset -o traces   (traces/events/day=2026-11-25/….parquet …)
///   mostrace export run.most --format msr --anonymize -o run.csv
///   mostrace export run.most --format operations --anonymize -o calls.most.tar.zst
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Export {
    #[command(flatten)]
    source: SourceArgs,
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Format,
    /// The file to write to; - is the standard output. For a data set, the folder; for operations, OUT.most or OUT.most.tar.zst;
    /// for blktrace, what the names of its files begin with
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The file or device that fio is to write to, for an iolog
    #[arg(long, value_name = "PATH", default_value = "scratch")]
    target: String,
    #[command(flatten)]
    hide: HideArgs,
}

/// A format made of rows, of events, or as a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Foreign(Foreign),
    Blkparse,
    Blktrace,
    Dataset,
    Identity,
    Operations,
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Format] {
        static ALL: LazyLock<Vec<Format>> = LazyLock::new(|| {
            let foreign = Foreign::value_variants().iter().copied();
            let others = [
                Format::Blkparse,
                Format::Blktrace,
                Format::Dataset,
                Format::Identity,
                Format::Operations,
            ];
            foreign.map(Format::Foreign).chain(others).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Format::Foreign(foreign) => return foreign.to_possible_value(),
            Format::Blkparse => PossibleValue::new("blkparse")
                .help("The block events as blkparse prints them, without its summary"),
            Format::Blktrace => PossibleValue::new("blktrace")
                .help("The block events as blktrace writes them, OUT.blktrace.N for each CPU: for blkparse -i OUT, btt"),
            Format::Dataset => PossibleValue::new("dataset").help(
                "A folder of Parquet files that grows by recordings: events, requests, causes, processes, files, calls, transactions, recordings",
            ),
            Format::Identity => PossibleValue::new("identity").help(
                "A line for each recording: what a data set knows it by, the day on which it began, its path",
            ),
            Format::Operations => PossibleValue::new("operations").help(
                "A bundle with nothing but the operations, for mostrace replay",
            ),
        })
    }
}

impl Export {
    /// Runs the command.
    pub fn run(self) -> anyhow::Result<()> {
        self.write()?;
        match &self.output {
            Some(path) if self.format == Format::Blktrace => {
                let first = PathBuf::from(format!("{}.blktrace.0", path.display()));
                wrote::tell(&first, &self.opener(path));
            }
            Some(path) => wrote::tell(path, &self.opener(path)),
            None => {}
        }
        Ok(())
    }

    /// Returns what opens a file of the format.
    fn opener(&self, path: &Path) -> String {
        let path = shell::plain(&path.display().to_string());
        match self.format {
            Format::Foreign(Foreign::Folded) => format!("flamegraph.pl {path} >{path}.svg"),
            Format::Foreign(Foreign::Iolog) => {
                format!("fio --name=replay --read_iolog={path}")
            }
            Format::Foreign(Foreign::Perfetto) => "open it in Perfetto".into(),
            Format::Foreign(_) => "for cache simulators".into(),
            Format::Dataset => "Parquet files for DuckDB, pandas or polars".into(),
            Format::Operations => format!("mostrace replay {path}"),
            Format::Blktrace => format!("blkparse -i {path}"),
            Format::Blkparse | Format::Identity => "read it with less".into(),
        }
    }

    fn write(&self) -> anyhow::Result<()> {
        let key = self.hide.key()?;
        match self.format {
            Format::Foreign(format) => self.foreign(format, key.as_ref()),
            Format::Blkparse => {
                let mut out = Output::create(self.output.as_deref())?;
                let left_out = blkparse(&self.source.open()?, key.as_ref(), &mut out)?;
                self.warn(&left_out);
                Ok(())
            }
            Format::Blktrace => {
                let without =
                    "blktrace's files are several: name with -o what their names begin with";
                let basename = self.named_output(without)?;
                if basename == Path::new("-") {
                    usage!("{without}");
                }
                let left_out = blktrace(&self.source.open()?, key.as_ref(), basename)?;
                self.warn(&left_out);
                Ok(())
            }
            Format::Dataset => {
                let folder = self.named_output("a data set is a folder: name it with -o")?;
                self.dataset(folder, key.as_ref())
            }
            Format::Identity => self.identities(key.as_ref()),
            Format::Operations => {
                let output = self.named_output("operations are a bundle: name it with -o")?;
                self.operations(output, key.as_ref())
            }
        }
    }

    fn named_output(&self, without: &str) -> Result<&Path, UsageError> {
        let output = self.output.as_deref();
        output.ok_or_else(|| UsageError(without.into()))
    }

    /// Writes the operations as a bundle, a folder or an archive.
    fn operations(&self, output: &Path, key: Option<&Key>) -> anyhow::Result<()> {
        let name = output.to_string_lossy();
        if ![".most", ".most.tar.zst"]
            .iter()
            .any(|ending| name.ends_with(ending))
        {
            usage!("{name}: a bundle is named NAME.most or NAME.most.tar.zst");
        }
        let recording = self.source.open()?;
        let [bundle] = recording.bundles() else {
            bail!(
                "{}: operations are exported from one bundle; name one",
                recording.path().display()
            );
        };
        let aside = TempFolder::new()?;
        let folder = aside.path().join("operations.most");
        operations(bundle, &folder, key)?;
        keep(&folder, output)
    }

    /// Adds each recording that the data set does not have.
    fn dataset(&self, folder: &Path, key: Option<&Key>) -> anyhow::Result<()> {
        for recording in self.source.open_all()? {
            let Some(dataset) = Dataset::create(folder, &recording, key, self.source.partial())?
            else {
                let path = recording.path().display();
                log::warn!("{path}: the data set has it already; nothing is added");
                continue;
            };
            let mut analysis = self.source.attribute(vec![recording], true, true)?;
            analysis.find_transactions()?;
            let analysis = hidden(analysis, key);
            dataset.write(&analysis.facts, analysis.calls()?, analysis.waits(0)?)?;
        }
        Ok(())
    }

    /// Writes a line for each recording: identity, day and path, with blanks between them.
    fn identities(&self, key: Option<&Key>) -> anyhow::Result<()> {
        let mut out = Output::create(self.output.as_deref())?;
        let mut lines = String::new();
        for recording in self.source.open_all()? {
            let id = identity(&recording, key, self.source.partial())?;
            let day = day_of(&recording).unwrap_or("-".to_owned());
            let path = shown(recording.path(), key);
            let path = escape(path.as_os_str().as_encoded_bytes());
            lines += &format!("{id} {day} {path}\n");
        }
        Ok(out.text(&lines)?)
    }

    fn foreign(&self, format: Foreign, key: Option<&Key>) -> anyhow::Result<()> {
        if self.target.contains(char::is_whitespace) {
            usage!("--target: the name in an iolog cannot have blanks");
        }
        let mut out = Output::create(self.output.as_deref())?;
        if format.is_binary() && out.is_terminal() {
            usage!("this format is not for terminals: write it to a file (-o FILE) or a pipe");
        }
        let analysis = self.read(false, format.has_causes(), key)?;
        if analysis.is_of_several() && !format.adds_up() {
            return Err(several().into());
        }
        let left_out = format.write(&analysis, &self.target, &mut out);
        self.warn(&left_out.map_err(|error| self.named(error))?);
        Ok(())
    }

    /// Adds the trace's name to an error that is the trace's.
    fn named(&self, error: ForeignError) -> anyhow::Error {
        match error {
            ForeignError::NoClock | ForeignError::TooLong { .. } => {
                anyhow::anyhow!("{}: {error}", self.source.path().display())
            }
            other => other.into(),
        }
    }

    fn read(&self, locality: bool, causes: bool, key: Option<&Key>) -> anyhow::Result<Analysis> {
        Ok(hidden(self.source.analyze(locality, causes)?, key))
    }

    fn warn(&self, left_out: &[String]) {
        for left_out in left_out {
            log::warn!("{}: {left_out}", self.source.path().display());
        }
    }
}

/// Hides the names if there is a key.
fn hidden(mut analysis: Analysis, key: Option<&Key>) -> Analysis {
    if let Some(key) = key {
        analysis.anonymize(key);
    }
    analysis
}

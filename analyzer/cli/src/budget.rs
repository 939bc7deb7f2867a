// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limits of `measure` and `check`.

use std::path::{Path, PathBuf};

use anyhow::bail;
use mostrace_bundle::units;
use mostrace_trace::budget::{Baseline, Judgement, Limits, Measured, Runs, judge, report};
use mostrace_trace::causes::Sharing;
use mostrace_trace::charged::{Charged, Charging};
use mostrace_trace::output::Output;
use mostrace_trace::reading::{self, Options, Reading};
use mostrace_trace::recording::Recording;
use serde_json::json;

use crate::bar::Bar;
use crate::names;
use crate::usage::usage;

/// The exit status if a limit was exceeded.
const OVER: u8 = 3;

/// The limits, and how their results are printed.
#[derive(clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct BudgetArgs {
    /// Bytes written to the device, such as 4096, 64kB, 5MB, 4MiB
    #[arg(long, value_name = "BYTES", value_parser = units::amount)]
    max_write_bytes: Option<u64>,
    /// Bytes written per transaction
    #[arg(long, value_name = "BYTES", value_parser = units::amount)]
    max_bytes_per_transaction: Option<u64>,
    /// Bytes written per byte that the application stored, or, if it does not report them, per byte passed to write()
    #[arg(long, value_name = "TIMES", value_parser = positive)]
    max_amplification: Option<f64>,
    /// Cache flushes that the device executes per transaction
    #[arg(long, value_name = "N", value_parser = positive)]
    max_flushes_per_transaction: Option<f64>,
    /// Earlier recordings of the same command, whose median must not be exceeded: bytes and flushes, per transaction if the
    /// number of transactions is known for all
    #[arg(long, value_name = "OLD.most", num_args = 1..)]
    baseline: Vec<PathBuf>,
    /// The excess over the baseline that is tolerated; by default as much as runs of one command differ, and not at all if
    /// there is only one run of each
    #[arg(long, value_name = "PERCENT", requires = "baseline", value_parser = units::percent)]
    tolerance: Option<f64>,
    /// The format in which the results are printed
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Write the results to this file too, as JUnit's XML
    #[arg(long, value_name = "FILE.xml")]
    junit: Option<PathBuf>,
}

/// The format of the results.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// A line for each limit
    Text,
    /// GitHub's annotations
    Github,
    /// One JSON object
    Json,
}

fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text
        .parse()
        .map_err(|_| format!("`{text}` is not a number"))?;
    match number.is_finite() && number >= 0.0 {
        true => Ok(number),
        false => Err(format!("`{text}` is not a valid limit")),
    }
}

impl BudgetArgs {
    /// Returns the limits; reads the baseline.
    ///
    /// # Errors
    /// Returns an error if the baseline cannot be read, is incomplete, or its command failed.
    pub fn limits(&self) -> anyhow::Result<Limits> {
        let sound = |measured: Measured| match measured.exit_status {
            None | Some(0) => Ok(measured),
            Some(status) => bail!(
                "{}: its command ended with {status}, so it cannot be a baseline",
                measured.path.display()
            ),
        };
        let baseline = measured(&self.baseline)?.into_iter().map(sound);
        let runs = Runs::new(baseline.collect::<anyhow::Result<_>>()?);
        Ok(Limits {
            write_bytes: self.max_write_bytes,
            bytes_per_transaction: self.max_bytes_per_transaction.map(|n| n as f64),
            amplification: self.max_amplification,
            flushes_per_transaction: self.max_flushes_per_transaction,
            baseline: runs.map(|runs| Baseline {
                runs,
                tolerance: self.tolerance,
            }),
        })
    }

    /// Returns the format of the results.
    pub fn form(&self) -> Form {
        match self.json {
            true => Form::Json,
            false => self.format,
        }
    }

    /// Returns true if any limit was given.
    pub fn is_given(&self) -> bool {
        self.max_write_bytes.is_some()
            || self.max_bytes_per_transaction.is_some()
            || self.max_amplification.is_some()
            || self.max_flushes_per_transaction.is_some()
            || !self.baseline.is_empty()
    }

    /// Compares the runs with the limits. In JUnit's XML, the cases are of the class `name`.
    ///
    /// # Errors
    /// Returns an error if the baseline is of another program or filesystem, or the file for JUnit cannot be written.
    pub fn judge(
        &self,
        name: &str,
        runs: &Runs,
        limits: &Limits,
    ) -> anyhow::Result<Vec<Judgement>> {
        check_kinds(runs, limits)?;
        let judgements = judge(runs, limits);
        if let Some(path) = &self.junit {
            let xml = report::junit(name, &judgements)?;
            Output::create(Some(path))?.text(&xml)?;
        }
        Ok(judgements)
    }
}

/// Checks that the baseline is of the same kind as the runs, and says so if its command found other files.
fn check_kinds(runs: &Runs, limits: &Limits) -> anyhow::Result<()> {
    for baseline in limits.baseline.iter().flat_map(|b| b.runs.each()) {
        for now in runs.each() {
            if let Some((now, before)) = now.setup.difference(&baseline.setup) {
                let shown = baseline.path.display();
                bail!(
                    "{shown}: this baseline is of {before}, and the runs to compare are of {now}"
                );
            }
        }
        let now = runs.each().find_map(|now| now.copied);
        if let (Some(now), Some(before)) = (now, baseline.copied)
            && now != before
        {
            crate::say(&format!(
                "note: the command of {} found {} files of {} bytes in its folder, and this one {} of {}",
                baseline.path.display(),
                before.files,
                before.bytes,
                now.files,
                now.bytes
            ));
        }
    }
    Ok(())
}

/// Returns the exit status.
pub fn status(judgements: &[Judgement]) -> u8 {
    match judgements.iter().all(Judgement::is_kept) {
        true => 0,
        false => OVER,
    }
}

/// A run that was read, with what is charged to its command.
pub struct OneRun {
    pub reading: Reading,
    pub charging: Charging,
}

impl OneRun {
    /// Reads a trace with its causes.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be read.
    pub fn path(path: &Path) -> anyhow::Result<OneRun> {
        OneRun::of(Recording::open_all(&[path.to_owned()], false)?)
    }

    /// Reads all bundles of the recording that this names.
    ///
    /// # Errors
    /// Returns an error if one of them cannot be read.
    pub fn named(name: &Path) -> anyhow::Result<OneRun> {
        OneRun::of(names::open(&[name.to_owned()], false)?)
    }

    fn of(recordings: Vec<Recording>) -> anyhow::Result<OneRun> {
        let bar = Bar::new();
        let options = Options {
            causes: Some(Sharing::default()),
            ..Options::default()
        };
        let mut charging = Charging::default();
        let watcher = |progress| bar.at(progress);
        let reading = reading::read(recordings, &options, &watcher, &mut charging)?;
        Ok(OneRun { reading, charging })
    }

    /// Returns what is charged to the command.
    pub fn charged(&self) -> Charged<'_> {
        let Reading {
            origins, databases, ..
        } = &self.reading;
        let manifest = self.reading.manifest.as_ref();
        self.charging.charged(origins, manifest, databases)
    }

    /// Returns the figures of a recording.
    ///
    /// # Errors
    /// Returns an error if records are missing, because the figures cannot be compared with limits then.
    pub fn measured(&self, path: &Path) -> anyhow::Result<Measured> {
        if let Some(warning) = self.reading.warnings.first() {
            let shown = path.display();
            bail!("{shown}: this trace cannot be compared with limits: {warning}");
        }
        Ok(Measured::new(path.to_owned(), &self.charged()))
    }
}

/// Measures each of the named recordings.
///
/// # Errors
/// Returns an error if a recording cannot be read or has lost records.
fn measured(names: &[PathBuf]) -> anyhow::Result<Vec<Measured>> {
    let measured = |recording: Recording| {
        let path = recording.path().to_owned();
        OneRun::of(vec![recording])?.measured(&path)
    };
    let recordings = names::open(names, false)?;
    recordings.into_iter().map(measured).collect()
}

/// Compare a recording, or several runs of one command, with limits
///
/// Prints a line for each limit; if one is exceeded, with the layers and files to which most was written
/// (with a baseline: that grew most). The exit status is then 3, as it is if the command failed. The median
/// of several runs counts, and that of several baselines.
///
/// Examples:
///   mostrace check run.most --max-bytes-per-transaction 40000
///   mostrace check run.most --baseline main.most --tolerance 5% --format github
///   mostrace check run-*.most --baseline main-*.most
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Check {
    /// Bundles of one command's runs: folders or .tar.zst, globs, or names of recordings in segments, each of which is one
    /// run
    #[arg(required = true, value_name = "BUNDLE")]
    bundles: Vec<PathBuf>,
    #[command(flatten)]
    budget: BudgetArgs,
}

impl Check {
    /// Runs the command; returns the exit status.
    ///
    /// # Errors
    /// Returns an error if a trace cannot be read.
    pub fn run(&self) -> anyhow::Result<u8> {
        if !self.budget.is_given() {
            usage!("no limit is given");
        }
        let limits = self.budget.limits()?;
        let runs = Runs::new(measured(&self.bundles)?);
        let (Some(runs), Some(name)) = (runs, self.bundles.first()) else {
            usage!("no recording is given");
        };
        let judgements = self.budget.judge(&name.to_string_lossy(), &runs, &limits)?;
        let mut out = Output::create(None)?;
        match self.budget.form() {
            Form::Text => out.text(&(report::text(&judgements) + &report::counted(&runs)))?,
            Form::Github => out.text(&(report::github(&judgements) + &report::counted(&runs)))?,
            Form::Json => out.json(&json!({
                "limits": report::json(&judgements),
                "not_counted": report::not_counted(&runs),
            }))?,
        }
        Ok(status(&judgements))
    }
}

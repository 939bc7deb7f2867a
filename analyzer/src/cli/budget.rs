// SPDX-License-Identifier: MIT OR Apache-2.0
//! The limits of `measure` and `check`.

use std::path::{Path, PathBuf};

use anyhow::bail;
use mostrace::analysis::{Analysis, Options};
use mostrace::budget::{Limits, Measured, judge, report};
use mostrace::causes::Sharing;
use mostrace::export::Output;
use mostrace_bundle::Bundle;

use super::UsageError;
use super::bar::Bar;

/// The exit status where a limit was passed.
pub const OVER: u8 = 3;

/// What may be written at most.
#[derive(clap::Args)]
#[command(next_help_heading = "Limits")]
pub struct BudgetArgs {
    /// Bytes written to the device
    #[arg(long, value_name = "BYTES")]
    max_write_bytes: Option<u64>,
    /// Bytes written for each transaction
    #[arg(long, value_name = "BYTES", value_parser = positive)]
    max_bytes_per_transaction: Option<f64>,
    /// Bytes written for each byte that the application stored; where it does not tell, for each that it passed to write()
    #[arg(long, value_name = "TIMES", value_parser = positive)]
    max_amplification: Option<f64>,
    /// Cache flushes that the device executes for each transaction
    #[arg(long, value_name = "N", value_parser = positive)]
    max_flushes_per_transaction: Option<f64>,
    /// An earlier recording that may not be exceeded: bytes and flushes, for each transaction if both tell how many
    #[arg(long, value_name = "OLD.most")]
    baseline: Option<PathBuf>,
    /// By how much the baseline may be exceeded
    #[arg(long, value_name = "PERCENT", default_value = "0%", requires = "baseline", value_parser = percent)]
    tolerance: f64,
    /// How what came of the limits is printed
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
}

/// For whom.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// A line for each limit
    Text,
    /// JUnit's XML
    Junit,
    /// GitHub's annotations
    Github,
}

fn positive(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("`{text}` is no number"))?;
    match number.is_finite() && number >= 0.0 {
        true => Ok(number),
        false => Err(format!("`{text}` is no limit")),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    Ok(positive(number)? / 100.0)
}

impl BudgetArgs {
    /// The limits; the baseline is read.
    ///
    /// # Errors
    /// The baseline cannot be read, or is not whole.
    pub fn limits(&self) -> anyhow::Result<Limits> {
        let baseline = self
            .baseline
            .as_deref()
            .map(|path| measure(path, &read(path, None)?));
        Ok(Limits {
            write_bytes: self.max_write_bytes,
            bytes_per_transaction: self.max_bytes_per_transaction,
            amplification: self.max_amplification,
            flushes_per_transaction: self.max_flushes_per_transaction,
            baseline: baseline.transpose()?.map(|before| (before, self.tolerance)),
        })
    }

    /// Whether what else there is to say may stand above.
    #[cfg(feature = "record")]
    pub fn is_for_people(&self) -> bool {
        self.format == Form::Text
    }

    /// Whether any is given.
    pub fn is_given(&self) -> bool {
        let numbers = [
            self.max_bytes_per_transaction,
            self.max_amplification,
            self.max_flushes_per_transaction,
        ];
        self.max_write_bytes.is_some()
            || self.baseline.is_some()
            || numbers.iter().any(Option::is_some)
    }

    /// What came of the limits, and whether all are kept.
    ///
    /// # Errors
    /// Records are missing: then no limit can be held against it.
    pub fn judge(
        &self,
        path: &Path,
        analysis: &Analysis,
        limits: &Limits,
    ) -> anyhow::Result<(String, bool)> {
        let judgements = judge(&measure(path, analysis)?, limits);
        let text = match self.format {
            Form::Text => report::text(&judgements),
            Form::Junit => report::junit(&path.to_string_lossy(), &judgements)?,
            Form::Github => report::github(&judgements),
        };
        Ok((text, judgements.iter().all(|j| j.is_kept())))
    }
}

/// Reads a trace as far as limits need it.
///
/// # Errors
/// It cannot be read.
pub fn read(path: &Path, causes: Option<Sharing>) -> anyhow::Result<Analysis> {
    let bar = Bar::new();
    let watcher = |progress| bar.at(progress);
    let options = Options {
        causes,
        ..Options::default()
    };
    Ok(Analysis::open_with(path, &options, &watcher)?)
}

fn measure(path: &Path, analysis: &Analysis) -> anyhow::Result<Measured> {
    let manifest = analysis.bundle.as_ref().map(Bundle::manifest);
    if let Some(warning) = analysis.warnings.first() {
        let shown = path.display();
        bail!("{shown}: no limit can be held against this trace: {warning}");
    }
    let databases = analysis.databases()?;
    Ok(Measured::new(&analysis.facts, manifest, &databases)?)
}

/// Hold a recording against limits
///
/// Prints a line for each limit; where one is passed, with the layers and files that most was written for (with a
/// baseline: that grew most). Ends with 3 then.
///
/// Examples:
///   mostrace check run.most --max-bytes-per-transaction 40000
///   mostrace check run.most --baseline main.most --tolerance 5% --format github
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Check {
    /// A bundle: a folder or a .tar.zst
    bundle: PathBuf,
    #[command(flatten)]
    budget: BudgetArgs,
}

impl Check {
    /// Runs the command; returns the status to end with.
    ///
    /// # Errors
    /// A trace cannot be read.
    pub fn run(&self) -> anyhow::Result<u8> {
        if !self.budget.is_given() {
            return Err(UsageError("no limit is given".into()).into());
        }
        let limits = self.budget.limits()?;
        let analysis = read(&self.bundle, None)?;
        let (text, kept) = self.budget.judge(&self.bundle, &analysis, &limits)?;
        Output::create(None)?.text(&text)?;
        Ok(if kept { 0 } else { OVER })
    }
}

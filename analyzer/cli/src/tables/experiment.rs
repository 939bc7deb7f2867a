// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace experiment`: a matrix of measurements.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use indicatif::{ProgressBar, ProgressStyle};
use mostrace_bundle::Folder;
use mostrace_bundle::temporary::TempFolder;
use mostrace_tables::export::{Format, Output};
use mostrace_tables::lab::experiment::{
    Cell, Definition, Figures, Kind, Per, Results, Tally, claims, judge, table,
};
use mostrace_tables::nearest::nearest;
use mostrace_trace::causes::Sharing;

use super::budget;
use super::guest::{self, FILES, Job, OUT};
use super::keep;
use super::out::{self, OutArgs};
use crate::usage;

/// Measure every cell of a matrix, each on a fresh filesystem, and compare it with what was published
///
/// FILE.toml defines the parameters and the command:
///
///   name = "journal modes"
///   before = "mostrace workload sqlite --prepare --journal {journal} x.db"
///   command = "mostrace workload sqlite --keep --journal {journal} --transactions {count} x.db"
///   [fixed]
///   count = 200
///   [matrix]
///   journal = ["delete", "wal"]
///   mkfs = ["", "-O ^has_journal"]
///
/// `filesystem`, `mkfs`, `mount_options`, `size`, `scheduler`, `max_sectors_kb` are options of `measure`. A cell
/// is measured at least three times, and then until half the width of the 95 % confidence interval of the
/// mean bytes per transaction is at most 2 % of that mean, or 20 times; [repeat] with `least`,
/// `within_percent` and `most` changes this. Each measurement is appended to the results at once: after an
/// interruption the same command continues, and it prints the table when all cells are measured. The
/// table's figures are per transaction or operation; with per = "commit", per transaction of SQLite that
/// changed a database.
///
/// [[published]] has what others have published, [[ours]] what is expected here. A claim can name a control
/// cell, which is measured too: if our figure differs, the claim's explanation is shown only if the control
/// cell agrees.
///
/// Examples:
///   sudo mostrace experiment lab/experiments/ext4-matrix.toml
///   sudo mostrace experiment lab/experiments/ext4-matrix.toml --only journal=wal -o wal.csv
///   mostrace experiment lab/experiments/filesystems.toml --guest 6.12
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Experiment {
    /// The definition of the experiment
    file: PathBuf,
    /// The results; by default FILE.jsonl beside FILE.toml
    #[arg(long, value_name = "FILE.jsonl")]
    results: Option<PathBuf>,
    /// Measure only these cells: NAME=VALUE; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    only: Vec<(String, String)>,
    /// Measure nothing; print the existing results
    #[arg(long)]
    no_run: bool,
    /// Print only the cells and how often each was measured
    #[arg(long, conflicts_with = "no_run")]
    list: bool,
    /// Keep the last recording of each cell in this folder
    #[arg(long, value_name = "DIR", conflicts_with = "guest")]
    keep: Option<PathBuf>,
    /// Measure in an emulated machine with this Debian kernel, such as 6.12: it has f2fs and FAT, and needs no root here.
    /// The results are in FILE.KERNEL.jsonl by default
    #[arg(long, value_name = "KERNEL", value_parser = guest::kernel)]
    guest: Option<String>,
    /// Measure only this cell, as --list names it; may be given several times
    #[arg(long, value_name = "CELL")]
    cell: Vec<String>,
    /// The columns of the table, in this order
    #[arg(long, value_name = "COLUMN,…", value_delimiter = ',')]
    columns: Vec<String>,
    #[command(flatten)]
    out: OutArgs,
    /// Print the claims instead of the cells: what was published, what was measured, and whether they agree
    #[arg(long)]
    claims: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("is not NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Cells that a guest measures in one boot. It may run for ten minutes, and its measurements are lost if it is stopped; a
/// cell can take twenty runs.
const CELLS_OF_A_GUEST: usize = 1;
/// Number of attempts at a recording without losses.
const TRIES: usize = 3;

impl Experiment {
    /// Runs the command.
    ///
    /// # Errors
    /// Returns an error if the file is invalid or a cell cannot be measured.
    pub fn run(&self) -> anyhow::Result<()> {
        let mut definition = Definition::read(&self.file)?;
        let known = |name: &String| definition.parameters.contains(name);
        if let Some((name, _)) = self.only.iter().find(|(name, _)| !known(name)) {
            let all = definition.parameters.join(", ");
            let near = nearest(name, definition.parameters.iter().map(String::as_str));
            usage!("--only {name}: the parameters are {all}{near}");
        }
        for (name, value) in &self.only {
            let values = definition.cells.iter().filter_map(|cell| cell.value(name));
            let values: BTreeSet<&str> = values.collect();
            if !values.contains(value.as_str()) {
                let near = nearest(value, values.iter().copied());
                let all = values.into_iter().collect::<Vec<_>>().join(", ");
                usage!("--only {name}={value}: the values are {all}{near}");
            }
        }
        let is_cell = |key: &&String| !definition.cells.iter().any(|cell| cell.key() == **key);
        if let Some(key) = self.cell.iter().find(is_cell) {
            usage!("--cell \"{key}\": is not a cell; --list shows the cells");
        }
        definition.cells.retain(|cell| self.asks_for(cell));
        let path = match &self.results {
            Some(path) => path.clone(),
            None => self.file.with_extension(match &self.guest {
                Some(kernel) => format!("{kernel}.jsonl"),
                None => "jsonl".into(),
            }),
        };
        // Reading does not lock the file, so that results can be read while they grow.
        let mut results = match self.no_run || self.list {
            true => Results::read(&path, &definition)?,
            false => Results::open(&path, &definition)?,
        };
        if self.list {
            let line = |cell: &Cell| format!("{} {}\n", results.of(cell).count(), cell.key());
            let lines: String = definition.cells.iter().map(line).collect();
            return Ok(Output::create(None)?.text(&lines)?);
        }
        let failed = match self.no_run {
            true => 0,
            false => self.measure(&definition, &path, &mut results)?,
        };
        self.print(&definition, &results)?;
        match failed {
            0 => Ok(()),
            1 => bail!("one cell could not be measured"),
            failed => bail!("{failed} cells could not be measured"),
        }
    }

    /// Returns true if the cell was asked for; several values of one parameter are alternatives.
    fn asks_for(&self, cell: &Cell) -> bool {
        if !self.cell.is_empty() && !self.cell.contains(&cell.key()) {
            return false;
        }
        let is = |(name, value): &(String, String)| cell.value(name) == Some(value);
        self.only.iter().all(|(name, _)| {
            let mut same = self.only.iter().filter(|(other, _)| other == name);
            same.any(is)
        })
    }

    /// Measures the cells that are not done; reports a cell that cannot be measured and goes on with the next. Returns how
    /// many could not be measured.
    fn measure(
        &self,
        definition: &Definition,
        path: &Path,
        results: &mut Results,
    ) -> anyhow::Result<u64> {
        let kept = self.keep.as_deref().map(folder).transpose()?;
        // The bar is hidden if stderr is not a terminal.
        let bar = ProgressBar::new(definition.cells.len() as u64);
        let style = |template| {
            let style = ProgressStyle::with_template(template);
            style.unwrap_or_else(|_| ProgressStyle::default_bar())
        };
        bar.set_style(style("{pos}/{len} cells: {wide_msg}"));
        // Cells that were measured earlier do not count for the estimated time.
        let done = |cell: &&Cell| results.is_done(cell, &definition.repeat);
        bar.set_position(definition.cells.iter().filter(done).count() as u64);
        bar.reset_eta();
        let mut failed = 0;
        let missing = |cell: &&Cell| !results.is_done(cell, &definition.repeat);
        let missing: Vec<&Cell> = definition.cells.iter().filter(missing).collect();
        let at_once = self.guest.as_ref().map_or(1, |_| CELLS_OF_A_GUEST);
        for cells in missing.chunks(at_once) {
            bar.set_message(cells[0].key());
            let failures = match &self.guest {
                Some(kernel) => self.measure_in(kernel, path, definition, cells, results)?,
                None => measure_here(definition, cells, results, kept.as_ref())?,
            };
            failed += failures.len() as u64;
            bar.suspend(|| failures.iter().for_each(|line| log::error!("{line}")));
            bar.inc(cells.len() as u64);
            // The time of a cell can be estimated only after the first one.
            bar.set_style(style("{pos}/{len} cells, about {eta} left: {wide_msg}"));
        }
        bar.finish_and_clear();
        Ok(failed)
    }

    /// Measures in a guest with this kernel, which gets the results so far and appends to them. Returns a line for each cell
    /// that cannot be measured there.
    fn measure_in(
        &self,
        kernel: &str,
        path: &Path,
        definition: &Definition,
        cells: &[&Cell],
        results: &mut Results,
    ) -> anyhow::Result<Vec<String>> {
        let chosen = cells.iter().map(|cell| format!("--cell={}", cell.key()));
        let job = Job {
            kernel,
            // The guest's messages are kept beside the results; a cell that fails does not fail the guest.
            script: format!(
                "cp {FILES}/results.jsonl {OUT}/\n\
                 mostrace experiment {FILES}/experiment.toml --results {OUT}/results.jsonl {} \
                 >{OUT}/table 2>{OUT}/said || step \"a cell failed\"\n",
                crate::tables::line(chosen)
            ),
            programs: Vec::new(),
            files: vec![
                ("experiment.toml".to_owned(), self.file.clone()),
                ("results.jsonl".to_owned(), path.to_owned()),
            ],
        };
        let left = job.run()?;
        let theirs = Results::read(&left.join("results.jsonl"), definition)?;
        results.extend(&theirs, cells)?;
        let said = fs::read_to_string(left.join("said")).unwrap_or_default();
        let failed = cells
            .iter()
            .filter(|cell| !results.is_done(cell, &definition.repeat));
        let why = |cell: &&&Cell| {
            let key = cell.key();
            let line = said.lines().find(|line| line.contains(&key));
            line.map_or_else(
                || format!("{key}: not measured in the guest"),
                str::to_owned,
            )
        };
        Ok(failed.map(|cell| why(&cell)).collect())
    }

    fn print(&self, definition: &Definition, results: &Results) -> anyhow::Result<()> {
        let mut output = self.out.create()?;
        let verdicts = judge(definition, results);
        let shown = match self.claims {
            true => claims(&verdicts)?,
            false => table(definition, results)?,
        };
        let shown = out::chosen(&self.columns, shown)?;
        let format = self.out.format();
        format.write_one(&mut output, shown)?;
        if format == Format::Table && !self.claims && !verdicts.is_empty() {
            let told = |kind| {
                let Tally { agree, all } = Tally::of(kind, &verdicts);
                format!("{agree} of {all}")
            };
            let (published, ours) = (told(Kind::Published), told(Kind::Ours));
            eprintln!(
                "{published} published figures agree, {ours} of our own (--claims shows them)"
            );
        }
        Ok(())
    }
}

/// Opens a directory, creating it if it does not exist.
fn folder(path: &Path) -> anyhow::Result<Folder> {
    fs::create_dir_all(path).with_context(|| path.display().to_string())?;
    Ok(Folder::open(path)?)
}

/// Measures on this kernel. Returns a line for each cell that cannot be measured.
fn measure_here(
    definition: &Definition,
    cells: &[&Cell],
    results: &mut Results,
    kept: Option<&Folder>,
) -> anyhow::Result<Vec<String>> {
    let mut failures = Vec::new();
    for cell in cells {
        while !results.is_done(cell, &definition.repeat) {
            match figures(cell, definition.per, kept) {
                Ok(figures) => results.add(cell, figures)?,
                Err(error) => {
                    failures.push(format!("{}: {error:#}", cell.key()));
                    break;
                }
            }
        }
    }
    Ok(failures)
}

/// Makes one measurement that lost nothing.
fn figures(cell: &Cell, per: Per, kept: Option<&Folder>) -> anyhow::Result<Figures> {
    let mut why = String::new();
    for _ in 0..TRIES {
        let folder = TempFolder::new()?;
        let bundle = folder.path().join("cell.most");
        let recorder = record(cell, &bundle)?;
        let analysis = budget::read(&bundle, Some(Sharing::default()))?;
        match analysis.warnings.first() {
            Some(warning) => why.clone_from(warning),
            None => {
                let figures = Figures::of(&analysis, recorder, per)?;
                if let Some(kept) = kept {
                    keep::replace(kept, name_of(cell).as_ref(), &bundle)?;
                }
                return Ok(figures);
            }
        }
    }
    bail!("{TRIES} recordings lost something: {why}")
}

/// Returns the name under which a cell's bundle is kept.
fn name_of(cell: &Cell) -> String {
    let harmless = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '=' | '.' => c,
        _ => '_',
    };
    let name: String = cell.key().chars().map(harmless).collect();
    format!("{name}.most")
}

/// Measures a cell with this program's own `measure`, because a fresh filesystem needs a process of its own. Returns that
/// process's ID.
fn record(cell: &Cell, bundle: &Path) -> anyhow::Result<u32> {
    let own = std::env::current_exe()?;
    let mut measure = Command::new(&own);
    // Scripts must find this program too.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = own.parent().map(Path::to_path_buf).into_iter();
    let path = std::env::join_paths(folders.chain(std::env::split_paths(&path)))?;
    measure
        .env("PATH", path)
        .args(["measure", "--empty", "-o"])
        .arg(bundle);
    for (name, value) in &cell.filesystem {
        let option = match name.as_str() {
            "filesystem" => "fs".to_owned(),
            name => name.replace('_', "-"),
        };
        if !value.is_empty() {
            measure.arg(format!("--{option}={value}"));
        }
    }
    let with_own = |words: &[String]| -> Vec<String> {
        let own = own.to_string_lossy();
        let word = |word: &String| match word.as_str() {
            "mostrace" => own.clone().into_owned(),
            word => word.to_owned(),
        };
        words.iter().map(word).collect()
    };
    if let Some(before) = &cell.before {
        measure.arg(format!(
            "--before={}",
            crate::tables::line(with_own(before))
        ));
    }
    measure.arg("--").args(with_own(&cell.command));
    let child = measure
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let recorder = child.id();
    let output = child.wait_with_output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        let last = last.unwrap_or("nothing was said");
        bail!("{}", last.trim_start_matches("mostrace: "));
    }
    Ok(recorder)
}

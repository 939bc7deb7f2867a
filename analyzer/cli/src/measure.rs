// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace measure`: measures what an application writes, in one command.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use mostrace_capture::{FreshKind, Operations, Options, User, aside, prepare};
use mostrace_trace::about;
use mostrace_trace::budget::{Judgement, Limits, Runs, report};
use mostrace_trace::output::Output;
use mostrace_trace::transactions::Transactions;
use serde_json::{Value, json};

use crate::brief::Brief;
use crate::budget::{self, BudgetArgs, Form, OneRun};
use crate::ground::{FreshArgs, Ground, GroundKind, Held, kind};
use crate::guest::{self, Job, OUT};
use crate::keep::keep;
use crate::{paint, shell, tables};

/// Measure what CMD makes the storage write: on a fresh filesystem, traced, synced, analysed, cleaned up.
///
/// CMD runs in the current folder, as the user who called sudo, with the environment that sudo keeps. A copy
/// of the folder on the fresh filesystem is mounted over it, and what CMD writes there is measured; the
/// folder itself does not change. The filesystem is on a loop device whose image lies in the folder for
/// temporary files (TMPDIR, in which nobody else may change what root creates); no other process sees it,
/// and it is removed at the end. Prints what it wrote, and where the bytes went. The exit status is CMD's,
/// or 3 if a limit was exceeded.
///
/// Examples:
///   sudo mostrace measure -- python3 app.py
///   sudo mostrace measure -- mostrace workload sqlite --journal wal
///   sudo mostrace measure --fs f2fs --size 512M -- ./my-app
///   sudo mostrace measure --mount-options data=journal -o run.most -- ./my-app
///   mostrace measure --fs f2fs --guest 6.12 -- mostrace workload sqlite --journal wal
///   sudo mostrace measure --in /data -- ./my-app
///   sudo mostrace measure --before 'sqlite3 x.db <schema.sql' -- ./my-app
///   sudo mostrace measure --max-bytes-per-transaction 40K --junit writes.xml -- ./my-test
///   sudo mostrace measure --runs 5 -o now.most --baseline main-*.most -- ./my-test
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub struct Measure {
    /// The filesystem to make
    #[arg(long, value_name = "ext4|f2fs|vfat", default_value = "ext4", value_parser = kind)]
    fs: FreshKind,
    #[command(flatten)]
    fresh: FreshArgs,
    /// Measure in DIR, on its filesystem, instead of a fresh one. What CMD's processes caused counts; what others write
    /// there meanwhile is reported separately
    #[arg(long = "in", value_name = "DIR", conflicts_with_all = ["fs", "mkfs", "mount_options", "size", "scheduler", "max_sectors_kb"])]
    within: Option<PathBuf>,
    /// Measure in an emulated machine with this Debian kernel, such as 6.12: it has f2fs and FAT, and needs no root here.
    /// CMD must be a program, not a script, or `mostrace workload`
    #[arg(long, value_name = "KERNEL", value_parser = guest::kernel, conflicts_with_all = ["within", "user"])]
    guest: Option<String>,
    /// Record every call that changes the filesystem too, for `mostrace replay`; with `all`, those that read as well. The
    /// names of all files are recorded, and nothing of what is written to them
    #[arg(long, value_name = "changes|all", num_args = 0..=1, default_value_t = Operations::None, default_missing_value = "changes",
          hide_default_value = true)]
    operations: Operations,
    /// Run CMD in the root folder of the fresh filesystem instead of a copy of the current folder
    #[arg(long, conflicts_with_all = ["within", "guest"])]
    empty: bool,
    /// Keep the recording; several runs are kept as OUT-1.most, OUT-2.most …
    #[arg(short, long, value_name = "OUT.most")]
    output: Option<PathBuf>,
    /// Run CMD this often, each time on another fresh filesystem (with --in, one after the other in DIR). The median counts,
    /// and the spread of the runs is reported. A run that fails is the last
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    runs: u64,
    /// Run this first with a shell, in the same place and as the same user; what it writes is not measured
    #[arg(long, value_name = "SCRIPT")]
    before: Option<String>,
    /// Run CMD as this user, by name or number, instead of the user who called sudo
    #[arg(short, long, value_name = "NAME")]
    user: Option<String>,
    /// Show where the bytes went by process, database and layer, with all calls
    #[arg(long)]
    full: bool,
    /// Print only the limits that are exceeded
    #[arg(short, long, conflicts_with = "full")]
    quiet: bool,
    /// The command to measure
    #[arg(last = true, required = true, value_name = "CMD")]
    argv: Vec<OsString>,
    #[command(flatten)]
    budget: BudgetArgs,
}

/// Added to a signal's number, this is the exit status of a command that the signal ended, as in a shell.
const SIGNALS: i32 = 128;
/// The exit status of a measurement that was interrupted though its command ended well, as a shell's after Ctrl-C.
const INTERRUPTED: i32 = SIGNALS + 2;

/// Measures; returns the exit status.
///
/// # Errors
/// Returns an error if the filesystem cannot be made, or the capture or the analysis failed.
pub fn run(args: &Measure) -> anyhow::Result<u8> {
    if args.full {
        tables::check("measure --full")?;
    }
    let kept;
    let output = match &args.output {
        // CMD runs in another directory.
        Some(output) => std::path::absolute(output)?,
        None => {
            kept = aside(args.within.as_deref())?;
            kept.path().join("measured.most")
        }
    };
    let outputs = outputs(&output, args.runs);
    for output in &outputs {
        mostrace_capture::check_output(output)?;
        if output.exists() {
            let path = output.clone();
            return Err(mostrace_capture::Error::OutputExists(path).into());
        }
    }
    let limits = args.budget.limits()?;
    let mut recorded = Vec::new();
    let mut status = 0;
    for output in outputs {
        status = match &args.guest {
            Some(kernel) => in_guest(args, kernel, &output)?,
            None => capture(args, &output)?,
        };
        recorded.push(output);
        if status != 0 {
            break;
        }
    }
    let judged = print(args, &recorded, &limits)?;
    Ok(match u8::try_from(status).unwrap_or(1) {
        0 => judged,
        status => status,
    })
}

/// Returns the path of each run's recording: for several runs, `NAME-1.most` and so on instead of `NAME.most`.
fn outputs(output: &Path, runs: u64) -> Vec<PathBuf> {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    match name.split_once(".most") {
        Some((name, ending)) if runs > 1 => {
            let path = |run| output.with_file_name(format!("{name}-{run}.most{ending}"));
            (1..=runs).map(path).collect()
        }
        _ => vec![output.to_owned()],
    }
}

/// Prints the results of the runs; returns the exit status.
fn print(args: &Measure, recorded: &[PathBuf], limits: &Limits) -> anyhow::Result<u8> {
    let form = args.budget.form();
    let mut told = Told::default();
    let mut measured = Vec::new();
    let mut texts = Vec::new();
    for path in recorded {
        let read = OneRun::path(path)?;
        // Without limits, an incomplete recording is shown as far as it goes.
        if recorded.len() > 1 || args.budget.is_given() {
            measured.push(read.measured(path)?);
        }
        match form {
            Form::Json => told.json(args, path, &read),
            Form::Text => texts.push((path, text(args, &read)?)),
            Form::Github => {}
        }
    }
    let runs = Runs::new(measured);
    let several = runs.as_ref().filter(|runs| runs.count() > 1);
    if let Some(runs) = several.filter(|_| form == Form::Text) {
        told.text += &report::runs(runs);
        told.text += "The median run:\n";
    }
    let is_typical = |path: &Path| several.is_none_or(|runs| runs.typical().path == path);
    let shown = texts.into_iter().find(|(path, _)| is_typical(path));
    told.text.extend(shown.map(|(_, text)| text));
    if let Some(runs) = &runs {
        told.counted = report::counted(runs);
        told.not_counted = report::not_counted(runs);
    }
    let judgements = match runs {
        Some(runs) if args.budget.is_given() => {
            let command = args.argv.iter().map(|word| word.to_string_lossy());
            let command: Vec<_> = command.collect();
            args.budget.judge(&command.join(" "), &runs, limits)?
        }
        _ => Vec::new(),
    };
    told.write(args, &judgements)?;
    Ok(budget::status(&judgements))
}

/// The output about the runs that precedes the limits.
#[derive(Default)]
struct Told {
    text: String,
    runs: Vec<Value>,
    /// The line about bytes that the limits leave out.
    counted: String,
    not_counted: Value,
}

impl Told {
    fn json(&mut self, args: &Measure, path: &Path, read: &OneRun) {
        let charged = read.charged();
        let manifest = charged.manifest;
        let payload = manifest.and_then(|m| m.payload.as_ref());
        let transactions = Transactions::new(manifest, charged.databases);
        self.runs.push(json!({
            "recording": args.output.as_ref().map(|_| path.to_string_lossy()),
            "warnings": read.reading.warnings,
            "finding": charged.answer(),
            "not_counted": charged.counted.value(),
            "exit_status": manifest.and_then(|m| m.command.as_ref()?.exit_status),
            "tree": charged.tree().value(payload, &transactions),
        }));
    }

    fn write(&self, args: &Measure, judgements: &[Judgement]) -> anyhow::Result<()> {
        let mut out = Output::create(None)?;
        let judged = |judgement: &&Judgement| !args.quiet || !judgement.is_kept();
        let shown: Vec<Judgement> = judgements.iter().filter(judged).cloned().collect();
        match args.budget.form() {
            Form::Json => {
                out.json(&json!({
                    "runs": self.runs,
                    "limits": report::json(judgements),
                    "not_counted": self.not_counted,
                }))?;
            }
            Form::Github => out.text(&(report::github(&shown) + &self.counted))?,
            Form::Text if args.quiet => out.text(&report::text(&shown))?,
            Form::Text => {
                // The answer says it already.
                let counted = if args.full { &*self.counted } else { "" };
                let text = format!("{}{}{counted}", self.text, report::text(&shown));
                paint::put(&mut out, &text)?;
            }
        }
        Ok(())
    }
}

/// Returns true if the output has the notes of all recordings.
fn tells_notes(args: &Measure) -> bool {
    args.runs == 1 && !args.quiet && args.budget.form() == Form::Text
}

/// Returns the answer, and where the bytes went.
fn text(args: &Measure, read: &OneRun) -> anyhow::Result<String> {
    let charged = read.charged();
    let width = Output::create(None)?.width();
    if !args.full {
        return Ok(Brief::of_charged(&read.reading, &charged).text(width, &args.next()));
    }
    let reading = &read.reading;
    let whole = about::whole(&reading.recordings, &reading.warnings);
    let warnings = reading.warnings.iter().cloned();
    let notices = reading.all_notices().into_iter();
    let lines = warnings
        .chain(charged.answer().lines(whole.as_deref()))
        .chain(notices.map(|notice| format!("note: {notice}")));
    let mut text: String = lines.map(|line| line + "\n").collect();
    text += &format!("\n{}\n", tables::tree(&charged, width)?);
    Ok(text)
}

/// Records CMD on the chosen filesystem; returns its exit status.
fn capture(args: &Measure, output: &Path) -> anyhow::Result<i32> {
    let user = match &args.user {
        Some(name) => Some(User::find(name)?),
        None => User::caller()?,
    };
    let place = match &args.within {
        Some(dir) => GroundKind::Folder(dir.clone()),
        None => GroundKind::Fresh {
            options: args.fresh.options(args.fs),
            empty: args.empty,
        },
    };
    let output = Held::new(output)?;
    let ground = Ground::new(&place, user.as_ref())?;
    if !args.quiet {
        ground.tell_copied();
    }
    if let Some(script) = &args.before {
        prepare(script, ground.folder(), user.as_ref())?;
    }
    let outcome = ground.record(
        &output,
        Options {
            argv: args.argv.clone(),
            user,
            operations: args.operations,
            // The standard output has only the JSON object.
            stdout_aside: args.budget.form() == Form::Json,
            ..Options::default()
        },
    )?;
    if !tells_notes(args) {
        for note in &outcome.manifest.notes {
            crate::say(&format!("note: {note}"));
        }
    }
    if outcome.interrupted {
        crate::say("interrupted: what follows covers the time until then");
        return Ok(match outcome.exit_status {
            0 => INTERRUPTED,
            status => status,
        });
    }
    if outcome.exit_status != 0 {
        crate::say(&ended(&args.argv[0], outcome.exit_status));
    }
    Ok(outcome.exit_status)
}

/// Says how a command ended that failed.
fn ended(program: &OsStr, status: i32) -> String {
    let program = program.display();
    match status - SIGNALS {
        signal @ 1.. => {
            format!(
                "{program} was ended by signal {signal}: what follows covers the time until then"
            )
        }
        _ => format!("{program} ended with {status}"),
    }
}

/// Records CMD in a guest; returns its exit status.
fn in_guest(args: &Measure, kernel: &str, output: &Path) -> anyhow::Result<i32> {
    let (name, programs) = program(&args.argv[0])?;
    let words = args.argv.iter().skip(1).map(|word| word.to_string_lossy());
    let command = shell::line(std::iter::once(name.into()).chain(words));
    let options = shell::line(args.of_the_filesystem());
    // CMD's output is kept apart from that of the measurement.
    let job = Job {
        kernel,
        script: format!(
            "status=0\n\
             mostrace measure {options} --empty -o {OUT}/run.most -- sh -c 'exec \"$0\" \"$@\" >{OUT}/out 2>{OUT}/err' {command} \
             >/dev/null 2>said || status=$?\n\
             [ -e {OUT}/run.most/manifest.json ] || fail \"$(cat said)\"\n\
             echo $status >{OUT}/status\n"
        ),
        programs,
        files: Vec::new(),
    };
    let left = job.run()?;
    let out = fs::read(left.join("out")).unwrap_or_default();
    match args.budget.form() {
        // The standard output has only the JSON object.
        Form::Json => io::stderr().write_all(&out)?,
        _ => io::stdout().write_all(&out)?,
    }
    io::stderr().write_all(&fs::read(left.join("err")).unwrap_or_default())?;
    keep(&left.join("run.most"), output)?;
    let status = fs::read_to_string(left.join("status"))?;
    status
        .trim()
        .parse()
        .context("the guest reported no status")
}

/// Returns a program's name in the guest, and its path here unless it is this program.
fn program(word: &OsStr) -> anyhow::Result<(String, Vec<PathBuf>)> {
    if word == "mostrace" {
        return Ok(("mostrace".into(), Vec::new()));
    }
    let shown = word.display();
    let path = match Path::new(word).components().count() {
        1 => {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            let mut places = std::env::split_paths(&folders).map(|folder| folder.join(word));
            places.find(|place| place.is_file())
        }
        _ => Some(PathBuf::from(word)),
    };
    let path = path.with_context(|| format!("{shown}: no such program"))?;
    let path = fs::canonicalize(path).with_context(|| shown.to_string())?;
    let mut magic = [0; 4];
    let read = File::open(&path).and_then(|mut file| file.read_exact(&mut magic));
    if read.is_err() || &magic != b"\x7fELF" {
        bail!("{shown}: is a script, and a guest has no interpreter for it");
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Ok((name.into_owned(), vec![path.clone()]))
}

impl Measure {
    /// Returns the commands to suggest next.
    fn next(&self) -> String {
        match &self.output {
            Some(path) if self.runs == 1 => {
                let path = shell::plain(&path.display().to_string());
                format!("mostrace analyze {path} --full; mostrace report {path} -o report.html")
            }
            Some(_) => "mostrace analyze, mostrace report or mostrace diff of these recordings".into(),
            None => "--full for more; -o run.most keeps the recording for mostrace analyze and mostrace report".into(),
        }
    }

    /// Returns the options for the filesystem and for what is run before.
    fn of_the_filesystem(&self) -> Vec<String> {
        let mut options = vec![format!("--fs={}", self.fs.name())];
        options.extend(self.fresh.words());
        let before = self.before.iter();
        options.extend(before.map(|script| format!("--before={script}")));
        options.push(format!("--operations={}", self.operations));
        options
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces writers whose every sector says which file, place, thread and time it is of, on a disk that logs each
//! write with its data, and counts for every sector of every row what mostrace says right, leaves unknown, or
//! says wrong. Needs root, a loop device and FUSE.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};

mod compare;
mod disk;
mod mark;
mod names;
mod patterns;
mod site;
mod stamp;

use compare::{COLUMNS, Report, compare};
use disk::Disk;
use names::Names;
use patterns::Pattern;

#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Trace patterns and hold the rows against the truth; exit status 1 if anything is wrong
    Run(Run),
    /// The parts of a pattern, at once (what is traced)
    #[command(hide = true)]
    Pattern {
        name: String,
        root: PathBuf,
        names: PathBuf,
    },
    /// One part of a pattern
    #[command(hide = true)]
    Part {
        name: String,
        part: String,
        root: PathBuf,
        names: PathBuf,
    },
}

#[derive(clap::Args)]
struct Run {
    /// The mostrace to be tried
    #[arg(long)]
    mostrace: PathBuf,
    /// Patterns, by name; all of them without
    patterns: Vec<String>,
    /// Options of `mke2fs -t ext4`
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    mkfs: String,
    /// `mount -o`
    #[arg(long, default_value = "defaults")]
    mount_options: String,
    /// Further options of `mostrace record`
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    record: String,
    /// Settings of the disk's queue, `KEY=VALUE`: `scheduler=none`, `max_sectors_kb=16`
    #[arg(long)]
    queue: Vec<String>,
    /// Of the disk, MiB
    #[arg(long, default_value_t = 256)]
    size: u64,
    /// Print the first row of each kind that is unknown, too
    #[arg(long)]
    unknown: bool,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().verb {
        Verb::Run(run) => run_all(&run),
        Verb::Pattern { name, root, names } => patterns::find(&name)
            .and_then(|p| patterns::run(p, &root, &names))
            .map(|()| 0),
        Verb::Part {
            name,
            part,
            root,
            names,
        } => patterns::find(&name)
            .and_then(|p| patterns::part(p, &part, &root, &names))
            .map(|()| 0),
    };
    match done {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("truth: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Sectors that are wrong.
fn run_all(run: &Run) -> Result<u64> {
    let chosen: Result<Vec<&Pattern>> = match run.patterns[..] {
        [] => Ok(patterns::ALL.iter().collect()),
        _ => run
            .patterns
            .iter()
            .map(|name| patterns::find(name))
            .collect(),
    };
    println!(
        "{:<10} {:>8} {:>8} {:>9} {:>9} {:>7}   sectors wrong/unknown by check",
        "pattern", "sectors", "stamped", "contested", "unwritten", "missing"
    );
    let mut wrong = 0;
    for pattern in chosen? {
        let report = try_pattern(run, pattern).with_context(|| pattern.name.to_owned())?;
        print(pattern.name, &report, run.unknown);
        ensure!(
            report.stamped > 0,
            "{}: no stamped sector was traced",
            pattern.name
        );
        for line in &report.told {
            println!("    {line}");
        }
        wrong += report.wrong() + report.unwritten;
        // A loss that is told is none of truth.
        if report.told.is_empty() {
            wrong += report.missing;
        }
    }
    Ok(wrong)
}

fn print(name: &str, report: &Report, unknown: bool) {
    let checks = report.counts.iter().map(|(check, [_, unknown, wrong])| {
        format!("{}: {wrong}/{unknown}", format!("{check:?}").to_lowercase())
    });
    let checks = checks.collect::<Vec<_>>().join("  ");
    let Report {
        sectors,
        stamped,
        contested,
        unwritten,
        missing,
        ..
    } = report;
    println!(
        "{name:<10} {sectors:>8} {stamped:>8} {contested:>9} {unwritten:>9} {missing:>7}   {checks}"
    );
    for ((check, verdict), example) in &report.examples {
        if *verdict == compare::Verdict::Wrong || unknown {
            println!("    {verdict:?} {check:?}: {example}");
        }
    }
}

fn try_pattern(run: &Run, pattern: &Pattern) -> Result<Report> {
    let folder = tempfile::tempdir()?;
    let disk = Disk::new(folder.path(), run.size << 20).context("FUSE")?;
    let mut device = Loop::new(&disk.path)?;
    let mut make = Command::new("mke2fs");
    make.args(["-q", "-F", "-t", "ext4", "-E", "lazy_itable_init=0"])
        .args(run.mkfs.split_whitespace());
    tell(make.arg(&device.path))?;
    for setting in &run.queue {
        device.set(setting)?;
    }
    let root = folder.path().join("root");
    fs::create_dir(&root)?;
    let mount = Mount::new(&device.path, &root, &run.mount_options)?;
    disk.log.lock().unwrap_or_else(|e| e.into_inner()).clear();
    let (names, bundle) = (folder.path().join("names"), folder.path().join("t.most"));
    let mut record = Command::new(&run.mostrace);
    record
        .arg("record")
        .arg("-d")
        .arg(&device.path)
        .arg("-o")
        .arg(&bundle)
        .arg("--sync")
        .args(run.record.split_whitespace())
        .arg("--")
        .arg(std::env::current_exe()?)
        .args(["pattern", pattern.name])
        .args([&root, &names]);
    tell(&mut record)?;
    let mut log = std::mem::take(&mut *disk.log.lock().unwrap_or_else(|e| e.into_inner()));
    // What was written since was not traced.
    let manifest = manifest(&bundle)?;
    let stop_ns = manifest["clock"]["stop_mono_ns"].as_u64();
    let stop_ns = stop_ns.context("no stop_mono_ns in the manifest")?;
    log.retain(|written| written.time_ns <= stop_ns);
    drop(mount);
    drop(device);
    drop(disk);
    let events = Command::new(&run.mostrace)
        .args(["events", "--format", "csv", "--columns", COLUMNS])
        .arg(&bundle)
        .output()?;
    ensure!(
        events.status.success(),
        "{}",
        String::from_utf8_lossy(&events.stderr)
    );
    let rows = compare::rows(&events.stdout[..])?;
    let mut report = compare(&rows, &log, &Names::read(&names)?);
    report.told = lost(&manifest);
    Ok(report)
}

fn manifest(bundle: &Path) -> Result<serde_json::Value> {
    let path = bundle.join("manifest.json");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_str(&text)?)
}

/// What the recording says that it lost of the events: then rows may be missing.
fn lost(manifest: &serde_json::Value) -> Vec<String> {
    const OF_EVENTS: [&str; 4] = [
        "completions",
        "events_ring",
        "events_tracer",
        "probe_misses",
    ];
    let losses = OF_EVENTS.map(|what| (what, manifest["losses"][what].as_u64().unwrap_or(0)));
    let told = losses.into_iter().filter(|(_, lost)| *lost > 0);
    told.map(|(what, lost)| format!("lost {what}: {lost}"))
        .collect()
}

fn tell(command: &mut Command) -> Result<()> {
    let output = command
        .output()
        .with_context(|| format!("{:?}", command.get_program()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{:?}: {}",
        command.get_program(),
        said.trim()
    );
    Ok(())
}

/// A loop device; detached when it is dropped, with the settings that it had.
struct Loop {
    path: PathBuf,
    /// Files of its queue's, and what stood in them: they outlive what is attached.
    before: Vec<(PathBuf, String)>,
}

impl Loop {
    fn new(file: &Path) -> Result<Loop> {
        let output = Command::new("losetup")
            .args(["-f", "--show"])
            .arg(file)
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "losetup: {}", said.trim());
        Ok(Loop {
            path: String::from_utf8(output.stdout)?.trim().into(),
            before: Vec::new(),
        })
    }

    /// Sets what stands in its queue's folder.
    fn set(&mut self, setting: &str) -> Result<()> {
        let (key, value) = setting.split_once('=').context("KEY=VALUE is missing")?;
        let name = self.path.file_name().context("no device")?;
        let path = Path::new("/sys/block").join(name).join("queue").join(key);
        let before = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        // Of several, the one in brackets.
        let active = before
            .split_once('[')
            .and_then(|(_, rest)| rest.split_once(']'));
        let active = active.map_or(before.trim(), |(active, _)| active);
        self.before.push((path.clone(), active.to_owned()));
        fs::write(&path, value).with_context(|| path.display().to_string())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // It is gone, or there is nothing more to be done.
        for (path, before) in &self.before {
            let _ = fs::write(path, before);
        }
        let _ = Command::new("losetup").arg("-d").arg(&self.path).status();
    }
}

/// Unmounted when it is dropped.
struct Mount(PathBuf);

impl Mount {
    fn new(device: &Path, root: &Path, options: &str) -> Result<Mount> {
        tell(
            Command::new("mount")
                .args(["-o", options])
                .args([device, root]),
        )?;
        Ok(Mount(root.to_owned()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

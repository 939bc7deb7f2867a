// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records one pattern on a fresh disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use crate::causes;
use crate::changes;
use crate::compare::{self, COLUMNS, Logs, Report, compare};
use crate::contents::Contents;
use crate::device::{Loop, Mount, Part, Type, tell};
use crate::disk::{Disk, Written};
use crate::judge::{Judged, judge};
use crate::names::Names;
use crate::patterns::{self, Pattern};
use crate::site::{CHANGES, CONTENTS, NAMES};

/// The layout of the filesystems on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// One filesystem on the whole disk
    Whole,
    /// One filesystem on each of two partitions, with the pattern on both at once; the disk is recorded
    Disk,
    /// The same two filesystems; the first partition is recorded
    Partition,
}

#[derive(clap::Args)]
pub struct Trial {
    /// The mostrace program to test
    #[arg(long)]
    mostrace: PathBuf,
    /// The filesystem
    #[arg(long, value_enum, default_value = "ext4")]
    fs: Type,
    /// Options for the program that makes the filesystem
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    mkfs: String,
    /// Options for `mount -o`
    #[arg(long, default_value = "defaults")]
    mount_options: String,
    /// The layout of the filesystems on the disk
    #[arg(long, value_enum, default_value = "whole")]
    layout: Layout,
    /// Further options of `mostrace record`
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    record: String,
    /// Settings of the disk's queue, `KEY=VALUE`: `scheduler=none`, `max_sectors_kb=16`
    #[arg(long)]
    queue: Vec<String>,
    /// Approximate size of each filesystem, MiB
    #[arg(long, default_value_t = 256)]
    size: u64,
    /// A folder to which recordings with faults are copied, with the recorder's messages and the logs
    #[arg(long)]
    keep: Option<PathBuf>,
}

/// A recording, and the truth about it.
struct Recorded {
    bundle: PathBuf,
    log: Vec<Written>,
}

impl Trial {
    /// Records a pattern and compares the rows with the truth.
    pub fn run(&self, pattern: &Pattern) -> Result<Report> {
        let folder = tempfile::tempdir()?;
        let logs = folder.path().join("logs");
        fs::create_dir(&logs)?;
        let Recorded { bundle, log } = self.record(pattern, folder.path(), &logs)?;
        let events = Command::new(&self.mostrace)
            .args(["events", "--format", "csv", "--columns", COLUMNS])
            .arg(&bundle)
            .output()?;
        ensure!(
            events.status.success(),
            "{}",
            String::from_utf8_lossy(&events.stderr)
        );
        let rows = compare::rows(&events.stdout[..])?;
        let read = Logs {
            names: Names::read(&logs.join(NAMES))?,
            contents: Contents::read(&logs.join(CONTENTS))?,
            is_unnumbered: self.is_unnumbered(),
        };
        let mut report = compare(&rows, &log, &read);
        report.told = lost(&manifest(&bundle)?);
        if report.faults() > 0
            && let Some(kept) = &self.keep
        {
            keep(pattern, &log, &logs, kept)?;
        }
        Ok(report)
    }

    /// Records a pattern and judges the causes of its rows by the changes that it logged.
    pub fn judge(&self, pattern: &Pattern) -> Result<Judged> {
        let folder = tempfile::tempdir()?;
        let logs = folder.path().join("logs");
        fs::create_dir(&logs)?;
        let Recorded { bundle, log } = self.record(pattern, folder.path(), &logs)?;
        let (mut rows, others) = causes::said(&self.mostrace, &bundle)?;
        let mut changes = changes::read(&logs.join(CHANGES))?;
        if self.is_unnumbered() {
            // The generation alone tells the few files apart.
            rows.iter_mut().for_each(|row| row.inode.0 = 0);
            changes.iter_mut().for_each(|change| change.inode.0 = 0);
        }
        let mut judged = judge(&rows, &changes);
        judged.skip("its place in a file is not known", others);
        if judged.faults() > 0
            && let Some(kept) = &self.keep
        {
            keep(pattern, &log, &logs, kept)?;
        }
        Ok(judged)
    }

    /// Returns true if the filesystem stores no inode numbers: writers see those in memory, and rows have others.
    fn is_unnumbered(&self) -> bool {
        self.fs == Type::Vfat
    }

    /// Records a pattern in `folder`, with the writers' logs in `logs`. Everything is unmounted when it returns.
    fn record(&self, pattern: &Pattern, folder: &Path, logs: &Path) -> Result<Recorded> {
        let filesystems = if self.layout == Layout::Whole { 1 } else { 2 };
        let disk = Disk::new(folder, (filesystems * self.size) << 20).context("FUSE")?;
        let mut device = Loop::new(&disk.path)?;
        let parts = match self.layout {
            Layout::Whole => vec![device.whole()?],
            Layout::Disk | Layout::Partition => device.halves()?,
        };
        for part in &parts {
            self.fs.make(&part.path, &self.mkfs)?;
        }
        let starts = parts.iter().map(|part| part.first * 512);
        *disk.starts.lock().unwrap_or_else(|e| e.into_inner()) = starts.collect();
        for setting in &self.queue {
            device.set(setting)?;
        }
        let mounts = self.mount(&parts, folder)?;
        disk.log.lock().unwrap_or_else(|e| e.into_inner()).clear();
        let traced = match self.layout {
            Layout::Whole | Layout::Disk => device.whole()?,
            Layout::Partition => parts[0].clone(),
        };
        let bundle = logs.join("t.most");
        let mut record = Command::new(&self.mostrace);
        record
            .args(["record", "--sync", "-d"])
            .arg(&traced.path)
            .arg("-o")
            .arg(&bundle)
            .args(self.record.split_whitespace())
            // A snapshot can hold only one filesystem.
            .args((self.layout == Layout::Disk).then_some("--no-snapshot"))
            .arg("--")
            .arg(std::env::current_exe()?)
            .args(["pattern", pattern.name])
            .arg(logs)
            .args(mounts.iter().map(|mount| &mount.0));
        let said = tell(&mut record)?;
        fs::write(logs.join("said"), said)?;
        let mut log = std::mem::take(&mut *disk.log.lock().unwrap_or_else(|e| e.into_inner()));
        // Later writes, and writes elsewhere on the disk, were not traced.
        let stop_ns = manifest(&bundle)?["clock"]["stop_mono_ns"].as_u64();
        let stop_ns = stop_ns.context("no stop_mono_ns in the manifest")?;
        let sectors = traced.first..traced.first + traced.sectors;
        log.retain(|written| written.time_ns <= stop_ns && sectors.contains(&written.sector));
        Ok(Recorded { bundle, log })
    }

    /// Mounts the filesystems and makes in each the folder for the pattern.
    fn mount(&self, parts: &[Part], folder: &Path) -> Result<Vec<Mount>> {
        let mount = |(number, part): (usize, &Part)| {
            let root = folder.join(format!("root{number}"));
            let mount = Mount::new(self.fs, &part.path, &root, &self.mount_options)?;
            let inside = patterns::folder(number);
            fs::create_dir_all(root.join(inside.trim_start_matches('/')))?;
            Ok(mount)
        };
        parts.iter().enumerate().map(mount).collect()
    }
}

fn manifest(bundle: &Path) -> Result<serde_json::Value> {
    let path = bundle.join("manifest.json");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_str(&text)?)
}

/// Returns the losses of events that the recording reports; with them, rows may be missing.
fn lost(manifest: &serde_json::Value) -> Vec<String> {
    const OF_EVENTS: [&str; 5] = [
        "causes_misses",
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

/// Copies the logs, including the bundle and the disk's log, to a folder of its own.
fn keep(pattern: &Pattern, log: &[Written], logs: &Path, kept: &Path) -> Result<()> {
    let lines: String = log.iter().map(|written| format!("{written:?}\n")).collect();
    fs::write(logs.join("disk"), lines)?;
    let to = kept.join(format!("{}-{}", pattern.name, std::process::id()));
    fs::create_dir_all(kept)?;
    tell(Command::new("cp").arg("-r").arg(logs).arg(&to))?;
    println!("    kept: {}", to.display());
    Ok(())
}

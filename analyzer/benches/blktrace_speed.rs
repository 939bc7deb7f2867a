// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading a trace of five million events: our reader and life cycles against blkparse, which
//! formats it, and btt, which measures it from a merged dump that only `blkparse -d` can make of the
//! per-CPU files. Each is the best of three runs, as a process of its own.
//!
//! `cargo bench -p mostrace --no-default-features --bench blktrace_speed [-- EVENTS]`

#[path = "../tests/support/mod.rs"]
mod support;

use mostrace::blktrace::{Completions, Trace, find};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::synthetic::{Recipe, write};

/// A run's time and its peak memory in KiB.
#[derive(Clone, Copy, Debug)]
struct Cost {
    time: Duration,
    peak_kib: u64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    if let [read, basename] = args.as_slice()
        && read == "--read"
    {
        return read_trace(Path::new(basename));
    }
    let events: u64 = args.first().map_or(Ok(5_000_000), |n| n.parse())?;

    let folder = tempfile::tempdir()?;
    let recipe = Recipe {
        seed: 1,
        // An IO of this recipe has 8.66 events on average.
        ios: events * 100 / 866,
        cpus: 2,
        plain: true,
    };
    let (paths, events) = write(recipe, folder.path(), "speed");
    let mut bytes = 0;
    for path in &paths {
        bytes += path.metadata()?.len();
    }
    println!(
        "{events} events in {} files, {} MiB",
        paths.len(),
        bytes >> 20
    );

    let me = std::env::current_exe()?.to_string_lossy().into_owned();
    let ours = best(folder.path(), &me, &["--read", "speed"])?;
    let blkparse = best(folder.path(), "blkparse", &["-i", "speed"])?;
    let dump = best(
        folder.path(),
        "blkparse",
        &["-i", "speed", "-O", "-d", "dump"],
    )?;
    let btt = best(folder.path(), "btt", &["-i", "dump"])?;
    let costs = [
        ("mostrace", ours),
        ("blkparse", blkparse),
        ("blkparse -d", dump),
        ("btt", btt),
    ];
    for (name, cost) in costs {
        let ratio = cost.time.as_secs_f64() / ours.time.as_secs_f64();
        let (seconds, peak) = (cost.time.as_secs_f64(), cost.peak_kib >> 10);
        println!("{name:<11} {seconds:7.2} s  {ratio:5.1} ×  peak {peak:5} MiB");
    }
    Ok(())
}

/// What a run of ours does: all completions, summed up so that none is optimised away.
fn read_trace(basename: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let mut completions = Completions::new(Trace::open(&find(basename)?)?);
    let (mut number, mut bytes, mut known) = (0_u64, 0_u64, 0_u64);
    while let Some(completion) = completions.next()? {
        number += 1;
        bytes += u64::from(completion.bytes);
        known += completion.parts.iter().filter(|p| p.pid.is_some()).count() as u64;
    }
    println!("{number} completions, {bytes} bytes, {known} bios known");
    Ok(())
}

fn best(folder: &Path, program: &str, args: &[&str]) -> Result<Cost, Box<dyn std::error::Error>> {
    let mut costs = Vec::new();
    for _ in 0..3 {
        costs.push(run(folder, program, args)?);
    }
    let time = costs.iter().map(|c| c.time).min().unwrap_or_default();
    let peak_kib = costs.iter().map(|c| c.peak_kib).max().unwrap_or_default();
    Ok(Cost { time, peak_kib })
}

fn run(folder: &Path, program: &str, args: &[&str]) -> Result<Cost, Box<dyn std::error::Error>> {
    let mut command = Command::new(program);
    command.current_dir(folder).args(args);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let mut child = command.spawn()?;
    let mut peak_kib = 0;
    loop {
        peak_kib = peak(&child).unwrap_or(0).max(peak_kib);
        if let Some(status) = child.try_wait()? {
            let time = start.elapsed();
            assert!(status.success(), "{program}: {status}");
            return Ok(Cost { time, peak_kib });
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The child's peak memory so far (Linux): what it had a moment before its end is near enough.
fn peak(child: &Child) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures how fast a trace is read: our reader, merging alone and up to completions, is compared with `cat` of the same files
//! (the floor), with blkparse, which formats them, and with btt, which measures a merged dump that only `blkparse -d` can make.
//! Each figure is the least of three runs in a process of its own, in processor time as the kernel accounts for it.
//!
//! `cargo bench -p mostrace --no-default-features --bench blktrace_speed [-- EVENTS [CPUS]]`

#[path = "../tests/support/cost.rs"]
mod cost;
#[path = "../../trace/tests/support/mod.rs"]
mod support;

use cost::{Cost, run_as_told};
use mostrace_trace::blktrace::{Completions, Trace, find};
use std::error::Error;
use std::path::Path;
use support::generator::{Recipe, generate_with};

const RUNS: u32 = 3;

fn main() -> Result<(), Box<dyn Error>> {
    if run_as_told()? {
        return Ok(());
    }
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["--merge", basename] => merge(Path::new(basename)),
        ["--read", basename] => read(Path::new(basename)),
        [] => compare(5_000_000, 4),
        [events] => compare(events.parse()?, 4),
        [events, cpus, ..] => compare(events.parse()?, cpus.parse()?),
    }
}

fn compare(events: u64, cpus: u32) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let recipe = Recipe {
        seed: 1,
        events,
        cpus,
    };
    let mut bios = 0_u64;
    let (paths, events) = generate_with(&recipe, folder.path(), "speed", |_| {
        bios += 1;
        Ok(())
    })?;
    let mut bytes = 0;
    for path in &paths {
        bytes += path.metadata()?.len();
    }
    println!(
        "{events} events, {bios} bios, {} files, {} MiB",
        paths.len(),
        bytes >> 20
    );
    let me = std::env::current_exe()?.to_string_lossy().into_owned();
    let names: Vec<String> = (0..cpus)
        .map(|cpu| format!("speed.blktrace.{cpu}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let of = |program: &str, args: &[&str]| Cost::of(folder.path(), RUNS, program, args);

    let cat = of("cat", &names)?;
    let merge = of(&me, &["--merge", "speed"])?;
    let read = of(&me, &["--read", "speed"])?;
    let blkparse = of("blkparse", &["-i", "speed"])?;
    let dump = of("blkparse", &["-i", "speed", "-O", "-d", "dump"])?;
    let btt = of("btt", &["-i", "dump"])?;
    for (name, cost) in [
        ("cat", cat),
        ("merge", merge),
        ("completions", read),
        ("blkparse", blkparse),
        ("blkparse -O -d", dump),
        ("btt", btt),
    ] {
        let times = cost.cpu() / read.cpu();
        println!("{name:<15} {cost}  {times:6.2} × completions");
    }
    println!("merge is {:.2} × cat", merge.cpu() / cat.cpu());
    println!(
        "{:.1} million events a processor second",
        events as f64 / read.cpu() / 1e6
    );
    Ok(())
}

/// Reads all events in order, and sums up enough that none is optimised away.
fn merge(basename: &Path) -> Result<(), Box<dyn Error>> {
    let mut trace = Trace::open(&find(basename)?)?;
    let (mut number, mut sum) = (0_u64, 0_u64);
    while let Some(event) = trace.next()? {
        number += 1;
        sum = sum.wrapping_add(event.sector);
    }
    println!("{number} events, {sum}");
    Ok(())
}

/// Reads all completions.
fn read(basename: &Path) -> Result<(), Box<dyn Error>> {
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

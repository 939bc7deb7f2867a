// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces writers whose every sector says which file, offset, thread and time it belongs to, on a disk that logs each
//! write with its data. For every sector of every row it counts what mostrace says right, leaves unknown, or says
//! wrong. Needs root, a loop device and FUSE.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};

mod assign;
mod compare;
mod contents;
mod device;
mod disk;
mod mark;
mod names;
mod patterns;
mod shim;
mod site;
mod stamp;
mod trial;

use compare::Report;
use patterns::Pattern;
use trial::Trial;

#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Trace patterns and compare the rows with the truth; the exit status is 1 if anything is wrong
    Run(Run),
    /// Run all parts of a pattern at once (this is the traced command)
    #[command(hide = true)]
    Pattern {
        name: String,
        logs: PathBuf,
        mounts: Vec<PathBuf>,
    },
    /// Run one part of a pattern
    #[command(hide = true)]
    Part {
        name: String,
        part: String,
        logs: PathBuf,
        mount: PathBuf,
        folder: String,
    },
}

#[derive(clap::Args)]
struct Run {
    /// The patterns to run, by name; all of them if none is given
    patterns: Vec<String>,
    #[command(flatten)]
    trial: Trial,
    /// Also print the first row of each kind of unknown answer
    #[arg(long)]
    unknown: bool,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().verb {
        Verb::Run(run) => run_all(&run),
        Verb::Pattern { name, logs, mounts } => patterns::find(&name)
            .and_then(|p| patterns::run(p, &logs, &mounts))
            .map(|()| 0),
        Verb::Part {
            name,
            part,
            logs,
            mount,
            folder,
        } => patterns::find(&name)
            .and_then(|p| patterns::part(p, &part, &logs, &mount, &folder))
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

/// Runs the chosen patterns. Returns the number of sectors with a fault.
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
        let report = run.trial.run(pattern);
        let report = report.with_context(|| pattern.name.to_owned())?;
        print(pattern.name, &report, run.unknown);
        ensure!(
            report.stamped > 0,
            "{}: no stamped sector was traced",
            pattern.name
        );
        for line in &report.told {
            println!("    {line}");
        }
        wrong += report.faults();
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
    if let Some(unwritten) = &report.first_unwritten {
        println!("    unwritten: {unwritten}");
    }
    if let Some(missing) = &report.first_missing {
        println!("    missing: {missing}");
    }
    for ((check, verdict), example) in &report.examples {
        if *verdict == compare::Verdict::Wrong || unknown {
            println!("    {verdict:?} {check:?}: {example}");
        }
    }
}

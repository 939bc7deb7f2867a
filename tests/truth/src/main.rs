// SPDX-License-Identifier: MIT OR Apache-2.0
//! Traces writers whose every sector says which file, offset, thread and time it belongs to, on a disk that logs each
//! write with its data. For every sector of every row it counts what mostrace says right, leaves unknown, or says
//! wrong. Needs root, a loop device and FUSE.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};

mod assign;
mod causes;
mod changes;
mod compare;
mod contents;
mod device;
mod disk;
mod judge;
mod mark;
mod names;
mod patterns;
mod shim;
mod site;
mod stamp;
mod trial;

use compare::Report;
use judge::Judged;
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
    /// Trace patterns that change the same blocks, and judge the causes of the rows; the exit status is 1 if a row that is
    /// called exact or shared is not
    Causes(Causes),
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

#[derive(clap::Args)]
struct Causes {
    /// The patterns to run, by name; all of them if none is given
    patterns: Vec<String>,
    #[command(flatten)]
    trial: Trial,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().verb {
        Verb::Run(run) => run_all(&run),
        Verb::Causes(causes) => judge_all(&causes),
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

/// Returns the patterns with these names, or all if there are no names.
fn chosen<'a>(names: &[String], all: &'a [Pattern]) -> Result<Vec<&'a Pattern>> {
    match names {
        [] => Ok(all.iter().collect()),
        _ => names.iter().map(|name| patterns::find(name)).collect(),
    }
}

/// Judges the causes of the chosen patterns. Returns the number of rows that are called exact or shared and are not.
fn judge_all(causes: &Causes) -> Result<u64> {
    println!(
        "{:<10} {:>6}   {:>18} {:>18} {:>18}   others",
        "pattern", "rows", "exact right/wrong", "shared right/wrong", "first right/wrong"
    );
    let mut all = Judged::default();
    for pattern in chosen(&causes.patterns, patterns::changes::ALL)? {
        let judged = causes.trial.judge(pattern);
        let judged = judged.with_context(|| pattern.name.to_owned())?;
        print_judged(pattern.name, &judged);
        for ((known, reason), example) in &judged.examples {
            println!("    wrong: {known}: {reason}: {example}");
        }
        all.add(judged);
    }
    print_judged("all", &all);
    for (reason, count) in all.not_asked.iter().filter(|(_, count)| **count > 0) {
        println!("    not asked: {count}: {reason}");
    }
    let right = all.of("exact")[0] + all.of("shared")[0];
    ensure!(right > 0, "no row was right, so that nothing was asked");
    Ok(all.faults())
}

fn print_judged(name: &str, judged: &Judged) {
    let asked = ["exact", "shared", "first"].map(|known| {
        let [right, wrong, _] = judged.of(known);
        format!("{right}/{wrong}")
    });
    let others = ["set", "proportional", "unknown"].map(|known| {
        let count: u64 = judged.of(known).iter().sum();
        format!("{known}: {count}")
    });
    println!(
        "{name:<10} {:>6}   {:>18} {:>18} {:>18}   {}",
        judged.rows,
        asked[0],
        asked[1],
        asked[2],
        others.join("  ")
    );
}

/// Runs the chosen patterns. Returns the number of sectors with a fault.
fn run_all(run: &Run) -> Result<u64> {
    println!(
        "{:<10} {:>8} {:>8} {:>9} {:>9} {:>7}   sectors wrong/unknown by check",
        "pattern", "sectors", "stamped", "contested", "unwritten", "missing"
    );
    let mut wrong = 0;
    for pattern in chosen(&run.patterns, patterns::ALL)? {
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

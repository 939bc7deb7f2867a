// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace record`.

use mostrace_bundle::Manifest;
use mostrace_capture::{Options, Outcome, Progress};

/// Record the block IO of a device while a command runs, for SECS, or until Ctrl-C.
///
/// Needs root. The exit status of CMD is passed through; it is 126 if CMD cannot be run, 127 if there is no such command.
/// Only you can read the bundle; under sudo, that is the user who called it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  mostrace record -d /dev/sda3 -o run.most -- mostrace workload sqlite /data/test.db
  mostrace record -d /dev/block/sda -o app.most.tar.zst -w 60
  sudo mostrace record -d /data -u \"$USER\" -- ./my-app")]
pub struct Record {
    #[command(flatten)]
    options: Options,
    /// Print only errors
    #[arg(short, long)]
    quiet: bool,
}

/// Records; returns the exit status.
pub fn run(args: &Record) -> anyhow::Result<u8> {
    let mut options = args.options.clone();
    if args.quiet {
        options.progress = Progress::Never;
    }
    let outcome = mostrace_capture::record(&options)?;
    if !args.quiet {
        report(&outcome);
    }
    Ok(u8::try_from(outcome.exit_status).unwrap_or(1))
}

pub(super) fn report(outcome: &Outcome) {
    let Manifest {
        sources,
        counts,
        losses,
        notes,
        passed_over,
        interference,
        counters,
        causes,
        segment,
        ..
    } = &outcome.manifest;
    let count = |name: &str| counts.get(name).copied().unwrap_or(0);
    let pieces = segment.as_ref().map(|s| format!(", {} segments", s.number));
    super::say(&format!(
        "{}{}: {} events ({}), {} process, {} file, {} dirtier entries ({}), {} lost",
        outcome.output.display(),
        pieces.unwrap_or_default(),
        count("events"),
        sources.events,
        count("process_entries"),
        count("file_entries"),
        count("dirtier_entries"),
        sources.entries,
        losses.values().sum::<u64>(),
    ));
    if let Some(causes) = causes {
        super::say(&format!("causes: {causes}"));
    }
    for (what, lost) in losses.iter().filter(|(_, lost)| **lost > 0) {
        super::say(&format!("lost: {what} {lost}"));
    }
    for why in passed_over {
        log::info!("{why}");
    }
    for note in notes {
        super::say(&format!("note: {note}"));
    }
    for what in interference {
        super::say(&format!("INTERFERED: {what}"));
    }
    if let Some(counters) = counters {
        super::say(&counters.to_string());
    }
    // Segments are suggested by their recording's name.
    let output = &outcome.output;
    let of_all = segment
        .as_ref()
        .and_then(|s| mostrace_bundle::segments::recording(output, s.number));
    let path = of_all.as_ref().unwrap_or(output).to_string_lossy();
    super::say(&format!(
        "next: mostrace analyze {}",
        super::shell::plain(&path)
    ));
}

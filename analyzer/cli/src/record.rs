// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace record`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use mostrace_bundle::{Manifest, units};
use mostrace_capture::{
    Causes, Choice, Entries, Events, KernelPaths, Operations, Options, Outcome, Progress, RingSize,
    Segments, Size, User,
};

/// The heading of options that most recordings do without.
const ADVANCED: &str = "Advanced";

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
    /// The whole disk or partition to trace, or a mount point or a file for the device that it is on
    #[arg(short, long, value_name = "DEV|PATH")]
    device: PathBuf,
    /// The bundle to write: NAME.most, a folder, or NAME.most.tar.zst, a single file
    #[arg(short, long, value_name = "OUT", default_value = "trace.most", value_parser = output)]
    output: PathBuf,
    /// The source of block events: auto, bpf (our probes), tracefs (plain tracepoints), blktrace. auto takes the first one that
    /// works, in this order, and says why it passed over others; bpf comes after tracefs if the kernel does not run our probes
    /// at all times, or if they do not make the entries
    #[arg(help_heading = ADVANCED, long, default_value_t = Choice::Auto)]
    source: Choice,
    /// The block events that source bpf records: `needed` (of a request's life: Q, X, I, D, R, C), or `all` that blktrace
    /// has (G, P, U, M, F, A too)
    #[arg(help_heading = ADVANCED, long, value_name = "needed|all", default_value_t = Events::Needed)]
    events: Events,
    /// The source of entries (who wrote, to which file): auto, bpf, kernel, tracefs, none. bpf: our probes; kernel: its own
    /// recorder (/dev/mostrace); tracefs: plain tracepoints, which know less but load nothing; auto takes the first of the
    /// three that works
    #[arg(help_heading = ADVANCED, long, default_value_t = Entries::Auto)]
    entries: Entries,
    /// The source of what leads to causes (a journal's handles, system calls): auto, bpf, kernel, none
    #[arg(help_heading = ADVANCED, long, default_value_t = Causes::Auto)]
    causes: Causes,
    /// Record the stack, too, from which each call for durability, each write and each of a journal's handles was made: of the
    /// program by its frame pointers, and of the kernel. Stacks tell which code ran; they come with causes of bpf
    #[arg(long)]
    stacks: bool,
    /// The files whose names are kept: `all`, `temp` (SQLite's temporary files), or a glob on
    /// the last path component
    #[arg(help_heading = ADVANCED, long, value_name = "all|temp|GLOB", default_value = "all")]
    files: String,
    /// Record every call that changes the filesystem too, for `mostrace replay`; with `all`, those that read as well. The
    /// names of all files are recorded, and nothing of what is written to them
    #[arg(long, value_name = "changes|all", num_args = 0..=1, default_value_t = Operations::None, default_missing_value = "changes",
          hide_default_value = true)]
    operations: Operations,
    /// BTF of this very kernel, if it was built without (5.10, CONFIG_DEBUG_INFO_BTF=n); entries and events of bpf need it
    #[arg(help_heading = ADVANCED, long, value_name = "FILE")]
    btf: Option<PathBuf>,
    /// The size of each of the probes' rings: a power of 2 (64K to 256M); by default 1M to 16M, depending on the
    /// machine's memory. A smaller ring takes less memory; records that find it full are lost and counted
    #[arg(help_heading = ADVANCED, long, value_name = "SIZE")]
    ring_size: Option<RingSize>,
    /// Make the bundle's files when the recording has ended, of what our probes have written until then. Recording costs the
    /// workload a sixth to a third less meanwhile; but if the recorder is killed, nothing of that is left
    #[arg(help_heading = ADVANCED, long, conflicts_with_all = ["segment", "stacks"])]
    defer: bool,
    /// Name the files below DIR by the mounted tree, which is walked before and after the recording. On the disk, an
    /// encrypted folder (fscrypt) has its names as ciphertext; the tree shows them while it is unlocked. May be given
    /// several times
    #[arg(long, value_name = "DIR")]
    names: Vec<PathBuf>,
    /// The file that maps users to apps, in the format of Android's /data/system/packages.list, which is used by default if
    /// it exists
    #[arg(help_heading = ADVANCED, long, value_name = "FILE")]
    packages: Option<PathBuf>,
    /// Stop after this time, such as 60, 10m, 1h; a CMD that is still running is sent SIGTERM
    #[arg(short = 'w', long = "wait", value_name = "TIME", value_parser = units::time)]
    wait: Option<Duration>,
    /// Begin a new segment after this time (60s, 10m, 1h) or when a segment's files have this size (256M, 1G). Each segment
    /// is a bundle, NAME.0001.most and so on, that can be read as soon as it has ended; `analyze NAME.most` reads all of
    /// them as one
    #[arg(long, value_name = "TIME|SIZE")]
    segment: Option<Size>,
    /// Keep the last N segments, including the one being written; older ones are removed
    #[arg(long, value_name = "N", requires = "segment", value_parser = clap::value_parser!(u32).range(2..))]
    keep: Option<u32>,
    /// Before stopping, sync the filesystem, or those of a disk's partitions, so that what CMD left in memory is traced too
    #[arg(long)]
    sync: bool,
    /// Do not save the filesystem's metadata; then only live entries can name blocks
    #[arg(help_heading = ADVANCED, long)]
    no_snapshot: bool,
    /// A name for the recording, which is stored in it
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Run CMD as this user, by name or number, in a session without a terminal and with the environment that sudo keeps
    #[arg(short, long, value_name = "NAME", requires = "argv")]
    user: Option<String>,
    /// Stop when CMD ends, even if processes that it started (a daemon, a background job) still run
    #[arg(help_heading = ADVANCED, long, requires = "argv")]
    no_wait: bool,
    /// Show the progress of the recording: auto (while no CMD has the terminal), always, never
    #[arg(help_heading = ADVANCED, long, value_name = "WHEN", default_value_t = Progress::Auto)]
    progress: Progress,
    /// Print only errors
    #[arg(short, long)]
    quiet: bool,
    /// The command to run while tracing
    #[arg(last = true, value_name = "CMD")]
    argv: Vec<OsString>,
}

fn output(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    mostrace_capture::check_output(&path).map_err(|e| e.to_string())?;
    Ok(path)
}

/// Returns the user that CMD is to run as.
///
/// # Errors
/// Returns an error if there is no user of that name or number.
fn user(name: Option<&str>) -> anyhow::Result<Option<User>> {
    Ok(name.map(User::find).transpose()?)
}

/// Records; returns the exit status.
///
/// # Errors
/// Returns an error if the capture could not be made.
pub fn run(args: &Record) -> anyhow::Result<u8> {
    let outcome = mostrace_capture::record(&Options {
        device: args.device.clone(),
        output: args.output.clone(),
        source: args.source,
        events: args.events,
        entries: args.entries,
        causes: args.causes,
        stacks: args.stacks,
        kernel: KernelPaths::default(),
        files: args.files.clone(),
        btf: args.btf.clone(),
        operations: args.operations,
        ring_size: args.ring_size,
        defer: args.defer,
        names: args.names.clone(),
        packages: args.packages.clone(),
        limit: args.wait,
        segments: args.segment.map(|each| Segments {
            each,
            keep: args.keep,
        }),
        sync: args.sync,
        snapshot: !args.no_snapshot,
        label: args.label.clone(),
        alone: false,
        copied: None,
        argv: args.argv.clone(),
        user: user(args.user.as_deref())?,
        stdout_aside: false,
        wait_for_descendants: !args.no_wait,
        progress: if args.quiet {
            Progress::Never
        } else {
            args.progress
        },
    })?;
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
    #[cfg(feature = "tables")]
    {
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
}

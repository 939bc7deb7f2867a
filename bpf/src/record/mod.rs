// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes one capture, from the first probe to the packed bundle.
//!
//! [`Subject`] is what is recorded, [`Tracing`] holds the sources that record it, and [`Series`] the bundles to which they record.

use mostrace_bundle::Writer;
use mostrace_bundle::layout;
use mostrace_bundle::manifest::{self, Manifest, SCHEMA};

use crate::error::{Error, Result};
use crate::machine::clock;
use crate::machine::health::Drive;
use crate::machine::kernel;
use crate::machine::leftovers;
use crate::snapshot;
use crate::source::bpf::ObjectStorage;
use crate::trees::Trees;

mod command;
mod counters;
mod finisher;
mod journal_copies;
mod late;
mod loops;
mod missing;
mod naming;
mod notes;
mod open;
mod options;
mod output;
mod packages;
mod payload;
mod progress;
mod run;
mod selection;
mod series;
mod signals;
mod subject;
mod tracing;

use command::Start;
use finisher::Finisher;
use late::Late;
use missing::Missing;
pub use mostrace_bundle::segments::segment;
use open::Open;
pub use options::{Keep, Options, Outcome, Segments, Size};
pub use output::check_output;
use payload::PayloadPlace;
pub use progress::Progress;
use run::Ended;
use series::Series;
use signals::Signals;
use subject::Subject;
use tracing::Tracing;

/// Finds what would prevent a capture, as far as it is known before one begins. Nothing is written.
///
/// # Errors
/// Returns an error if something prevents it.
pub fn check(options: &Options) -> Result<()> {
    Subject::find(options).map(drop)
}

/// Returns what would be recorded, and the notes that would be made about it. Nothing is written.
///
/// # Errors
/// Returns an error if something prevents a capture, as far as it is known before one begins.
pub(crate) fn planned(options: &Options) -> Result<Vec<String>> {
    let subject = Subject::find(options)?;
    let mut all = vec![format!("would trace {}", subject.device.node().display())];
    all.extend(subject.notes);
    Ok(all)
}

/// Records until the command ends, the time is up, or SIGINT comes.
///
/// # Errors
/// Returns an error if something prevents the capture. What was written before stays, as a bundle whose state is `recording`. A
/// source that fails ends the recording, whose bundle is then complete.
pub fn record(options: &Options) -> Result<Outcome> {
    let subject = Subject::find(options)?;
    let mut trees = Trees::find(&options.names, subject.of_filesystem().dev)?;
    let mut series = Series::begin(options, &subject, first_manifest(options, &subject))?;
    let signals = match Signals::new(options.progress == Progress::Asked) {
        Ok(signals) => signals,
        Err(e) => return Err(series.abandon(e)),
    };
    let early = match capture(options, &subject, &mut trees, &mut series, &signals) {
        Ok(early) => early,
        Err(e) => return Err(series.abandon(e)),
    };
    let (manifest, output) = series.end()?;
    if let Some(why) = early {
        return Err(Error::EndedEarly {
            why: why.into(),
            kept: output,
        });
    }
    let status = manifest.command.as_ref().and_then(|c| c.exit_status);
    Ok(Outcome {
        exit_status: status.unwrap_or(0),
        interrupted: signals.stop().is_some(),
        manifest,
        output,
    })
}

/// Makes the capture. Returns what ended it early.
fn capture(
    options: &Options,
    subject: &Subject,
    trees: &mut Trees,
    series: &mut Series<'_>,
    signals: &Signals,
) -> Result<Option<Error>> {
    let payload = PayloadPlace::new(options.user.as_ref())?;
    let before = leftovers::sweep();
    // The files that this reads must not be in the trace.
    let refused = trees.walk(series.current.output.writer().folder())?;
    if let Some(why) = refused.into_iter().next() {
        return Err(why);
    }
    let mut storage = ObjectStorage::new();
    let drive = Drive::below(&subject.device);
    let first = &mut series.current;
    first.manifest.health = drive.as_ref().and_then(Drive::begin);
    first.readings.take();
    let bundle = first.output.writer();
    let manifest = &mut first.manifest;
    manifest.notes.extend(before);
    let mut tracing = Tracing::start(options, subject, bundle, &mut storage, manifest)?;
    first.readings.take();
    manifest.clock = clock::now();
    manifest.sources = tracing.sources(&subject.names);
    notes::own_disk(subject, &first.output, manifest)?;
    notes::mapped(subject, manifest);
    bundle.put_manifest(manifest)?;
    series.tracing_began();

    let place = payload.path();
    let command = (!options.argv.is_empty()).then_some(Start {
        argv: &options.argv,
        payload: &place,
        user: options.user.as_ref(),
        stdout_aside: options.stdout_aside,
        wait: !options.no_wait,
    });
    let ended = run::run(options, &mut tracing, series, command, signals);
    let Ended { status, early } = ended.inspect_err(|_| {
        // The disk may be full, and the error to report is that one; what waits gives its own room back.
        let _ = tracing.catch_up();
    })?;
    let mut late = Late::new(series.folder());
    if options.sync {
        for mount in subject.mount_points() {
            late.note("not synced", run::sync(&mount, &mut tracing))?;
        }
    }
    let settled = run::settle(&subject.device, &mut tracing);
    late.note("the requests in flight were not waited for", settled)?;
    let Open {
        output,
        manifest,
        readings,
    } = &mut series.current;
    let folder = output.writer().folder();
    readings.take();
    tracing.stop(manifest)?;
    loops::add(subject, &mut manifest.loops);
    readings.take();
    let mut missing = series
        .finisher
        .as_mut()
        .map_or_else(Missing::default, Finisher::missing);
    counters::put(readings.compare(folder), &mut missing, manifest);
    if let (Some(health), Some(drive)) = (&mut manifest.health, &drive) {
        health.after = drive.read();
    }
    for why in trees.walk(folder)? {
        late.note("--names: not walked after the recording", Err::<(), _>(why))?;
    }
    manifest.notes.extend(trees.notes());
    let named = trees.named().map(|n| (layout::count_of(layout::NAMES), n));
    manifest.counts.extend(named);
    if let Some(command) = &mut manifest.command {
        command.exit_status = status;
    }
    manifest.payload = late.note("no payload", payload.read())?.flatten();
    let told = early
        .as_ref()
        .map(|why| format!("the recording ended early: {why}"));
    manifest.notes.extend(told);
    manifest.notes.extend(late.into_notes());
    notes::nothing_seen(subject, manifest);
    notes::another_disk(subject, manifest);
    output.leave_memory()?;
    if !options.no_snapshot {
        take_snapshot(subject, output.writer(), manifest);
    }
    series.complete()?;
    Ok(early)
}

fn first_manifest(options: &Options, subject: &Subject) -> Manifest {
    let words = options.argv.iter();
    let argv: Vec<_> = words.map(|a| a.to_string_lossy().into_owned()).collect();
    Manifest {
        schema: SCHEMA,
        tool: concat!("mostrace ", env!("CARGO_PKG_VERSION")).into(),
        kernel: kernel::describe(),
        label: options.label.clone(),
        device: subject.device.info.clone(),
        filesystem: subject.filesystem.clone(),
        mapping: subject
            .mapped
            .as_ref()
            .map_or_else(Vec::new, |m| m.mapping.clone()),
        loops: loops::of(subject),
        notes: [&subject.notes[..], &options.note].concat(),
        command: (!argv.is_empty()).then_some(manifest::Command {
            argv,
            exit_status: None,
            pid: None,
            alone: Some(options.alone),
            copied: options.copied,
        }),
        ..Manifest::default()
    }
}

/// Takes the snapshot. If it cannot be taken, the reason becomes a note, because a trace without a snapshot is worth keeping.
fn take_snapshot(subject: &Subject, bundle: &Writer, manifest: &mut Manifest) {
    let Some(filesystem) = &subject.filesystem else {
        return;
    };
    match snapshot::take(
        subject.of_filesystem(),
        subject.members(),
        filesystem,
        bundle.folder(),
    ) {
        Ok(snapshot) => manifest.snapshot = Some(snapshot),
        Err(e) => manifest.notes.push(format!("no snapshot: {e}")),
    }
}

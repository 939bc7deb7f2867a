// SPDX-License-Identifier: MIT OR Apache-2.0
//! One capture, from the first probe to the packed bundle.
//!
//! [`Subject`] is what is to be recorded, [`Tracing`] the sources that record it, [`Series`] the bundles that it goes to.

use mostrace_bundle::Writer;
use mostrace_bundle::manifest::{self, Manifest, SCHEMA};

use crate::clock;
use crate::command::Start;
use crate::error::Result;
use crate::kernel;
use crate::payload::PayloadPlace;
use crate::probes::Rooms;
use crate::snapshot;

mod counters;
mod finisher;
mod naming;
mod notes;
mod options;
mod output;
mod run;
mod series;
mod signals;
mod sources;
mod subject;
mod tracing;

pub use naming::segment;
pub use options::{Options, Outcome, Segments, Size};
pub use output::check_output;
use series::{Open, Series};
use signals::Signals;
use subject::Subject;
use tracing::Tracing;

/// Records until the command ends, the time is up, or SIGINT.
///
/// # Errors
/// Anything that keeps the capture from being made; what was written before stays, as a
/// bundle whose state is `recording`.
pub fn record(options: &Options) -> Result<Outcome> {
    let subject = Subject::find(options)?;
    let mut series = Series::begin(options, &subject, first_manifest(options, &subject))?;
    if let Err(e) = capture(options, &subject, &mut series) {
        return Err(series.abandon(e));
    }
    let (manifest, output) = series.end()?;
    let status = manifest.command.as_ref().and_then(|c| c.exit_status);
    Ok(Outcome {
        exit_status: status.unwrap_or(0),
        manifest,
        output,
    })
}

fn capture(options: &Options, subject: &Subject, series: &mut Series<'_>) -> Result<()> {
    let signals = Signals::new()?;
    let mut rooms = Rooms::new();
    let first = &mut series.current;
    first.readings.take();
    let bundle = first.output.writer();
    let manifest = &mut first.manifest;
    let mut tracing = Tracing::start(options, subject, bundle, &mut rooms, manifest)?;
    first.readings.take();
    manifest.clock = clock::now();
    manifest.sources = tracing.sources(&subject.names);
    notes::own_disk(subject, bundle, manifest)?;
    notes::mapped(subject, manifest);
    bundle.put_manifest(manifest)?;

    let payload = PayloadPlace::new(subject.user.as_ref())?;
    let place = payload.path();
    let command = (!options.argv.is_empty()).then_some(Start {
        argv: &options.argv,
        payload: &place,
        user: subject.user.as_ref(),
        wait: options.wait_for_descendants,
    });
    let status = run::run(options, &mut tracing, series, command, &signals);
    if options.sync {
        for mount in subject.mount_points() {
            run::sync(&mount, &mut tracing)?;
        }
    }
    run::settle(&subject.device, &mut tracing)?;
    let Open {
        output,
        manifest,
        readings,
    } = &mut series.current;
    let folder = output.writer().folder();
    readings.take();
    tracing.stop(folder, manifest)?;
    readings.take();
    manifest.counters = Some(readings.compare(folder));
    let status = status?;

    if let Some(command) = &mut manifest.command {
        command.exit_status = status;
    }
    manifest.payload = payload.read()?;
    notes::nothing_seen(subject, manifest);
    if options.snapshot {
        take_snapshot(subject, output.writer(), manifest);
    }
    series.complete()
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
        notes: subject.notes.clone(),
        command: (!argv.is_empty()).then_some(manifest::Command {
            argv,
            exit_status: None,
        }),
        ..Manifest::default()
    }
}

/// A trace without a snapshot is worth keeping: what keeps it from being taken is a note.
fn take_snapshot(subject: &Subject, bundle: &Writer, manifest: &mut Manifest) {
    let Some(filesystem) = &subject.filesystem else {
        return;
    };
    match snapshot::take(subject.of_filesystem(), filesystem, bundle.folder()) {
        Ok(snapshot) => manifest.snapshot = Some(snapshot),
        Err(e) => manifest.notes.push(format!("no snapshot: {e}")),
    }
}

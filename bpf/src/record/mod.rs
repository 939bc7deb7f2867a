// SPDX-License-Identifier: MIT OR Apache-2.0
//! One capture, from the first probe to the packed bundle.
//!
//! [`Subject`] is what is to be recorded, [`Tracing`] the sources that record it, [`Output`] where it goes.

use mostrace_bundle::Writer;
use mostrace_bundle::manifest::{self, Manifest, SCHEMA, State};

use crate::clock;
use crate::command::Start;
use crate::error::Result;
use crate::kernel;
use crate::payload::PayloadPlace;
use crate::probes::Rooms;
use crate::progress::Packing;
use crate::snapshot;

mod counters;
mod notes;
mod options;
mod output;
mod run;
mod signals;
mod sources;
mod subject;
mod tracing;

use counters::Readings;
pub use options::{Options, Outcome};
use output::Output;
pub use output::check_output;
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
    let output = Output::create(&options.output)?;
    match capture(options, &subject, output.writer()) {
        Ok(manifest) => {
            output.finish(Packing::new(options.progress.of_packing()))?;
            let status = manifest.command.as_ref().and_then(|c| c.exit_status);
            Ok(Outcome {
                exit_status: status.unwrap_or(0),
                manifest,
            })
        }
        Err(e) => {
            let e = match output.is_begun() {
                true => e.or_disk_full(output.writer().dir()),
                false => e,
            };
            output.abandon(&e);
            Err(e)
        }
    }
}

fn capture(options: &Options, subject: &Subject, bundle: &Writer) -> Result<Manifest> {
    let mut manifest = first_manifest(options, subject);
    let signals = Signals::new()?;
    let mut rooms = Rooms::new();
    let mut readings = Readings::new(&subject.device);
    readings.take();
    let mut tracing = Tracing::start(options, subject, bundle, &mut rooms, &mut manifest)?;
    readings.take();
    manifest.clock = clock::now();
    manifest.sources = tracing.sources(&subject.names);
    notes::own_disk(subject, bundle, &mut manifest)?;
    notes::mapped(subject, &mut manifest);
    bundle.put_manifest(&manifest)?;

    let payload = PayloadPlace::new(subject.user.as_ref())?;
    let place = payload.path();
    let command = (!options.argv.is_empty()).then_some(Start {
        argv: &options.argv,
        payload: &place,
        user: subject.user.as_ref(),
        wait: options.wait_for_descendants,
    });
    let status = run::run(options, &mut tracing, command, &signals);
    if let Some(mount) = subject.mount_point().filter(|_| options.sync) {
        run::sync(mount, &mut tracing)?;
    }
    run::settle(&subject.device, &mut tracing)?;
    readings.take();
    tracing.stop(bundle.folder(), &mut manifest)?;
    readings.take();
    manifest.counters = Some(readings.compare(bundle.folder()));
    let status = status?;

    if let Some(command) = &mut manifest.command {
        command.exit_status = status;
    }
    manifest.payload = payload.read()?;
    notes::nothing_seen(subject, &mut manifest);
    if options.snapshot {
        take_snapshot(subject, bundle, &mut manifest);
    }
    manifest.files = bundle.sizes()?;
    manifest.state = State::Complete;
    bundle.put_manifest(&manifest)?;
    Ok(manifest)
}

fn first_manifest(options: &Options, subject: &Subject) -> Manifest {
    let words = options.argv.iter();
    let argv: Vec<_> = words.map(|a| a.to_string_lossy().into_owned()).collect();
    Manifest {
        schema: SCHEMA,
        tool: concat!("mostrace ", env!("CARGO_PKG_VERSION")).into(),
        state: State::Recording,
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! One capture, from the first probe to the packed bundle.
//!
//! [`Subject`] is what is to be recorded, [`Tracing`] the sources that record it, [`Output`] where it goes.

use std::fs;
use std::path::Path;

use mostrace_bundle::Writer;
use mostrace_bundle::manifest::{self, Manifest, SCHEMA, State};

use crate::clock;
use crate::error::{At, Error, Result};
use crate::kernel;
use crate::probes::Rooms;
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
            output.finish()?;
            let status = manifest.command.as_ref().and_then(|c| c.exit_status);
            Ok(Outcome {
                exit_status: status.unwrap_or(0),
                manifest,
            })
        }
        Err(e) => {
            output.abandon();
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

    let payload =
        tempfile::NamedTempFile::with_prefix("mostrace-payload-").at(std::env::temp_dir())?;
    let status = run::run(options, &mut tracing, payload.path(), &signals);
    if let Some(mount) = subject.mount_point().filter(|_| options.sync) {
        run::sync(mount, &mut tracing)?;
    }
    readings.take();
    tracing.stop(bundle.dir(), &mut manifest)?;
    readings.take();
    manifest.counters = Some(readings.compare(bundle.dir()));
    let status = status?;

    if let Some(command) = &mut manifest.command {
        command.exit_status = status;
    }
    manifest.payload = read_payload(payload.path())?;
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
        device: subject.device.info.clone(),
        filesystem: subject.filesystem.clone(),
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
    match snapshot::take(&subject.device, filesystem, bundle.dir()) {
        Ok(snapshot) => manifest.snapshot = Some(snapshot),
        Err(e) => manifest.notes.push(format!("no snapshot: {e}")),
    }
}

fn read_payload(path: &Path) -> Result<Option<manifest::Payload>> {
    let text = fs::read(path).at(path)?;
    if text.is_empty() {
        return Ok(None);
    }
    serde_json::from_slice(&text)
        .map(Some)
        .map_err(|e| Error::malformed("the workload's payload", e))
}

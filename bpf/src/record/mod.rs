// SPDX-License-Identifier: MIT OR Apache-2.0
//! One capture, from the first probe to the packed bundle.
//!
//! [`Subject`] is what is to be recorded, [`Tracing`] the sources that record it, [`Output`] where it goes.

use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mostrace_bundle::Writer;
use mostrace_bundle::manifest::{self, Manifest, SCHEMA, State};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::clock;
use crate::command::Start;
use crate::error::{At, Result};
use crate::kernel;
use crate::payload::PayloadPlace;
use crate::progress::Packing;
use crate::snapshot;

mod notes;
mod options;
mod output;
mod run;
mod sources;
mod subject;
mod tracing;

pub use options::{Options, Outcome};
use output::Output;
pub use output::check_output;
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
    let stop = stop_signals()?;
    let mut storage = MaybeUninit::uninit();
    let mut tracing = Tracing::start(options, subject, bundle, &mut storage, &mut manifest)?;
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
    let status = run::run(options, &mut tracing, command, &stop);
    if let Some(mount) = subject.mount_point().filter(|_| options.sync) {
        run::sync(mount, &mut tracing)?;
    }
    tracing.stop(&mut manifest)?;
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

/// Set by the signals that end a recording.
fn stop_signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).at("signal handler")?;
    }
    Ok(stop)
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

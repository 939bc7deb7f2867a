// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notes in the manifest about the recorded device.

use std::fs;
use std::os::unix::fs::MetadataExt;

use mostrace_bundle::Manifest;

use super::output::Output;
use super::subject::Subject;
use crate::error::{At, Result};
use crate::machine::medium::Medium;

/// Adds a note if the device has no requests of its own.
pub(super) fn mapped(subject: &Subject, manifest: &mut Manifest) {
    let below = subject.device.below();
    if !below.is_empty() {
        manifest.notes.push(format!(
            "{} is mapped onto {}: what is traced are its bios; they become requests only there",
            subject.device.info.name,
            below.join(", ")
        ));
    }
}

/// Adds a note if the trace is empty.
pub(super) fn nothing_seen(subject: &Subject, manifest: &mut Manifest) {
    let kept = |name: &str| manifest.counts.get(name).copied();
    // For one of several segments, this would say nothing.
    let is_later = manifest.segment.as_ref().is_some_and(|s| s.number > 1);
    if !is_later && kept("process_entries").or_else(|| kept("events")) == Some(0) {
        let name = &subject.device.info.name;
        let note = format!("no IO of {name} was seen: was this the device?");
        manifest.notes.push(note);
    }
}

/// Adds a note if the disk is not the same as at the beginning: the places of files are known only for the later one.
pub(super) fn another_disk(subject: &Subject, manifest: &mut Manifest) {
    let now = Medium::of(&subject.device, subject.of_filesystem());
    let changes = subject.medium.changes(&now);
    if !changes.is_empty() {
        manifest.notes.push(format!(
            "{} changed while it was recorded: {}; the snapshot and the names are of what is there now",
            subject.device.info.name,
            changes.join("; ")
        ));
    }
}

/// Adds a note if the tracer's own writes are part of the trace, or those of segments that have ended.
///
/// # Errors
/// Returns an error if the bundle's folder is gone.
pub(super) fn own_disk(subject: &Subject, output: &Output, manifest: &mut Manifest) -> Result<()> {
    let (what, folder) = match output.is_in_memory() {
        true => ("finished segments go to", output.parent()),
        false => ("the bundle is on", output.writer().folder()),
    };
    let (dir, held) = (folder.path(), folder.handle());
    if subject
        .device
        .shares_disk_with(fs::metadata(held).at(dir)?.dev())
    {
        // The folder's path may go through a descriptor.
        let shown = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
        manifest.notes.push(format!(
            "{what} the traced disk: its own writes ({}, by process {}) are in the trace",
            shown.display(),
            std::process::id()
        ));
    }
    Ok(())
}

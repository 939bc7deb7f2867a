// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which sources of entries and of block events are taken.

use std::path::Path;

use super::Options;
use super::subject::Subject;
use crate::device::Device;
use crate::entries::bpf::BpfEntries;
use crate::entries::kernel::KernelEntries;
use crate::entries::{Entries, EntrySource};
use crate::error::{Error, Result};
use crate::events::blktrace::Blktrace;
use crate::events::bpf::BpfEvents;
use crate::events::ftrace::Ftrace;
use crate::events::{Choice, EventSource};
use crate::probes::Loader;

/// By choice, or the first that works; None if none is asked for.
pub(super) fn entry_source(
    options: &Options,
    subject: &Subject,
    dir: &Path,
    probes: &mut Loader<'_>,
    notes: &mut Vec<String>,
) -> Result<Option<Box<dyn EntrySource>>> {
    let Subject { device, names, .. } = subject;
    let mut bpf = || -> Result<Box<dyn EntrySource>> {
        let probes = probes.load(device)?;
        Ok(Box::new(BpfEntries::start(probes, dir, names.clone())?))
    };
    let kernel = || -> Result<Box<dyn EntrySource>> {
        let (paths, dev) = (&options.kernel, &device.info.dev);
        Ok(Box::new(KernelEntries::start(
            paths,
            dev,
            dir,
            names.clone(),
        )?))
    };
    match options.entries {
        Entries::None => Ok(None),
        Entries::Bpf => bpf().map(Some),
        Entries::Kernel => kernel().map(Some),
        Entries::Auto => {
            let unfit = match bpf() {
                Ok(source) => return Ok(Some(source)),
                Err(e) => e,
            };
            let source = kernel().map_err(|e| {
                Error::unfit(format!(
                    "no source of entries: {unfit}; {e}; --entries none does without"
                ))
            })?;
            notes.push(format!("entries bpf not taken: {unfit}"));
            Ok(Some(source))
        }
    }
}

/// By choice, or the first that works.
pub(super) fn event_source(
    choice: Choice,
    device: &Device,
    dir: &Path,
    probes: &mut Loader<'_>,
    notes: &mut Vec<String>,
) -> Result<Box<dyn EventSource>> {
    let mut others = Vec::new();
    if let Some(source) = kernel_source(choice, device, dir, &mut others)? {
        notes.append(&mut others);
        return Ok(source);
    }
    let source = probes
        .load(device)
        .and_then(|probes| BpfEvents::start(probes, dir));
    let source = source.map_err(|e| match choice {
        Choice::Auto => Error::unfit(format!(
            "no source of block events: {}; source bpf not taken: {e}",
            others.join("; ")
        )),
        _ => e,
    })?;
    notes.append(&mut others);
    Ok(Box::new(source))
}

/// The kernel's own tracer, by choice or the first that works; None for the probes.
fn kernel_source(
    choice: Choice,
    device: &Device,
    dir: &Path,
    notes: &mut Vec<String>,
) -> Result<Option<Box<dyn EventSource>>> {
    let blktrace = || Blktrace::start(device, dir).map(|s| Box::new(s) as Box<dyn EventSource>);
    let ftrace = || Ftrace::start(device, dir).map(|s| Box::new(s) as Box<dyn EventSource>);
    match choice {
        Choice::Bpf => Ok(None),
        Choice::Blktrace => blktrace().map(Some),
        Choice::Ftrace => ftrace().map(Some),
        Choice::Auto => {
            match blktrace() {
                Ok(source) => return Ok(Some(source)),
                Err(e) => notes.push(format!("source blktrace not taken: {e}")),
            }
            match ftrace() {
                Ok(source) => return Ok(Some(source)),
                Err(e) => notes.push(format!("source ftrace not taken: {e}")),
            }
            Ok(None)
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which sources of entries and of block events are taken.

use mostrace_bundle::{Folder, Manifest};

use super::Options;
use super::subject::Subject;
use crate::causes::{CauseSource, Causes};
use crate::choice::Choice;
use crate::device::Device;
use crate::entries::bpf::BpfEntries;
use crate::entries::kernel::KernelEntries;
use crate::entries::{Entries, EntrySource};
use crate::error::{Error, Refused, Result};
use crate::events::EventSource;
use crate::events::blktrace::{self, Blktrace};
use crate::events::bpf::BpfEvents;
use crate::events::ftrace::Ftrace;
use crate::probes::Loader;
use crate::tracefs::{TracefsEntries, TracefsEvents};

/// By choice, or the first that works; None if none is asked for. The manifest says what the source cannot tell, and why
/// another one was passed over.
pub(super) fn entry_source(
    options: &Options,
    subject: &Subject,
    folder: &Folder,
    probes: &mut Loader<'_>,
    manifest: &mut Manifest,
) -> Result<Option<Box<dyn EntrySource>>> {
    let Subject { device, names, .. } = subject;
    let is_cut = options.segments.is_some();
    let mut bpf = || -> Result<(Box<dyn EntrySource>, Vec<String>)> {
        let probes = probes.entries(device)?;
        let source = BpfEntries::start(probes, folder, names.clone(), is_cut)?;
        Ok((Box::new(source), probes.notes().to_vec()))
    };
    let kernel = || -> Result<Box<dyn EntrySource>> {
        let (paths, dev) = (&options.kernel, &device.info.dev);
        Ok(Box::new(KernelEntries::start(
            paths,
            dev,
            folder,
            names.clone(),
            is_cut,
        )?))
    };
    let tracefs = || -> Result<(Box<dyn EntrySource>, Vec<String>)> {
        let size = subject.block_size();
        let source = TracefsEntries::start(device, size, folder, names.clone(), is_cut)?;
        let notes = source.notes();
        Ok((Box::new(source), notes))
    };
    let (source, told) = match options.entries {
        Entries::None => return Ok(None),
        Entries::Bpf => bpf()?,
        Entries::Kernel => (kernel()?, Vec::new()),
        Entries::Tracefs => tracefs()?,
        Entries::Auto => {
            let (first, refused) = match bpf() {
                Ok(found) => (found, Vec::new()),
                Err(bpf) => match kernel() {
                    Ok(source) => ((source, Vec::new()), vec![("bpf", bpf)]),
                    Err(kernel) => match tracefs() {
                        Ok(found) => (found, vec![("bpf", bpf), ("kernel", kernel)]),
                        Err(tracefs) => {
                            return Err(Error::NoEntries {
                                bpf: Box::new(bpf),
                                kernel: Box::new(kernel),
                                tracefs: Box::new(tracefs),
                            });
                        }
                    },
                },
            };
            let why = refused
                .iter()
                .map(|(name, why)| format!("entries {name} not taken: {why}"));
            manifest.passed_over.extend(why);
            first
        }
    };
    manifest.notes.extend(told);
    Ok(Some(source))
}

/// The probes of causes, if they are asked for and the kernel takes them; those of a bare block trace would lead to
/// nothing. The manifest says why there are none.
pub(super) fn cause_source(
    options: &Options,
    subject: &Subject,
    folder: &Folder,
    probes: &mut Loader<'_>,
    manifest: &mut Manifest,
) -> Result<Option<CauseSource>> {
    if options.causes == Causes::None || options.entries == Entries::None {
        return Ok(None);
    }
    // Whoever asks for plain tracepoints asks that nothing is loaded.
    if options.causes == Causes::Auto && options.entries == Entries::Tracefs {
        return Ok(None);
    }
    let started = probes
        .causes(&subject.device)
        .and_then(|probes| CauseSource::start(probes, folder, options.segments.is_some()));
    match started {
        Ok(source) => Ok(Some(source)),
        Err(e) if options.causes == Causes::Auto => {
            manifest.notes.push(format!("no causes: {e}"));
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

/// By choice, or the first that works.
pub(super) fn event_source(
    choice: Choice,
    options: &Options,
    device: &Device,
    folder: &Folder,
    probes: &mut Loader<'_>,
    passed_over: &mut Vec<String>,
) -> Result<Box<dyn EventSource>> {
    let is_cut = options.segments.is_some();
    Ok(match choice {
        Choice::Auto => return first_that_works(options, device, folder, probes, passed_over),
        Choice::Blktrace if is_cut => return Err(blktrace::not_cut()),
        Choice::Blktrace => Box::new(Blktrace::start(device, folder)?),
        Choice::Ftrace => Box::new(Ftrace::start(device, folder, is_cut)?),
        Choice::Tracefs => Box::new(TracefsEvents::start(device, folder, is_cut)?),
        Choice::Bpf => {
            let probes = probes.events(device, options.events)?;
            Box::new(BpfEvents::start(probes, device, folder, is_cut)?)
        }
    })
}

fn first_that_works(
    options: &Options,
    device: &Device,
    folder: &Folder,
    probes: &mut Loader<'_>,
    passed_over: &mut Vec<String>,
) -> Result<Box<dyn EventSource>> {
    let mut refused = Vec::new();
    for choice in Choice::IN_ORDER {
        match event_source(choice, options, device, folder, probes, passed_over) {
            Ok(source) => {
                passed_over.extend(refused.iter().map(Refused::to_string));
                return Ok(source);
            }
            Err(why) => refused.push(Refused {
                source: choice,
                why,
            }),
        }
    }
    Err(Error::NoEvents { refused })
}

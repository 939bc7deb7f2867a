// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which sources of entries and of block events are taken.

use mostrace_bundle::{Folder, Manifest};

use super::Options;
use super::subject::Subject;
use crate::causes::{BpfCauses, CauseSource, Causes};
use crate::choice::Choice;
use crate::entries::bpf::BpfEntries;
use crate::entries::kernel::KernelEntries;
use crate::entries::{Entries, EntrySource};
use crate::error::{Error, Refused, Result};
use crate::events::EventSource;
use crate::events::blktrace::{self, Blktrace};
use crate::events::bpf::BpfEvents;
use crate::events::ftrace::Ftrace;
use crate::machine::device::Device;
use crate::probes::Loader;
use crate::probes::events::Wanted;
use crate::tracefs::{TracefsEntries, TracefsEvents};

/// What explains events.
pub(super) struct Explaining {
    pub entries: Option<Box<dyn EntrySource>>,
    pub causes: Option<Box<dyn CauseSource>>,
}

/// By choice, or the first that works; None if none is asked for. The manifest says what the source cannot tell, and why
/// another one was passed over.
fn entry_source(
    options: &Options,
    subject: &Subject,
    folder: &Folder,
    probes: &mut Loader<'_>,
    with_causes: bool,
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
        let filesystems = match with_causes {
            true => device.filesystems().into_iter().map(dev_name).collect(),
            false => Vec::new(),
        };
        Ok(Box::new(KernelEntries::start(
            paths,
            dev,
            &filesystems,
            folder,
            names.clone(),
            is_cut,
        )?))
    };
    let tracefs = || -> Result<(Box<dyn EntrySource>, Vec<String>)> {
        let volume = subject.volume();
        let source = TracefsEntries::start(device, volume, folder, names.clone(), is_cut)?;
        let notes = source.told();
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

/// Entries and causes, which may come from one place. What explains an event is started first: then none is without.
pub(super) fn explaining_sources(
    options: &Options,
    subject: &Subject,
    folder: &Folder,
    probes: &mut Loader<'_>,
    manifest: &mut Manifest,
) -> Result<Explaining> {
    let wanted = match options.entries {
        Entries::None if options.causes == Causes::Kernel => {
            return Err(Error::RecorderHasNoCauses);
        }
        Entries::None if options.causes == Causes::Bpf => return Err(Error::CausesWithoutEntries),
        Entries::None => Causes::None,
        // Whoever asks for plain tracepoints asks that nothing is loaded.
        Entries::Tracefs if options.causes == Causes::Auto => Causes::None,
        _ => options.causes,
    };
    let is_recorders =
        wanted == Causes::Kernel || wanted == Causes::Auto && options.entries == Entries::Kernel;
    let by_probes = |probes: &mut Loader<'_>| -> Result<Box<dyn CauseSource>> {
        let probes = probes.causes(&subject.device, !options.argv.is_empty())?;
        let is_cut = options.segments.is_some();
        let names = subject.names.clone();
        Ok(Box::new(BpfCauses::start(probes, folder, names, is_cut)?))
    };
    let first = match wanted {
        Causes::Bpf => Some(by_probes(probes)),
        Causes::Auto if !is_recorders => Some(by_probes(probes)),
        _ => None,
    };
    let has_none = !matches!(first, Some(Ok(_)));
    let with_causes = has_none && matches!(wanted, Causes::Auto | Causes::Kernel);
    let entries = entry_source(options, subject, folder, probes, with_causes, manifest)?;
    let recorders = entries.as_ref().and_then(|entries| entries.causes());
    let causes = match (first, recorders) {
        (Some(Ok(causes)), _) | (_, Some(causes)) => Some(causes),
        (Some(Err(why)), None) if wanted == Causes::Bpf => return Err(why),
        (None, None) if wanted == Causes::Kernel => return Err(Error::RecorderHasNoCauses),
        (None, None) if wanted == Causes::None => None,
        (refused, None) => {
            let tried = refused.unwrap_or_else(|| by_probes(probes));
            let told = tried.as_ref().err().map(|why| format!("no causes: {why}"));
            manifest.notes.extend(told);
            tried.ok()
        }
    };
    Ok(Explaining { entries, causes })
}

/// MAJ:MIN.
fn dev_name(dev: u32) -> String {
    format!("{}:{}", dev >> 20, dev & 0xf_ffff)
}

/// By choice, or the first that works. Where `entries` come from probes, these tell some events of the probes.
pub(super) fn event_source(
    choice: Choice,
    options: &Options,
    device: &Device,
    folder: &Folder,
    probes: &mut Loader<'_>,
    entries: &mut Option<Box<dyn EntrySource>>,
    passed_over: &mut Vec<String>,
) -> Result<Box<dyn EventSource>> {
    let is_cut = options.segments.is_some();
    Ok(match choice {
        Choice::Auto => {
            return first_that_works(options, device, folder, probes, entries, passed_over);
        }
        Choice::Blktrace if is_cut => return Err(blktrace::not_cut()),
        Choice::Blktrace => Box::new(Blktrace::start(device, folder)?),
        Choice::Ftrace => Box::new(Ftrace::start(device, folder, is_cut)?),
        Choice::Tracefs => Box::new(TracefsEvents::start(device, folder, is_cut)?),
        Choice::Bpf => {
            let teller = entries.as_mut().and_then(|entries| entries.teller());
            let wanted = Wanted {
                events: options.events,
                told_elsewhere: teller.is_some(),
            };
            let probes = probes.events(device, wanted)?;
            Box::new(BpfEvents::start(probes, teller, device, folder, is_cut)?)
        }
    })
}

fn first_that_works(
    options: &Options,
    device: &Device,
    folder: &Folder,
    probes: &mut Loader<'_>,
    entries: &mut Option<Box<dyn EntrySource>>,
    passed_over: &mut Vec<String>,
) -> Result<Box<dyn EventSource>> {
    let mut refused = Vec::new();
    for choice in Choice::IN_ORDER {
        match event_source(
            choice,
            options,
            device,
            folder,
            probes,
            entries,
            passed_over,
        ) {
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

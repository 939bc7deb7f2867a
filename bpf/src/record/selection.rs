// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the sources that record.

use mostrace_bundle::{DeviceNumber, Manifest};

use super::Options;
use super::subject::Subject;
use crate::choice::{Causes, Choice, Entries, Operations};
use crate::error::{Error, Refused, Result};
use crate::machine::device::Device;
use crate::machine::members;
use crate::sink::Sink;
use crate::source::blktrace::{self, Blktrace};
use crate::source::bpf::{self, BpfSource, Known, Parts, process1};
use crate::source::recorder::Recorder;
use crate::source::tracefs::{ProcessNames, TracefsEntries, TracefsEvents};
use crate::source::{Provides, Remark, Source};

/// The number of times that process 1 is waited for; it is small, because a recording should start at once.
const TRIES: usize = 6;

/// The sources, while they are chosen and started.
pub(super) struct Selection<'a, 'o> {
    options: &'a Options,
    subject: &'a Subject,
    sink: &'a mut Sink,
    /// The probes, which may provide any part of a recording.
    bpf: BpfSource<'o>,
    /// The source of entries, if that is not the probes.
    entries: Option<Box<dyn Source + 'o>>,
    /// The source of the names of processes, if the probes do not make the entries.
    names: Option<Result<ProcessNames>>,
    /// The source of events, if that is not the probes.
    events: Option<Box<dyn Source + 'o>>,
}

/// Chooses and starts the sources, and returns them in the order in which they must be polled. Entries and causes are started
/// before events, so that every event has its own. The manifest says what the sources cannot tell, and why others were passed over.
///
/// # Errors
/// Returns an error if there is no source of the requested kind.
pub(super) fn start_sources<'o>(
    options: &Options,
    subject: &Subject,
    bpf: BpfSource<'o>,
    sink: &mut Sink,
    manifest: &mut Manifest,
) -> Result<Vec<Box<dyn Source + 'o>>> {
    let mut selection = Selection {
        options,
        subject,
        sink,
        bpf,
        entries: None,
        names: None,
        events: None,
    };
    selection.start_entries_and_causes(manifest)?;
    if options.operations != Operations::None {
        let (device, what) = (&selection.subject.device, options.operations);
        selection
            .bpf
            .start_operations(device, what, selection.sink)?;
    }
    selection.start_events(manifest)?;
    let Selection {
        bpf,
        entries,
        names,
        events,
        ..
    } = selection;
    // Events are polled first, so that a reader of the growing bundle finds their entries. If the probes and the source of entries
    // both report a counter, the value of the source of entries wins.
    let mut sources: Vec<Box<dyn Source + 'o>> = Vec::new();
    sources.extend(events);
    sources.push(Box::new(bpf));
    sources.extend(entries);
    if let Some(Ok(names)) = names {
        sources.push(Box::new(names));
    }
    Ok(sources)
}

impl Selection<'_, '_> {
    fn start_entries_and_causes(&mut self, manifest: &mut Manifest) -> Result<()> {
        let wanted = self.wanted_causes()?;
        if self.options.stacks && matches!(wanted, Causes::None | Causes::Kernel) {
            return Err(Error::NoStacks(None));
        }
        let are_recorders = wanted == Causes::Kernel
            || wanted == Causes::Auto && self.options.entries == Entries::Kernel;
        let refused = match wanted {
            Causes::Bpf => self.start_bpf_causes().err(),
            Causes::Auto if !are_recorders => self.start_bpf_causes().err(),
            _ => None,
        };
        let with_causes =
            !self.provides(Provides::CAUSES) && matches!(wanted, Causes::Auto | Causes::Kernel);
        if self.options.stacks && with_causes {
            return Err(Error::NoStacks(refused.map(Box::new)));
        }
        self.start_entries(with_causes, manifest)?;
        if self.provides(Provides::CAUSES) || wanted == Causes::None {
            return Ok(());
        }
        let tried = match (wanted, refused) {
            (Causes::Kernel, _) => return Err(Error::RecorderHasNoCauses),
            (Causes::Bpf, Some(why)) => return Err(why),
            (_, Some(why)) => Err(why),
            (_, None) => self.start_bpf_causes(),
        };
        let why = tried.err().map(|why| format!("no causes: {why}"));
        manifest.notes.extend(why);
        Ok(())
    }

    fn wanted_causes(&self) -> Result<Causes> {
        match (self.options.entries, self.options.causes) {
            (Entries::None, Causes::Kernel) => Err(Error::RecorderHasNoCauses),
            (Entries::None, Causes::Bpf) => Err(Error::CausesWithoutEntries),
            (Entries::None, _) => Ok(Causes::None),
            // A user who asks for plain tracepoints wants nothing to be loaded.
            (Entries::Tracefs, Causes::Auto) => Ok(Causes::None),
            (_, causes) => Ok(causes),
        }
    }

    fn start_bpf_causes(&mut self) -> Result<()> {
        let parts = Parts {
            forks: !self.options.argv.is_empty(),
            stacks: self.options.stacks,
        };
        self.bpf
            .start_causes(&self.subject.device, parts, self.sink)
    }

    fn start_entries(&mut self, with_causes: bool, manifest: &mut Manifest) -> Result<()> {
        match self.options.entries {
            Entries::None => return Ok(()),
            Entries::Auto => {
                let (order, blind) = order_of_entries();
                let start = |entries| self.start_entries_by(entries, with_causes);
                match first_that_starts("entries", &order, start) {
                    Ok(passed_over) => manifest.passed_over.extend(passed_over),
                    Err(refused) => return Err(Error::NoEntries(refused)),
                }
                // If the probes were chosen after all, they were not passed over.
                if let Some(why) = blind.filter(|_| self.entries.is_some()) {
                    manifest.passed_over.push(why.to_string());
                }
            }
            entries => self.start_entries_by(entries, with_causes)?,
        }
        self.names = self.names.take().filter(|_| self.entries.is_some());
        if let Some(Err(why)) = &self.names {
            let note = format!("processes that begin or are renamed meanwhile have no name: {why}");
            manifest.notes.push(note);
        }
        let source: &dyn Source = self.entries.as_deref().unwrap_or(&self.bpf);
        let limits = source
            .remarks()
            .into_iter()
            .filter_map(|remark| match remark {
                Remark::Limit(limit) => Some(limit),
                _ => None,
            });
        manifest.notes.extend(limits);
        Ok(())
    }

    fn start_entries_by(&mut self, entries: Entries, with_causes: bool) -> Result<()> {
        let device = &self.subject.device;
        // Names are listened to before those that processes have already are read.
        if matches!(entries, Entries::Kernel | Entries::Tracefs) && self.names.is_none() {
            self.names = Some(ProcessNames::start());
        }
        match entries {
            Entries::Bpf => self.bpf.start_entries(device, self.sink)?,
            Entries::Kernel => {
                let filesystems = match with_causes {
                    true => members::filesystems(device)
                        .into_iter()
                        .map(|dev| DeviceNumber::of(dev).to_string())
                        .collect(),
                    false => Vec::new(),
                };
                let (paths, dev) = (&self.options.kernel, &device.info.dev);
                let recorder = Recorder::start(paths, dev, &filesystems, self.sink)?;
                self.entries = Some(Box::new(recorder));
            }
            Entries::Tracefs => {
                let source = TracefsEntries::start(device, self.subject.volume(), self.sink)?;
                self.entries = Some(Box::new(source));
            }
            Entries::Auto | Entries::None => {}
        }
        Ok(())
    }

    fn start_events(&mut self, manifest: &mut Manifest) -> Result<()> {
        let choice = self.options.source;
        if choice != Choice::Auto {
            return self.start_events_by(choice);
        }
        let (order, blind) = self.order_of_events();
        let start = |choice| self.start_events_by(choice);
        match first_that_starts("source", &order, start) {
            Ok(passed_over) => manifest.passed_over.extend(passed_over),
            Err(refused) => return Err(Error::NoEvents(refused)),
        }
        // If the probes were chosen after all, they were not passed over.
        if let Some(why) = blind.filter(|_| self.events.is_some()) {
            manifest.passed_over.push(why.to_string());
        }
        Ok(())
    }

    /// Returns the order in which the sources of events are tried, and why the probes are not first although they make the entries.
    fn order_of_events(&self) -> ([Choice; 3], Option<Refused>) {
        if !self.bpf.provides().has(Provides::ENTRIES) {
            return (Choice::TRACEPOINTS_FIRST, None);
        }
        match process1::check_runs_always(self.options.btf.as_deref(), TRIES) {
            Ok(()) => (Choice::PROBES_FIRST, None),
            Err(why) => {
                let (option, name) = ("source", Choice::Bpf.to_string());
                let refused = Refused { option, name, why };
                (Choice::TRACEPOINTS_FIRST, Some(refused))
            }
        }
    }

    fn start_events_by(&mut self, choice: Choice) -> Result<()> {
        let device: &Device = &self.subject.device;
        let is_segmented = self.options.segments.is_some();
        if !device.paths.is_empty() && !matches!(choice, Choice::Bpf | Choice::Auto) {
            return Err(Error::RequestsOfPaths(device.info.disk.clone()));
        }
        match choice {
            Choice::Blktrace => {
                if is_segmented && !Blktrace::PROVIDES.has(Provides::SEGMENTS) {
                    return Err(Error::NoSegments(blktrace::TOOL));
                }
                self.events = Some(Box::new(Blktrace::start(device, self.sink)?));
            }
            Choice::Tracefs => {
                self.events = Some(Box::new(TracefsEvents::start(device, self.sink)?));
            }
            Choice::Bpf => self
                .bpf
                .start_events(device, self.options.events, self.sink)?,
            Choice::Auto => {}
        }
        Ok(())
    }

    fn provides(&self, what: Provides) -> bool {
        let entries = self.entries.as_ref();
        self.bpf.provides().has(what) || entries.is_some_and(|e| e.provides().has(what))
    }
}

/// Starts the first candidate that works. Returns why each one before it was passed over.
///
/// # Errors
/// Returns the reasons as an error if none works.
fn first_that_starts<C: Copy + ToString>(
    option: &'static str,
    candidates: &[C],
    mut start: impl FnMut(C) -> Result<()>,
) -> std::result::Result<Vec<String>, Vec<Refused>> {
    let mut refused: Vec<Refused> = Vec::new();
    for &candidate in candidates {
        match start(candidate) {
            Ok(()) => return Ok(refused.iter().map(Refused::to_string).collect()),
            Err(why) => refused.push(Refused {
                option,
                name: candidate.to_string(),
                why,
            }),
        }
    }
    Err(refused)
}

/// Returns the order in which the sources of entries are tried, and why the probes are not first.
fn order_of_entries() -> ([Entries; 3], Option<Refused>) {
    match bpf::are_known() {
        Known::Shown | Known::Typed => (Entries::PROBES_FIRST, None),
        Known::Not => {
            let (option, name) = ("entries", Entries::Bpf.to_string());
            let why = Error::FunctionsUnknown;
            (Entries::PROBES_LAST, Some(Refused { option, name, why }))
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sources while they run.

use std::collections::BTreeMap;
use std::time::Duration;

use mostrace_bundle::manifest::{Clock, Sources};
use mostrace_bundle::{Folder, Manifest, Writer, Zones};

use super::counters::COMPLETIONS;
use super::late::Late;
use super::progress::Recording;
use super::selection::start_sources;
use super::subject::Subject;
use super::{Options, journal_copies, packages};
use crate::error::{At, Result};
use crate::machine::clock;
use crate::machine::kernel::Symbols;
use crate::machine::wait::Wait;
use crate::sink::{NameFilter, Retention, Sink, unfinished};
use crate::source::bpf::{BpfSource, ObjectStorage, Patience, RingSize};
use crate::source::{Losses, Provides, Remark, Source};

/// The sources while they run, and the sink that they record to.
pub(super) struct Tracing<'o> {
    sources: Vec<Box<dyn Source + 'o>>,
    sink: Sink,
    progress: Recording,
    before: Before,
}

/// The numbers that earlier segments have reported already; sources count from the beginning of the recording.
#[derive(Default)]
struct Before {
    losses: Losses,
    interference: Vec<String>,
}

/// The parts of a recording, in the order in which they are stopped, each with the note of a failure.
const PARTS: [(Provides, &str); 5] = [
    (Provides::EVENTS, "events are missing at the end"),
    (Provides::ENTRIES, "entries are missing at the end"),
    (Provides::NAMES, "names of processes are missing at the end"),
    (Provides::CAUSES, "causes are missing at the end"),
    (Provides::OPERATIONS, "operations are missing at the end"),
];

impl<'o> Tracing<'o> {
    /// Starts the sources. The manifest names those that were passed over.
    ///
    /// # Errors
    /// Returns an error if there is no source of the requested kind.
    pub fn start(
        options: &Options,
        subject: &Subject,
        bundle: &Writer,
        storage: &'o mut ObjectStorage,
        manifest: &mut Manifest,
    ) -> Result<Tracing<'o>> {
        let retention = Retention::of(options.segments.is_some());
        let mut sink = Sink::new(bundle.folder(), subject.names.clone(), retention);
        sink.events.set_zones(Zones::of(&subject.device.info));
        if let Some(packages) = &subject.packages {
            sink.set_packages(packages);
        }
        let ring_size = options.ring_size;
        let ring_size = ring_size.unwrap_or_else(RingSize::of_this_machine);
        let patience = match options.stacks || options.segments.is_some() {
            true => Patience::None,
            false => Patience::Much(bundle.folder().clone()),
        };
        let bpf = BpfSource::new(storage, options.btf.as_deref(), ring_size, patience)?;
        let sources = start_sources(options, subject, bpf, &mut sink, manifest)?;
        let has_command = !options.argv.is_empty();
        let progress = Recording::new(options.progress, has_command, &subject.device);
        Ok(Tracing {
            sources,
            sink,
            progress,
            before: Before::default(),
        })
    }

    fn provides(&self, what: Provides) -> Option<&(dyn Source + 'o)> {
        let mut sources = self.sources.iter().map(Box::as_ref);
        sources.find(|source| source.provides().has(what))
    }

    /// Returns the names of the sources, for the manifest.
    pub fn sources(&self, names: &NameFilter) -> Sources {
        let name = |what| self.provides(what).map_or("none", Source::name).to_owned();
        let sources = Sources {
            events: name(Provides::EVENTS),
            entries: name(Provides::ENTRIES),
            files: names.spelling().into(),
            causes: name(Provides::CAUSES),
        };
        log::info!("events: {}, entries: {}", sources.events, sources.entries);
        sources
    }

    /// Lets `wait` end when a source has something to poll for.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses.
    pub fn wake(&self, wait: &Wait) -> Result<()> {
        let mut fds = self.sources.iter().filter_map(|source| source.wakeup_fd());
        fds.try_for_each(|fd| wait.while_readable(fd)).at("epoll")
    }

    /// Returns how long the sources may be left alone if nothing wakes.
    pub fn poll_interval(&self) -> Duration {
        let intervals = self.sources.iter().map(|source| source.poll_interval());
        let of_sources = intervals.min().unwrap_or(Duration::MAX);
        of_sources.min(self.progress.due_in())
    }

    /// Reports that the command has been started as this process. It is called before the first [`Tracing::poll`].
    pub fn command_started(&mut self, pid: u32) {
        self.sink.command_started(pid);
    }

    /// Moves what has come since the last call to the bundle; this is called often.
    ///
    /// # Errors
    /// Returns an error if a source ended, if its records are malformed, or if the bundle cannot be written.
    pub fn poll(&mut self) -> Result<()> {
        for source in &mut self.sources {
            source.poll(&mut self.sink)?;
        }
        self.sink.flush()?;
        if self.progress.due_in().is_zero() {
            self.progress.show(self.losses()?.values().sum());
        }
        Ok(())
    }

    /// Moves what waits for spare time to the bundle.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Tracing::poll`].
    pub fn catch_up(&mut self) -> Result<()> {
        for source in &mut self.sources {
            source.catch_up(&mut self.sink)?;
        }
        self.sink.flush()
    }

    /// Returns the losses of all sources. If two report a counter, the later source's value wins.
    fn losses(&self) -> Result<Losses> {
        let mut losses = Losses::new();
        for source in &self.sources {
            losses.extend(source.losses()?);
        }
        Ok(losses)
    }

    /// Ends the segment that `manifest` describes and continues into `folder` at `at`, which is the present. Returns the place at
    /// which the next segment's own records begin in its files.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Tracing::poll`].
    pub fn begin_segment(
        &mut self,
        at: Clock,
        folder: &Folder,
        manifest: &mut Manifest,
    ) -> Result<BTreeMap<String, u64>> {
        self.sink.hold_from(at.start_mono_ns);
        let ended = self.sink.folder().clone();
        for source in &mut self.sources {
            source.drain(&mut self.sink)?;
        }
        self.keep_packages(&ended)?;
        let end = self.sink.begin_segment(folder)?;
        manifest.clock.stop_mono_ns = at.start_mono_ns;
        manifest.counts.extend(end.counts);
        self.name_functions(manifest);
        self.settle_accounts(manifest)?;
        manifest.segment.get_or_insert_default().under_way = end.under_way;
        if let Some(unfinished) = end.unfinished {
            let lost = unfinished.saturating_sub(end.under_way);
            manifest.losses.insert(COMPLETIONS.into(), lost);
        }
        Ok(end.own_from)
    }

    /// Writes the apps to a bundle again if those of isolated processes have become known.
    fn keep_packages(&self, folder: &Folder) -> Result<()> {
        let learned = self.sink.packages();
        learned.map_or(Ok(()), |learned| packages::keep(&learned, folder))
    }

    /// Names the functions that began handles, in the order of their numbers in the tables. A recording to segments needs them at
    /// the end of each segment, mostly for the same functions, and reads all of the kernel's symbols for them.
    fn name_functions(&self, manifest: &mut Manifest) {
        let addresses = self.sink.functions();
        if addresses.len() != manifest.functions.len() {
            manifest.functions = Symbols::read().around(addresses);
        }
    }

    /// Writes down what was lost, and who interfered, since the segment before.
    fn settle_accounts(&mut self, manifest: &mut Manifest) -> Result<()> {
        let losses = self.losses()?;
        let before = |what: &String| self.before.losses.get(what).copied().unwrap_or(0);
        let since = losses
            .iter()
            .map(|(what, lost)| (what.clone(), lost.saturating_sub(before(what))));
        manifest.losses = since.collect();
        let interference: Vec<_> = self
            .remarks()
            .filter_map(|remark| match remark {
                Remark::Interference(line) => Some(line),
                _ => None,
            })
            .collect();
        let mut new = interference.clone();
        new.retain(|line| !self.before.interference.contains(line));
        manifest.interference = new;
        self.before = Before {
            losses,
            interference,
        };
        Ok(())
    }

    fn remarks(&self) -> impl Iterator<Item = Remark> {
        self.sources.iter().flat_map(|source| source.remarks())
    }

    /// Lets the sources, which have stopped, do what is left.
    ///
    /// # Errors
    /// Returns an error if records are malformed, or if the bundle cannot be written.
    fn finish(&mut self) -> Result<()> {
        for source in &mut self.sources {
            source.finish(&mut self.sink)?;
        }
        self.sink.flush()
    }

    /// Stops the sources, drains them into the bundle, and writes down the counts. A failure becomes a note; the losses of a source
    /// that failed are unknown.
    ///
    /// # Errors
    /// Returns an error if the bundle cannot be written.
    pub fn stop(&mut self, manifest: &mut Manifest) -> Result<()> {
        self.progress.finish();
        let folder = self.sink.folder().clone();
        let mut late = Late::new(folder.path());
        for (part, failure) in PARTS {
            let mut sources = self.sources.iter_mut();
            if let Some(source) = sources.find(|source| source.provides().has(part)) {
                late.note(failure, source.stop(part, &mut self.sink))?;
            }
            if part == Provides::EVENTS {
                manifest.clock.stop_mono_ns = clock::now().start_mono_ns;
            }
        }
        late.note("records are missing", self.finish())?;
        self.sink.flush()?;
        self.keep_packages(&folder)?;
        manifest.counts.extend(self.sink.counts());
        if self.provides(Provides::CAUSES).is_some() {
            self.name_functions(manifest);
            manifest.causes = late.read(CAUSES, journal_copies::compare(&folder));
        }
        late.note("losses are not known", self.settle_accounts(manifest))?;
        let unfinished = match self.sink.events.in_flight() {
            Some(counted) => Some(counted),
            None => {
                let zones = Zones::of(&manifest.device);
                late.read(UNCOUNTED, unfinished::count(&folder, zones))
            }
        };
        manifest
            .losses
            .extend(unfinished.map(|n| (COMPLETIONS.to_owned(), n)));
        let notes = self.remarks().filter_map(|remark| match remark {
            Remark::Note(note) => Some(note),
            _ => None,
        });
        manifest.notes.extend(notes);
        manifest.notes.extend(late.into_notes());
        Ok(())
    }
}

/// The note about what is left undone if the event files cannot be read again.
pub(super) const UNCOUNTED: &str = "completions that are missing are not counted";
/// The note about what is left undone if the tables of causes cannot be read again.
pub(super) const CAUSES: &str = "causes are not held against the journal's copies";

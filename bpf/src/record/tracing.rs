// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sources while they run.

use std::collections::BTreeMap;
use std::time::Duration;

use mostrace_bundle::manifest::{Clock, Sources};
use mostrace_bundle::{Folder, Manifest, Writer};

use super::Options;
use super::late::Late;
use super::progress::Recording;
use super::sources::{Explaining, event_source, explaining_sources};
use super::subject::Subject;
use crate::causes::{self, CauseSource};
use crate::entries::{Counts, EntrySource};
use crate::error::{At, Result};
use crate::events::{EventSource, unfinished};
use crate::machine::clock;
use crate::machine::wait::Wait;
use crate::names::NameFilter;
use crate::probes::{Loader, Rooms};
use crate::ring_size::RingSize;

/// The sources, running.
pub(super) struct Tracing<'o> {
    source: Box<dyn EventSource>,
    entries: Option<Box<dyn EntrySource>>,
    causes: Option<Box<dyn CauseSource>>,
    probes: Loader<'o>,
    progress: Recording,
    /// What the segments before had.
    before: Before,
}

/// What is counted from the beginning of the recording on.
#[derive(Default)]
struct Before {
    losses: BTreeMap<String, u64>,
    interference: Vec<String>,
}

impl<'o> Tracing<'o> {
    /// Starts them; the manifest says which were passed over.
    ///
    /// # Errors
    /// There is no source of the kind asked for.
    pub fn start(
        options: &Options,
        subject: &Subject,
        bundle: &Writer,
        rooms: &'o mut Rooms,
        manifest: &mut Manifest,
    ) -> Result<Tracing<'o>> {
        let folder = bundle.folder();
        let ring_size = options.ring_size;
        let ring_size = ring_size.unwrap_or_else(RingSize::of_this_machine);
        let mut probes = Loader::new(rooms, options.btf.as_deref(), ring_size);
        let Explaining {
            mut entries,
            causes,
        } = explaining_sources(options, subject, folder, &mut probes, manifest)?;
        let source = event_source(
            options.source,
            options,
            &subject.device,
            folder,
            &mut probes,
            &mut entries,
            &mut manifest.passed_over,
        )?;
        let has_command = !options.argv.is_empty();
        let progress = Recording::new(options.progress.of_recording(has_command));
        Ok(Tracing {
            source,
            entries,
            causes,
            probes,
            progress,
            before: Before::default(),
        })
    }

    /// Their names, for the manifest.
    pub fn sources(&self, names: &NameFilter) -> Sources {
        let sources = Sources {
            events: self.source.name().into(),
            entries: self.entries.as_ref().map_or("none", |e| e.name()).into(),
            files: names.spelling().into(),
            causes: self.causes.as_ref().map_or("none", |c| c.name()).into(),
        };
        log::info!("events: {}, entries: {}", sources.events, sources.entries);
        sources
    }

    /// Lets `wait` end when one of them has something to poll for.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn wake(&self, wait: &Wait) -> Result<()> {
        let entries = self.entries.as_ref().and_then(|e| e.bell());
        let causes = self.causes.as_ref().and_then(|c| c.bell());
        for bell in self.source.bell().into_iter().chain(entries).chain(causes) {
            wait.while_readable(bell).at("epoll")?;
        }
        Ok(())
    }

    /// How long they may be left alone if nothing wakes.
    pub fn rhythm(&self) -> Duration {
        let entries = self.entries.as_ref().map(|e| e.rhythm());
        entries
            .into_iter()
            .fold(self.source.rhythm(), Duration::min)
    }

    /// The command has been started, as this process. Called ahead of the first [`Tracing::poll`].
    pub fn begin(&mut self, command: u32) {
        if let Some(causes) = &mut self.causes {
            causes.begin(command);
        }
    }

    /// Moves what has come since the last call into the bundle; called often.
    ///
    /// # Errors
    /// A source ended, what came makes no sense, or the bundle cannot be written.
    pub fn poll(&mut self) -> Result<()> {
        self.source.poll()?;
        if let Some(entries) = &mut self.entries {
            entries.poll()?;
        }
        if let Some(causes) = &mut self.causes {
            causes.poll()?;
        }
        if self.progress.is_due() {
            let entries = self.entries.as_ref().map(|e| e.counts());
            let lost = self.losses()?.values().sum();
            let events = self.source.events();
            self.progress
                .show(events, &entries.unwrap_or_default(), lost);
        }
        Ok(())
    }

    /// Of probes that make events alone, no counter stands in for one of the entries' source.
    fn losses(&self) -> Result<BTreeMap<String, u64>> {
        let mut losses = self.probes.losses()?;
        losses.extend(self.source.losses());
        if let Some(entries) = &self.entries {
            losses.extend(entries.losses()?);
        }
        Ok(losses)
    }

    /// Ends a segment, of which the manifest is, and goes on in `folder` from `at` on, which is now. Returns where the next
    /// one's own records begin in its files.
    ///
    /// # Errors
    /// As [`Tracing::poll`]; or a source has no segments.
    pub fn cut(
        &mut self,
        at: Clock,
        folder: &Folder,
        manifest: &mut Manifest,
    ) -> Result<BTreeMap<String, u64>> {
        let cut = self.source.cut(at.start_mono_ns, folder)?;
        let mut own_from = cut.own_from;
        manifest.clock.stop_mono_ns = at.start_mono_ns;
        manifest.counts.insert("events".into(), cut.events);
        if let Some(entries) = &mut self.entries {
            let cut = entries.cut(at.start_mono_ns, folder, cut.ends)?;
            own_from.extend(cut.own_from);
            put_counts(cut.counts, manifest);
        }
        if let Some(causes) = &mut self.causes {
            let cut = causes.cut(folder)?;
            own_from.extend(cut.own_from);
            put_counts(cut.counts, manifest);
            manifest.functions = causes.functions(&manifest.functions);
        }
        self.settle_accounts(manifest)?;
        let under_way = cut.requests.count();
        manifest.segment.get_or_insert_default().under_way = under_way;
        if let Some(unfinished) = cut.unfinished {
            let lost = unfinished.saturating_sub(under_way);
            manifest.losses.insert(COMPLETIONS.into(), lost);
        }
        Ok(own_from)
    }

    /// What was lost, and who interfered, since the segment before.
    fn settle_accounts(&mut self, manifest: &mut Manifest) -> Result<()> {
        let losses = self.losses()?;
        let before = |what: &String| self.before.losses.get(what).copied().unwrap_or(0);
        let since = losses
            .iter()
            .map(|(what, lost)| (what.clone(), lost.saturating_sub(before(what))));
        manifest.losses = since.collect();
        let mut interference = self.source.interference();
        let of_entries = self.entries.as_ref().map(|e| e.interference());
        interference.extend(of_entries.unwrap_or_default());
        let mut new = interference.clone();
        new.retain(|line| !self.before.interference.contains(line));
        manifest.interference = new;
        self.before = Before {
            losses,
            interference,
        };
        Ok(())
    }

    /// Stops both, drains both into the bundle in `folder`, and writes the counts down. What fails is a note, and of a source
    /// that failed it is not known what was lost.
    ///
    /// # Errors
    /// The bundle cannot be written.
    pub fn stop(&mut self, folder: &Folder, manifest: &mut Manifest) -> Result<()> {
        self.progress.finish();
        let mut late = Late::new(folder.path());
        let events = late.note("events are missing at the end", self.source.stop())?;
        manifest.clock.stop_mono_ns = clock::now().start_mono_ns;
        let count = self.source.events();
        manifest.counts.insert("events".into(), count);
        let mut not_known = Vec::new();
        if events.is_none() {
            not_known.extend(self.source.losses().into_keys());
        }
        if let Some(entries) = &mut self.entries {
            let stopped = late.note("entries are missing at the end", entries.stop())?;
            if stopped.is_none() {
                not_known.extend(entries.losses().unwrap_or_default().into_keys());
            }
            put_counts(entries.counts(), manifest);
        }
        if let Some(causes) = &mut self.causes {
            late.note("causes are missing at the end", causes.stop())?;
            put_counts(causes.counts(), manifest);
            manifest.functions = causes.functions(&manifest.functions);
            manifest.causes = late.read(CAUSES, causes::compare(folder));
        }
        late.note("losses are not known", self.settle_accounts(manifest))?;
        manifest.losses.retain(|what, _| !not_known.contains(what));
        let unfinished = match self.source.unfinished() {
            Some(counted) => Some(counted),
            None => late.read(UNCOUNTED, unfinished::count(folder)),
        };
        manifest
            .losses
            .extend(unfinished.map(|n| (COMPLETIONS.to_owned(), n)));
        manifest.notes.extend(self.source.notes());
        let of_entries = self.entries.as_ref().map(|entries| entries.notes());
        manifest.notes.extend(of_entries.into_iter().flatten());
        manifest.notes.extend(late.into_notes());
        Ok(())
    }
}

/// The loss of requests that were issued and never completed.
pub(super) const COMPLETIONS: &str = "completions";
/// What is undone where the bundle's own tables cannot be read again.
pub(super) const UNCOUNTED: &str = "completions that are missing are not counted";
pub(super) const CAUSES: &str = "causes are not held against the journal's copies";

fn put_counts(counts: Counts, manifest: &mut Manifest) {
    let kept = counts.into_iter();
    manifest
        .counts
        .extend(kept.map(|(name, kept)| (name.to_owned(), kept)));
}

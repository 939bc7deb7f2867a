// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs a thread that finishes segments that have ended: it counts their contents, marks them as complete, packs them, and removes
//! the oldest ones. The recording continues meanwhile.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use mostrace_bundle::manifest::{Causes, Manifest, State};
use mostrace_bundle::{Counters, Zones};

use super::counters::{self, COMPLETIONS};
use super::journal_copies;
use super::late::Late;
use super::missing::Missing;
use super::open::{Open, name_of};
use super::options::Keep;
use super::output::Finished;
use super::progress::Packing;
use super::tracing::{CAUSES, UNCOUNTED};
use crate::error::{At, Error, Result};
use crate::sink::unfinished;

/// A segment that has ended; only its events are not yet counted.
pub(super) struct Ended(Open);

impl Ended {
    pub fn new(open: Open) -> Ended {
        Ended(open)
    }

    /// Finishes the segment, given what the segments before it lack. Returns it with its manifest and its path.
    fn finish(self, missing: &mut Missing) -> Result<(Finished, Manifest, PathBuf)> {
        let Open {
            output,
            mut manifest,
            readings,
        } = self.0;
        let bundle = output.writer();
        let mut late = Late::new(bundle.dir());
        if !manifest.losses.contains_key(COMPLETIONS) {
            let under_way = manifest.segment.as_ref().map_or(0, |s| s.under_way);
            let zones = Zones::of(&manifest.device);
            let unfinished = late.read(UNCOUNTED, unfinished::count(bundle.folder(), zones));
            let lost = unfinished.map(|n| (COMPLETIONS.to_owned(), n.saturating_sub(under_way)));
            manifest.losses.extend(lost);
        }
        counters::put(readings.compare(bundle.folder()), missing, &mut manifest);
        if manifest.sources.causes != "none" {
            manifest.causes = late.read(CAUSES, journal_copies::compare(bundle.folder()));
        }
        manifest.notes.extend(late.into_notes());
        manifest.files = bundle.sizes()?;
        manifest.state = State::Complete;
        bundle.put_manifest(&manifest)?;
        let path = output.path();
        let finished = output.finish(&manifest, Packing::new(false))?;
        Ok((finished, manifest, path))
    }
}

/// The sums of the segments of a recording.
#[derive(Default)]
pub(super) struct Totals {
    counts: BTreeMap<String, u64>,
    losses: BTreeMap<String, u64>,
    causes: Option<Causes>,
    missing: Missing,
    /// The counters of the first segment that does not agree with the kernel.
    differs: Option<Counters>,
    /// The notes about single segments, each with the segment's name.
    notes: Vec<String>,
    interference: Vec<String>,
}

/// The most lines that are kept of either kind.
const LINES: usize = 50;

impl Totals {
    /// Adds a segment.
    pub fn add(&mut self, manifest: &Manifest, path: &Path) {
        let sums = [
            (&mut self.counts, &manifest.counts),
            (&mut self.losses, &manifest.losses),
        ];
        for (sum, of_one) in sums {
            for (name, n) in of_one {
                let sum = sum.entry(name.clone()).or_insert(0);
                *sum = sum.saturating_add(*n);
            }
        }
        if let Some(causes) = manifest.causes {
            let sum = self.causes.get_or_insert_default();
            *sum = sum.plus(causes);
        }
        let name = name_of(path);
        let counters = manifest.counters.as_ref();
        if let Some(counters) = counters.filter(|c| c.differences().next().is_some()) {
            self.notes.push(format!("{name}: {counters}"));
            self.differs.get_or_insert_with(|| counters.clone());
        }
        let lines = manifest.interference.iter();
        self.interference
            .extend(lines.map(|line| format!("{name}: {line}")));
        self.notes.truncate(LINES);
        self.interference.truncate(LINES);
    }

    /// Puts the sums into the manifest of the last segment.
    pub fn into_manifest(self, last: Manifest) -> Manifest {
        let notes = last.notes.iter().cloned().chain(self.notes).collect();
        Manifest {
            counts: self.counts,
            losses: self.losses,
            causes: self.causes,
            interference: self.interference,
            counters: self.differs.or(last.counters),
            totals: None,
            notes,
            ..last
        }
    }
}

/// The result of the thread: the sums, and the segments that may have to be removed, the oldest first.
type Outcome = Result<(Totals, VecDeque<Finished>)>;

/// The running thread.
pub(super) struct Finisher {
    /// The queue; None once nothing more will come.
    queue: Option<Sender<Ended>>,
    thread: Option<JoinHandle<Outcome>>,
    /// The result; None as long as the thread is not known to have ended.
    outcome: Option<Outcome>,
    keep: Option<Keep>,
}

impl Finisher {
    /// Starts the thread. Only the segments of `keep` stay.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub fn start(keep: Option<Keep>) -> Result<Finisher> {
        let (queue, ended) = channel::<Ended>();
        let thread = std::thread::Builder::new()
            .name("finisher".into())
            .spawn(move || {
                let mut totals = Totals::default();
                let mut kept = VecDeque::new();
                for segment in ended {
                    let (finished, manifest, path) = segment.finish(&mut totals.missing)?;
                    totals.add(&manifest, &path);
                    kept.push_back(finished);
                    rotate(&mut kept, keep, 1)?;
                }
                Ok((totals, kept))
            })
            .at("thread")?;
        Ok(Finisher {
            queue: Some(queue),
            thread: Some(thread),
            outcome: None,
            keep,
        })
    }

    /// Takes a segment to be finished.
    ///
    /// # Errors
    /// Returns an error if an earlier segment could not be finished.
    pub fn take(&mut self, ended: Ended) -> Result<()> {
        let sent = self.queue.as_ref().is_some_and(|q| q.send(ended).is_ok());
        match sent {
            true => Ok(()),
            false => self.failure(),
        }
    }

    /// Checks that the thread still runs.
    ///
    /// # Errors
    /// Returns the error with which the thread ended.
    pub fn check(&mut self) -> Result<()> {
        match self.thread.as_ref().is_some_and(JoinHandle::is_finished) {
            true => self.failure(),
            false => Ok(()),
        }
    }

    fn failure(&mut self) -> Result<()> {
        self.join();
        self.outcome().map(drop)
    }

    /// Waits until all segments that have ended are finished.
    fn join(&mut self) {
        drop(self.queue.take());
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            Some(Ok(outcome)) => self.outcome = Some(outcome),
            None => {}
        }
    }

    fn outcome(&mut self) -> Outcome {
        let ended = || Err(Error::malformed("segments", "no longer finished"));
        self.outcome.take().unwrap_or_else(ended)
    }

    /// Waits until all segments that have ended are finished, and returns what they lack; nothing if one of them could not be
    /// finished, which [`Finisher::end`] will report.
    pub fn missing(&mut self) -> Missing {
        self.join();
        let outcome = self
            .outcome
            .as_ref()
            .and_then(|outcome| outcome.as_ref().ok());
        outcome.map_or_else(Missing::default, |(totals, _)| totals.missing)
    }

    /// Finishes the remaining segments; `last`, which was finished elsewhere, counts as one of them.
    ///
    /// # Errors
    /// Returns an error if a segment cannot be written.
    pub fn end(mut self, last: Option<Finished>) -> Result<Totals> {
        self.join();
        let (totals, mut kept) = self.outcome()?;
        kept.extend(last);
        rotate(&mut kept, self.keep, 0)?;
        Ok(totals)
    }
}

/// Removes the oldest segments, so that those of `keep` are left; `others` are being written.
fn rotate(kept: &mut VecDeque<Finished>, keep: Option<Keep>, others: usize) -> Result<()> {
    let Some(keep) = keep else {
        // Segments that stay need not be known.
        kept.clear();
        return Ok(());
    };
    let are_too_many = |kept: &VecDeque<Finished>| match keep {
        Keep::Number(most) => kept.len() + others > most.max(1) as usize,
        Keep::Bytes(most) => kept.len() > 1 && kept.iter().map(|one| one.bytes).sum::<u64>() > most,
    };
    while are_too_many(kept) {
        if let Some(oldest) = kept.pop_front() {
            oldest.remove()?;
        }
    }
    Ok(())
}

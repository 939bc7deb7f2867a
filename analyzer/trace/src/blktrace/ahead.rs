// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thread that reads completions ahead of their user: to join events is a third of the work of an answer.

use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

use super::completion::{Completion, Part};
use super::completions::Completions;
use super::error::Error;
use super::trace::Trace;

/// The most completions of a batch: some 100 KB, which are still in a cache when the other thread reads them.
const BATCH: usize = 512;
/// A batch ends with the completion that reaches this number of parts.
const PARTS: usize = 8 * BATCH;
/// The most batches that wait for their user.
const WAITING: usize = 4;

/// The completions of a trace in time order, as [`Completions`] has them.
pub struct Ahead {
    state: State,
    batch: Batch,
    /// The place in the batch of the completion that [`Ahead::step`] reached; behind the last one before the first step.
    at: usize,
    bytes_total: u64,
}

enum State {
    /// Nothing is being read. The number is that of the renamed threads that the user knows.
    Idle(Box<Completions>, usize),
    Reading(Reading),
    /// The thread panicked.
    Gone,
}

struct Reading {
    full: Receiver<Batch>,
    /// Batches that were used, so that their memory is used again.
    used: Sender<Batch>,
    thread: JoinHandle<(Box<Completions>, usize, Result<(), Error>)>,
}

#[derive(Default)]
struct Batch {
    members: Vec<Member>,
    parts: Vec<Part>,
    renamed: Vec<(u32, u64)>,
    bytes_read: u64,
}

/// A completion, and the ends of its parts and of its renamed threads in those of the batch.
struct Member {
    completion: Completion<'static>,
    parts_end: usize,
    renamed_end: usize,
}

impl Batch {
    /// Reads completions, and the threads that were renamed since `known` of them. Returns false at the end.
    fn fill(&mut self, completions: &mut Completions, known: &mut usize) -> Result<bool, Error> {
        self.members.clear();
        self.parts.clear();
        self.renamed.clear();
        while self.members.len() < BATCH && self.parts.len() < PARTS {
            if !completions.step()? {
                return Ok(false);
            }
            let renamed = completions.names().renamed();
            self.renamed
                .extend_from_slice(renamed.get(*known..).unwrap_or_default());
            *known = renamed.len();
            let completion = completions.completion();
            self.parts.extend_from_slice(completion.parts);
            self.members.push(Member {
                completion: Completion {
                    parts: &[],
                    ..completion
                },
                parts_end: self.parts.len(),
                renamed_end: self.renamed.len(),
            });
        }
        Ok(true)
    }

    fn ends(&self, at: Option<usize>) -> (usize, usize) {
        let member = at.and_then(|at| self.members.get(at));
        member.map_or((0, 0), |member| (member.parts_end, member.renamed_end))
    }
}

impl Reading {
    fn start(mut completions: Box<Completions>, mut known: usize) -> Reading {
        let (filled, full) = sync_channel(WAITING);
        let (used, empty) = channel();
        let read = move || {
            let result = read(&mut completions, &mut known, &filled, &empty);
            (completions, known, result)
        };
        Reading {
            full,
            used,
            thread: thread::spawn(read),
        }
    }

    /// Waits for the thread's end, for which nobody takes its batches any more.
    fn end(self) -> (Box<Completions>, usize, Result<(), Error>) {
        drop(self.full);
        self.thread
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic))
    }
}

/// Reads to the end, or until nobody takes the batches.
fn read(
    completions: &mut Completions,
    known: &mut usize,
    filled: &SyncSender<Batch>,
    empty: &Receiver<Batch>,
) -> Result<(), Error> {
    loop {
        let mut batch = empty.try_recv().unwrap_or_default();
        let more = batch.fill(completions, known);
        batch.bytes_read = completions.bytes_read();
        let is_taken = filled.send(batch).is_ok();
        if !more? || !is_taken {
            return Ok(());
        }
    }
}

impl Ahead {
    /// Reads the completions that are left of these; nothing is read before the first step.
    #[must_use]
    pub fn new(completions: Completions) -> Self {
        Self {
            bytes_total: completions.bytes_total(),
            state: State::Idle(Box::new(completions), 0),
            batch: Batch::default(),
            at: 0,
        }
    }

    /// Continues with a trace of what came after the one that was read to its end.
    pub fn go_on(&mut self, trace: Trace) {
        let (mut completions, known, _) = self.stop();
        completions.go_on(trace);
        self.bytes_total = completions.bytes_total();
        self.state = State::Idle(completions, known);
    }

    /// Returns the completions with what they showed of the trace as a whole. They are at its end if a step returned false.
    #[must_use]
    pub fn into_completions(mut self) -> Completions {
        *self.stop().0
    }

    /// Returns the bytes read so far from all files, and the bytes of all files, 0 if unknown.
    #[must_use]
    pub fn progress(&self) -> (u64, u64) {
        (self.batch.bytes_read, self.bytes_total)
    }

    /// Advances to the next completion; returns false at the end.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read further; after that there are no more completions.
    pub fn step(&mut self) -> Result<bool, Error> {
        self.at = self.at.saturating_add(1);
        while self.at >= self.batch.members.len() {
            if !self.turn()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the completion that the last step reached.
    #[must_use]
    pub fn completion(&self) -> Completion<'_> {
        let Some(member) = self.batch.members.get(self.at) else {
            return Completion::default();
        };
        let (begin, _) = self.batch.ends(self.at.checked_sub(1));
        Completion {
            parts: self
                .batch
                .parts
                .get(begin..member.parts_end)
                .unwrap_or_default(),
            ..member.completion
        }
    }

    /// Returns the numbers of threads that got another name between the completion before and this one, and when (ns).
    #[must_use]
    pub fn renamed(&self) -> &[(u32, u64)] {
        let (_, begin) = self.batch.ends(self.at.checked_sub(1));
        let (_, end) = self.batch.ends(Some(self.at));
        self.batch.renamed.get(begin..end).unwrap_or_default()
    }

    /// Takes the next batch; returns false at the end.
    fn turn(&mut self) -> Result<bool, Error> {
        if let State::Idle(..) = &self.state {
            let (completions, known, _) = self.stop();
            self.state = State::Reading(Reading::start(completions, known));
        }
        if let State::Reading(reading) = &self.state
            && let Ok(batch) = reading.full.recv()
        {
            let used = std::mem::replace(&mut self.batch, batch);
            // If the thread has ended, it needs no more.
            let _ = reading.used.send(used);
            self.at = 0;
            return Ok(true);
        }
        let (completions, known, result) = self.stop();
        self.state = State::Idle(completions, known);
        result.map(|()| false)
    }

    fn stop(&mut self) -> (Box<Completions>, usize, Result<(), Error>) {
        match std::mem::replace(&mut self.state, State::Gone) {
            State::Idle(completions, known) => (completions, known, Ok(())),
            State::Reading(reading) => reading.end(),
            State::Gone => unreachable!("a panic of the thread goes on in its user"),
        }
    }
}

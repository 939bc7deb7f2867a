// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the files of a trace and yields its completions.

use super::completion::Completion;
use super::error::Error;
use super::lifecycle::LifeCycles;
use super::names::{ThreadNames, WallClock};
use super::trace::{Notice, Trace};

/// The completions of a trace in time order; each borrows from the iterator until the next call. Names and notices accumulate
/// meanwhile, and are complete after the last completion.
pub struct Completions {
    trace: Trace,
    cycles: LifeCycles,
    names: ThreadNames,
    wall_clock: Option<WallClock>,
}

impl Completions {
    /// Reads the completions of an opened trace.
    #[must_use]
    pub fn new(trace: Trace) -> Self {
        Self {
            cycles: LifeCycles::new().of_zones(trace.zones()),
            trace,
            names: ThreadNames::default(),
            wall_clock: None,
        }
    }

    /// Continues with a trace of what came after this one. Requests may begin in one and end in the next.
    pub fn go_on(&mut self, trace: Trace) {
        self.cycles.set_zones(trace.zones());
        self.trace = trace;
    }

    /// Returns the process names seen so far.
    #[must_use]
    pub fn names(&self) -> &ThreadNames {
        &self.names
    }

    /// Returns the first TIMESTAMP note so far.
    #[must_use]
    pub fn wall_clock(&self) -> Option<WallClock> {
        self.wall_clock
    }

    /// Returns the notices about the files so far.
    #[must_use]
    pub fn notices(&self) -> &[Notice] {
        self.trace.notices()
    }

    /// Returns the bytes read so far from all files, as a measure of progress.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.trace.bytes_read()
    }

    /// Returns the bytes of all files; 0 if unknown.
    #[must_use]
    pub fn bytes_total(&self) -> u64 {
        self.trace.bytes_total()
    }

    /// Returns the next completion; None at the end.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read further; after that there are no more completions.
    #[allow(clippy::should_implement_trait)] // an Iterator cannot lend
    pub fn next(&mut self) -> Result<Option<Completion<'_>>, Error> {
        Ok(self.step()?.then(|| self.completion()))
    }

    /// Advances to the next completion; returns false at the end.
    pub fn step(&mut self) -> Result<bool, Error> {
        while let Some(event) = self.trace.next()? {
            if event.is_note() {
                self.names.push(&event);
                self.wall_clock = self.wall_clock.or_else(|| WallClock::of(&event));
            } else if self.cycles.step(&event) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the completion that the last [`Completions::step`] reached.
    #[must_use]
    pub fn completion(&self) -> Completion<'_> {
        self.cycles.completion()
    }
}

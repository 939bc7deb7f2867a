// SPDX-License-Identifier: MIT OR Apache-2.0
//! The whole way from files to completions.

use super::completion::Completion;
use super::counts::Counts;
use super::error::Error;
use super::lifecycle::LifeCycles;
use super::names::{Names, WallClock};
use super::trace::{Notice, Trace};

/// The completions of a trace, in time order, each lent until the next one is asked for. What else
/// the trace tells gathers meanwhile, and is complete when there is no further completion.
pub struct Completions {
    trace: Trace,
    cycles: LifeCycles,
    names: Names,
    counts: Counts,
    wall_clock: Option<WallClock>,
}

impl Completions {
    /// The completions of an opened trace.
    #[must_use]
    pub fn new(trace: Trace) -> Self {
        Self {
            trace,
            cycles: LifeCycles::new(),
            names: Names::default(),
            counts: Counts::default(),
            wall_clock: None,
        }
    }

    /// Goes on with a trace of what came after this one. Requests may have begun in one and end in the next.
    pub fn go_on(&mut self, trace: Trace) {
        self.trace = trace;
    }

    /// Process names so far.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Numbers of events so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// The first TIMESTAMP note so far.
    #[must_use]
    pub fn wall_clock(&self) -> Option<WallClock> {
        self.wall_clock
    }

    /// What there is to tell about the files so far.
    #[must_use]
    pub fn notices(&self) -> &[Notice] {
        self.trace.notices()
    }

    /// Bytes read so far, of all files: how far the reading is.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.trace.bytes_read()
    }

    /// Bytes of all files; 0 if that is not known.
    #[must_use]
    pub fn bytes_total(&self) -> u64 {
        self.trace.bytes_total()
    }

    /// The next completion.
    ///
    /// # Errors
    /// A file cannot be read (further). After that there is none.
    #[allow(clippy::should_implement_trait)] // an Iterator cannot lend
    pub fn next(&mut self) -> Result<Option<Completion<'_>>, Error> {
        Ok(self.step()?.then(|| self.completion()))
    }

    /// Goes on to the next completion; whether there is one.
    ///
    /// # Errors
    /// As [`Completions::next`].
    pub fn step(&mut self) -> Result<bool, Error> {
        while let Some(event) = self.trace.next()? {
            self.counts.push(event.action);
            if event.is_note() {
                self.names.push(&event);
                self.wall_clock = self.wall_clock.or_else(|| WallClock::of(&event));
            } else if self.cycles.step(&event) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The completion that the last [`Completions::step`] came to.
    #[must_use]
    pub fn completion(&self) -> Completion<'_> {
        self.cycles.completion()
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The whole way from files to completions.

use super::completion::Completion;
use super::counts::Counts;
use super::error::Error;
use super::lifecycle::LifeCycles;
use super::names::{Names, WallClock};
use super::trace::{Notice, Trace};

/// The completions of a trace, in time order: an iterator. What else the trace tells gathers
/// meanwhile, and is complete when the iteration has ended.
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
}

impl Iterator for Completions {
    type Item = Result<Completion, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let event = match self.trace.next()? {
                Ok(event) => event,
                Err(error) => return Some(Err(error)),
            };
            self.counts.push(event.action);
            if event.is_note() {
                self.names.push(&event);
                self.wall_clock = self.wall_clock.or_else(|| WallClock::of(&event));
            } else if let Some(completion) = self.cycles.push(&event) {
                return Some(Ok(completion));
            }
        }
    }
}

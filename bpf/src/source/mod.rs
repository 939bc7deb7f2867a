// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sources of a recording, behind one trait.
//!
//! A [`Source`] takes records from the kernel or from a tool, and puts them into the [`Sink`]. It may provide block events, entries
//! (who queued a bio, and to which file it belongs), and causes (a journal's handles and the system calls behind them). The
//! project's own probes ([`bpf`]) provide all three, the kernel's own recorder ([`recorder`]) entries and causes, and each of the
//! others one of them.

use std::collections::BTreeMap;
use std::ops::BitOr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::error::Result;
use crate::sink::Sink;

pub(crate) mod blktrace;
pub(crate) mod bpf;
mod ending;
mod process_names;
pub(crate) mod recorder;
pub(crate) mod tracefs;

/// The interval at which a source is polled if it cannot tell when there is something to poll for.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Numbers of lost records, by the manifest's names.
pub(crate) type Losses = BTreeMap<String, u64>;

/// A set of the things that a source provides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Provides(u8);

impl Provides {
    /// Nothing.
    pub const NONE: Provides = Provides(0);
    /// Block events.
    pub const EVENTS: Provides = Provides(1);
    /// Entries.
    pub const ENTRIES: Provides = Provides(2);
    /// Causes.
    pub const CAUSES: Provides = Provides(4);
    /// Operations, for a replay.
    pub const OPERATIONS: Provides = Provides(16);
    /// Names of processes.
    pub const NAMES: Provides = Provides(32);
    /// Recordings that can go to segments.
    pub const SEGMENTS: Provides = Provides(8);

    /// Returns true if all of `other` is in the set.
    pub fn has(self, other: Provides) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the set if `condition` holds, otherwise the empty set.
    pub fn only_if(self, condition: bool) -> Provides {
        if condition { self } else { Provides::NONE }
    }
}

impl BitOr for Provides {
    type Output = Provides;

    fn bitor(self, other: Provides) -> Provides {
        Provides(self.0 | other.0)
    }
}

/// A remark of a source about the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remark {
    /// A limit of the source on this machine; known from the start.
    Limit(String),
    /// A note about the end of the recording; known after [`Source::stop`].
    Note(String),
    /// A disturbance of the recording by others; complete after [`Source::drain`] or [`Source::stop`].
    Interference(String),
}

/// A source that is running.
pub(crate) trait Source {
    /// Returns the name of the source in the manifest.
    fn name(&self) -> &'static str;

    /// Returns what it provides in this recording.
    fn provides(&self) -> Provides;

    /// Returns a descriptor that can be read when there is something to poll for, if the source has one.
    fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns how long the source may be left alone if nothing wakes.
    fn poll_interval(&self) -> Duration {
        POLL_INTERVAL
    }

    /// Moves what has come since the last call to the sink; this is called often.
    ///
    /// # Errors
    /// Returns an error if the source ended, if its records are malformed, or if the bundle cannot be written.
    fn poll(&mut self, sink: &mut Sink) -> Result<()>;

    /// Moves what waits for spare time to the sink, so that what has to be in time comes soon.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Source::poll`].
    fn catch_up(&mut self, _sink: &mut Sink) -> Result<()> {
        Ok(())
    }

    /// Moves everything that the kernel has so far to the sink, before [`Sink::begin_segment`].
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Source::poll`].
    fn drain(&mut self, sink: &mut Sink) -> Result<()> {
        self.poll(sink)
    }

    /// Stops recording `what`, one of the things that the source provides, and moves the rest of it to the sink. Events are stopped
    /// first and causes last, so that every event has its entries.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Source::poll`].
    fn stop(&mut self, what: Provides, sink: &mut Sink) -> Result<()>;

    /// Does what is left when everything was stopped.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Source::poll`].
    fn finish(&mut self, _sink: &mut Sink) -> Result<()> {
        Ok(())
    }

    /// Returns the number of records that were lost; complete after [`Source::stop`]. If that failed, unknown counters are left
    /// out.
    ///
    /// # Errors
    /// Returns an error if the kernel does not give the counters.
    fn losses(&self) -> Result<Losses>;

    /// Returns the source's remarks.
    fn remarks(&self) -> Vec<Remark> {
        Vec::new()
    }
}

/// Converts lines to remarks of a kind.
fn remarks(lines: &[String], kind: fn(String) -> Remark) -> impl Iterator<Item = Remark> {
    lines.iter().cloned().map(kind)
}

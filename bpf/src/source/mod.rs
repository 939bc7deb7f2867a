// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sources of a recording, behind one trait.
//!
//! A [`Source`] takes records from the kernel or from a tool, and puts them into the [`Sink`]. It may provide block events,
//! entries (who queued a bio, and of which file it is), and causes (the handles of a journal and the system calls behind
//! them): the project's own probes ([`bpf`]) provide all three, the kernel's own recorder ([`recorder`]) entries and causes, and
//! each of the others one.

use std::collections::BTreeMap;
use std::ops::BitOr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::error::Result;
use crate::sink::Sink;

pub(crate) mod blktrace;
pub(crate) mod bpf;
pub(crate) mod ftrace;
pub(crate) mod recorder;
pub(crate) mod tracefs;

/// The interval at which a source is polled that cannot say when there is something to poll for.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Numbers of lost records, by the manifest's names.
pub(crate) type Losses = BTreeMap<String, u64>;

/// A set of what a source provides.
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
    /// A recording that can go to segments.
    pub const SEGMENTS: Provides = Provides(8);

    /// Returns true if all of `other` is in the set.
    pub fn has(self, other: Provides) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the set if `condition` holds, else none.
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

/// A line that a source has to say about the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Remark {
    /// Something that the source cannot tell on this machine; known from the start.
    Limit(String),
    /// Something that a reader should know of the recording's end; known after [`Source::stop`].
    Note(String),
    /// Something that others did to the recording; complete after [`Source::drain`] or [`Source::stop`].
    Interference(String),
}

/// A source that is running.
pub(crate) trait Source {
    /// The name of the source in the manifest.
    fn name(&self) -> &'static str;

    /// What it provides in this recording.
    fn provides(&self) -> Provides;

    /// A descriptor that can be read when there is something to poll for, if the source has one.
    fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// How long the source may be left alone if nothing wakes. `others_wake` is true if another source wakes when much of the same
    /// IO has come.
    fn poll_interval(&self, _others_wake: bool) -> Duration {
        POLL_INTERVAL
    }

    /// Moves what has come since the last call into the sink; called often.
    ///
    /// # Errors
    /// The source ended, what came makes no sense, or the bundle cannot be written.
    fn poll(&mut self, sink: &mut Sink) -> Result<()>;

    /// Moves everything that the kernel has by now into the sink, ahead of [`Sink::begin_segment`].
    ///
    /// # Errors
    /// As [`Source::poll`].
    fn drain(&mut self, sink: &mut Sink) -> Result<()> {
        self.poll(sink)
    }

    /// Stops recording `what`, one of the things that the source provides, and moves the rest of it into the sink. Events are
    /// stopped first and causes last, so that every event has its entries.
    ///
    /// # Errors
    /// As [`Source::poll`].
    fn stop(&mut self, what: Provides, sink: &mut Sink) -> Result<()>;

    /// The records that were lost; complete after [`Source::stop`]. If that failed, counters that are not known are left out.
    ///
    /// # Errors
    /// The kernel does not give the counters.
    fn losses(&self) -> Result<Losses>;

    /// What the source has to say.
    fn remarks(&self) -> Vec<Remark> {
        Vec::new()
    }
}

/// Makes lines remarks of a kind.
fn remarks(lines: &[String], kind: fn(String) -> Remark) -> impl Iterator<Item = Remark> {
    lines.iter().cloned().map(kind)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The contents of a trace's notes: process names and the wall clock.

use mostrace_bundle::blk_io_trace::Event;
use mostrace_bundle::blk_io_trace::action::tn;
use std::collections::HashMap;

/// The names of threads (`comm`) over time, by the PROCESS notes.
#[derive(Clone, Debug, Default)]
pub struct ThreadNames {
    by_pid: HashMap<u32, Vec<(u64, Box<str>)>>,
    renamed: Vec<(u32, u64)>,
}

/// The longest time from an event to the note that it caused, ns.
const NOTE_NS: u64 = 1_000_000_000;

impl ThreadNames {
    /// Takes an event; anything but a PROCESS note is ignored.
    pub fn push(&mut self, event: &Event<'_>) {
        if !event.is_note() || event.act() != tn::PROCESS {
            return;
        }
        let end = event.pdu.iter().position(|&b| b == 0);
        let comm = event.pdu.get(..end.unwrap_or(event.pdu.len()));
        let comm = String::from_utf8_lossy(comm.unwrap_or_default());
        let names = self.by_pid.entry(event.pid).or_default();
        if names.last().is_some_and(|(_, last)| **last == *comm) {
            return;
        }
        if !names.is_empty() {
            self.renamed.push((event.pid, event.time_ns));
        }
        names.push((event.time_ns, comm.into()));
    }

    /// Returns the numbers of threads that got another name, and when (ns), in the order of their notes: such a number may
    /// belong to another thread from then on.
    #[must_use]
    pub fn renamed(&self) -> &[(u32, u64)] {
        &self.renamed
    }

    /// Returns the name that `pid` had at `time_ns`: the last one noted by then, or else the first one noted at most a
    /// second later, because a note may be written after the event that caused it.
    #[must_use]
    pub fn at(&self, pid: u32, time_ns: u64) -> Option<&str> {
        let names = self.by_pid.get(&pid)?;
        let noted = names.partition_point(|(since, _)| *since <= time_ns);
        let (since, name) = names.get(noted.saturating_sub(1))?;
        (since.saturating_sub(time_ns) <= NOTE_NS).then_some(name)
    }

    /// Returns every pid with its names and the time (ns) from which each was valid; the pids are in no order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &[(u64, Box<str>)])> {
        self.by_pid.iter().map(|(pid, names)| (*pid, &names[..]))
    }
}

/// One moment in the trace's clock and in the wall clock, from a TIMESTAMP note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WallClock {
    /// Nanoseconds of the trace's clock.
    pub time_ns: u64,
    /// Seconds since 1970.
    pub seconds: u32,
    /// Nanoseconds within that second.
    pub nanoseconds: u32,
}

impl WallClock {
    /// Decodes a TIMESTAMP note; None for any other event.
    #[must_use]
    pub fn of(event: &Event<'_>) -> Option<Self> {
        let [seconds, nanoseconds] = event.timestamp()?;
        Some(Self {
            time_ns: event.time_ns,
            seconds,
            nanoseconds,
        })
    }
}

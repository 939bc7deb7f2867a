// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls that make something durable or remove it; finds the call that a thread was in at a moment.

use std::rc::Rc;

use mostrace_bundle::entry::{CallKind, RawCall};

use super::durability::asks;
use super::handle::removes;
use super::spans::{Lasting, Spans};
use super::{Caller, Reason};
use crate::attribute::{FileId, HashMap};
use crate::tally::Tally;

/// Calls are dropped that ended this long ago, ns. What was in progress before then is not known any more.
const KEPT_NS: u64 = 10_000_000_000;
/// The most calls that are kept; beyond it, all are dropped.
const LIMIT: usize = 1 << 19;
/// With fewer calls than this, looking for old ones gains nothing.
const FEW: usize = 4096;

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub start_ns: u64,
    pub end_ns: u64,
    pub kind: CallKind,
    pub pid: u32,
    pub tgid: u32,
    pub caller: Caller,
    pub file: FileId,
    /// Inode and generation, as the entry has them.
    pub inode: (u64, u32),
    /// Why f2fs's fsync needed a checkpoint (`cp_reason`); 0 if it did not.
    pub cp_reason: u16,
    /// True if it asks for durability.
    pub asks: bool,
}

impl Call {
    pub fn new(raw: &RawCall, caller: Caller, file: FileId) -> Call {
        Call {
            start_ns: raw.start_ns.get(),
            end_ns: raw.head.time_ns.get(),
            kind: CallKind::of(raw.kind.get()),
            pid: raw.pid.get(),
            tgid: raw.tgid.get(),
            caller,
            file,
            inode: (raw.ino.get(), raw.generation.get()),
            cp_reason: raw.cp_reason.get(),
            asks: asks(raw),
        }
    }

    /// Returns why f2fs wrote a checkpoint for it.
    pub fn reason(&self) -> Reason {
        match Reason::of_call(self.kind, self.cp_reason) {
            Reason::Other if self.asks => Reason::Fsync,
            reason => reason,
        }
    }
}

impl Lasting for Rc<Call> {
    fn start_ns(&self) -> u64 {
        self.start_ns
    }

    fn end_ns(&self) -> u64 {
        self.end_ns
    }
}

/// Calls of the last seconds and those that are known ahead.
#[derive(Default)]
pub(super) struct Calls {
    by_pid: HashMap<u32, Spans<Rc<Call>>>,
    /// The calls for durability of all threads.
    syncs: Spans<Rc<Call>>,
    count: usize,
    sweep_at: usize,
    /// Calls that ended before this time may have been dropped, ns.
    gone_ns: u64,
    /// Number of calls that were dropped for want of room.
    cut_short: usize,
}

impl Calls {
    /// Keeps a call for durability or one that removes a name. `now_ns` is the trace's current time; calls are read ahead of
    /// it.
    pub fn push(&mut self, call: Call, now_ns: u64) {
        if !call.asks && !removes(call.kind) {
            return;
        }
        let (pid, call) = (call.pid, Rc::new(call));
        if call.asks {
            self.syncs.push(Rc::clone(&call));
        }
        self.by_pid.entry(pid).or_default().push(call);
        self.count.tally(1);
        if self.count > self.sweep_at.max(FEW) {
            self.sweep(now_ns);
        }
    }

    /// Returns the call that a thread was in at `time_ns`.
    pub fn at(&self, pid: u32, time_ns: u64) -> Option<&Call> {
        // A thread is in one call at a time, but may have several requests to io_uring in flight.
        let mut first: Option<&Call> = None;
        self.each_at(pid, time_ns, |call| {
            if first.is_none_or(|first| call.end_ns < first.end_ns) {
                first = Some(call);
            }
        });
        first
    }

    /// Passes every call that a thread was in at `time_ns` to `take`.
    pub fn each_at<'s>(&'s self, pid: u32, time_ns: u64, mut take: impl FnMut(&'s Call)) {
        if let Some(calls) = self.by_pid.get(&pid) {
            calls.each_over(time_ns, time_ns, |call| take(call));
        }
    }

    /// Returns true if a call for durability that is `wanted` was in progress at `time_ns`, or if that is not known.
    pub fn is_any(&self, time_ns: u64, wanted: impl Fn(&Call) -> bool) -> bool {
        if time_ns < self.gone_ns {
            return true;
        }
        let mut is_any = false;
        let look = |call: &Rc<Call>| is_any |= wanted(call);
        let all = self.syncs.each_over(time_ns, time_ns, look);
        !all || is_any
    }

    /// Returns the calls for durability that are `wanted` and lasted at least from `from_ns` to `to_ns`; none if some may have been
    /// dropped, or if there are too many to look at.
    pub fn syncs(&self, from_ns: u64, to_ns: u64, wanted: impl Fn(&Call) -> bool) -> Vec<Call> {
        let mut found = Vec::new();
        if to_ns < self.gone_ns {
            return found;
        }
        let all = self.syncs.each_over(from_ns, to_ns, |call| {
            if wanted(call) {
                found.push(**call);
            }
        });
        if !all {
            found.clear();
        }
        found
    }

    /// Returns the first call for durability that is `wanted` and lasted at least from `from_ns` to `to_ns`. None if it may have
    /// been dropped, or if there are too many to look at.
    pub fn first_sync(
        &self,
        from_ns: u64,
        to_ns: u64,
        wanted: impl Fn(&Call) -> bool,
    ) -> Option<Call> {
        let lasted = self.syncs(from_ns, to_ns, wanted).into_iter();
        lasted.min_by_key(|call| (call.start_ns, call.end_ns))
    }

    /// Returns the number of calls for which there was no room.
    pub fn cut_short(&self) -> usize {
        self.cut_short
    }

    /// Drops calls that are too old, and all calls if that is not enough.
    fn sweep(&mut self, now_ns: u64) {
        let oldest = now_ns.saturating_sub(KEPT_NS).max(self.gone_ns);
        self.gone_ns = oldest;
        for calls in self.by_pid.values_mut() {
            calls.drop_before(oldest);
        }
        self.by_pid.retain(|_, calls| calls.len() > 0);
        self.syncs.drop_before(oldest);
        self.count = self.by_pid.values().map(Spans::len).sum();
        if self.count > LIMIT {
            let last_ns = self.by_pid.values().filter_map(Spans::last_end);
            *self = Calls {
                gone_ns: last_ns.max().unwrap_or(0).saturating_add(1),
                cut_short: self.cut_short.saturating_add(self.count),
                ..Calls::default()
            };
        }
        // More often would look at every call too often, and more seldom would keep calls for a multiple of their time.
        self.sweep_at = self.count.saturating_add(self.count / 4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn fsync(at_ms: u64) -> Call {
        Call {
            start_ns: at_ms * MS,
            end_ns: at_ms * MS + 1,
            kind: CallKind::Fsync,
            pid: 1,
            tgid: 1,
            caller: Caller::UNKNOWN,
            file: FileId::NONE,
            inode: (12, 0),
            cp_reason: 0,
            asks: true,
        }
    }

    /// Of 40 s of calls, at most a quarter more is held than may be asked for.
    #[test]
    fn calls_are_not_held_for_a_multiple_of_their_time() {
        let mut calls = Calls::default();
        let kept = KEPT_NS / MS;
        for at in 0..4 * kept {
            calls.push(fsync(at), at * MS);
            assert!(calls.count as u64 <= kept + kept / 4 + 1, "{at}");
        }
        let last = 4 * kept - 1;
        for at in [last, last - kept + 1] {
            assert!(calls.at(1, at * MS).is_some(), "{at}");
            assert!(calls.first_sync(at * MS, at * MS, |_| true).is_some());
        }
        assert_eq!(calls.cut_short(), 0);
    }
}

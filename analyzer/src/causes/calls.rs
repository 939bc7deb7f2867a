// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls that make something durable or remove it; finds the call that a thread was in at a moment.

use std::collections::VecDeque;

use mostrace_bundle::entry::{CallKind, RawCall};

use super::durability::asks;
use super::handle::removes;
use super::{Caller, Reason};
use crate::attribute::{FileId, HashMap};
use crate::tally::Tally;

/// Calls that ended this long ago cannot be asked for any more, ns.
const KEPT_NS: u64 = 10_000_000_000;
/// More calls than are made in that time; beyond it, all are forgotten.
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

    /// Returns true if the call was in progress at `time_ns`.
    pub fn is_at(&self, time_ns: u64) -> bool {
        (self.start_ns..=self.end_ns).contains(&time_ns)
    }
}

/// Calls in the order of their returns.
#[derive(Default)]
pub(super) struct Calls {
    by_pid: HashMap<u32, VecDeque<Call>>,
    /// The calls for durability of all threads.
    syncs: VecDeque<Call>,
    count: usize,
    sweep_at: usize,
}

impl Calls {
    /// Keeps a call for durability or one that removes a name. `now_ns` is the trace's current time; calls are read ahead of
    /// it.
    pub fn push(&mut self, call: Call, now_ns: u64) {
        if !call.asks && !removes(call.kind) {
            return;
        }
        if call.asks {
            // The table is almost in time order.
            let after = self.syncs.partition_point(|c| c.end_ns <= call.end_ns);
            self.syncs.insert(after, call);
        }
        self.by_pid.entry(call.pid).or_default().push_back(call);
        self.count.tally(1);
        if self.count > self.sweep_at.max(FEW) {
            self.sweep(now_ns);
        }
    }

    /// Returns the call that a thread was in at `time_ns`.
    pub fn at(&self, pid: u32, time_ns: u64) -> Option<&Call> {
        let calls = self.by_pid.get(&pid)?;
        let first = calls.partition_point(|call| call.end_ns < time_ns);
        // A thread is in one call at a time.
        calls.get(first).filter(|call| call.is_at(time_ns))
    }

    /// Among the calls for durability that lasted from `from_ns` to `to_ns` or longer and are `wanted`, returns the one that
    /// began first.
    pub fn first_sync(
        &self,
        from_ns: u64,
        to_ns: u64,
        wanted: impl Fn(&Call) -> bool,
    ) -> Option<&Call> {
        let first = self.syncs.partition_point(|call| call.end_ns < to_ns);
        let later = self.syncs.range(first..);
        later
            .filter(|call| call.start_ns <= from_ns && wanted(call))
            .min_by_key(|call| call.start_ns)
    }

    /// Drops calls that are too old, and all calls if that is not enough.
    fn sweep(&mut self, now_ns: u64) {
        let oldest = now_ns.saturating_sub(KEPT_NS);
        for calls in self.by_pid.values_mut() {
            let old = calls.partition_point(|call| call.end_ns < oldest);
            calls.drain(..old);
        }
        self.by_pid.retain(|_, calls| !calls.is_empty());
        let old = self.syncs.partition_point(|call| call.end_ns < oldest);
        self.syncs.drain(..old);
        self.count = self.by_pid.values().map(VecDeque::len).sum();
        if self.count > LIMIT {
            *self = Calls::default();
        }
        self.sweep_at = self.count.saturating_mul(2);
    }
}

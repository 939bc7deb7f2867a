// SPDX-License-Identifier: MIT OR Apache-2.0
//! A call that returned when something was durable.

use mostrace_bundle::entry::{CallKind, RawCall, call_flags};

use mostrace_trace::causes::{asks, is_sync};

/// The call; times are in ns of the trace's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub start_ns: u64,
    pub end_ns: u64,
    pub kind: CallKind,
    pub pid: u32,
    pub tgid: u32,
    /// Inode and generation; zeros for a call that is for all files.
    pub file: (u64, u32),
    pub s_dev: u32,
}

impl Ask {
    /// Returns the call; None if it waits for nothing to be durable, or if its time is not known.
    pub fn of(raw: &RawCall) -> Option<Ask> {
        let flags = raw.head.flags;
        let kind = CallKind::of(raw.kind.get());
        // Of a part of a call, the beginning is known only if it is a sync.
        let is_part = flags.has(call_flags::PART) && !is_sync(kind);
        let is_told = !flags.has(call_flags::OPEN_END) && !is_part;
        let (start_ns, end_ns) = (raw.start_ns.get(), raw.head.time_ns.get());
        (is_told && asks(raw) && start_ns <= end_ns).then_some(Ask {
            start_ns,
            end_ns,
            kind,
            pid: raw.pid.get(),
            tgid: raw.tgid.get(),
            file: (raw.ino.get(), raw.generation.get()),
            s_dev: raw.s_dev.get(),
        })
    }

    /// Returns true if the call is for all files of the filesystem.
    pub fn is_of_all(&self) -> bool {
        matches!(self.kind, CallKind::Sync | CallKind::Checkpoint)
    }
}

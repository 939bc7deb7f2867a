// SPDX-License-Identifier: MIT OR Apache-2.0
//! What made the filesystem write a request when it did.

use mostrace_bundle::entry::CallKind;
use strum::{FromRepr, IntoStaticStr, VariantArray};

use super::calls::Call;

/// What forces requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromRepr, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
#[repr(u8)]
pub enum Force {
    /// fsync
    Fsync = 1,
    /// fdatasync
    Fdatasync = 2,
    /// sync_file_range
    SyncRange = 3,
    /// msync
    Msync = 4,
    /// sync, syncfs
    Sync = 5,
    /// A write that waits until it is durable.
    Write = 6,
    /// f2fs's ioctl that writes a checkpoint
    Checkpoint = 7,
    /// f2fs's ioctl that commits an atomic write
    AtomicCommit = 8,
    /// Another call that waits until something is durable, or several calls of different kinds.
    Call = 9,
    /// jbd2's timer: the transaction was as old as the mount option `commit=` says.
    Timer = 10,
    /// The kernel's writeback of dirty pages.
    Writeback = 11,
    /// A lack of memory: kswapd wrote the pages.
    Memory = 12,
}

impl Force {
    fn is_call(self) -> bool {
        !matches!(self, Force::Timer | Force::Writeback | Force::Memory)
    }

    fn of(call: &Call) -> Force {
        match call.kind {
            CallKind::Fsync => Force::Fsync,
            CallKind::Fdatasync => Force::Fdatasync,
            CallKind::SyncRange => Force::SyncRange,
            CallKind::Msync => Force::Msync,
            CallKind::Sync => Force::Sync,
            CallKind::Write => Force::Write,
            CallKind::Checkpoint => Force::Checkpoint,
            CallKind::AtomicCommit => Force::AtomicCommit,
            _ => Force::Call,
        }
    }
}

/// What forced a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forced {
    /// What it is.
    pub by: Force,
    /// The thread of the call and the call's start, ns. None if several calls may have been the one.
    pub call: Option<(u32, u64)>,
}

impl From<Force> for Forced {
    fn from(by: Force) -> Forced {
        Forced { by, call: None }
    }
}

impl From<&Call> for Forced {
    fn from(call: &Call) -> Forced {
        Forced {
            by: Force::of(call),
            call: Some((call.pid, call.start_ns)),
        }
    }
}

impl Forced {
    /// What both agree on; None if one of them is not known, or if they differ and one is no call.
    pub(super) fn of_both(one: Option<Forced>, other: Option<Forced>) -> Option<Forced> {
        let (one, other) = one.zip(other)?;
        let are_calls = one.by.is_call() && other.by.is_call();
        (are_calls || one.by == other.by).then_some(())?;
        Forced::of_any([one, other])
    }

    /// What all of these calls agree on; None if there are none.
    pub(super) fn of_any(all: impl IntoIterator<Item = Forced>) -> Option<Forced> {
        all.into_iter().reduce(|one, other| Forced {
            by: if one.by == other.by {
                one.by
            } else {
                Force::Call
            },
            call: one.call.filter(|_| one.call == other.call),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_a_call_only_if_both_are() {
        let both = |one: Force, other: Force| {
            let forced = Forced::of_both(Some(one.into()), Some(other.into()));
            forced.map(|forced| forced.by)
        };
        assert_eq!(both(Force::Fsync, Force::Fsync), Some(Force::Fsync));
        assert_eq!(both(Force::Fsync, Force::Sync), Some(Force::Call));
        assert_eq!(both(Force::Timer, Force::Timer), Some(Force::Timer));
        assert_eq!(both(Force::Timer, Force::Fsync), None);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! One call that changed or dropped a range of a file.

use std::cell::Cell;

use super::Caller;
use super::spans::Lasting;

/// Inode and generation.
pub(super) type Inode = (u64, u32);

/// The effect of a call on a range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    /// It changed the bytes.
    Changed,
    /// It may have changed them, or only a part of it may not be written out yet.
    MayHaveChanged,
    /// It dropped them: earlier changes are not written out.
    Dropped,
    /// Nothing of what it changed is left to be written out.
    WrittenOut,
}

/// A call that changed or dropped bytes `from..to` of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub act: Act,
    pub caller: Caller,
    pub from: u64,
    pub to: u64,
    pub start_ns: u64,
    /// [`NEVER`] if nothing tells the end.
    pub end_ns: u64,
}

/// The end of a call that was never seen to end.
pub(super) const NEVER: u64 = u64::MAX;

/// While a call waits, its range and effect may change, but its beginning and end do not.
impl Lasting for Cell<Change> {
    fn start_ns(&self) -> u64 {
        self.get().start_ns
    }

    fn end_ns(&self) -> u64 {
        self.get().end_ns
    }
}

impl Change {
    /// Returns true if it may leave something to be written out.
    pub fn changes(&self) -> bool {
        matches!(self.act, Act::Changed | Act::MayHaveChanged)
    }

    pub fn meets(&self, from: u64, to: u64) -> bool {
        self.from < to && from < self.to
    }

    /// Takes `from..to` away from the call, which may leave a second part of it.
    pub fn cut(&mut self, from: u64, to: u64) -> Option<Change> {
        let ahead = Change {
            to: self.to.min(from),
            ..*self
        };
        let behind = Change {
            from: self.from.max(to),
            ..*self
        };
        let mut left = [ahead, behind].into_iter().filter(|c| c.from < c.to);
        match left.next() {
            Some(first) => *self = first,
            None => self.act = Act::WrittenOut,
        }
        left.next()
    }
}

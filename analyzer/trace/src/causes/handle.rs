// SPDX-License-Identifier: MIT OR Apache-2.0
//! A handle of the journal: one operation's part in a transaction.

use mostrace_bundle::entry::{CallKind, RawHandle, handle_flags};

use super::operation::{handle_type, is_sync};
use super::{Caller, Operation};
use crate::attribute::FileId;

/// Prefixes of the names of functions that begin handles to write pages back, whatever the call.
const WRITE_BACK: [&str; 3] = ["ext4_do_writepages", "ext4_writepages", "mpage_"];

/// The way in which the causer of a handle is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lead {
    /// The causer is the task that began the handle, or the kernel thread if it did so for no call.
    Task,
    /// The handle allocated blocks for pages; the causers are those who wrote the pages before.
    Pages,
    /// The same as `Pages`, after the pages were written out.
    WrittenPages,
    /// The handle freed an inode; the causer is whoever unlinked it.
    Eviction,
    /// The causer cannot be found.
    Nothing,
}

/// One handle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handle {
    pub id: u64,
    pub start_ns: u64,
    pub end_ns: u64,
    pub tgid: u32,
    /// The task that began the handle.
    pub caller: Caller,
    /// True if that task is a kernel thread.
    pub is_kernels: bool,
    pub operation: Operation,
    pub file: FileId,
    /// Inode and generation.
    pub inode: (u64, u32),
    pub lead: Lead,
    /// Number of blocks that the handle was the first to modify, as far as it is known.
    pub dirtied: u32,
    /// True if each thread has an entry for each function and inode that it began a handle for in the transaction.
    pub tells_causes: bool,
    /// For a handle that converts blocks: the time of the previous conversion of the inode's blocks, ns.
    pub converted_ns: u64,
    /// True if `dirtied` is known: the handle neither went on in another transaction nor gave blocks back.
    pub knows_dirtied: bool,
    /// True if no handle of the transaction is missing before it.
    pub opens: bool,
    /// True if another handle was open meanwhile.
    pub overlaps: bool,
    /// True if it asked for the commit, and waited for it.
    pub asks: bool,
}

impl Handle {
    pub fn new(
        raw: &RawHandle,
        function: Option<&str>,
        caller: Caller,
        is_kernels: bool,
        file: FileId,
    ) -> Handle {
        let flags = raw.head.flags;
        let call = CallKind::of(raw.call.get());
        let operation = Operation::of_handle(function, raw.kind.get(), call);
        let is_eviction = function.is_some_and(|name| name.starts_with("ext4_evict_inode"));
        // A write with O_SYNC writes back what others wrote to its pages, too.
        let writes_back =
            function.is_some_and(|name| WRITE_BACK.iter().any(|begins| name.starts_with(begins)));
        let is_conversion = raw.kind.get() == handle_type::EXT_CONVERT;
        let lead = match operation {
            _ if flags.has(handle_flags::UNSEEN) => Lead::Nothing,
            // An overlay's mount removes files of the filesystem below it.
            Operation::Unlink if is_eviction && !removes(call) && call != CallKind::Mount => {
                Lead::Eviction
            }
            Operation::Allocate if is_conversion && is_kernels => Lead::WrittenPages,
            Operation::Allocate if is_kernels || is_sync(call) || writes_back => Lead::Pages,
            _ if is_kernels && !operation.is_background() => Lead::Nothing,
            _ => Lead::Task,
        };
        let end_ns = raw.head.time_ns.get();
        Handle {
            id: raw.id.get(),
            // 0 means unknown.
            start_ns: match raw.start_ns.get() {
                0 => end_ns,
                start_ns => start_ns,
            },
            end_ns,
            tgid: raw.tgid.get(),
            caller,
            is_kernels,
            operation,
            file,
            inode: (raw.ino.get(), raw.generation.get()),
            lead,
            dirtied: raw.dirtied.get(),
            tells_causes: flags.has(handle_flags::EACH_CAUSE),
            converted_ns: 0,
            opens: flags.has(handle_flags::OPENS),
            overlaps: flags.has(handle_flags::OVERLAP),
            asks: flags.has(handle_flags::SYNC),
            knows_dirtied: !flags.has(handle_flags::RESTARTED) && !flags.has(handle_flags::FORGOT),
        }
    }

    /// Returns true if every process that took part in the transaction through this thread has an entry. A program's thread has
    /// at least one; a kernel thread works for many.
    pub fn tells_all(&self) -> bool {
        self.tells_causes || !self.is_kernels
    }

    pub fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// Returns true if the handle was the first to modify a block, or may have been.
    pub fn may_have_dirtied(&self) -> bool {
        self.dirtied > 0 || !self.knows_dirtied
    }

    /// Returns true if this handle may have dirtied the blocks that `other` is said to have dirtied: both were open at the same
    /// time, and this one may have been the first to modify a block.
    pub fn may_be_meant_for(&self, other: &Handle) -> bool {
        self.may_have_dirtied() && self.start_ns <= other.end_ns && other.start_ns <= self.end_ns
    }
}

/// Returns true if a call removes a name.
pub(super) fn removes(call: CallKind) -> bool {
    matches!(call, CallKind::Unlink | CallKind::Rename)
}

#[cfg(test)]
mod tests {
    use mostrace_bundle::entry::Flags;
    use zerocopy::FromZeros;

    use super::*;

    fn handle(flags: Flags, dirtied: u32) -> Handle {
        let mut raw = RawHandle::new_zeroed();
        raw.head.flags = flags;
        raw.head.time_ns = 20.into();
        raw.start_ns = 10.into();
        raw.dirtied = dirtied.into();
        Handle::new(&raw, None, Caller::UNKNOWN, false, FileId::NONE)
    }

    #[test]
    fn what_a_synchronous_write_writes_back_is_caused_by_those_who_wrote_the_pages() {
        let lead = |function: &str, call: CallKind| {
            let mut raw = RawHandle::new_zeroed();
            raw.call = (call as u16).into();
            let caller = Caller::UNKNOWN;
            Handle::new(&raw, Some(function), caller, false, FileId::NONE).lead
        };
        let writing = CallKind::Write;
        assert_eq!(lead("ext4_do_writepages", writing), Lead::Pages);
        assert_eq!(lead("ext4_da_write_begin", writing), Lead::Task);
        assert_eq!(lead("ext4_iomap_begin", CallKind::Fsync), Lead::Pages);
    }

    /// jbd2 does not tell how much a handle dirtied in the transaction that it leaves, and subtracts what was given back.
    #[test]
    fn a_handle_that_may_have_dirtied_blocks_may_be_meant_for_another() {
        let other = handle(Flags(0), 1);
        for (flags, dirtied, expected) in [
            (Flags(0), 0, false),
            (Flags(0), 1, true),
            (handle_flags::RESTARTED, 0, true),
            (handle_flags::FORGOT, 0, true),
            (handle_flags::OVERLAP, 0, false),
        ] {
            let meant = handle(flags, dirtied).may_be_meant_for(&other);
            assert_eq!(meant, expected, "{flags:?} {dirtied}");
        }
    }
}

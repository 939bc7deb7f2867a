// SPDX-License-Identifier: MIT OR Apache-2.0
//! The owner of blocks, and the thread that queued a bio, as events show them.

use super::extents::Fact;

/// The owner of a run of blocks: a file, or a node of f2fs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// The inode of the file; 0 for a node, because no event names its file.
    pub ino: u64,
    /// The block in the file at the run's first block; for a node, its number.
    pub index: u64,
    pub is_node: bool,
}

impl Fact for Owner {
    fn later(self, blocks: u64) -> Owner {
        Owner {
            index: self.index.saturating_add(blocks),
            ..self
        }
    }
}

/// The thread that queued a bio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Its number.
    pub pid: u32,
    /// The process, or [`UNKNOWN_ID`](crate::entry::UNKNOWN_ID).
    pub tgid: u32,
    /// The user, or the same.
    pub uid: u32,
    /// Its name, and NULs.
    pub comm: [u8; 16],
    /// True for a kernel thread.
    pub is_kernels: bool,
    /// The time when it queued the bio, ns.
    pub queued_ns: u64,
}

impl Fact for Thread {
    fn later(self, _: u64) -> Thread {
        self
    }
}

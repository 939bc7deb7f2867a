// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whose blocks are, and who queued a bio, as events tell it.

use super::extents::Told;

/// A run of blocks of one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// 0 of a node, of which no event says whose it is.
    pub ino: u64,
    /// Block of the file, at the run's first one; of a node its number.
    pub index: u64,
    pub is_node: bool,
}

impl Told for Owner {
    fn later(self, blocks: u64) -> Owner {
        Owner {
            index: self.index.saturating_add(blocks),
            ..self
        }
    }
}

/// The thread that queued a bio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Thread {
    pub pid: u32,
    pub tgid: u32,
    pub uid: u32,
    pub comm: [u8; 16],
    pub is_kernels: bool,
    /// When it did.
    pub queued_ns: u64,
}

impl Told for Thread {
    fn later(self, _: u64) -> Thread {
        self
    }
}

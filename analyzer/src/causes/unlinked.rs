// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who removed the last name of an inode that may go on living, as it is open.

use std::collections::VecDeque;

use crate::attribute::{HashMap, ProcessId};

/// Inodes that are remembered; the oldest go first.
const LIMIT: usize = 1 << 16;

/// By inode and generation.
#[derive(Default)]
pub(super) struct Unlinked {
    by: HashMap<(u64, u32), ProcessId>,
    order: VecDeque<(u64, u32)>,
}

impl Unlinked {
    pub fn push(&mut self, inode: (u64, u32), process: ProcessId) {
        if self.by.insert(inode, process).is_none() {
            self.order.push_back(inode);
        }
        if self.order.len() > LIMIT
            && let Some(oldest) = self.order.pop_front()
        {
            self.by.remove(&oldest);
        }
    }

    pub fn get(&self, inode: (u64, u32)) -> Option<ProcessId> {
        self.by.get(&inode).copied()
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Remembers who removed the last name of an inode, which may live on while it is open.

use std::collections::VecDeque;

use super::Caller;
use crate::attribute::HashMap;

/// Number of inodes that are remembered; the oldest are forgotten first.
const LIMIT: usize = 1 << 16;

/// The threads that removed the last names, by inode and generation.
#[derive(Default)]
pub(super) struct Unlinked {
    by: HashMap<(u64, u32), Caller>,
    order: VecDeque<(u64, u32)>,
}

impl Unlinked {
    pub fn push(&mut self, inode: (u64, u32), caller: Caller) {
        if self.by.insert(inode, caller).is_none() {
            self.order.push_back(inode);
        }
        if self.order.len() > LIMIT
            && let Some(oldest) = self.order.pop_front()
        {
            self.by.remove(&oldest);
        }
    }

    pub fn get(&self, inode: (u64, u32)) -> Option<Caller> {
        self.by.get(&inode).copied()
    }
}

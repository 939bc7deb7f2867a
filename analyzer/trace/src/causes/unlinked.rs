// SPDX-License-Identifier: MIT OR Apache-2.0
//! Remembers who removed the last name of an inode, which may live on while it is open.

use std::collections::VecDeque;

use super::Caller;
use super::change::Inode;
use crate::attribute::HashMap;
use crate::tally::Tally;

/// Number of inodes that are remembered; the oldest are forgotten first.
const LIMIT: usize = 1 << 16;

/// The threads that removed the last names, by inode and generation.
#[derive(Default)]
pub(super) struct Unlinked {
    by: HashMap<Inode, Caller>,
    order: VecDeque<Inode>,
    /// Number of answers that may have been forgotten.
    cut_short: usize,
    is_partial: bool,
}

impl Unlinked {
    pub fn push(&mut self, inode: Inode, caller: Caller) {
        if self.by.insert(inode, caller).is_none() {
            self.order.push_back(inode);
        }
        if self.order.len() > LIMIT
            && let Some(oldest) = self.order.pop_front()
        {
            self.by.remove(&oldest);
            self.is_partial = true;
        }
    }

    /// Returns the number of questions to which the answer may have been forgotten.
    pub fn cut_short(&self) -> usize {
        self.cut_short
    }

    pub fn get(&mut self, inode: Inode) -> Option<Caller> {
        let found = self.by.get(&inode).copied();
        self.cut_short
            .tally(usize::from(found.is_none() && self.is_partial));
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::ProcessId;

    #[test]
    fn the_oldest_are_forgotten_and_missed() {
        let mut unlinked = Unlinked::default();
        assert_eq!((unlinked.get((0, 1)), unlinked.cut_short()), (None, 0));
        for at in 0..=LIMIT as u64 {
            unlinked.push((at, 1), ProcessId(1).into());
        }
        assert_eq!((unlinked.get((0, 1)), unlinked.cut_short()), (None, 1));
        assert_eq!(unlinked.get((1, 1)), Some(ProcessId(1).into()));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The latest of something that ends.

use std::collections::VecDeque;
use std::collections::vec_deque::Iter;

/// Something that ends at a time, ns.
pub(super) trait Ends {
    fn end_ns(&self) -> u64;
}

/// The latest items in the order of their ends, and up to when others were forgotten.
pub(super) struct Latest<T> {
    items: VecDeque<T>,
    most: usize,
    forgotten_ns: Option<u64>,
}

impl<T: Ends> Latest<T> {
    /// Keeps at most this many items.
    pub fn new(most: usize) -> Latest<T> {
        Latest {
            items: VecDeque::new(),
            most,
            forgotten_ns: None,
        }
    }

    pub fn push(&mut self, item: T) {
        self.items.push_back(item);
        if self.items.len() > self.most
            && let Some(oldest) = self.items.pop_front()
        {
            self.forget(oldest.end_ns());
        }
    }

    /// Notes that something which ended at this time is not among the items.
    pub fn forget(&mut self, end_ns: u64) {
        self.forgotten_ns = self.forgotten_ns.max(Some(end_ns));
    }

    /// Returns true if nothing is missing of what ended at `time_ns` or later.
    pub fn has_all_since(&self, time_ns: u64) -> bool {
        self.forgotten_ns.is_none_or(|last| last < time_ns)
    }

    pub fn iter(&self) -> Iter<'_, T> {
        self.items.iter()
    }

    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut T> {
        self.items.iter_mut()
    }

    /// Returns what ended from one time to the other.
    pub fn during(&self, from_ns: u64, to_ns: u64) -> Iter<'_, T> {
        let first = self.items.partition_point(|item| item.end_ns() < from_ns);
        let last = self.items.partition_point(|item| item.end_ns() <= to_ns);
        self.items.range(first..last.max(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Ends for u64 {
        fn end_ns(&self) -> u64 {
            *self
        }
    }

    #[test]
    fn what_was_forgotten_is_missing() {
        let mut latest = Latest::new(2);
        (10..13).for_each(|end_ns: u64| latest.push(end_ns));
        let during: Vec<u64> = latest.during(0, 11).copied().collect();
        assert_eq!(during, [11]);
        assert!(latest.has_all_since(11) && !latest.has_all_since(10));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was read ahead of the trace's time, given back in the order of time.

use std::collections::{BTreeMap, VecDeque};

/// Items with their times, which come almost in order.
pub(super) struct Ahead<T> {
    in_order: VecDeque<(u64, T)>,
    /// Those that came late, by time and number.
    late: BTreeMap<(u64, u64), T>,
    number: u64,
}

impl<T> Default for Ahead<T> {
    fn default() -> Self {
        Ahead {
            in_order: VecDeque::new(),
            late: BTreeMap::new(),
            number: 0,
        }
    }
}

impl<T> Ahead<T> {
    pub fn len(&self) -> usize {
        self.in_order.len().saturating_add(self.late.len())
    }

    /// Removes everything. Returns how many items there were.
    pub fn clear(&mut self) -> u64 {
        let before = self.len() as u64;
        *self = Ahead::default();
        before
    }

    pub fn push(&mut self, time_ns: u64, item: T) {
        match self.in_order.back() {
            Some((last_ns, _)) if time_ns < *last_ns => {
                self.number = self.number.wrapping_add(1);
                self.late.insert((time_ns, self.number), item);
            }
            _ => self.in_order.push_back((time_ns, item)),
        }
    }

    /// Removes the earliest item if its time is at most `time_ns`.
    pub fn pop(&mut self, time_ns: u64) -> Option<T> {
        let next = self.in_order.front().map(|(next_ns, _)| *next_ns);
        let late = self.late.first_entry();
        if let Some(late) = late.filter(|late| next.is_none_or(|next_ns| late.key().0 < next_ns)) {
            return (late.key().0 <= time_ns).then(|| late.remove());
        }
        next.filter(|next_ns| *next_ns <= time_ns)?;
        self.in_order.pop_front().map(|(_, item)| item)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn items_come_in_the_order_of_time(steps in prop::collection::vec((0u64..50, any::<bool>()), 0..200)) {
            let (mut ahead, mut model) = (Ahead::default(), Vec::new());
            for (at, &(time_ns, pops)) in steps.iter().enumerate() {
                if pops {
                    let first = model.iter().min().copied().filter(|&(first, _)| first <= time_ns);
                    let popped = ahead.pop(time_ns);
                    prop_assert_eq!(popped.map(|(time_ns, _)| time_ns), first.map(|(first, _)| first));
                    model.retain(|one| popped != Some(*one));
                } else {
                    ahead.push(time_ns, (time_ns, at));
                    model.push((time_ns, at));
                }
                prop_assert_eq!(ahead.len(), model.len());
            }
        }
    }

    #[test]
    fn what_is_cleared_is_counted_and_gone() {
        let mut ahead = Ahead::default();
        for time_ns in [10, 20, 15] {
            ahead.push(time_ns, time_ns);
        }
        assert_eq!(ahead.clear(), 3);
        assert_eq!((ahead.len(), ahead.pop(u64::MAX)), (0, None));
        assert_eq!(ahead.clear(), 0);
        // The times before no longer make one late.
        ahead.push(5, 5);
        assert_eq!((ahead.pop(4), ahead.pop(5)), (None, Some(5)));
    }
}

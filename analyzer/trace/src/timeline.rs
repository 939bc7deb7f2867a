// SPDX-License-Identifier: MIT OR Apache-2.0
//! Items in the order of time, which come almost so.

use std::collections::{BTreeMap, VecDeque};

/// Items with their times. Of equal times, the one that came first is the first.
#[derive(Debug)]
pub(crate) struct Timeline<T> {
    in_order: VecDeque<(u64, T)>,
    /// Those that came after one of a later time, by time and number.
    late: BTreeMap<(u64, u64), T>,
    number: u64,
}

impl<T> Default for Timeline<T> {
    fn default() -> Self {
        Timeline {
            in_order: VecDeque::new(),
            late: BTreeMap::new(),
            number: 0,
        }
    }
}

impl<T> Timeline<T> {
    pub fn len(&self) -> usize {
        self.in_order.len().saturating_add(self.late.len())
    }

    /// Removes everything. Returns how many items there were.
    pub fn clear(&mut self) -> u64 {
        let before = self.len() as u64;
        *self = Timeline::default();
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

    /// Returns the earliest item and its time.
    pub fn first(&self) -> Option<(u64, &T)> {
        let next = self
            .in_order
            .front()
            .map(|(time_ns, item)| (*time_ns, item));
        match self.late.first_key_value() {
            Some((place, item)) if next.is_none_or(|(next_ns, _)| place.0 < next_ns) => {
                Some((place.0, item))
            }
            _ => next,
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

    /// Removes the items of times before `time_ns`.
    pub fn drop_before(&mut self, time_ns: u64) {
        let first = self.index_of(time_ns);
        self.in_order.drain(..first);
        self.late = self.late.split_off(&(time_ns, 0));
    }

    /// Returns the items of these times, in any order.
    pub fn between(&self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = &T> {
        let in_order = self.in_order.range(self.index_of(from_ns)..);
        let in_order = in_order.take_while(move |(time_ns, _)| *time_ns <= to_ns);
        let late = self
            .late
            .range((from_ns, 0)..=(to_ns.max(from_ns), u64::MAX));
        in_order
            .map(|(_, item)| item)
            .chain(late.map(|(_, item)| item))
    }

    /// Returns the index of the first item in order of `time_ns` or later.
    fn index_of(&self, time_ns: u64) -> usize {
        self.in_order
            .partition_point(|(before_ns, _)| *before_ns < time_ns)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn items_come_in_the_order_of_time(steps in prop::collection::vec((0u64..50, any::<bool>()), 0..200)) {
            let (mut timeline, mut model) = (Timeline::default(), Vec::new());
            for (at, &(time_ns, pops)) in steps.iter().enumerate() {
                if pops {
                    let first = model.iter().min().copied().filter(|&(first, _)| first <= time_ns);
                    let popped = timeline.pop(time_ns);
                    prop_assert_eq!(popped, first);
                    model.retain(|one| popped != Some(*one));
                } else {
                    timeline.push(time_ns, (time_ns, at));
                    model.push((time_ns, at));
                }
                prop_assert_eq!(timeline.len(), model.len());
                let first = timeline.first().map(|(_, item)| *item);
                prop_assert_eq!(first, model.iter().min().copied());
            }
        }

        #[test]
        fn those_of_some_times_are_found(
            times in prop::collection::vec(0u64..50, 0..60),
            from_ns in 0u64..50,
            longer in 0u64..20,
        ) {
            let mut timeline = Timeline::default();
            times.iter().for_each(|&time_ns| timeline.push(time_ns, time_ns));
            let to_ns = from_ns + longer;
            let mut found: Vec<_> = timeline.between(from_ns, to_ns).copied().collect();
            let mut expected = times.clone();
            expected.retain(|time_ns| (from_ns..=to_ns).contains(time_ns));
            found.sort();
            expected.sort();
            prop_assert_eq!(&found, &expected);
            timeline.drop_before(from_ns);
            let left = times.iter().filter(|time_ns| **time_ns >= from_ns);
            prop_assert_eq!(timeline.len(), left.count());
            prop_assert!(timeline.first().is_none_or(|(first_ns, _)| first_ns >= from_ns));
        }
    }

    #[test]
    fn what_is_cleared_is_counted_and_gone() {
        let mut timeline = Timeline::default();
        for time_ns in [10, 20, 15] {
            timeline.push(time_ns, time_ns);
        }
        assert_eq!(timeline.clear(), 3);
        assert_eq!((timeline.len(), timeline.pop(u64::MAX)), (0, None));
        assert_eq!(timeline.clear(), 0);
        // The times before no longer make one late.
        timeline.push(5, 5);
        assert_eq!((timeline.pop(4), timeline.pop(5)), (None, Some(5)));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parts of an image that have been read: a damaged one may lead to the same blocks again and again.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of numbers, as the start and end of runs that do not touch.
#[derive(Debug, Default)]
pub struct Seen(BTreeMap<u64, u64>);

impl Seen {
    /// Adds all of `range`. Returns the parts that are new. The time grows with the runs that the range meets, which
    /// are merged.
    pub fn take(&mut self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut new = Vec::new();
        if range.is_empty() {
            return new;
        }
        let mut at = range.start;
        let mut joined = range.clone();
        for (start, end) in self.touching(&range) {
            if at < start {
                new.push(at..start);
            }
            at = at.max(end);
            joined = joined.start.min(start)..joined.end.max(end);
            self.0.remove(&start);
        }
        if at < range.end {
            new.push(at..range.end);
        }
        self.0.insert(joined.start, joined.end);
        new
    }

    fn touching(&self, range: &Range<u64>) -> Vec<(u64, u64)> {
        let before = self.0.range(..range.start).next_back();
        let before = before.filter(|&(_, &end)| end >= range.start);
        let within = self.0.range(range.start..=range.end);
        let all = before.into_iter().chain(within);
        all.map(|(&start, &end)| (start, end)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_says_what_is_new(ranges in prop::collection::vec((0u64..60, 0u64..20), 0..30)) {
            let (mut seen, mut numbers) = (Seen::default(), BTreeSet::new());
            for (start, len) in ranges {
                let new: Vec<u64> = seen.take(start..start + len).into_iter().flatten().collect();
                let expected: Vec<u64> = (start..start + len).filter(|&n| numbers.insert(n)).collect();
                prop_assert_eq!(new, expected);
            }
            prop_assert!(seen.0.iter().zip(seen.0.iter().skip(1)).all(|((_, end), (start, _))| end < start));
        }
    }
}

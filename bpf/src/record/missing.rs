// SPDX-License-Identifier: MIT OR Apache-2.0
//! The completions that a recording lacks; each is counted in one of its segments.

/// Counts what the segments so far lack. A request whose completion is missing continues into the next segment, as one in flight
/// does, and is given up there or later; the kernel's counters show it in the segment in which it completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Missing {
    given_up: u64,
    counted: u64,
    told: u64,
}

impl Missing {
    /// Takes the number of requests that the next segment gave up, and the least number of requests that the kernel counted and the
    /// segment's trace lacks. Returns how many completions the segments lack beyond those returned before; of the two numbers the
    /// larger one counts.
    pub fn add(&mut self, given_up: u64, counted: u64) -> u64 {
        self.given_up = self.given_up.saturating_add(given_up);
        self.counted = self.counted.saturating_add(counted);
        let known = self.given_up.max(self.counted);
        let new = known.saturating_sub(self.told);
        self.told = self.told.max(known);
        new
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_the_counters_show_is_not_counted_again_when_it_is_given_up() {
        let mut missing = Missing::default();
        let segments = [(0, 0), (0, 16), (17, 1), (0, 0), (3, 0), (0, 3)];
        let told = segments.map(|(given_up, counted)| missing.add(given_up, counted));
        assert_eq!(told, [0, 16, 1, 0, 3, 0]);
    }

    proptest! {
        #[test]
        fn segments_lack_together_what_one_recording_would(
            segments in prop::collection::vec((0u64..20, 0u64..20), 1..20)
        ) {
            let mut missing = Missing::default();
            let told: u64 = segments.iter().map(|&(given_up, counted)| missing.add(given_up, counted)).sum();
            let sums = segments.iter().fold((0, 0), |sums, one| (sums.0 + one.0, sums.1 + one.1));
            prop_assert_eq!(told, Missing::default().add(sums.0, sums.1));
        }
    }
}

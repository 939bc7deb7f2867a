// SPDX-License-Identifier: MIT OR Apache-2.0
//! Durations that can be added up: how often a call took how long.

use std::collections::BTreeMap;

use mostrace_trace::tally::Tally;

/// Counts of durations in classes whose bounds lie a sixteenth apart, so that quantiles are at most 6.25 % too high.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Counts by the class's upper bound, µs.
    counts: BTreeMap<u64, u64>,
}

/// A duration of `n` bits is rounded up in its last `n - KEPT` bits.
const KEPT: u32 = 5;

impl Latencies {
    /// Counts a duration, ns.
    pub fn count(&mut self, ns: u64) {
        self.add(bound(ns.div_ceil(1000)), 1);
    }

    /// Adds a class by its upper bound, µs.
    pub fn add(&mut self, bound_us: u64, count: u64) {
        self.counts.entry(bound_us).or_default().tally(count);
    }

    /// Returns the upper bounds, µs, and the counts.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.iter().map(|(bound, count)| (*bound, *count))
    }

    /// Returns the number of durations.
    pub fn len(&self) -> u64 {
        self.counts
            .values()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns true if there are none.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns the bound below which this percentage of the durations lies, µs; None without durations.
    pub fn quantile(&self, percent: u32) -> Option<u64> {
        let wanted = u128::from(self.len()).saturating_mul(u128::from(percent));
        let mut below = 0_u128;
        let mut counts = self.iter();
        let found = counts.find(|(_, count)| {
            below = below.saturating_add(u128::from(*count));
            below.saturating_mul(100) >= wanted
        });
        found.map(|(bound, _)| bound)
    }
}

impl Tally for Latencies {
    fn tally(&mut self, more: Latencies) {
        for (bound, count) in more.counts {
            self.add(bound, count);
        }
    }
}

/// Returns the upper bound of a duration's class.
fn bound(us: u64) -> u64 {
    let bits = u64::BITS.saturating_sub(us.leading_zeros());
    let low = (1_u64 << bits.saturating_sub(KEPT)).saturating_sub(1);
    us.saturating_add(low) & !low
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_quantile_is_at_most_a_sixteenth_too_high(mut all in proptest::collection::vec(0_u64..1 << 40, 1..200), percent in 1_u32..=100) {
            let mut parts = [Latencies::default(), Latencies::default()];
            for (n, us) in all.iter().enumerate() {
                parts[n % 2].count(us * 1000);
            }
            let [mut sum, other] = parts;
            sum.tally(other);
            all.sort_unstable();
            let rank = (all.len() * percent as usize).div_ceil(100);
            let exact = all[rank - 1];
            let found = sum.quantile(percent).unwrap();
            prop_assert_eq!(sum.len(), all.len() as u64);
            prop_assert!(found >= exact && found <= exact + exact / 16 + 1, "{} {}", found, exact);
        }
    }

    #[test]
    fn none_has_no_quantile() {
        assert_eq!(Latencies::default().quantile(50), None);
        assert_eq!(bound(u64::MAX), !((1 << 59) - 1));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! How long transactions took.

use std::fs::File;
use std::io::{BufWriter, Write};

use serde::{Deserialize, Serialize};

/// Percentiles over all transactions of all threads, nanoseconds, from BEGIN until COMMIT returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// Half took no longer.
    pub p50_ns: u64,
    /// 90 of 100 took no longer.
    pub p90_ns: u64,
    /// 99 of 100 took no longer.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Latency {
    /// Nearest-rank percentiles: each is the latency of one transaction. None of none.
    pub fn of(latencies_ns: &[u64]) -> Option<Self> {
        let mut sorted = latencies_ns.to_vec();
        sorted.sort_unstable();
        let rank = |percent: usize| {
            let rank = sorted.len().saturating_mul(percent).div_ceil(100);
            sorted.get(rank.saturating_sub(1)).copied()
        };
        Some(Self {
            p50_ns: rank(50)?,
            p90_ns: rank(90)?,
            p99_ns: rank(99)?,
            max_ns: rank(100)?,
        })
    }
}

/// Writes one latency a line, in nanoseconds: first all of the first thread in their order, then the second's.
pub fn write_latencies(file: File, latencies_ns: &[u64]) -> std::io::Result<()> {
    let mut out = BufWriter::new(file);
    for latency in latencies_ns {
        writeln!(out, "{latency}")?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_are_nearest_rank() {
        let latencies: Vec<u64> = (1..=200).rev().collect();
        let expected = Latency {
            p50_ns: 100,
            p90_ns: 180,
            p99_ns: 198,
            max_ns: 200,
        };
        assert_eq!(Latency::of(&latencies), Some(expected));
        assert_eq!(Latency::of(&[]), None);
    }

    proptest! {
        /// The definition itself: the least value that `percent` of the values do not exceed.
        #[test]
        fn p90_is_the_least_that_covers_nine_tenths(values in proptest::collection::vec(0_u64..50, 1..60)) {
            let covered = |limit: u64| 10 * values.iter().filter(|v| **v <= limit).count() >= 9 * values.len();
            let p90 = Latency::of(&values).unwrap().p90_ns;
            prop_assert!(covered(p90));
            prop_assert!(values.iter().all(|v| *v >= p90 || !covered(*v)));
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Latencies of operations, and the number of operations in each second.

use std::fmt;
use std::fs::File;
use std::io::{BufWriter, Write};

use serde::{Deserialize, Serialize};

/// One operation: a transaction, or the reading or writing of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its duration, ns.
    pub took_ns: u64,
    /// The time of its end, ns since its thread began.
    pub ended_ns: u64,
}

/// Percentiles over all operations of all threads, ns. The latency of a transaction is from BEGIN until COMMIT
/// returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latency {
    /// The median.
    pub p50_ns: u64,
    /// 90 of 100 operations took no longer.
    pub p90_ns: u64,
    /// 99 of 100 operations took no longer.
    pub p99_ns: u64,
    /// The longest latency.
    pub max_ns: u64,
}

impl Latency {
    /// Returns nearest-rank percentiles: each is the latency of one operation. None if there are no operations.
    pub fn of(operations: &[Operation]) -> Option<Self> {
        let mut sorted: Vec<u64> = operations.iter().map(|o| o.took_ns).collect();
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

impl fmt::Display for Latency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [p50, p90, p99, max] =
            [self.p50_ns, self.p90_ns, self.p99_ns, self.max_ns].map(milliseconds);
        write!(
            f,
            "p50 {p50:.3} ms, p90 {p90:.3} ms, p99 {p99:.3} ms, max {max:.3} ms"
        )
    }
}

/// Writes one latency per line, in ns: those of the first thread in order, then those of the second, and so on.
pub fn write_latencies(file: File, operations: &[Operation]) -> std::io::Result<()> {
    write_lines(file, operations.iter().map(|o| o.took_ns))
}

/// Writes a line for each second, with the number of operations of all threads that ended in it.
pub fn write_iops(file: File, operations: &[Operation]) -> std::io::Result<()> {
    write_lines(file, per_second(operations))
}

fn per_second(operations: &[Operation]) -> Vec<u64> {
    const SECOND_NS: u64 = 1_000_000_000;
    let mut counts: Vec<u64> = Vec::new();
    for operation in operations {
        let second = usize::try_from(operation.ended_ns / SECOND_NS).unwrap_or(usize::MAX);
        if counts.len() <= second {
            counts.resize(second.saturating_add(1), 0);
        }
        if let Some(count) = counts.get_mut(second) {
            *count = count.saturating_add(1);
        }
    }
    counts
}

fn write_lines(file: File, numbers: impl IntoIterator<Item = u64>) -> std::io::Result<()> {
    let mut out = BufWriter::new(file);
    for number in numbers {
        writeln!(out, "{number}")?;
    }
    out.flush()
}

/// Converts nanoseconds to milliseconds.
pub(crate) fn milliseconds(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn operations(latencies: impl IntoIterator<Item = u64>) -> Vec<Operation> {
        let of = |took_ns| Operation {
            took_ns,
            ended_ns: 0,
        };
        latencies.into_iter().map(of).collect()
    }

    #[test]
    fn a_second_without_an_operation_counts_none() {
        let ended = [0, 999_999_999, 3_000_000_000, 1_000_000_000, 3_999_999_999];
        let of = |ended_ns| Operation {
            took_ns: 1,
            ended_ns,
        };
        assert_eq!(per_second(&ended.map(of)), [2, 1, 0, 2]);
        assert_eq!(per_second(&[]), [0; 0]);
    }

    #[test]
    fn percentiles_are_nearest_rank() {
        let latencies = operations((1..=200).rev());
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
        /// The definition: p90 is the least value such that 90 per cent of the values do not exceed it.
        #[test]
        fn p90_is_the_least_that_covers_nine_tenths(values in proptest::collection::vec(0_u64..50, 1..60)) {
            let covered = |limit: u64| 10 * values.iter().filter(|v| **v <= limit).count() >= 9 * values.len();
            let p90 = Latency::of(&operations(values.iter().copied())).unwrap().p90_ns;
            prop_assert!(covered(p90));
            prop_assert!(values.iter().all(|v| *v >= p90 || !covered(*v)));
        }
    }
}

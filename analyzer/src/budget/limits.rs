// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits, and whether a trace keeps them.

use super::{Measured, Parts};
use crate::transactions::Sure;

/// What a trace may come to at most.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Bytes written to the device.
    pub write_bytes: Option<u64>,
    /// Bytes written for each transaction.
    pub bytes_per_transaction: Option<f64>,
    /// Bytes written for each byte stored, or, where that is not told, for each passed to write().
    pub amplification: Option<f64>,
    /// Cache flushes of the device for each transaction.
    pub flushes_per_transaction: Option<f64>,
    /// An earlier trace, and by how much this one may exceed it: 0.05 is 5 %.
    pub baseline: Option<(Measured, f64)>,
}

/// One limit, held against a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// What is limited.
    pub what: &'static str,
    /// What the trace comes to; None if it does not tell.
    pub value: Option<f64>,
    /// The most it may.
    pub most: f64,
    /// How sure the number of transactions is that the value is for each of: with more of them it is less.
    pub sure: Sure,
    /// Where the bytes went, or which parts grew: the largest first.
    pub parts: Vec<String>,
}

impl Judgement {
    /// Whether the trace keeps the limit. One that it does not tell of is not kept.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.value.is_some_and(|value| value <= self.most)
    }
}

/// So many layers, and so many files, are named.
const NAMED: usize = 3;

/// These limits are for each transaction.
const PER_TRANSACTION: [&str; 2] = [
    "bytes written per transaction",
    "device flushes per transaction",
];

/// Holds every limit against a trace.
#[must_use]
pub fn judge(measured: &Measured, limits: &Limits) -> Vec<Judgement> {
    let each = |n: u64, of: Option<u64>| of.map(|of| n as f64 / of as f64);
    let per_transaction = |n| each(n, measured.transactions.divisor());
    let largest = || {
        let of = |parts: &Parts| named(parts.iter().map(|(name, &n)| (name.as_str(), n)));
        [of(&measured.layers), of(&measured.files)].concat()
    };
    let absolute = [
        (
            "bytes written",
            Some(measured.write_bytes as f64),
            limits.write_bytes.map(|n| n as f64),
        ),
        (
            PER_TRANSACTION[0],
            per_transaction(measured.write_bytes),
            limits.bytes_per_transaction,
        ),
        (
            match measured.payload_bytes {
                Some(_) => "bytes written per byte stored",
                None => "bytes written per byte passed to write()",
            },
            each(
                measured.write_bytes,
                measured.payload_bytes.or(measured.called_bytes),
            ),
            limits.amplification,
        ),
        (
            PER_TRANSACTION[1],
            per_transaction(measured.flushes),
            limits.flushes_per_transaction,
        ),
    ];
    let absolute = absolute.into_iter().filter_map(|(what, value, most)| {
        Some(Judgement {
            what,
            value,
            most: most?,
            sure: match PER_TRANSACTION.contains(&what) {
                true => measured.transactions.sure,
                false => Sure::Exact,
            },
            parts: largest(),
        })
    });
    let relative = limits.baseline.iter();
    let relative = relative.flat_map(|(before, tolerance)| against(measured, before, *tolerance));
    absolute.chain(relative).collect()
}

/// Against an earlier trace: for each transaction where it is known of both how many there were, else as a whole.
fn against(now: &Measured, before: &Measured, tolerance: f64) -> [Judgement; 2] {
    let is_known = |measured: &Measured| {
        let count = measured.transactions;
        count.is_exact() && count.divisor().is_some()
    };
    let per_transaction = is_known(now) && is_known(before);
    let [bytes, flushes] = match per_transaction {
        true => [
            "bytes written per transaction, to the baseline",
            "device flushes per transaction, to the baseline",
        ],
        false => [
            "bytes written, to the baseline",
            "device flushes, to the baseline",
        ],
    };
    let each = |n: u64, of: &Measured| match of.transactions.divisor().filter(|_| per_transaction) {
        Some(transactions) => n as f64 / transactions as f64,
        None => n as f64,
    };
    let judgement = |what, of: fn(&Measured) -> u64, parts| Judgement {
        what,
        value: Some(each(of(now), now)),
        most: each(of(before), before) * (1.0 + tolerance),
        sure: Sure::Exact,
        parts,
    };
    let grown = |of: fn(&Measured) -> &Parts| {
        let growth = of(now).iter().map(|(name, &n)| {
            let was = of(before).get(name).copied().unwrap_or(0);
            let more = each(n, now) - each(was, before);
            (name.as_str(), more.max(0.0).round() as u64)
        });
        named(growth)
    };
    let parts = [grown(|m| &m.layers), grown(|m| &m.files)].concat();
    [
        judgement(bytes, |m| m.write_bytes, parts),
        judgement(flushes, |m| m.flushes, Vec::new()),
    ]
}

fn named<'a>(parts: impl Iterator<Item = (&'a str, u64)>) -> Vec<String> {
    let mut parts: Vec<_> = parts.filter(|&(_, n)| n > 0).collect();
    parts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let parts = parts.into_iter().take(NAMED);
    parts.map(|(name, n)| format!("{name} {n}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transactions::Count;

    fn measured(write_bytes: u64, transactions: Option<u64>) -> Measured {
        let parts = |parts: &[(&str, u64)]| parts.iter().map(|&(n, b)| (n.to_owned(), b)).collect();
        Measured {
            write_bytes,
            flushes: 20,
            transactions: Count::new(transactions.unwrap_or(0), transactions.is_some()),
            payload_bytes: Some(100),
            called_bytes: Some(1000),
            layers: parts(&[
                ("data: db", write_bytes / 4),
                ("the filesystem's journal", write_bytes / 2),
            ]),
            files: parts(&[("/a.db", write_bytes / 4)]),
        }
    }

    #[test]
    fn a_limit_is_kept_up_to_itself() {
        let limits = Limits {
            write_bytes: Some(4000),
            bytes_per_transaction: Some(400.0),
            amplification: Some(39.9),
            flushes_per_transaction: Some(2.0),
            baseline: None,
        };
        let told = judge(&measured(4000, Some(10)), &limits);
        let kept: Vec<bool> = told.iter().map(Judgement::is_kept).collect();
        assert_eq!(kept, [true, true, false, true]);
        assert_eq!(told[2].value, Some(40.0));
        let parts = [
            "the filesystem's journal 2000",
            "data: db 1000",
            "/a.db 1000",
        ];
        assert_eq!(told[2].parts, parts);
    }

    #[test]
    fn what_a_trace_does_not_tell_is_not_kept() {
        let limits = Limits {
            flushes_per_transaction: Some(1e9),
            ..Limits::default()
        };
        let told = judge(&measured(4000, None), &limits);
        assert_eq!((told.len(), told[0].value), (1, None));
        assert!(!told[0].is_kept());
    }

    #[test]
    fn a_limit_for_each_transaction_says_what_it_rests_on() {
        let mut now = measured(4000, Some(10));
        now.transactions = Count::new(10, false);
        let limits = Limits {
            write_bytes: Some(4000),
            bytes_per_transaction: Some(400.0),
            baseline: Some((measured(5000, Some(10)), 0.0)),
            ..Limits::default()
        };
        let told = judge(&now, &limits);
        let sure: Vec<Sure> = told.iter().map(|judgement| judgement.sure).collect();
        assert_eq!(sure, [Sure::Exact, Sure::AtLeast, Sure::Exact, Sure::Exact]);
        // Who does not know how many there were is compared as a whole.
        assert_eq!(told[2].what, "bytes written, to the baseline");
    }

    #[test]
    fn a_baseline_counts_for_each_transaction() {
        let limits = |tolerance| Limits {
            baseline: Some((measured(4000, Some(10)), tolerance)),
            ..Limits::default()
        };
        let now = measured(8400, Some(20));
        let of = |tolerance| judge(&now, &limits(tolerance))[0].clone();
        assert!(of(0.06).is_kept() && !of(0.049).is_kept());
        assert_eq!((of(0.0).value, of(0.0).most), (Some(420.0), 400.0));
        let parts = ["the filesystem's journal 10", "data: db 5", "/a.db 5"];
        assert_eq!(of(0.0).parts, parts);
        let without = judge(&measured(4100, None), &limits(0.0));
        let whole = (without[0].value, without[0].most);
        assert_eq!(whole, (Some(4100.0), 4000.0));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits, and whether a trace, or several runs of one command, keep them.

use super::{Measured, Parts, Runs, Spread};
use crate::answer::size;
use crate::transactions::Sure;

/// The most that a trace may come to.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Bytes written to the device.
    pub write_bytes: Option<u64>,
    /// Bytes written for each transaction.
    pub bytes_per_transaction: Option<f64>,
    /// Bytes written for each byte stored, or, if that is unknown, for each byte passed to write().
    pub amplification: Option<f64>,
    /// Cache flushes of the device for each transaction.
    pub flushes_per_transaction: Option<f64>,
    /// Earlier runs of the same command.
    pub baseline: Option<Baseline>,
}

/// Earlier runs, and by how much they may be exceeded.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// The earlier runs.
    pub runs: Runs,
    /// 0.05 is 5 %. If None, it is the spread between runs of one command.
    pub tolerance: Option<f64>,
}

/// The result for one limit.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// A figure was compared with its limit.
    Held(Held),
    /// The command failed, so that it did not do what was to be measured.
    Failed {
        /// Number of runs that failed.
        runs: usize,
        /// Number of runs.
        of: usize,
        /// Exit status of the first failed run.
        status: i32,
    },
    /// Nothing was written, though the baseline wrote something.
    Nothing {
        /// The median of the baseline's bytes written.
        baseline: f64,
    },
}

/// A figure and its limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// The name of the figure.
    pub what: &'static str,
    /// The figure of the runs, whose median is compared; None if one of the runs lacks it.
    pub value: Option<Spread>,
    /// The limit.
    pub most: f64,
    /// The baseline from which the limit was computed; None if the user gave a number.
    pub from: Option<From>,
    /// The certainty of the number of transactions by which the value was divided: with more of them the value is smaller.
    pub sure: Sure,
    /// The names and bytes of the largest parts, or of those that grew most.
    pub parts: Vec<String>,
    /// The largest layers and the others, which sum to the bytes written, then the file to which most was written; empty if the
    /// figure is none of bytes, or has a baseline.
    pub sum: Vec<(u64, String)>,
}

/// The baseline from which a limit is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct From {
    /// The median of the baseline's runs.
    pub baseline: f64,
    /// The number of the baseline's runs.
    pub runs: usize,
    /// The excess that is tolerated.
    pub tolerance: Tolerance,
}

/// The tolerated excess over a baseline; 0.05 is 5 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// The user gave it.
    Given(f64),
    /// It is the spread between runs of one command, the larger one of both sides.
    Spread(f64),
    /// It is 0, because a single run on each side says nothing about the spread.
    Unknown,
}

impl Tolerance {
    fn of(given: Option<f64>, now: &Spread, before: &Spread) -> Tolerance {
        let spreads = [now.part(), before.part()].into_iter().flatten();
        match (given, spreads.reduce(f64::max)) {
            (Some(part), _) => Tolerance::Given(part),
            (None, Some(part)) => Tolerance::Spread(part),
            (None, None) => Tolerance::Unknown,
        }
    }

    fn part(self) -> f64 {
        match self {
            Tolerance::Given(part) | Tolerance::Spread(part) => part,
            Tolerance::Unknown => 0.0,
        }
    }
}

impl Judgement {
    /// Returns the name of what is limited.
    #[must_use]
    pub fn what(&self) -> &'static str {
        match self {
            Judgement::Held(held) => held.what,
            Judgement::Failed { .. } => "exit status of the command",
            Judgement::Nothing { .. } => "bytes written",
        }
    }

    /// Returns true if the limit is kept. A limit on a figure that the trace lacks is not kept.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        match self {
            Judgement::Held(held) => held.value.is_some_and(|value| value.median <= held.most),
            Judgement::Failed { .. } | Judgement::Nothing { .. } => false,
        }
    }
}

/// Number of layers, and number of files, that are named.
const NAMED: usize = 3;

/// Compares the runs of one command with every limit.
#[must_use]
pub fn judge(runs: &Runs, limits: &Limits) -> Vec<Judgement> {
    let mut all: Vec<Judgement> = failed(runs).into_iter().collect();
    all.extend(absolute(runs, limits).map(Judgement::Held));
    all.extend(limits.baseline.iter().flat_map(|b| against(runs, b)));
    all
}

fn failed(runs: &Runs) -> Option<Judgement> {
    let statuses = runs.each().filter_map(|run| run.exit_status);
    let failures: Vec<i32> = statuses.filter(|&status| status != 0).collect();
    failures.first().map(|&status| Judgement::Failed {
        runs: failures.len(),
        of: runs.count(),
        status,
    })
}

/// Returns the limits that are given as numbers.
fn absolute(runs: &Runs, limits: &Limits) -> impl Iterator<Item = Held> {
    type Of = fn(&Measured) -> Option<f64>;
    let ratio = match runs.each().all(|run| run.payload_bytes.is_some()) {
        true => "bytes written per byte stored",
        false => "bytes written per byte passed to write()",
    };
    let all: [(_, Of, _, _); 4] = [
        (
            "bytes written",
            |run| Some(run.write_bytes as f64),
            limits.write_bytes.map(|n| n as f64),
            Sure::Exact,
        ),
        (
            "bytes written per transaction",
            |run| each(run.write_bytes, run.transactions.divisor()),
            limits.bytes_per_transaction,
            runs.sure(),
        ),
        (
            ratio,
            |run| each(run.write_bytes, run.payload_bytes.or(run.called_bytes)),
            limits.amplification,
            Sure::Exact,
        ),
        (
            "device flushes per transaction",
            |run| each(run.flushes, run.transactions.divisor()),
            limits.flushes_per_transaction,
            runs.sure(),
        ),
    ];
    let largest = {
        let of = |parts: &Parts| named(parts.iter().map(|(name, &n)| (name.as_str(), n)));
        let typical = runs.typical();
        [of(&typical.layers), of(&typical.files)].concat()
    };
    all.into_iter().filter_map(move |(what, of, most, sure)| {
        Some(Held {
            what,
            value: runs.figure(of),
            most: most?,
            from: None,
            sure,
            parts: largest.clone(),
            sum: match what.starts_with("bytes written") {
                true => sum_of(runs.typical()),
                false => Vec::new(),
            },
        })
    })
}

fn each(n: u64, of: Option<u64>) -> Option<f64> {
    of.map(|of| n as f64 / of as f64)
}

/// Compares with earlier runs: per transaction if the number of transactions is exact for all runs, else in total.
fn against(now: &Runs, baseline: &Baseline) -> Vec<Judgement> {
    let before = &baseline.runs;
    let is_known =
        |run: &Measured| run.transactions.is_exact() && run.transactions.divisor().is_some();
    let per_transaction = now.each().chain(before.each()).all(is_known);
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
    let divided = |n: u64, run: &Measured| match per_transaction {
        true => each(n, run.transactions.divisor()),
        false => Some(n as f64),
    };
    let held = |what, of: fn(&Measured) -> u64, parts| {
        let figure = |runs: &Runs| runs.figure(|run| divided(of(run), run));
        let (value, earlier) = (figure(now)?, figure(before)?);
        let tolerance = Tolerance::of(baseline.tolerance, &value, &earlier);
        Some(Judgement::Held(Held {
            what,
            value: Some(value),
            most: earlier.median * (1.0 + tolerance.part()),
            from: Some(From {
                baseline: earlier.median,
                runs: earlier.runs,
                tolerance,
            }),
            sure: Sure::Exact,
            parts,
            sum: Vec::new(),
        }))
    };
    let grown = |of: fn(&Measured) -> &Parts| {
        let (now, before) = (now.typical(), before.typical());
        let growth = of(now).iter().map(|(name, &n)| {
            let was = of(before).get(name).copied().unwrap_or(0);
            let more = divided(n, now).unwrap_or(0.0) - divided(was, before).unwrap_or(0.0);
            (name.as_str(), more.max(0.0).round() as u64)
        });
        named(growth)
    };
    let parts = [grown(|m| &m.layers), grown(|m| &m.files)].concat();
    let all = [
        nothing(now, before),
        held(bytes, |m| m.write_bytes, parts),
        held(flushes, |m| m.flushes, Vec::new()),
    ];
    all.into_iter().flatten().collect()
}

/// Returns a judgement if nothing was written: that would keep every limit but proves nothing.
fn nothing(now: &Runs, before: &Runs) -> Option<Judgement> {
    let bytes = |runs: &Runs| runs.figure(|run| Some(run.write_bytes as f64));
    let (now, before) = (bytes(now)?, bytes(before)?);
    (now.least == 0.0 && before.least > 0.0).then_some(Judgement::Nothing {
        baseline: before.median,
    })
}

/// Number of layers that are named in a sum.
const LAYERS: usize = 2;

/// Returns the largest layers and what the others have, then the largest file.
fn sum_of(run: &Measured) -> Vec<(u64, String)> {
    let sorted = |parts: &Parts| {
        let mut all: Vec<_> = parts.iter().map(|(name, &n)| (n, name.clone())).collect();
        all.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        all
    };
    let mut sum = sorted(&run.layers);
    sum.truncate(LAYERS);
    let others = sum
        .iter()
        .fold(run.write_bytes, |left, (n, _)| left.saturating_sub(*n));
    sum.extend((others > 0).then(|| (others, "others".to_owned())));
    let file = sorted(&run.files).into_iter().next();
    sum.extend(file.map(|(n, path)| (n, format!("of it to {path}"))));
    sum
}

fn named<'a>(parts: impl Iterator<Item = (&'a str, u64)>) -> Vec<String> {
    let mut parts: Vec<_> = parts.filter(|&(_, n)| n > 0).collect();
    parts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let parts = parts.into_iter().take(NAMED);
    parts
        .map(|(name, n)| format!("{} {name}", size(n as f64)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Setup;
    use crate::charged::Counted;
    use crate::transactions::Count;

    fn measured(write_bytes: u64, transactions: Option<u64>) -> Measured {
        let parts = |parts: &[(&str, u64)]| parts.iter().map(|&(n, b)| (n.to_owned(), b)).collect();
        Measured {
            path: std::path::PathBuf::new(),
            setup: Setup::default(),
            counted: Counted::All,
            write_bytes,
            flushes: 20,
            transactions: Count::new(transactions.unwrap_or(0), transactions.is_some()),
            payload_bytes: Some(100),
            called_bytes: Some(1000),
            copied: None,
            exit_status: Some(0),
            layers: parts(&[
                ("the database", write_bytes / 4),
                ("ext4's journal", write_bytes / 2),
            ]),
            files: parts(&[("/a.db", write_bytes / 4)]),
        }
    }

    fn runs(bytes: &[u64], transactions: Option<u64>) -> Runs {
        let run = |&bytes: &u64| measured(bytes, transactions);
        Runs::new(bytes.iter().map(run).collect()).unwrap()
    }

    fn to(baseline: Runs, tolerance: Option<f64>) -> Limits {
        Limits {
            baseline: Some(Baseline {
                runs: baseline,
                tolerance,
            }),
            ..Limits::default()
        }
    }

    /// Returns the judgements that compare figures.
    fn held(runs: &Runs, limits: &Limits) -> Vec<Held> {
        let held = |judgement| match judgement {
            Judgement::Held(held) => held,
            other => panic!("{other:?}"),
        };
        judge(runs, limits).into_iter().map(held).collect()
    }

    fn median(held: &Held) -> Option<f64> {
        held.value.map(|value| value.median)
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
        let now = runs(&[4000], Some(10));
        let kept: Vec<bool> = judge(&now, &limits)
            .iter()
            .map(Judgement::is_kept)
            .collect();
        assert_eq!(kept, [true, true, false, true]);
        let told = held(&now, &limits);
        assert_eq!(median(&told[2]), Some(40.0));
        let parts = [
            "2.0 kB ext4's journal",
            "1.0 kB the database",
            "1.0 kB /a.db",
        ];
        assert_eq!(told[2].parts, parts);
    }

    #[test]
    fn what_a_trace_does_not_tell_is_not_kept() {
        let limits = Limits {
            flushes_per_transaction: Some(1e9),
            ..Limits::default()
        };
        let told = judge(&runs(&[4000], None), &limits);
        assert_eq!(median(&held(&runs(&[4000], None), &limits)[0]), None);
        assert!(told.len() == 1 && !told[0].is_kept());
    }

    #[test]
    fn a_limit_for_each_transaction_says_what_it_rests_on() {
        let mut now = measured(4000, Some(10));
        now.transactions = Count::new(10, false);
        let limits = Limits {
            write_bytes: Some(4000),
            bytes_per_transaction: Some(400.0),
            ..to(runs(&[5000], Some(10)), Some(0.0))
        };
        let told = held(&Runs::new(vec![now]).unwrap(), &limits);
        let sure: Vec<Sure> = told.iter().map(|judgement| judgement.sure).collect();
        assert_eq!(sure, [Sure::Exact, Sure::AtLeast, Sure::Exact, Sure::Exact]);
        // Runs without a known number of transactions are compared in total.
        assert_eq!(told[2].what, "bytes written, to the baseline");
    }

    #[test]
    fn a_baseline_counts_for_each_transaction() {
        let now = runs(&[8400], Some(20));
        let limits = |tolerance| to(runs(&[4000], Some(10)), Some(tolerance));
        let kept = |tolerance| judge(&now, &limits(tolerance))[0].is_kept();
        assert!(kept(0.06) && !kept(0.049));
        let told = held(&now, &limits(0.0));
        assert_eq!((median(&told[0]), told[0].most), (Some(420.0), 400.0));
        let parts = ["10 B ext4's journal", "5 B the database", "5 B /a.db"];
        assert_eq!(told[0].parts, parts);
        let whole = held(&runs(&[4100], None), &limits(0.0));
        assert_eq!((median(&whole[0]), whole[0].most), (Some(4100.0), 4000.0));
    }

    #[test]
    fn without_a_tolerance_the_runs_say_how_much_they_differ() {
        let told = |now: &[u64], before: &[u64]| {
            let limits = to(runs(before, None), None);
            held(&runs(now, None), &limits)[0].clone()
        };
        let tolerance = |held: Held| held.from.unwrap().tolerance;
        // The limit allows the larger spread of the two sides.
        let noisy = told(&[4000, 4100, 4200], &[3800, 4000, 4200]);
        assert_eq!((median(&noisy), noisy.most), (Some(4100.0), 4400.0));
        assert_eq!(tolerance(noisy), Tolerance::Spread(0.1));
        let more = told(&[4100], &[4000, 4000]);
        assert!(!Judgement::Held(more.clone()).is_kept());
        assert_eq!(tolerance(more), Tolerance::Spread(0.0));
        let one = told(&[4000], &[4000]);
        assert!(Judgement::Held(one.clone()).is_kept());
        assert_eq!(tolerance(one), Tolerance::Unknown);
    }

    #[test]
    fn what_failed_is_not_judged_by_its_bytes() {
        let mut failed = measured(10, None);
        failed.exit_status = Some(3);
        let now = Runs::new(vec![measured(10, None), failed]).unwrap();
        let told = judge(&now, &to(runs(&[4000], None), None));
        let wanted = Judgement::Failed {
            runs: 1,
            of: 2,
            status: 3,
        };
        assert_eq!(told[0], wanted);
        assert!(!told[0].is_kept());
    }

    #[test]
    fn nothing_is_not_less_than_something() {
        let told = judge(&runs(&[0, 4000], None), &to(runs(&[4000], None), None));
        assert_eq!(told[0], Judgement::Nothing { baseline: 4000.0 });
        assert!(!told[0].is_kept());
        let both = judge(&runs(&[0], None), &to(runs(&[0], None), None));
        assert!(both.iter().all(Judgement::is_kept) && both.len() == 2);
    }
}

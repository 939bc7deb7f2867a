// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits, and whether a trace, or several runs of one command, keep them.

use super::{Measured, Parts, Runs, Spread};
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
    /// Earlier runs of the same command.
    pub baseline: Option<Baseline>,
}

/// Says what was measured before, and by how much it may be exceeded.
#[derive(Clone, Debug)]
pub struct Baseline {
    /// They are what it came to.
    pub runs: Runs,
    /// 0.05 is 5 %. None for as much as runs of the same command differ by.
    pub tolerance: Option<f64>,
}

/// Says what came of one limit.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// A figure was held against its limit.
    Held(Held),
    /// The command did not do what was to be measured.
    Failed {
        /// So many runs failed.
        runs: usize,
        /// So many runs there are.
        of: usize,
        /// The exit status of one of these.
        status: i32,
    },
    /// Nothing was written, and the baseline has so many bytes.
    Nothing {
        /// The median of its runs.
        baseline: f64,
    },
}

/// A figure, held against its limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Held {
    /// What is limited.
    pub what: &'static str,
    /// The runs come to this, and its median counts; None if one of them does not tell.
    pub value: Option<Spread>,
    /// The most it may be.
    pub most: f64,
    /// That is reckoned from this, if it is no number that was given.
    pub from: Option<From>,
    /// How sure the number of transactions is that the value is for each of: with more of them it is less.
    pub sure: Sure,
    /// Where the bytes went, or which parts grew: the largest first.
    pub parts: Vec<String>,
}

/// A limit can be reckoned from these.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct From {
    /// The baseline's median.
    pub baseline: f64,
    /// How many runs that is of.
    pub runs: usize,
    /// It may be exceeded by so much.
    pub tolerance: Tolerance,
}

/// It says by how much a baseline may be exceeded: 0.05 is 5 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// As was asked for.
    Given(f64),
    /// By as much as runs of one command differ: on the side where they differ more.
    Spread(f64),
    /// By nothing, as nobody knows how much runs differ: there is one of each.
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
    /// What is limited.
    #[must_use]
    pub fn what(&self) -> &'static str {
        match self {
            Judgement::Held(held) => held.what,
            Judgement::Failed { .. } => "exit status of the command",
            Judgement::Nothing { .. } => "bytes written",
        }
    }

    /// Whether the limit is kept. One that a trace does not tell of is not kept.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        match self {
            Judgement::Held(held) => held.value.is_some_and(|value| value.median <= held.most),
            Judgement::Failed { .. } | Judgement::Nothing { .. } => false,
        }
    }
}

/// So many layers, and so many files, are named.
const NAMED: usize = 3;

/// Holds every limit against runs of one command.
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

/// Those that are numbers.
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
        })
    })
}

fn each(n: u64, of: Option<u64>) -> Option<f64> {
    of.map(|of| n as f64 / of as f64)
}

/// Against earlier runs: for each transaction where it is known of all how many there were, else as a whole.
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

/// It would keep every limit, and says nothing.
fn nothing(now: &Runs, before: &Runs) -> Option<Judgement> {
    let bytes = |runs: &Runs| runs.figure(|run| Some(run.write_bytes as f64));
    let (now, before) = (bytes(now)?, bytes(before)?);
    (now.least == 0.0 && before.least > 0.0).then_some(Judgement::Nothing {
        baseline: before.median,
    })
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
    use crate::budget::{Counted, Kind};
    use crate::transactions::Count;

    fn measured(write_bytes: u64, transactions: Option<u64>) -> Measured {
        let parts = |parts: &[(&str, u64)]| parts.iter().map(|&(n, b)| (n.to_owned(), b)).collect();
        Measured {
            path: std::path::PathBuf::new(),
            kind: Kind::default(),
            counted: Counted::All,
            write_bytes,
            flushes: 20,
            transactions: Count::new(transactions.unwrap_or(0), transactions.is_some()),
            payload_bytes: Some(100),
            called_bytes: Some(1000),
            exit_status: Some(0),
            layers: parts(&[
                ("data: db", write_bytes / 4),
                ("the filesystem's journal", write_bytes / 2),
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

    /// Those of figures.
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
        // Who does not know how many there were is compared as a whole.
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
        let parts = ["the filesystem's journal 10", "data: db 5", "/a.db 5"];
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
        // The larger spread of the two sides.
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

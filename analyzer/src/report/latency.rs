// SPDX-License-Identifier: MIT OR Apache-2.0
//! The latency of requests: percentiles, and a grid of counts by time and latency.

use hdrhistogram::Histogram;
use serde::Serialize;

use super::colour::Colour;
use super::scan::{Scan, Seen};
use super::timeline::Clock;
use crate::tally::Tally;

/// Significant digits of a percentile.
const DIGITS: u8 = 2;
/// Number of columns, which are time.
const COLUMNS: usize = 120;
/// Rows are the logarithm of the latency, `STEPS` for each doubling, from 2^FIRST ns on.
const STEPS: u32 = 3;
const FIRST: u32 = 9;
const ROWS: usize = 26 * STEPS as usize;

/// Percentiles of a distribution, ns; None if it is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Percentiles {
    pub count: u64,
    pub p50: Option<u64>,
    pub p90: Option<u64>,
    pub p99: Option<u64>,
    pub max: Option<u64>,
}

impl Percentiles {
    /// Computes exact percentiles of sorted times.
    pub fn of_sorted(ns: &[u64]) -> Percentiles {
        Percentiles {
            count: ns.len() as u64,
            p50: ranked(ns, 0.5).copied(),
            p90: ranked(ns, 0.9).copied(),
            p99: ranked(ns, 0.99).copied(),
            max: ns.last().copied(),
        }
    }
}

/// Returns the smallest of sorted items that at least `part` of all do not exceed.
pub(super) fn ranked<T>(sorted: &[T], part: f64) -> Option<&T> {
    let rank = (sorted.len() as f64 * part).ceil() as usize;
    sorted.get(rank.saturating_sub(1))
}

/// A distribution of times, ns.
#[derive(Clone, Default)]
pub(super) struct Times(Option<Box<Histogram<u64>>>);

impl Times {
    pub fn add(&mut self, ns: u64) {
        let times = match &mut self.0 {
            Some(times) => times,
            // The number of digits is valid.
            empty => match Histogram::new(DIGITS) {
                Ok(times) => empty.insert(Box::new(times)),
                Err(_) => return,
            },
        };
        // The histogram grows with the values, up to the end of its range.
        if times.record(ns).is_err() {
            times.saturating_record(ns);
        }
    }

    pub fn percentiles(&self) -> Percentiles {
        let Some(times) = &self.0 else {
            return Percentiles::default();
        };
        let max = times.max();
        let at = |part| Some(times.value_at_quantile(part).min(max));
        Percentiles {
            count: times.len(),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: Some(max),
        }
    }
}

/// The requests of one colour or one process.
struct Series {
    name: String,
    colour: Option<Colour>,
    q2c: Times,
    d2c: Times,
    counts: Vec<u32>,
    /// The number of the last request that was counted.
    last: Option<u32>,
}

impl Series {
    fn new(name: &str, colour: Option<Colour>) -> Series {
        Series {
            name: name.to_owned(),
            colour,
            q2c: Times::default(),
            d2c: Times::default(),
            counts: vec![0; COLUMNS * ROWS],
            last: None,
        }
    }

    fn see(&mut self, row: &Seen, column: usize) {
        // The rows of a request are adjacent.
        if self.last.replace(row.request) == Some(row.request) {
            return;
        }
        let since = |from: Option<u64>| row.time_ns.checked_sub(from?);
        if let Some(ns) = since(row.d_ns) {
            self.d2c.add(ns);
        }
        if let Some(ns) = since(row.q_ns) {
            self.q2c.add(ns);
            let line = self.counts.chunks_exact_mut(COLUMNS).nth(line(ns));
            if let Some(count) = line.and_then(|line| line.get_mut(column)) {
                count.tally(1);
            }
        }
    }
}

/// Returns the row of a latency.
fn line(ns: u64) -> usize {
    let steps = (ns.max(1) as f64).log2() * f64::from(STEPS) - f64::from(FIRST * STEPS);
    // A negative number becomes 0.
    (steps as usize).min(ROWS - 1)
}

/// Latencies of all requests, by colour, and of some processes.
pub(super) struct Latency {
    clock: Clock,
    all: Series,
    colours: Vec<Series>,
    processes: Vec<(u32, Series)>,
}

impl Latency {
    /// Takes the names of the processes whose latencies are wanted.
    pub fn new(span: (u64, u64), scan: &Scan<'_>, processes: &[String]) -> Latency {
        let of_process = |name: &String| {
            let code = scan.code_of_process(name)?;
            Some((code, Series::new(name, None)))
        };
        Latency {
            clock: Clock::new(span, COLUMNS),
            all: Series::new("all requests", None),
            colours: Colour::ALL
                .iter()
                .map(|&colour| Series::new(colour.name(), Some(colour)))
                .collect(),
            processes: processes.iter().filter_map(of_process).collect(),
        }
    }

    pub fn see(&mut self, row: &Seen) {
        let column = self.clock.bin(row.time_ns);
        self.all.see(row, column);
        if let Some(series) = self.colours.get_mut(row.colour as usize) {
            series.see(row, column);
        }
        let mut of = self.processes.iter_mut();
        if let Some((_, series)) = of.find(|(code, _)| *code == row.process) {
            series.see(row, column);
        }
    }

    /// Returns the latencies in the page's form.
    pub fn drawn(&self) -> Drawn {
        let processes = self.processes.iter().map(|(_, series)| series);
        let series = [&self.all]
            .into_iter()
            .chain(&self.colours)
            .chain(processes);
        Drawn {
            columns: COLUMNS,
            rows: ROWS,
            steps: STEPS,
            first: FIRST,
            bin_ns: self.clock.bin_ns(),
            series: series
                .filter(|series| series.last.is_some())
                .map(OneDrawn::new)
                .collect(),
        }
    }
}

/// All series in the page's form.
#[derive(Debug, Serialize)]
pub(super) struct Drawn {
    columns: usize,
    rows: usize,
    steps: u32,
    first: u32,
    bin_ns: u64,
    series: Vec<OneDrawn>,
}

#[derive(Debug, Serialize)]
struct OneDrawn {
    name: String,
    colour: Option<usize>,
    q2c: Percentiles,
    d2c: Percentiles,
    /// The cells with requests: the distance of each from the one before, and the number of requests.
    skip: Vec<usize>,
    count: Vec<u32>,
}

impl OneDrawn {
    fn new(series: &Series) -> OneDrawn {
        let counts = series.counts.iter().enumerate();
        let (at, count): (Vec<usize>, Vec<u32>) = counts.filter(|(_, count)| **count > 0).unzip();
        let before = [0].into_iter().chain(at.iter().copied());
        OneDrawn {
            name: series.name.clone(),
            colour: series.colour.map(|colour| colour as usize),
            q2c: series.q2c.percentiles(),
            d2c: series.d2c.percentiles(),
            skip: at
                .iter()
                .zip(before)
                .map(|(at, before)| at.saturating_sub(before))
                .collect(),
            count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubling_is_so_many_rows() {
        assert_eq!(line(0), 0);
        assert_eq!(line(1 << FIRST), 0);
        assert_eq!(line(1 << (FIRST + 1)), STEPS as usize);
        assert_eq!(line(1 << (FIRST + 7)), 7 * STEPS as usize);
        assert_eq!(line(u64::MAX), ROWS - 1);
    }

    #[test]
    fn percentiles_are_those_of_the_times() {
        let mut times = Times::default();
        assert_eq!(times.percentiles(), Percentiles::default());
        (1..=100).for_each(|ns| times.add(ns));
        let p = times.percentiles();
        let some = [p.p50, p.p90, p.p99, p.max].map(Option::unwrap_or_default);
        assert_eq!((p.count, some), (100, [50, 90, 99, 100]));
    }
}

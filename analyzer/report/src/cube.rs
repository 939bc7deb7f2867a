// SPDX-License-Identifier: MIT OR Apache-2.0
//! A long trace summed up, in the form of its rows: bytes and requests by interval of time and cell. Beside it are two smaller
//! sums for what rows tell alone: latencies by layer, and the places on the disk by layer. Time has fewer, longer intervals
//! the more cells there are, so that the page does not grow with the trace.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::bands::Bands;
use super::pack::{Table, signed};
use super::rows::{Cells, Sum, length};
use super::scan::{Cell, Dictionary, Seen};
use super::words::Weights;
use mostrace_trace::tally::Tally;

/// The most sums.
const MOST: usize = 250_000;
/// The most cells; those of further files are summed up by process.
const MOST_CELLS: usize = 60_000;
/// Files and processes that are kept apart.
const FILES: usize = 4_000;
const WHOS: usize = 600;
/// Intervals of time at first.
const BINS: u64 = 1 << 11;
/// Latencies are counted by their logarithm, in this many steps a doubling.
const STEPS: f64 = 4.0;

/// The files and the processes with the most bytes, which are kept apart.
#[derive(Default)]
pub(super) struct Kept {
    files: Vec<bool>,
    whos: Vec<bool>,
    file: u32,
    who: u32,
}

/// The bytes of each file and each process.
#[derive(Default)]
pub(super) struct Heavy {
    files: Weights,
    whos: Weights,
}

impl Heavy {
    pub fn see(&mut self, row: &Seen) {
        // A flush weighs a little, so that who asks for many is kept.
        let weight = row.bytes.max(1);
        self.files.add(row.cell.file, weight);
        self.whos.add(row.cell.who, weight);
    }

    /// Chooses what is kept apart, and adds words for the rest.
    pub fn kept(&self, dictionary: &mut Dictionary) -> Kept {
        let (files, whos) = (self.files.heaviest(FILES), self.whos.heaviest(WHOS));
        let rest = |kept: &[bool]| kept.iter().filter(|is| !**is).count();
        let name = |rest: usize, what: &str| format!("({rest} more {what})");
        let file = dictionary.files.number(Some(&name(rest(&files), "files")));
        let who = dictionary
            .whos
            .number(Some(&name(rest(&whos), "processes")));
        Kept {
            files,
            whos,
            file,
            who,
        }
    }
}

impl Kept {
    fn cell(&self, mut cell: Cell) -> Cell {
        let is = |kept: &[bool], number: u32| kept.get(number as usize).copied().unwrap_or(true);
        if !is(&self.files, cell.file) {
            cell.file = self.file;
        }
        if !is(&self.whos, cell.who) {
            cell.who = self.who;
        }
        Cell { own: 0, ..cell }
    }
}

/// Sums by interval and by something else.
struct Sums<K> {
    sums: HashMap<(u64, K), Sum, RandomState>,
    /// log2 of the number of first intervals that an interval has.
    shift: u32,
    most: usize,
}

impl<K: Copy + Eq + std::hash::Hash + Ord> Sums<K> {
    fn new(most: usize) -> Sums<K> {
        Sums {
            sums: HashMap::default(),
            shift: 0,
            most,
        }
    }

    fn add(&mut self, bin: u64, key: K, sum: &Sum) {
        self.sums
            .entry((bin >> self.shift, key))
            .or_default()
            .tally(*sum);
        while self.sums.len() > self.most && self.shift < BINS.ilog2() {
            self.shift.tally(1);
            let mut coarser: HashMap<(u64, K), Sum, RandomState> = HashMap::default();
            for ((bin, key), sum) in self.sums.drain() {
                coarser.entry((bin / 2, key)).or_default().tally(sum);
            }
            self.sums = coarser;
        }
    }

    /// Returns the sums in the order of time.
    fn sorted(&self) -> Vec<(u64, K, Sum)> {
        let sums = self.sums.iter();
        let mut sorted: Vec<(u64, K, Sum)> = sums
            .map(|((bin, key), sum)| (bin << self.shift, *key, *sum))
            .collect();
        sorted.sort_unstable_by_key(|&(bin, key, _)| (bin, key));
        sorted
    }
}

/// Operation and layer.
type Kind = (u8, u32);

/// The sums of a long trace.
pub(super) struct Cube<'b> {
    start_ns: u64,
    bin_ns: u64,
    kept: Kept,
    cells: Cells,
    all: Sums<u32>,
    /// Sums by operation, layer and step of the latency.
    waits: Sums<(Kind, u32)>,
    places: Sums<(Kind, u64)>,
    bands: &'b Bands,
    /// The last request, which counts in the cell of its first share alone, so that requests sum up.
    request: Option<u32>,
}

impl Cube<'_> {
    pub fn new(span: (u64, u64), kept: Kept, bands: &Bands) -> Cube<'_> {
        let (first, last) = span;
        // Whole µs, so that an interval's start is exact in the page.
        let span = last.saturating_sub(first) / BINS / 1000;
        Cube {
            start_ns: first,
            bin_ns: span.saturating_add(1).saturating_mul(1000),
            kept,
            cells: Cells::default(),
            all: Sums::new(MOST),
            waits: Sums::new(MOST / 4),
            places: Sums::new(MOST / 2),
            bands,
            request: None,
        }
    }

    pub fn see(&mut self, row: &Seen) {
        let after = row.time_ns.saturating_sub(self.start_ns);
        let bin = after.checked_div(self.bin_ns).unwrap_or(0);
        let mut cell = self.kept.cell(row.cell);
        if self.cells.len() >= MOST_CELLS {
            cell.file = self.kept.file;
        }
        let number = self.cells.number(cell);
        let is_first = self.request.replace(row.request) != Some(row.request);
        let sum = Sum {
            bytes: row.bytes,
            requests: is_first.into(),
        };
        self.all.add(bin, number, &sum);
        let kind = (row.cell.op, row.cell.layer);
        let wait = row.q_ns.and_then(|q| row.time_ns.checked_sub(q));
        if let Some(ns) = wait.filter(|_| is_first) {
            self.waits.add(bin, (kind, step(ns)), &sum);
        }
        if row.op.carries_data()
            && let Some(sector) = row.sector
        {
            self.places.add(bin, (kind, self.bands.line(sector)), &sum);
        }
    }

    /// Returns the tables, and the length of an interval in µs.
    pub fn tables(self) -> (Vec<Table>, u64) {
        let bin_us = self.bin_ns / 1000;
        let time = |bin: u64| bin.saturating_mul(bin_us);
        let mut kinds = Cells::default();
        let mut kind = |(op, layer): Kind| {
            kinds.number(Cell {
                op,
                layer,
                ..Cell::default()
            })
        };
        let table = |name, columns: [&'static str; 4]| Table::new(name, &columns, &["time"]);
        let mut rows = table("rows", ["time", "cell", "bytes", "requests"]);
        for (bin, cell, sum) in self.all.sorted() {
            let row = [time(bin), cell.into(), sum.bytes, sum.requests.into()];
            rows.push(row.map(signed));
        }
        let mut waits = table("waits", ["time", "cell", "wait", "requests"]);
        for (bin, (of, step), sum) in self.waits.sorted() {
            let wait = length(most_of(step)).saturating_add(1);
            let row = [time(bin), kind(of).into(), wait, sum.requests.into()];
            waits.push(row.map(signed));
        }
        let mut places = table("places", ["time", "cell", "sector", "bytes"]);
        for (bin, (of, sector), sum) in self.places.sorted() {
            let row = [
                time(bin),
                kind(of).into(),
                sector.saturating_add(1),
                sum.bytes,
            ];
            places.push(row.map(signed));
        }
        let (cells, kinds) = (self.cells.table("cells"), kinds.table("kinds"));
        let tables = vec![rows, cells, waits, places, kinds];
        (tables, bin_us.saturating_mul(1_u64 << self.all.shift))
    }
}

/// Returns the step of a latency.
fn step(ns: u64) -> u32 {
    ((ns.max(1) as f64).log2() * STEPS) as u32
}

/// Returns the largest latency of a step, ns.
fn most_of(step: u32) -> u64 {
    (f64::from(step.saturating_add(1)) / STEPS).exp2() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use mostrace_trace::attribute::Op;

    fn row(request: u32, time_ns: u64, cell: Cell, bytes: u64) -> Seen {
        Seen {
            request,
            time_ns,
            q_ns: Some(time_ns),
            d_ns: None,
            forced_ns: None,
            sector: Some(8),
            bytes,
            op: Op::Write,
            cell,
            sequential: false,
            fua: false,
        }
    }

    #[test]
    fn no_byte_is_lost_when_intervals_are_joined() {
        let mut sums: Sums<u32> = Sums::new(100);
        for at in 0..2000_u64 {
            let sum = Sum {
                bytes: 3,
                requests: 1,
            };
            sums.add(at, 7, &sum);
        }
        let sorted = sums.sorted();
        assert!(sorted.len() <= 100 && sums.shift > 0);
        assert_eq!(sorted.iter().map(|(.., sum)| sum.bytes).sum::<u64>(), 6000);
        let requests: u32 = sorted.iter().map(|(.., sum)| sum.requests).sum();
        assert_eq!(requests, 2000);
    }

    #[test]
    fn what_is_not_kept_is_summed_up() {
        let mut dictionary = Dictionary::default();
        let mut heavy = Heavy::default();
        for file in 0..FILES as u32 + 10 {
            dictionary.files.number(Some(&format!("/{file}")));
            let cell = Cell {
                file,
                ..Cell::default()
            };
            heavy.see(&row(file, 0, cell, u64::from(file)));
        }
        dictionary.whos.number(None);
        let kept = heavy.kept(&mut dictionary);
        let of = |file| {
            let cell = Cell {
                file,
                ..Cell::default()
            };
            dictionary.files.list()[kept.cell(cell).file as usize].clone()
        };
        assert_eq!(of(0).unwrap(), "(10 more files)");
        assert_eq!(of(20).unwrap(), "/20");
    }

    #[test]
    fn a_latency_is_in_its_step() {
        for ns in [1, 1000, 123_456, 10_000_000_000] {
            let most = most_of(step(ns));
            assert!(most >= ns && most <= ns * 2, "{ns} {most}");
        }
    }
}

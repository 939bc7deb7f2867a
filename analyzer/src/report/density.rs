// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes over time and sectors, in a grid.
//!
//! A trace touches a small part of a disk. So its sectors are drawn in a few bands, and what lies between them is left out.

use std::collections::HashSet;

use serde::Serialize;

use super::colour::Colour;
use super::scan::{Scan, Seen};
use super::timeline::Clock;
use crate::attribute::Op;
use crate::tally::{Tally, sum};

/// Number of columns, which are time.
const COLUMNS: usize = 320;
/// Number of rows, which are sectors. There may be a few more, because a band has at least `LEAST_ROWS`.
const ROWS: u64 = 160;
const LEAST_ROWS: u64 = 4;
/// The most bands.
const BANDS: usize = 10;
/// A gap between sectors is left out if it is longer than this fraction (1/GAP) of what was touched.
const GAP: u64 = 50;
/// The most chunks that are kept apart; beyond it, chunks are made longer.
const CHUNKS: usize = 1 << 16;
/// log2 of the initial number of sectors of a chunk.
const CHUNK: u32 = 3;

/// The chunks of the disk that were touched.
pub(super) struct Touched {
    chunks: HashSet<u64, foldhash::fast::RandomState>,
    /// log2 of the number of sectors of a chunk.
    shift: u32,
}

impl Default for Touched {
    fn default() -> Touched {
        Touched {
            chunks: HashSet::default(),
            shift: CHUNK,
        }
    }
}

/// Returns the first sector and the end of a row's sectors.
fn range(row: &Seen) -> Option<(u64, u64)> {
    let (_, bytes) = row.moved()?;
    let sector = row.sector.filter(|_| bytes > 0)?;
    Some((sector, sector.checked_add(bytes.div_ceil(512))?))
}

/// Returns `whole * part / of`, rounded down.
fn proportion(part: u64, of: u64, whole: u64) -> u64 {
    let product = u128::from(part).saturating_mul(whole.into());
    let quotient = product.checked_div(of.into()).unwrap_or(0);
    quotient.try_into().unwrap_or(u64::MAX)
}

impl Touched {
    pub fn see(&mut self, row: &Seen) {
        let Some((from, to)) = range(row) else { return };
        self.chunks
            .extend(from >> self.shift..=to.saturating_sub(1) >> self.shift);
        while self.chunks.len() > CHUNKS {
            self.shift.tally(1);
            self.chunks = self.chunks.iter().map(|chunk| chunk / 2).collect();
        }
    }

    fn bands(&self) -> Vec<Band> {
        let mut chunks: Vec<u64> = self.chunks.iter().copied().collect();
        chunks.sort_unstable();
        let least = (chunks.len() as u64 / GAP).max(1);
        let gap = |pair: &[u64]| pair[1].saturating_sub(pair[0]).saturating_sub(1);
        let mut gaps: Vec<(u64, usize)> = (chunks.windows(2).map(gap))
            .zip(1..)
            .filter(|(gap, _)| *gap > least)
            .collect();
        gaps.sort_unstable_by_key(|&(gap, _)| std::cmp::Reverse(gap));
        gaps.truncate(BANDS - 1);
        let mut cuts: Vec<usize> = gaps.into_iter().map(|(_, at)| at).collect();
        cuts.sort_unstable();
        let starts = [0].into_iter().chain(cuts.iter().copied());
        let ends = cuts.iter().copied().chain([chunks.len()]);
        let band = |(start, end): (usize, usize)| {
            let run: &[u64] = &chunks[start..end];
            let behind = run.last()?.saturating_add(1);
            Some(Band {
                from: run.first()? << self.shift,
                to: behind.saturating_mul(1 << self.shift),
                ..Band::default()
            })
        };
        let mut bands: Vec<Band> = starts.zip(ends).filter_map(band).collect();
        let whole = sum(bands.iter().map(Band::sectors));
        let mut row = 0_u64;
        for band in &mut bands {
            let rows = proportion(band.sectors(), whole, ROWS).max(LEAST_ROWS);
            band.rows = rows.min(band.sectors());
            band.row = row;
            row.tally(band.rows);
        }
        bands
    }
}

/// A run of sectors that is drawn.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Band {
    from: u64,
    /// The sector after the last one.
    to: u64,
    /// Its first row in the grid.
    row: u64,
    rows: u64,
}

impl Band {
    fn sectors(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// Returns the first sector of one of its rows.
    fn start(&self, row: u64) -> u64 {
        let part = proportion(row, self.rows, self.sectors());
        self.from.saturating_add(part)
    }

    fn row_of(&self, sector: u64) -> u64 {
        let past = sector.saturating_sub(self.from);
        let row = proportion(past, self.sectors(), self.rows);
        let next = row.saturating_add(1);
        // The start of a row is rounded down.
        if next < self.rows && self.start(next) <= sector {
            next
        } else {
            row
        }
    }
}

/// Codes of a file and a submitter.
type Whose = (u32, u32);

/// The bytes of one cell.
#[derive(Clone, Copy, Default)]
struct Cell {
    colours: [u64; Colour::WITH_BYTES],
    /// The owner of more than half of the bytes, if there is one, by the majority vote of Boyer and Moore.
    whose: Whose,
    votes: u64,
    /// Bytes of `whose`, counted in a second pass.
    theirs: u64,
}

impl Cell {
    fn vote(&mut self, whose: Whose, bytes: u64) {
        if self.whose == whose {
            self.votes.tally(bytes);
            return;
        }
        if bytes > self.votes {
            self.whose = whose;
        }
        self.votes = self.votes.abs_diff(bytes);
    }

    fn bytes(&self) -> u64 {
        sum(self.colours)
    }
}

/// The grid of writes and the grid of reads.
pub(super) struct Density {
    clock: Clock,
    bands: Vec<Band>,
    grids: [Vec<Cell>; 2],
}

impl Density {
    pub fn new(span: (u64, u64), touched: &Touched) -> Density {
        let bands = touched.bands();
        let rows = sum(bands.iter().map(|band| band.rows)) as usize;
        Density {
            clock: Clock::new(span, COLUMNS),
            bands,
            grids: [0, 1].map(|_| vec![Cell::default(); COLUMNS.saturating_mul(rows)]),
        }
    }

    /// Adds a row's bytes to the cells that it covers.
    pub fn see(&mut self, row: &Seen) {
        self.cells(row, |cell, bytes| {
            cell.colours[row.colour as usize].tally(bytes);
            cell.vote((row.file, row.process), bytes);
        });
    }

    /// Counts the bytes of each cell's owner; call it with every row after all rows were seen.
    pub fn verify(&mut self, row: &Seen) {
        self.cells(row, |cell, bytes| {
            if cell.whose == (row.file, row.process) {
                cell.theirs.tally(bytes);
            }
        });
    }

    fn cells(&mut self, row: &Seen, mut add: impl FnMut(&mut Cell, u64)) {
        let Some((mut from, to)) = range(row) else {
            return;
        };
        let grid = &mut self.grids[usize::from(row.op == Op::Read)];
        let column = self.clock.bin(row.time_ns);
        // Sectors that are touched together lie in one band.
        let Some(band) = self.bands.iter().find(|b| (b.from..b.to).contains(&from)) else {
            return;
        };
        let mut left = row.bytes;
        while from < to {
            let line = band.row_of(from);
            let next = line.saturating_add(1);
            let end = match next == band.rows {
                true => to,
                false => band.start(next).min(to),
            };
            let sectors = end.saturating_sub(from);
            let bytes = sectors.saturating_mul(512).min(left);
            let line = band.row.saturating_add(line) as usize;
            let at = line.saturating_mul(COLUMNS).saturating_add(column);
            if let Some(cell) = grid.get_mut(at) {
                add(cell, bytes);
            }
            left = left.saturating_sub(bytes);
            from = end;
        }
    }

    /// Returns the grids in the page's form.
    pub fn drawn(&self, scan: &Scan<'_>) -> Drawn {
        let mut whose: Vec<Whose> = Vec::new();
        let mut by: std::collections::HashMap<Whose, i32> = std::collections::HashMap::new();
        let mut number = |cell: &Cell| {
            if cell.theirs <= cell.bytes() / 2 {
                return -1;
            }
            *by.entry(cell.whose).or_insert_with(|| {
                let number = whose.len() as i32;
                whose.push(cell.whose);
                number
            })
        };
        let [written, read] = self.grids.each_ref().map(|grid| {
            let mut cells = Cells::default();
            let mut last = 0;
            for (at, cell) in grid.iter().enumerate().filter(|(_, c)| c.bytes() > 0) {
                let most = (0..Colour::WITH_BYTES).max_by_key(|&colour| cell.colours[colour]);
                cells.skip.push(at.saturating_sub(last));
                last = at;
                cells.bytes.push(cell.bytes());
                cells.colour.push(most.unwrap_or(0));
                cells.whose.push(number(cell));
            }
            cells
        });
        let name = |text: Option<&str>| text.map(str::to_owned);
        let names = |&(file, process): &Whose| (name(scan.file(file)), name(scan.process(process)));
        Drawn {
            columns: COLUMNS,
            bin_ns: self.clock.bin_ns(),
            bands: self.bands.clone(),
            whose: whose.iter().map(names).collect(),
            written,
            read,
        }
    }
}

/// The cells with bytes, row by row.
#[derive(Debug, Default, Serialize)]
struct Cells {
    /// The distance of each cell from the one before.
    skip: Vec<usize>,
    bytes: Vec<u64>,
    /// The colour of most of the cell's bytes.
    colour: Vec<usize>,
    /// Index into the names; -1 if nobody has more than half of the bytes.
    whose: Vec<i32>,
}

/// The grids in the page's form.
#[derive(Debug, Serialize)]
pub(super) struct Drawn {
    columns: usize,
    bin_ns: u64,
    bands: Vec<Band>,
    /// Names of files and submitters.
    whose: Vec<(Option<String>, Option<String>)>,
    written: Cells,
    read: Cells,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(sector: u64, bytes: u64, file: u32) -> Seen {
        Seen {
            request: 0,
            time_ns: 0,
            q_ns: None,
            d_ns: None,
            sector: Some(sector),
            bytes,
            op: Op::Write,
            colour: Colour::Database,
            kind: None,
            file,
            process: 0,
        }
    }

    #[test]
    fn far_apart_sectors_are_in_bands_of_their_own() {
        let mut touched = Touched::default();
        for sector in (0..800)
            .step_by(8)
            .chain((1 << 30..(1 << 30) + 80).step_by(8))
        {
            touched.see(&row(sector, 4096, 0));
        }
        let bands: Vec<_> = touched.bands().iter().map(|b| (b.from, b.to)).collect();
        assert_eq!(bands, [(0, 800), (1 << 30, (1 << 30) + 80)]);
    }

    /// A recording may name any sector.
    #[test]
    fn the_last_sectors_that_there_can_be_are_drawn() {
        let row = row(u64::MAX - 8, 4096, 0);
        let mut touched = Touched::default();
        touched.see(&row);
        let mut density = Density::new((0, 0), &touched);
        density.see(&row);
        let drawn: u64 = density.grids[0].iter().map(Cell::bytes).sum();
        assert_eq!(drawn, 4096);
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_between_the_cells(rows in prop::collection::vec((0u64..1 << 40, 1u64..1 << 22, 0u32..3), 1..40)) {
            let mut touched = Touched::default();
            let rows: Vec<Seen> = rows.into_iter().map(|(s, b, f)| row(s, b, f)).collect();
            rows.iter().for_each(|row| touched.see(row));
            let mut density = Density::new((0, 0), &touched);
            rows.iter().for_each(|row| density.see(row));
            rows.iter().for_each(|row| density.verify(row));
            let drawn: u64 = density.grids[0].iter().map(Cell::bytes).sum();
            prop_assert_eq!(drawn, rows.iter().map(|row| row.bytes).sum::<u64>());
            prop_assert!(density.grids[0].iter().all(|cell| cell.theirs <= cell.bytes()));
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where on the disk, and when: bytes in a grid of time and sectors.
//!
//! The trace touches a small part of a disk. So its sectors are drawn in a few bands, and what lies between them is left out.

use std::collections::HashSet;

use serde::Serialize;

use super::colour::Colour;
use super::scan::{Scan, Seen};
use super::timeline::Clock;
use crate::attribute::Op;

/// Columns: time.
const COLUMNS: usize = 320;
/// Rows: sectors. A few more come of bands that are drawn at least so high.
const ROWS: u64 = 160;
const LEAST_ROWS: u64 = 4;
/// The most bands.
const BANDS: usize = 10;
/// A gap is left out that is longer than this part of what was touched.
const GAP: u64 = 50;
/// The most chunks that are told apart; more, and chunks become longer.
const CHUNKS: usize = 1 << 16;
/// Sectors of a chunk at first.
const CHUNK: u64 = 8;

/// Which chunks of the disk were touched.
pub(super) struct Touched {
    chunks: HashSet<u64, foldhash::fast::RandomState>,
    sectors: u64,
}

impl Default for Touched {
    fn default() -> Touched {
        Touched {
            chunks: HashSet::default(),
            sectors: CHUNK,
        }
    }
}

/// First sector, and the one after the last.
fn range(row: &Seen) -> Option<(u64, u64)> {
    let (_, bytes) = row.moved()?;
    let sector = row.sector.filter(|_| bytes > 0)?;
    Some((sector, sector.checked_add(bytes.div_ceil(512))?))
}

impl Touched {
    pub fn see(&mut self, row: &Seen) {
        let Some((from, to)) = range(row) else { return };
        self.chunks
            .extend(from / self.sectors..to.div_ceil(self.sectors));
        while self.chunks.len() > CHUNKS {
            self.sectors *= 2;
            self.chunks = self.chunks.iter().map(|chunk| chunk / 2).collect();
        }
    }

    fn bands(&self) -> Vec<Band> {
        let mut chunks: Vec<u64> = self.chunks.iter().copied().collect();
        chunks.sort_unstable();
        let least = (chunks.len() as u64 / GAP).max(1);
        let mut gaps: Vec<(u64, usize)> = (1..chunks.len())
            .map(|at| (chunks[at] - chunks[at - 1] - 1, at))
            .filter(|(gap, _)| *gap > least)
            .collect();
        gaps.sort_unstable_by_key(|&(gap, _)| std::cmp::Reverse(gap));
        gaps.truncate(BANDS - 1);
        let mut cuts: Vec<usize> = gaps.into_iter().map(|(_, at)| at).collect();
        cuts.sort_unstable();
        let starts = [0].into_iter().chain(cuts.iter().copied());
        let ends = cuts.iter().copied().chain([chunks.len()]);
        let runs = starts.zip(ends).filter(|(start, end)| start < end);
        let mut bands: Vec<Band> = runs
            .map(|(start, end)| Band {
                from: chunks[start] * self.sectors,
                to: (chunks[end - 1] + 1) * self.sectors,
                ..Band::default()
            })
            .collect();
        let whole: u64 = bands.iter().map(Band::sectors).sum();
        let mut row = 0;
        for band in &mut bands {
            let share = u128::from(ROWS) * u128::from(band.sectors()) / u128::from(whole);
            let rows = u64::try_from(share).unwrap_or(ROWS).max(LEAST_ROWS);
            band.rows = rows.min(band.sectors());
            band.row = row;
            row += band.rows;
        }
        bands
    }
}

/// A run of sectors that is drawn.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Band {
    from: u64,
    /// After the last.
    to: u64,
    /// Its first row.
    row: u64,
    rows: u64,
}

impl Band {
    fn sectors(&self) -> u64 {
        self.to - self.from
    }

    /// First sector of one of its rows.
    fn start(&self, row: u64) -> u64 {
        let part = u128::from(self.sectors()) * u128::from(row) / u128::from(self.rows);
        self.from + u64::try_from(part).unwrap_or(0)
    }

    fn row_of(&self, sector: u64) -> u64 {
        let past = u128::from(sector - self.from) * u128::from(self.rows);
        let row = u64::try_from(past / u128::from(self.sectors())).unwrap_or(0);
        // The start of a row is rounded down.
        if row + 1 < self.rows && self.start(row + 1) <= sector {
            row + 1
        } else {
            row
        }
    }
}

/// File and submitter.
type Whose = (u32, u32);

/// Bytes of one cell.
#[derive(Clone, Copy, Default)]
struct Cell {
    colours: [u64; Colour::WITH_BYTES],
    /// Whose most of the bytes are, if more than half of them are one's: Boyer and Moore's vote.
    whose: Whose,
    votes: u64,
    /// Bytes of `whose`, counted when all is known.
    theirs: u64,
}

impl Cell {
    fn vote(&mut self, whose: Whose, bytes: u64) {
        if self.whose == whose {
            self.votes += bytes;
        } else if bytes > self.votes {
            (self.whose, self.votes) = (whose, bytes - self.votes);
        } else {
            self.votes -= bytes;
        }
    }

    fn bytes(&self) -> u64 {
        self.colours.iter().sum()
    }
}

/// The grid of writes and that of reads.
pub(super) struct Density {
    clock: Clock,
    bands: Vec<Band>,
    grids: [Vec<Cell>; 2],
}

impl Density {
    pub fn new(span: (u64, u64), touched: &Touched) -> Density {
        let bands = touched.bands();
        let rows = bands.last().map_or(0, |band| band.row + band.rows) as usize;
        Density {
            clock: Clock::new(span, COLUMNS),
            bands,
            grids: [0, 1].map(|_| vec![Cell::default(); COLUMNS * rows]),
        }
    }

    /// Adds a row's bytes to the cells that it lies in.
    pub fn see(&mut self, row: &Seen) {
        self.cells(row, |cell, bytes| {
            cell.colours[row.colour as usize] += bytes;
            cell.vote((row.file, row.process), bytes);
        });
    }

    /// Once all rows were seen: counts whose the bytes are.
    pub fn verify(&mut self, row: &Seen) {
        self.cells(row, |cell, bytes| {
            if cell.whose == (row.file, row.process) {
                cell.theirs += bytes;
            }
        });
    }

    fn cells(&mut self, row: &Seen, mut add: impl FnMut(&mut Cell, u64)) {
        let Some((mut from, to)) = range(row) else {
            return;
        };
        let grid = &mut self.grids[usize::from(row.op == Op::Read)];
        let column = self.clock.bin(row.time_ns);
        // What is touched in one go is in one band.
        let Some(band) = self.bands.iter().find(|b| (b.from..b.to).contains(&from)) else {
            return;
        };
        let mut left = row.bytes;
        while from < to {
            let line = band.row_of(from);
            let end = match line + 1 == band.rows {
                true => to,
                false => band.start(line + 1).min(to),
            };
            let bytes = (end - from).saturating_mul(512).min(left);
            let at = (band.row + line) as usize * COLUMNS + column;
            if let Some(cell) = grid.get_mut(at) {
                add(cell, bytes);
            }
            left -= bytes;
            from = end;
        }
    }

    /// As the page has it.
    pub fn drawn(&self, scan: &Scan<'_>) -> Drawn {
        let mut whose: Vec<Whose> = Vec::new();
        let mut by: std::collections::HashMap<Whose, i32> = std::collections::HashMap::new();
        let mut number = |cell: &Cell| {
            if cell.theirs * 2 <= cell.bytes() {
                return -1;
            }
            *by.entry(cell.whose).or_insert_with(|| {
                whose.push(cell.whose);
                whose.len() as i32 - 1
            })
        };
        let [written, read] = self.grids.each_ref().map(|grid| {
            let mut cells = Cells::default();
            let mut last = 0;
            for (at, cell) in grid.iter().enumerate().filter(|(_, c)| c.bytes() > 0) {
                let most = (0..Colour::WITH_BYTES).max_by_key(|&colour| cell.colours[colour]);
                cells.skip.push(at - last);
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
    /// How many cells after the one before.
    skip: Vec<usize>,
    bytes: Vec<u64>,
    /// Of most of the bytes.
    colour: Vec<usize>,
    /// Index into the names; -1: of none are more than half of the bytes.
    whose: Vec<i32>,
}

/// The grids as the page has them.
#[derive(Debug, Serialize)]
pub(super) struct Drawn {
    columns: usize,
    bin_ns: u64,
    bands: Vec<Band>,
    /// File and submitter.
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

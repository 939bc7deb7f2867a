// SPDX-License-Identifier: MIT OR Apache-2.0
//! The places on the disk that a trace touches, in a few bands.
//!
//! A trace touches a small part of a disk. So its sectors are drawn in bands, and what lies between them is left out.

use std::collections::HashSet;

use serde::Serialize;

use super::scan::Seen;
use mostrace_trace::tally::{Tally, sum};

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
    let sector = row
        .sector
        .filter(|_| row.op.carries_data() && row.bytes > 0)?;
    Some((sector, sector.checked_add(row.bytes.div_ceil(512))?))
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

    pub fn bands(&self) -> Bands {
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
        Bands(bands)
    }
}

/// The bands, in the order of their sectors.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Bands(Vec<Band>);

impl Bands {
    /// Returns the first sector of the row that a sector is drawn in; the sector itself if it is in no band.
    pub fn line(&self, sector: u64) -> u64 {
        let band = self.0.iter().find(|b| (b.from..b.to).contains(&sector));
        band.map_or(sector, |band| band.start(band.row_of(sector)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::Cell;
    use mostrace_trace::attribute::Op;
    use proptest::prelude::*;

    fn row(sector: u64, bytes: u64) -> Seen {
        Seen {
            request: 0,
            time_ns: 0,
            q_ns: None,
            d_ns: None,
            forced_ns: None,
            sector: Some(sector),
            bytes,
            op: Op::Write,
            cell: Cell::default(),
            sequential: false,
            fua: false,
        }
    }

    #[test]
    fn far_apart_sectors_are_in_bands_of_their_own() {
        let mut touched = Touched::default();
        for sector in (0..800)
            .step_by(8)
            .chain((1 << 30..(1 << 30) + 80).step_by(8))
        {
            touched.see(&row(sector, 4096));
        }
        let bands: Vec<_> = touched.bands().0.iter().map(|b| (b.from, b.to)).collect();
        assert_eq!(bands, [(0, 800), (1 << 30, (1 << 30) + 80)]);
    }

    /// A recording may name any sector.
    #[test]
    fn the_last_sectors_that_there_can_be_have_a_line() {
        let row = row(u64::MAX - 8, 4096);
        let mut touched = Touched::default();
        touched.see(&row);
        let bands = touched.bands();
        assert_eq!(bands.0.len(), 1);
        assert!(bands.line(u64::MAX - 8) <= u64::MAX - 8);
    }

    proptest! {
        #[test]
        fn every_sector_has_a_line_at_or_before_it(rows in prop::collection::vec((0u64..1 << 40, 1u64..1 << 22), 1..40)) {
            let mut touched = Touched::default();
            rows.iter().for_each(|&(sector, bytes)| touched.see(&row(sector, bytes)));
            let bands = touched.bands();
            for (sector, bytes) in rows {
                let band = bands.0.iter().find(|b| (b.from..b.to).contains(&sector)).unwrap();
                prop_assert!(sector + bytes.div_ceil(512) <= band.to);
                prop_assert!(bands.line(sector) <= sector && bands.line(sector) >= band.from);
            }
        }
    }
}

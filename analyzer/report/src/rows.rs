// SPDX-License-Identifier: MIT OR Apache-2.0
//! The shares of a trace's rows as columns. Beyond a limit they are summed up: see [`cube`](super::cube).

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::pack::{Table, signed};
use super::scan::{Cell, Seen};
use mostrace_trace::tally::tallied_by_field;

/// The most shares that a page has one by one.
pub(super) const MOST: usize = 600_000;

/// The bits of the column `flags`.
mod flag {
    /// The first share of a request.
    pub const FIRST: u32 = 1;
    pub const SEQUENTIAL: u32 = 2;
    pub const FUA: u32 = 4;
    /// `wait` begins at D, because Q is not known.
    pub const NO_Q: u32 = 8;
}

/// Different cells, numbered.
#[derive(Default)]
pub(super) struct Cells {
    list: Vec<Cell>,
    by: HashMap<Cell, u32, RandomState>,
}

impl Cells {
    pub fn number(&mut self, cell: Cell) -> u32 {
        let Cells { list, by } = self;
        *by.entry(cell).or_insert_with(|| {
            list.push(cell);
            (list.len() as u32).saturating_sub(1)
        })
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns the table of the cells.
    pub fn table(&self, name: &'static str) -> Table {
        let columns = ["op", "known", "who", "file", "own", "layer", "why"];
        let mut table = Table::new(name, &columns, &[]);
        for cell in &self.list {
            let [op, known] = [cell.op, cell.known].map(u32::from);
            let row = [
                op, known, cell.who, cell.file, cell.own, cell.layer, cell.why,
            ];
            table.push(row.map(i64::from));
        }
        table
    }
}

/// Returns a time in µs after the start, rounded down, so that an interval of whole µs has the same rows here as in ns.
pub(super) fn micros(time_ns: u64, start_ns: u64) -> i64 {
    let after = i128::from(time_ns).saturating_sub(start_ns.into());
    i64::try_from(after.div_euclid(1000)).unwrap_or(i64::MAX)
}

/// Returns a length of time in µs, rounded.
pub(super) fn length(ns: u64) -> u64 {
    ns.saturating_add(500) / 1000
}

/// The table of the shares.
pub(super) struct Shares {
    start_ns: u64,
    request: Option<u32>,
    rows: Table,
    pub cells: Cells,
}

impl Shares {
    pub fn new(start_ns: u64) -> Shares {
        let columns = [
            "flags", "time", "cell", "bytes", "wait", "queue", "sector", "forced",
        ];
        Shares {
            start_ns,
            request: None,
            rows: Table::new("rows", &columns, &["time", "sector", "forced"]),
            cells: Cells::default(),
        }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn see(&mut self, row: &Seen) {
        let mut flags = 0_u32;
        let mut set = |flag: u32, is: bool| flags |= if is { flag } else { 0 };
        set(
            flag::FIRST,
            self.request.replace(row.request) != Some(row.request),
        );
        set(flag::SEQUENTIAL, row.sequential);
        set(flag::FUA, row.fua);
        set(flag::NO_Q, row.q_ns.is_none());
        // 0 is unknown.
        let since = |from: Option<u64>, to: Option<u64>| {
            let ns = to?.checked_sub(from?);
            ns.map(|ns| length(ns).saturating_add(1))
        };
        let wait = since(row.q_ns.or(row.d_ns), Some(row.time_ns));
        let queue = since(row.q_ns, row.d_ns);
        let sector = row.sector.map(|sector| sector.saturating_add(1));
        // The start of the call as the table of calls has it, plus one.
        let forced = row.forced_ns.map(|ns| micros(ns, self.start_ns));
        self.rows.push([
            flags.into(),
            micros(row.time_ns, self.start_ns),
            self.cells.number(row.cell).into(),
            signed(row.bytes),
            signed(wait.unwrap_or(0)),
            signed(queue.unwrap_or(0)),
            signed(sector.unwrap_or(0)),
            forced.map_or(0, |us| us.saturating_add(1).max(0)),
        ]);
    }

    /// Returns the tables: the shares and their cells.
    pub fn tables(self) -> Vec<Table> {
        vec![self.rows, self.cells.table("cells")]
    }
}

/// Bytes, and the number of requests whose first share they have.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub bytes: u64,
    pub requests: u32,
}

tallied_by_field! {
    Sum: bytes, requests
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_of_whole_micros_has_the_same_rows() {
        let times = [5_000, 5_999, 6_000, 4_999, 4_000, 3_999];
        assert_eq!(times.map(|t| micros(t, 5_000)), [0, 0, 1, -1, -1, -2]);
        assert_eq!(
            [0, 499, 500, u64::MAX].map(length),
            [0, 0, 1, u64::MAX / 1000]
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums over rows, in groups.

use std::collections::HashMap;

use super::by::{By, Dictionary, Label};
use super::{Table, Values};
use crate::attribute::{Attributed, Op, Request, Row};
use crate::blktrace::action::{BLK_TC_FUA, BLK_TC_SYNC};

/// What a group of rows sums to. A request counts once in each group that it has rows in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Completed requests (strictly: completions; one that was completed in two steps counts twice).
    pub requests: u64,
    /// Requests that wrote bytes.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Of `writes`, those marked synchronous.
    pub sync_writes: u64,
    /// Of `writes`, those that the device was asked to do with forced unit access.
    pub fua_writes: u64,
    /// Requests that read bytes.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Ends of flush sequences: requests that asked for a cache flush.
    pub flushes: u64,
    /// Cache flushes that the device executed.
    pub device_flushes: u64,
    /// Discards.
    pub discards: u64,
    /// Bytes discarded.
    pub discard_bytes: u64,
    /// Write-zeroes requests.
    pub write_zeroes: u64,
    /// Bytes zeroed by them.
    pub write_zeroes_bytes: u64,
    /// Passthrough and zone requests.
    pub others: u64,
    /// Of `requests`, those that ended with an error; their bytes are counted all the same.
    pub failed: u64,
    last: Option<u32>,
}

impl Totals {
    /// Of all rows.
    pub fn new(attributed: &Attributed) -> Totals {
        let mut total = Totals::default();
        for row in &attributed.rows {
            total.add(row, attributed.request(row));
        }
        total
    }

    /// Bytes written and read.
    pub fn bytes(&self) -> u64 {
        self.write_bytes + self.read_bytes
    }

    /// As a table of one row.
    pub fn table(&self) -> Table {
        let mut table = Table::default();
        for (name, field) in FIELDS {
            table.push(name, Values::Amount(vec![Some(field(self))]));
        }
        table
    }

    /// Adds a row; rows of the same request follow one another.
    pub fn add(&mut self, row: &Row, request: &Request) {
        let new = u64::from(self.last.replace(row.request) != Some(row.request));
        let bytes = u64::from(row.bytes);
        self.requests += new;
        self.failed += new * u64::from(request.error != 0);
        match row.op {
            Op::Write => {
                self.writes += new;
                self.write_bytes += bytes;
                self.sync_writes += new * u64::from(request.action & BLK_TC_SYNC != 0);
                self.fua_writes += new * u64::from(request.action & BLK_TC_FUA != 0);
            }
            Op::Read => {
                self.reads += new;
                self.read_bytes += bytes;
            }
            Op::Flush => self.flushes += new,
            Op::DeviceFlush => self.device_flushes += new,
            Op::Discard => {
                self.discards += new;
                self.discard_bytes += bytes;
            }
            Op::WriteZeroes => {
                self.write_zeroes += new;
                self.write_zeroes_bytes += bytes;
            }
            Op::Other => self.others += new,
        }
    }
}

/// A column of the totals.
type Field = (&'static str, fn(&Totals) -> u64);

/// The columns, in the order they are printed.
pub const FIELDS: &[Field] = &[
    ("requests", |t| t.requests),
    ("bytes", |t| t.bytes()),
    ("writes", |t| t.writes),
    ("write_bytes", |t| t.write_bytes),
    ("reads", |t| t.reads),
    ("read_bytes", |t| t.read_bytes),
    ("flushes", |t| t.flushes),
    ("discards", |t| t.discards),
    ("discard_bytes", |t| t.discard_bytes),
    ("device_flushes", |t| t.device_flushes),
    ("sync_writes", |t| t.sync_writes),
    ("fua_writes", |t| t.fua_writes),
    ("write_zeroes", |t| t.write_zeroes),
    ("write_zeroes_bytes", |t| t.write_zeroes_bytes),
    ("others", |t| t.others),
    ("failed", |t| t.failed),
];

/// Rows summed by one or more columns, the group with the most bytes first.
#[derive(Clone, Debug)]
pub struct Groups {
    by: Vec<By>,
    /// A label for each of `by`, and the sums.
    pub groups: Vec<(Vec<Label>, Totals)>,
    /// The sums of all rows.
    pub total: Totals,
}

impl Groups {
    /// Sums all rows. With `top`, all but so many groups become one, labelled as the rest.
    pub fn new(attributed: &Attributed, by: &[By], top: Option<usize>) -> Groups {
        Groups::with_total(attributed, by, top, Totals::new(attributed))
    }

    /// The same where the total is known already.
    pub fn with_total(a: &Attributed, by: &[By], top: Option<usize>, total: Totals) -> Groups {
        let (keys, group_of_row) = number(a, by);
        let sums = fold(a, group_of_row.iter().copied(), keys.len());
        // A dictionary may have words that no row has.
        let mut order: Vec<usize> = (0..keys.len()).filter(|&g| sums[g].requests > 0).collect();
        let rank = |&group: &usize| {
            let t = &sums[group];
            (std::cmp::Reverse((t.bytes(), t.requests)), &keys[group])
        };
        order.sort_by(|a, b| rank(a).cmp(&rank(b)));
        let by = by.to_vec();
        let Some(top) = top.filter(|&top| top < order.len()) else {
            let groups = order
                .iter()
                .map(|&group| (keys[group].clone(), sums[group]))
                .collect();
            return Groups { by, groups, total };
        };
        // The rest is folded anew: a request with rows in two of its groups is one request.
        let mut place = vec![top as u32; keys.len()];
        for (at, &group) in (0..).zip(&order[..top]) {
            place[group] = at;
        }
        let of_row = group_of_row.iter().map(|&group| place[group as usize]);
        let sums = fold(a, of_row, top + 1);
        let rest = vec![Label::Rest(order.len() - top); by.len()];
        let labels = order[..top]
            .iter()
            .map(|&group| keys[group].clone())
            .chain([rest]);
        Groups {
            by,
            groups: labels.zip(sums).collect(),
            total,
        }
    }

    /// As a table, its last row the total.
    pub fn table(&self) -> Table {
        let mut table = Table {
            has_total: true,
            ..Table::default()
        };
        for (at, by) in self.by.iter().enumerate() {
            let labels = self.groups.iter().map(|(labels, _)| &labels[at]);
            table.push(by.name(), by.values(labels, at == 0));
        }
        for (name, field) in FIELDS {
            let cells = self.sums().map(|t| Some(field(t))).collect();
            table.push(name, Values::Amount(cells));
        }
        table
    }

    /// The sums of the groups, then the total.
    pub fn sums(&self) -> impl Iterator<Item = &Totals> {
        self.groups
            .iter()
            .map(|(_, totals)| totals)
            .chain([&self.total])
    }
}

/// Labels, and for each row which of them it has.
fn number(attributed: &Attributed, by: &[By]) -> (Vec<Vec<Label>>, Vec<u32>) {
    let mut by = by.iter().map(|by| Dictionary::new(*by, attributed));
    let Some(first) = by.next() else {
        return (vec![vec![]], vec![0; attributed.rows.len()]);
    };
    let mut of_row: Vec<u32> = attributed.rows.iter().map(|row| first.code(row)).collect();
    let mut keys: Vec<Vec<Label>> = first.labels().iter().map(|l| vec![l.clone()]).collect();
    for dictionary in by {
        let mut pairs: HashMap<(u32, u32), u32> = HashMap::new();
        let mut longer = Vec::new();
        for (row, group) in std::iter::zip(&attributed.rows, &mut of_row) {
            let pair = (*group, dictionary.code(row));
            *group = *pairs.entry(pair).or_insert_with(|| {
                let mut key: Vec<Label> = keys[pair.0 as usize].clone();
                key.push(dictionary.labels()[pair.1 as usize].clone());
                longer.push(key);
                longer.len() as u32 - 1
            });
        }
        keys = longer;
    }
    (keys, of_row)
}

/// The sums of each group.
fn fold(a: &Attributed, group_of_row: impl Iterator<Item = u32>, groups: usize) -> Vec<Totals> {
    let mut sums = vec![Totals::default(); groups];
    for (row, group) in std::iter::zip(&a.rows, group_of_row) {
        sums[group as usize].add(row, a.request(row));
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_once_in_each_group() {
        let request = Request {
            time_ns: 0,
            d_ns: None,
            action: BLK_TC_SYNC,
            sector: 0,
            bytes: 8192,
            device: 0,
            error: 5,
        };
        let row = Row {
            op: Op::Write,
            bytes: 4096,
            ..Row::default()
        };
        let mut totals = Totals::default();
        totals.add(&row, &request);
        totals.add(&row, &request);
        totals.add(
            &Row {
                request: 1,
                op: Op::Flush,
                ..row
            },
            &request,
        );
        let counts = (
            totals.requests,
            totals.writes,
            totals.write_bytes,
            totals.flushes,
        );
        assert_eq!(counts, (2, 1, 8192, 1));
        assert_eq!((totals.sync_writes, totals.failed), (1, 2));
    }
}

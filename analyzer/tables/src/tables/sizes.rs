// SPDX-License-Identifier: MIT OR Apache-2.0
//! Requests by size and by order (sequential or random); each request is counted once.

use std::collections::BTreeMap;

use polars::prelude::{DataType, Expr, col, len};

use super::{Result, Table, numbers, percent, reals, texts};
use crate::facts::row::code;
use crate::facts::{Facts, Filter, Part, Rows, bits, stored_column as at};
use mostrace_trace::attribute::Op;
use mostrace_trace::tally::{Tally, sum, tallied_by_field};

/// The size of a page, which has a row of its own, as in the paper.
const PAGE: u32 = 4096;

/// The definition of sequential and random, printed beside the table.
pub const ORDER: &str = "a request is sequential if it begins at the sector where the request \
    of the same direction issued before it on the device ended; the first one is random";

/// The number of requests of a kind, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    requests: u64,
    bytes: u64,
}

tallied_by_field! {
    Share: requests, bytes
}

/// Writes and reads.
type Shares = [Share; 2];

/// Counts of writes and reads by size and order.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    /// The counts, by size in bytes and whether the requests are sequential.
    shares: BTreeMap<(u32, bool), Shares>,
}

const SIZE: &str = "size";
const OP: &str = "op";
const SEQUENTIAL: &str = "sequential";
const COUNT: &str = "count";

impl Sizes {
    /// Counts the requests that wrote or read bytes.
    ///
    /// # Errors
    /// Returns an error if a temporary file cannot be read or the filter does not fit its columns.
    pub fn new(facts: &Facts, filter: Option<&Filter>) -> Result<Sizes> {
        let mut sizes = Sizes::default();
        // Without a filter, the first row of a request stands for it; a filter may leave any of its rows.
        let once = |b| u32::from(bits::PART.of(b) < 2);
        let first = code([at::bits], move |[b]| once(b)).alias("first");
        let columns: Vec<Expr> = vec![
            col(at::size).alias(SIZE),
            code([at::bits], |[b]| bits::OP.of(b) as u32).alias(OP),
            code([at::bits], |[b]| bits::SEQUENTIAL.of(b) as u32).alias(SEQUENTIAL),
            col(at::request).alias("request"),
            first,
        ];
        for view in facts.view(columns, Part::Any, filter, Rows::Whole) {
            let rows = view?;
            let keys = [col(SIZE), col(OP), col(SEQUENTIAL)];
            let requests = match filter {
                None => rows.filter(col("first").eq(polars::prelude::lit(1u32))),
                Some(_) => rows.group_by([col("request")]).agg([
                    col(SIZE).first(),
                    col(OP).first(),
                    col(SEQUENTIAL).first(),
                ]),
            };
            let counts = requests
                .group_by(keys)
                .agg([len().cast(DataType::UInt64).alias(COUNT)])
                .collect()?;
            let column = |name| counts.column(name)?.u32();
            let (size, op, sequential) = (column(SIZE)?, column(OP)?, column(SEQUENTIAL)?);
            let count = counts.column(COUNT)?.u64()?;
            for row in 0..counts.height() {
                let at = match Op::ALL.get(op.get(row).unwrap_or(u32::MAX) as usize) {
                    Some(Op::Write) => 0,
                    Some(Op::Read) => 1,
                    _ => continue,
                };
                let bytes = size.get(row).unwrap_or(0);
                let key = (bytes, sequential.get(row) == Some(1));
                let share = &mut sizes.shares.entry(key).or_default()[at];
                let requests = count.get(row).unwrap_or(0);
                share.requests.tally(requests);
                share.bytes.tally(requests.saturating_mul(bytes.into()));
            }
        }
        Ok(sizes)
    }

    fn sum(&self, of: impl Fn(u32, bool) -> bool) -> Shares {
        let shares = self.shares.iter();
        let wanted = shares.filter(|&(&(bytes, sequential), _)| of(bytes, sequential));
        sum(wanted.map(|(_, shares)| *shares))
    }

    /// Returns counts of writes and reads by size: below 4 KiB, exactly 4 KiB, then in doubling steps. The last row is the
    /// total.
    ///
    /// # Errors
    /// Never fails, because all columns have different names.
    pub fn by_size(&self) -> Result<Table> {
        let mut ranges: Vec<(u32, u32)> =
            self.shares.keys().map(|&(bytes, _)| range(bytes)).collect();
        ranges.dedup();
        let shares = ranges
            .iter()
            .map(|&(from, to)| self.sum(|bytes, _| (from..=to).contains(&bytes)));
        let names = ranges.iter().map(|&range| Some(name(range)));
        let edge =
            |f: fn(&(u32, u32)) -> u32| ranges.iter().map(move |r| Some(f(r).into())).chain([None]);
        let mut columns = vec![
            texts("size", names.chain([Some("total".into())])),
            numbers("from_bytes", edge(|r| r.0)),
            numbers("to_bytes", edge(|r| r.1)),
        ];
        columns.extend(lay_out(shares.chain([self.sum(|_, _| true)]).collect()));
        Table::with_total(columns)
    }

    /// Returns counts of writes and reads, sequential and random; the last row is the total.
    ///
    /// # Errors
    /// Never fails, because all columns have different names.
    pub fn by_order(&self) -> Result<Table> {
        let names = ["sequential", "random", "total"];
        let shares = [
            self.sum(|_, s| s),
            self.sum(|_, s| !s),
            self.sum(|_, _| true),
        ];
        let mut columns = vec![texts("order", names.map(|name| Some(name.to_owned())))];
        columns.extend(lay_out(shares.into()));
        Table::with_total(columns)
    }
}

/// Returns the columns of shares; the last share must be the total.
fn lay_out(shares: Vec<Shares>) -> Vec<polars::prelude::Column> {
    let all = shares.last().copied().unwrap_or_default();
    let names = [
        ["writes", "write_percent", "write_bytes"],
        ["reads", "read_percent", "read_bytes"],
    ];
    let column = |at: usize| {
        let [requests, percents, bytes] = names[at];
        let share = shares.iter().map(move |s| s[at]);
        [
            numbers(requests, share.clone().map(|s| Some(s.requests))),
            reals(
                percents,
                share.clone().map(|s| percent(s.requests, all[at].requests)),
            ),
            numbers(bytes, share.map(|s| Some(s.bytes))),
        ]
    };
    [column(0), column(1)].into_iter().flatten().collect()
}

/// Returns the range that a size falls into, in bytes; both ends are included.
fn range(bytes: u32) -> (u32, u32) {
    match bytes {
        0..PAGE => (1, PAGE - 1),
        PAGE => (PAGE, PAGE),
        _ => {
            let to = bytes.checked_next_power_of_two().unwrap_or(u32::MAX);
            ((to / 2).saturating_add(1), to)
        }
    }
}

fn name((from, to): (u32, u32)) -> String {
    match (from, to) {
        (_, to) if to < PAGE => "under 4 KiB".into(),
        (from, to) if from == to => "4 KiB".into(),
        (from, to) => format!(
            "over {} to {} KiB",
            from / 1024,
            u64::from(to).div_ceil(1024)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn sizes_fall_into_their_ranges() {
        for (bytes, expected) in [
            (512, (1, 4095)),
            (4095, (1, 4095)),
            (4096, (4096, 4096)),
            (4608, (4097, 8192)),
            (8192, (4097, 8192)),
            (8704, (8193, 16384)),
            (u32::MAX, (0x8000_0000, u32::MAX)),
        ] {
            assert_eq!(range(bytes), expected, "{bytes}");
        }
    }
}

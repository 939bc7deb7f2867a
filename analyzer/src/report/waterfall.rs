// SPDX-License-Identifier: MIT OR Apache-2.0
//! Some of SQLite's transactions with their calls over time, and what the device did meanwhile.

use mostrace_map::class::Role;
use serde::Serialize;

use super::latency::{Percentiles, ranked};
use super::scan::{Scan, Seen};
use crate::attribute::{File, Op};
use crate::facts::labels::file_label;
use crate::tally::Tally;
use crate::transactions::{Called, Span};

/// Number of calls, and number of requests, of a transaction that are drawn.
pub(super) const MOST: usize = 300;

/// The transactions that are drawn, each by the fraction of all that took no longer.
const QUANTILES: [(&str, f64); 4] = [
    ("the median one", 0.5),
    ("slower than 90 %", 0.9),
    ("slower than 99 %", 0.99),
    ("the slowest", 1.0),
];

/// A row of a request.
#[derive(Clone, Debug, Serialize)]
struct Block {
    #[serde(rename = "k")]
    colour: usize,
    /// The kind of the blocks, or else the operation.
    #[serde(rename = "w")]
    what: &'static str,
    #[serde(rename = "f")]
    file: Option<String>,
    /// Time of Q, or else of D, or else of C, in ns relative to the transaction's start.
    #[serde(rename = "s")]
    start_ns: i64,
    /// Time of D if known, else as `start_ns`.
    #[serde(rename = "d")]
    issue_ns: i64,
    #[serde(rename = "e")]
    end_ns: i64,
    #[serde(rename = "b")]
    bytes: u64,
}

/// A system call.
#[derive(Clone, Debug, Serialize)]
struct Call {
    #[serde(rename = "w")]
    what: &'static str,
    /// The role of its file; None if the file belongs to no database.
    #[serde(rename = "r")]
    role: Option<&'static str>,
    #[serde(rename = "f")]
    file: Option<String>,
    #[serde(rename = "s")]
    start_ns: i64,
    #[serde(rename = "e")]
    end_ns: i64,
    #[serde(rename = "b")]
    bytes: u64,
}

/// A transaction that is drawn.
#[derive(Debug, Serialize)]
struct Transaction {
    which: String,
    database: Option<String>,
    /// Its start relative to the first completion of the trace, ns.
    at_ns: i64,
    ns: u64,
    calls: Vec<Call>,
    /// Number of all its calls, including those that are not drawn.
    calls_all: u64,
    blocks: Vec<Block>,
    blocks_all: u64,
    #[serde(skip)]
    span: (u64, u64),
}

/// The times of all transactions, and some of them drawn.
#[derive(Debug, Serialize)]
pub(super) struct Waterfall {
    /// Percentiles of all transactions' times, ns.
    times: Percentiles,
    shown: Vec<Transaction>,
}

/// Returns the transactions to draw: the first one, and some by how long they took.
pub(super) fn choose(spans: &[Span]) -> Vec<(&'static str, Span)> {
    let mut order: Vec<&Span> = spans.iter().collect();
    order.sort_by_key(|span| (span.ns(), span.start_ns));
    let by_time = QUANTILES
        .iter()
        .map(|&(name, part)| (name, ranked(&order, part).copied()));
    let all = [("the first", spans.first())].into_iter().chain(by_time);
    let mut chosen: Vec<(&str, Span)> = Vec::new();
    for (name, span) in all.filter_map(|(name, span)| Some((name, *span?))) {
        if chosen.iter().all(|(_, other)| *other != span) {
            chosen.push((name, span));
        }
    }
    chosen
}

fn relative(time_ns: u64, to_ns: u64) -> i64 {
    i64::try_from(i128::from(time_ns).saturating_sub(to_ns.into())).unwrap_or(i64::MAX)
}

impl Waterfall {
    /// Takes the transactions and the calls of the chosen ones; their requests are added later. `start_ns` is the time of
    /// the first completion.
    pub fn new(
        spans: &[Span],
        chosen: &[(&'static str, Span)],
        calls: Vec<(Vec<Called>, u64)>,
        files: &[File],
        start_ns: u64,
    ) -> Waterfall {
        let mut times: Vec<u64> = spans.iter().map(Span::ns).collect();
        times.sort_unstable();
        let file_of = |id: (u64, u32)| {
            let is = |file: &&File| (file.inode, file.generation) == (Some(id.0), Some(id.1));
            files.iter().find(is)
        };
        let shown = chosen
            .iter()
            .zip(calls)
            .map(|((which, span), (calls, all))| {
                let call = |call: Called| Call {
                    what: call.kind.into(),
                    role: call.role.map(Role::as_str),
                    file: file_of(call.file).and_then(file_label),
                    start_ns: relative(call.start_ns, span.start_ns),
                    end_ns: relative(call.end_ns, span.start_ns),
                    bytes: call.bytes,
                };
                let database = file_of(span.file).and_then(File::database);
                Transaction {
                    which: (*which).to_owned(),
                    database: database.map(crate::text::escape),
                    at_ns: relative(span.start_ns, start_ns),
                    ns: span.ns(),
                    calls: calls.into_iter().map(call).collect(),
                    calls_all: all,
                    blocks: Vec::new(),
                    blocks_all: 0,
                    span: (span.start_ns, span.end_ns),
                }
            });
        Waterfall {
            times: Percentiles::of_sorted(&times),
            shown: shown.collect(),
        }
    }

    /// Adds a row to the transactions during which it was in flight, whoever caused it.
    pub fn see(&mut self, row: &Seen, scan: &Scan<'_>) {
        let start = row.q_ns.or(row.d_ns).unwrap_or(row.time_ns);
        for transaction in &mut self.shown {
            let (from, to) = transaction.span;
            if row.time_ns < from || start > to {
                continue;
            }
            transaction.blocks_all.tally(1);
            if transaction.blocks.len() >= MOST {
                continue;
            }
            transaction.blocks.push(Block {
                colour: row.colour as usize,
                what: match (row.op, row.kind) {
                    (Op::Write, Some(kind)) => kind.as_str(),
                    (op, _) => op.as_str(),
                },
                file: scan.file(row.file).map(str::to_owned),
                start_ns: relative(start, from),
                issue_ns: relative(row.d_ns.unwrap_or(start), from),
                end_ns: relative(row.time_ns, from),
                bytes: row.bytes,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_is_chosen_and_none_twice() {
        let span = |start_ns: u64, ns: u64| Span {
            tgid: 1,
            file: (12, 1),
            start_ns,
            end_ns: start_ns + ns,
        };
        let spans: Vec<Span> = (0..200).map(|nth| span(nth * 1000, 1 + nth)).collect();
        let chosen: Vec<(&str, u64)> = choose(&spans).iter().map(|(n, s)| (*n, s.ns())).collect();
        let names = [
            "the first",
            "the median one",
            "slower than 90 %",
            "slower than 99 %",
            "the slowest",
        ];
        let took = [1, 100, 180, 198, 200];
        assert_eq!(chosen, names.into_iter().zip(took).collect::<Vec<_>>());
        assert_eq!(choose(&spans[..1]).len(), 1);
        assert!(choose(&[]).is_empty());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Completed requests one by one in the order of their arrival, from which other tools' formats are made.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use polars::prelude::{Column, Expr, PolarsError, col};

use crate::facts::{Facts, NONE, NONE_32, Part, Rows, bits, stored_column as at};
use mostrace_trace::attribute::Op;
use mostrace_trace::tally::Tally;

/// Bytes of a sector.
pub(super) const SECTOR: u64 = 512;

/// Number of requests that are held back until earlier arrivals have completed.
const WAITING: usize = 1 << 20;

/// A completed request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Request {
    /// Time of Q, or of D if there is no Q, or else of C, in ns of the trace's clock.
    pub arrived_ns: u64,
    /// Number of the completion.
    pub number: u32,
    /// Time of C, in ns of the trace's clock.
    pub completed_ns: u64,
    /// First sector; None for a cache flush of the device.
    pub sector: Option<u64>,
    pub bytes: u64,
    pub op: Op,
    /// True if it has forced unit access (FUA).
    pub fua: bool,
    /// Index of the device in the facts.
    pub device: u32,
    /// Number of the completion of the device's flush that it waited for.
    pub device_flush: Option<u32>,
}

/// Calls `see` with every request in the order of arrival. Requests that took longer than a million others are out of order;
/// their number is returned.
///
/// # Errors
/// Returns an error if a temporary file cannot be read, or the error of `see`.
pub(super) fn each<E: From<PolarsError>>(
    facts: &Facts,
    mut see: impl FnMut(&Request) -> Result<(), E>,
) -> Result<u64, E> {
    let mut waiting: BinaryHeap<Reverse<Request>> = BinaryHeap::new();
    let mut last_ns = 0;
    let mut late = 0_u64;
    let mut show = |request: &Request| {
        if request.arrived_ns < last_ns {
            late.tally(1);
        }
        last_ns = request.arrived_ns.max(last_ns);
        see(request)
    };
    completed(facts, |request| {
        waiting.push(Reverse(request));
        match waiting.len() > WAITING {
            true => waiting.pop().map_or(Ok(()), |Reverse(first)| show(&first)),
            false => Ok(()),
        }
    })?;
    while let Some(Reverse(first)) = waiting.pop() {
        show(&first)?;
    }
    Ok(late)
}

/// Calls `see` with every request in the order of completion.
fn completed<E: From<PolarsError>>(
    facts: &Facts,
    mut see: impl FnMut(Request) -> Result<(), E>,
) -> Result<(), E> {
    let columns: Vec<Expr> = [
        at::request,
        at::time,
        at::q,
        at::d,
        at::sector,
        at::size,
        at::bits,
        at::device,
        at::device_flush,
    ]
    .map(col)
    .into();
    for view in facts.view(columns, Part::Any, None, Rows::Whole) {
        let frame = view?.collect()?;
        let columns: Vec<Column> = frame.columns().iter().map(Column::rechunk).collect();
        let long = |at: usize| columns[at].u64()?.cont_slice();
        let short = |at: usize| columns[at].u32()?.cont_slice();
        let (number, time, q, d) = (short(0)?, long(1)?, long(2)?, long(3)?);
        let (sector, size, word, device) = (long(4)?, short(5)?, long(6)?, short(7)?);
        let device_flush = short(8)?;
        let mut row = 0_usize;
        // The rows of a request are adjacent and in one batch.
        for rows in number.chunk_by(PartialEq::eq) {
            let end = row.saturating_add(rows.len());
            let known = |values: &[u64]| {
                let known = values[row..end].iter().copied().filter(|&v| v != NONE);
                known.min()
            };
            let op = Op::ALL.get(bits::OP.of(word[row]) as usize);
            see(Request {
                arrived_ns: known(q).or(known(d)).unwrap_or(time[row]),
                number: number[row],
                completed_ns: time[row],
                sector: known(sector),
                bytes: size[row].into(),
                op: op.copied().unwrap_or_default(),
                fua: bits::RWBS.of(word[row]) >> 1 & 1 != 0,
                device: device[row],
                device_flush: Some(device_flush[row]).filter(|&number| number != NONE_32),
            })?;
            row = end;
        }
    }
    Ok(())
}

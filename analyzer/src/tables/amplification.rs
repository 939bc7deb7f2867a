// SPDX-License-Identifier: MIT OR Apache-2.0
//! Amplification: how many bytes reached the device for each byte that the application stored.

use mostrace_bundle::manifest::Payload;

use super::{Groups, Result, Table, Totals, numbers, percent, ratio, reals, texts};
use crate::transactions::Count;

/// Returns the bytes at each level, their ratios, and the bytes per transaction. If the number of transactions is a lower
/// bound, the latter are upper bounds.
///
/// # Errors
/// Never fails, because all columns have different names.
pub fn levels(payload: &Payload, transactions: Count, total: &Totals) -> Result<Table> {
    let levels = [
        ("payload", payload.payload_bytes),
        ("file", payload.file_bytes),
        ("block", total.write_bytes),
    ];
    let times = |name, whole: u64| reals(name, levels.map(|(_, bytes)| ratio(bytes, whole)));
    Table::new(vec![
        texts("level", levels.map(|(name, _)| Some(name.to_owned()))),
        numbers("bytes", levels.map(|(_, bytes)| Some(bytes))),
        times("times_payload", payload.payload_bytes),
        times("times_file", payload.file_bytes),
        times("bytes_per_transaction", transactions.least),
    ])
}

/// Returns what each group contributes to the writes; the shares sum to the whole.
///
/// # Errors
/// Never fails, because all columns have different names.
pub fn shares(payload: &Payload, transactions: Count, groups: &Groups) -> Result<Table> {
    let whole = groups.total.write_bytes;
    let real = |name, f: fn(&Totals) -> u64, whole: u64| {
        reals(name, groups.sums().map(move |t| ratio(f(t), whole)))
    };
    let transactions = transactions.least;
    let mut columns = groups.labels();
    columns.extend([
        numbers("write_bytes", groups.sums().map(|t| Some(t.write_bytes))),
        reals(
            "write_percent",
            groups.sums().map(|t| percent(t.write_bytes, whole)),
        ),
        real("times_payload", |t| t.write_bytes, payload.payload_bytes),
        real("bytes_per_transaction", |t| t.write_bytes, transactions),
        real("writes_per_transaction", |t| t.writes, transactions),
        real("flushes_per_transaction", |t| t.flushes, transactions),
    ]);
    Table::with_total(columns)
}

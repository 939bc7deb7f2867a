// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many bytes reached the device for each that the application stored.

use mostrace_bundle::manifest::Payload;

use super::by::By;
use super::totals::{Groups, Totals};
use super::{Table, Values, percent, ratio};

/// Bytes at each level, and how often the smaller goes into the larger.
pub fn levels(payload: &Payload, total: &Totals) -> Table {
    let levels = [
        ("payload", payload.payload_bytes),
        ("file", payload.file_bytes),
        ("block", total.write_bytes),
    ];
    let mut table = Table::default();
    table.push(
        "level",
        Values::text(levels.map(|(name, _)| Some(name.to_owned()))),
    );
    table.push(
        "bytes",
        Values::Amount(levels.map(|(_, bytes)| Some(bytes)).into()),
    );
    let times = |whole: u64| Values::Real(levels.map(|(_, bytes)| ratio(bytes, whole)).into());
    table.push("times_payload", times(payload.payload_bytes));
    table.push("times_file", times(payload.file_bytes));
    table.push("bytes_per_transaction", times(payload.transactions));
    table
}

/// What each group contributes to the writes; the shares sum to the whole.
pub fn shares(payload: &Payload, groups: &Groups, by: By) -> Table {
    let mut table = Table {
        has_total: true,
        ..Table::default()
    };
    let labels = groups
        .groups
        .iter()
        .filter_map(|(labels, _)| labels.first());
    table.push(by.name(), by.values(labels, true));
    let amount =
        |f: fn(&Totals) -> u64| Values::Amount(groups.sums().map(|t| Some(f(t))).collect());
    let real = |f: fn(&Totals) -> u64, whole: u64| {
        Values::Real(groups.sums().map(|t| ratio(f(t), whole)).collect())
    };
    table.push("write_bytes", amount(|t| t.write_bytes));
    let whole = groups.total.write_bytes;
    let shares = groups
        .sums()
        .map(|t| percent(t.write_bytes, whole))
        .collect();
    table.push("write_percent", Values::Real(shares));
    table.push(
        "times_payload",
        real(|t| t.write_bytes, payload.payload_bytes),
    );
    table.push(
        "bytes_per_transaction",
        real(|t| t.write_bytes, payload.transactions),
    );
    table.push(
        "writes_per_transaction",
        real(|t| t.writes, payload.transactions),
    );
    table.push(
        "flushes_per_transaction",
        real(|t| t.flushes, payload.transactions),
    );
    table
}

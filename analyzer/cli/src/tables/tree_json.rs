// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tree as JSON, for `analyze --tree --json` and `measure --json`.

use mostrace_bundle::manifest::Payload;
use mostrace_tables::tables::tree::{Node, Owner, Tree};
use mostrace_trace::transactions::{Asked, Transactions};
use serde_json::{Value, json};

/// Returns the whole tree. If a filter selects rows, everything about transactions is null.
pub fn value(tree: &Tree, payload: Option<&Payload>, transactions: &Transactions) -> Value {
    let transactions = (!tree.is_filtered).then_some(transactions);
    json!({
        "payload": payload,
        "transactions": transactions.map(|t| t.count.least),
        "transactions_sure": transactions.map(|t| t.count.sure),
        "transactions_source": transactions.map(|t| t.source),
        "device_bytes": tree.total.write_bytes,
        "flushes": tree.total.flushes,
        "fua_writes": tree.total.fua_writes,
        "owners": tree.owners.iter().map(|of| owner(of, tree.is_filtered)).collect::<Vec<_>>(),
    })
}

fn owner(owner: &Owner, is_filtered: bool) -> Value {
    let asked = owner.asked.iter().map(|(role, asked)| calls(role, asked));
    json!({
        "process": owner.process,
        "database": owner.database,
        "transactions": (!is_filtered).then_some(owner.transactions.least),
        "transactions_sure": (!is_filtered).then_some(owner.transactions.sure),
        "write_calls": asked.collect::<Vec<_>>(),
        "device": node(&owner.device),
        "flushes": owner.totals.flushes,
        "fua_writes": owner.totals.fua_writes,
    })
}

fn calls(role: &str, asked: &Asked) -> Value {
    json!({ "role": role, "calls": asked.writes, "bytes": asked.bytes, "syncs": asked.syncs })
}

fn node(of: &Node) -> Value {
    let parts: Vec<Value> = of.parts.iter().map(node).collect();
    json!({ "name": of.name, "bytes": of.bytes, "parts": parts })
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The [tree](mostrace_trace::tree) of rows that pass a filter, and trees as tables.

use super::{Grouping, Result, Table, all_summed, numbers, percent, ratio, reals, texts};
use crate::facts::{Facts, Filter};
use mostrace_trace::transactions::Database;
use mostrace_trace::tree::{GROUPINGS, Tree, TreeLine};

/// Builds the tree of the rows that pass the filter.
///
/// # Errors
/// Returns an error if a temporary file cannot be read or the filter does not fit its columns.
pub fn of(
    facts: &Facts,
    databases: &[Database],
    filesystem: &str,
    filter: Option<&Filter>,
) -> Result<Tree> {
    let groups = all_summed(facts, &GROUPINGS.map(Grouping::by), filter)?;
    let groups = groups.try_into().unwrap_or_default();
    Ok(Tree::of(groups, databases, filesystem, filter.is_some()))
}

/// Returns a tree as a table with a line for each node; all owners but the first `top` become one.
///
/// # Errors
/// Never fails, because all columns have different names.
pub fn table(tree: &Tree, top: usize) -> Result<Table> {
    let lines = tree.lines(top);
    let total = tree.total.write_bytes;
    let column = |name, value: fn(&TreeLine) -> Option<u64>| numbers(name, lines.iter().map(value));
    let mut columns = vec![
        texts("what", lines.iter().map(|line| Some(line.what.clone()))),
        column("bytes", |line| line.bytes),
        reals(
            "percent",
            lines
                .iter()
                .map(|line| line.is_devices.then(|| percent(line.bytes?, total))?),
        ),
        reals(
            "per_transaction",
            lines
                .iter()
                .map(|line| ratio(line.bytes?, line.transactions.least)),
        ),
        numbers(
            "transactions",
            lines.iter().map(|line| {
                let is_told = line.is_owner && !tree.is_filtered;
                is_told.then_some(line.transactions.least)
            }),
        ),
        column("calls", |line| line.calls),
        column("syncs", |line| line.syncs),
        column("flushes", |line| line.flushes),
        column("fua_writes", |line| line.fua_writes),
    ];
    // The column is left out if all figures are exact.
    let is_all_exact = tree.owners.iter().all(|o| o.transactions.is_exact());
    if !tree.is_filtered && !is_all_exact {
        let sure = |line: &TreeLine| Some(line.transactions.sure.as_str().to_owned());
        let sure = lines.iter().map(|line| line.is_owner.then(|| sure(line))?);
        columns.push(texts("transactions_sure", sure));
    }
    Table::new(columns)
}

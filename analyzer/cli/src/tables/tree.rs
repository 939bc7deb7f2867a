// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tree as `analyze` and `measure` print it.

use mostrace_bundle::Manifest;
use mostrace_tables::export::to_text;
use mostrace_tables::tables::tree::table;
use mostrace_trace::charged::Charged;
use mostrace_trace::transactions::{Database, Source, Sure, Transactions};
use mostrace_trace::tree::Tree;

/// The most processes and databases that are shown one by one.
pub const MOST_OWNERS: usize = 20;
/// On a terminal, what has less than this many per cent of all bytes is summed up; a measurement shows owners with less as one.
const SMALL_PERCENT: u64 = 1;

/// Formats the tree of a measurement.
///
/// # Errors
/// Never fails, because all columns have different names.
#[cfg(target_os = "linux")]
pub fn charged(charged: &Charged<'_>, width: Option<usize>) -> anyhow::Result<String> {
    let tree = charged.tree();
    let shown = tree.notable(SMALL_PERCENT).min(MOST_OWNERS);
    text(charged.manifest, charged.databases, &tree, shown, width)
}

/// Formats the tree for people: the first `shown` processes and databases one by one, the others together. On a terminal, which
/// has a width, small owners and parts are summed up too.
///
/// # Errors
/// Never fails, because all columns have different names.
pub fn text(
    manifest: Option<&Manifest>,
    databases: &[Database],
    tree: &Tree,
    shown: usize,
    width: Option<usize>,
) -> anyhow::Result<String> {
    let of_calls = Transactions::shown(manifest, databases);
    let used = Transactions::new(manifest, databases);
    let payload = manifest.and_then(|m| m.payload.as_ref());
    let payload = payload.filter(|_| !tree.is_filtered).map(|p| {
        let (bytes, of) = (p.payload_bytes, p.transactions);
        let which = match used.source {
            Source::Application => "",
            Source::Calls => ", others' among them",
        };
        let of_calls = match of_calls.sure {
            Sure::Unknown => "none".to_owned(),
            Sure::Exact | Sure::AtLeast => of_calls.to_string(),
        };
        format!("payload: {bytes} bytes in {of} transactions; calls show {of_calls}{which}\n")
    });
    let table = match width {
        Some(_) => {
            let shown = shown.min(tree.notable(SMALL_PERCENT).max(1));
            table(&tree.folded(SMALL_PERCENT), shown)?
        }
        None => table(tree, shown)?,
    };
    Ok(payload.unwrap_or_default() + &to_text(&table, width))
}

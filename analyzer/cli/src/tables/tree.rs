// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tree as `analyze --tree` and `measure` print it.

use mostrace_tables::analysis::Analysis;
use mostrace_tables::export::to_text;
use mostrace_tables::facts::Filter;
use mostrace_tables::tables::tree::Tree;
use mostrace_trace::transactions::{Source, Sure, Transactions};

/// The most processes and databases that are shown one by one.
pub const MOST_OWNERS: usize = 20;
/// On a terminal, what has less than this many per cent of all bytes is summed up.
const SMALL_PERCENT: u64 = 1;

/// Builds the tree of the rows that pass the filter; the analysis must have causes.
///
/// # Errors
/// Returns an error if a table cannot be read or the filter does not fit its columns.
pub fn of(analysis: &Analysis, filter: Option<&Filter>) -> anyhow::Result<Tree> {
    let manifest = analysis.manifest();
    let filesystem = manifest.and_then(|m| m.filesystem.as_ref());
    let filesystem = filesystem.map_or("the filesystem", |f| f.kind.as_str());
    let databases = analysis.databases()?;
    Ok(Tree::new(&analysis.facts, &databases, filesystem, filter)?)
}

/// Formats the tree for people: the first `shown` processes and databases one by one, the others together. On a terminal, which
/// has a width, small owners and parts are summed up too.
///
/// # Errors
/// Never fails, because all columns have different names.
pub fn text(
    analysis: &Analysis,
    tree: &Tree,
    shown: usize,
    width: Option<usize>,
) -> anyhow::Result<String> {
    let manifest = analysis.manifest();
    let databases = analysis.databases()?;
    let of_calls = Transactions::shown(manifest, &databases);
    let used = Transactions::new(manifest, &databases);
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
            tree.folded(SMALL_PERCENT).table(shown)?
        }
        None => tree.table(shown)?,
    };
    Ok(payload.unwrap_or_default() + &to_text(&table, width))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map as a table: sector, class, kind, inode, offset and path of each extent.

use std::collections::HashMap;

use mostrace_map::{Extent, Map};
use polars::prelude::{Column, IntoColumn, NamedFrom, Series};

use super::{Result, Table, numbers};
use mostrace_trace::text::escape;

/// Returns one row per extent, in the order given.
///
/// # Errors
/// Never fails, because all columns have different names.
pub fn table(map: &Map, extents: &[Extent]) -> Result<Table> {
    let mut paths: HashMap<u64, Option<String>> = HashMap::new();
    for extent in extents.iter().filter(|e| e.inode != 0) {
        paths
            .entry(extent.inode)
            .or_insert_with(|| map.path(extent.inode).map(|path| escape(&path)));
    }
    let path = |e: &Extent| paths.get(&e.inode).and_then(Option::as_deref);
    let word = |name: &str, values: Vec<Option<&str>>| -> Column {
        Series::new(name.into(), values).into_column()
    };
    let class = |e: &Extent| Some(e.kind.class().as_str());
    Table::new(vec![
        numbers("sector", extents.iter().map(|e| Some(e.sector))),
        numbers("sectors", extents.iter().map(|e| Some(e.sectors))),
        word("class", extents.iter().map(class).collect()),
        word(
            "kind",
            extents.iter().map(|e| Some(e.kind.as_str())).collect(),
        ),
        numbers(
            "inode",
            extents
                .iter()
                .map(|e| Some(e.inode).filter(|&inode| inode != 0)),
        ),
        numbers("file_offset", extents.iter().map(|e| e.file_offset)),
        word("path", extents.iter().map(path).collect()),
    ])
}

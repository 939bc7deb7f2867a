// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sector → class, kind, inode, offset, path.

use std::collections::HashMap;

use super::{Table, Values};
use crate::text::escape;
use mostrace_map::{Extent, Map};

/// Extents as rows, with the columns `sector, sectors, class, kind, inode, file_offset, path`.
/// `path` is the first path of the owner.
pub fn table(map: &Map, extents: &[Extent]) -> Table {
    let mut words = vec![None];
    let mut codes: HashMap<u64, u32> = HashMap::new();
    let mut path = |inode: u64| match inode {
        0 => 0,
        _ => *codes.entry(inode).or_insert_with(|| {
            words.push(map.path(inode).map(|path| escape(&path)));
            words.len() as u32 - 1
        }),
    };
    let path_codes = extents.iter().map(|e| path(e.inode)).collect();
    let word = |f: fn(&Extent) -> &'static str| {
        Values::text(extents.iter().map(|e| Some(f(e).to_owned())))
    };
    let id = |f: fn(&Extent) -> Option<u64>| Values::Id(extents.iter().map(f).collect());
    let mut table = Table::default();
    table.push("sector", id(|e| Some(e.sector)));
    table.push(
        "sectors",
        Values::Amount(extents.iter().map(|e| Some(e.sectors)).collect()),
    );
    table.push("class", word(|e| e.kind.class().as_str()));
    table.push("kind", word(|e| e.kind.as_str()));
    table.push("inode", id(|e| Some(e.inode).filter(|&inode| inode != 0)));
    table.push("file_offset", id(|e| e.file_offset));
    table.push(
        "path",
        Values::Word {
            codes: path_codes,
            words: words.into(),
        },
    );
    table
}

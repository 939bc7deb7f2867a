// SPDX-License-Identifier: MIT OR Apache-2.0
//! The layers that the bytes belong to, each with at most one reason.

use std::cmp::Reverse;

use mostrace_map::stores::called;

use super::reason::Deeds;
use super::words::{is_part, percent};
use super::{LEAST, MOST, Part};
use crate::sums::layer::{self, Layer};
use crate::sums::{Groups, Label};
use crate::tally::{Tally, sum};

/// Roles of the files of an SQLite database.
pub(super) const SQLITES: [&str; 5] = ["db", "rollback_journal", "wal", "shm", "super_journal"];

/// A layer, its bytes, and what made the filesystem write it.
struct Sum {
    name: String,
    bytes: u64,
    deeds: Deeds,
}

/// Returns the largest layers, and the others as one; the groups are the answer's first.
pub fn parts(groups: &Groups, filesystem: &str) -> Vec<Part> {
    let written = groups.total.write_bytes;
    let mut sums = sums(groups, filesystem);
    sums.sort_by_key(|sum| Reverse(sum.bytes));
    let named = sums.iter().filter(|sum| is_part(sum.bytes, written, LEAST));
    let part = |sum: &Sum| Part {
        bytes: sum.bytes,
        percent: percent(sum.bytes, written),
        layer: sum.name.clone(),
        because: sum.deeds.words(sum.bytes),
    };
    let mut parts: Vec<Part> = named.take(MOST).map(part).collect();
    let rest = written.saturating_sub(sum(parts.iter().map(|part| part.bytes)));
    if written > 0 && is_part(rest, written, LEAST) {
        parts.push(Part {
            bytes: rest,
            percent: percent(rest, written),
            layer: "others".into(),
            because: None,
        });
    }
    parts
}

/// Returns the bytes written by the answer's names of layers; the groups are by [`layer::COLUMNS`].
pub fn bytes_of_layers(
    groups: &Groups,
    filesystem: &str,
) -> impl Iterator<Item = (String, u64)> + use<> {
    let sums = sums(groups, filesystem).into_iter();
    sums.map(|sum| (sum.name, sum.bytes))
}

fn sums(groups: &Groups, filesystem: &str) -> Vec<Sum> {
    let layers = groups.groups.iter().filter_map(|(labels, totals)| {
        let (layer, cause) = labels.split_at_checked(layer::COLUMNS.len())?;
        let layer = Layer::of(layer).filter(|_| totals.write_bytes > 0)?;
        Some((layer, cause, totals.write_bytes))
    });
    let layers: Vec<(Layer, &[Label], u64)> = layers.collect();
    let has_stores = layers.iter().any(|(layer, ..)| is_stores(layer));
    let mut sums: Vec<Sum> = Vec::new();
    for (layer, cause, bytes) in layers {
        let name = match &layer {
            // Files are `other files` only beside a store's files.
            Layer::File(role) if !has_stores && role != "unknown" => "the files' contents".into(),
            layer => layer.name(filesystem),
        };
        let at = sums.iter().position(|sum| sum.name == name);
        let at = at.unwrap_or_else(|| {
            let at = sums.len();
            sums.push(Sum {
                name,
                bytes: 0,
                deeds: Deeds::default(),
            });
            at
        });
        sums[at].bytes.tally(bytes);
        // Contents are written because somebody wrote them.
        if !matches!(layer, Layer::File(_)) {
            let word = |at: usize| cause.get(at).and_then(Label::text);
            let (role, op) = (word(0), word(1));
            sums[at].deeds.add(role.as_deref(), op.as_deref(), bytes);
        }
    }
    sums
}

/// Returns true if the layer is a file of SQLite or another store.
fn is_stores(layer: &Layer) -> bool {
    let is_role = |role: &str| SQLITES.contains(&role) || called(role).is_some();
    matches!(layer, Layer::File(role) if is_role(role))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sums::Totals;

    /// A row: class, kind, role, kind at home, role and operation of the cause, bytes.
    type Row<'a> = ([&'a str; 6], u64);

    fn said(rows: &[Row<'_>]) -> Vec<String> {
        let label = |word: &str| match word {
            "" => Label::Empty,
            word => Label::Text(word.to_owned()),
        };
        let totals = |write_bytes| Totals {
            write_bytes,
            ..Totals::default()
        };
        let each = rows.iter();
        let groups = Groups {
            groups: each
                .map(|(labels, bytes)| (labels.map(label).to_vec(), totals(*bytes)))
                .collect(),
            total: totals(rows.iter().map(|(_, bytes)| bytes).sum()),
            ..Groups::default()
        };
        let part = |part: &Part| {
            let because = part.because.as_deref().unwrap_or("");
            format!("{} {} {because}", part.percent, part.layer)
        };
        parts(&groups, "ext4").iter().map(part).collect()
    }

    const COPY: [&str; 4] = ["journal", "metadata_copy", "", "inode_table"];

    fn copy<'a>(role: &'a str, op: &'a str, bytes: u64) -> Row<'a> {
        let [class, kind, of, home] = COPY;
        ([class, kind, of, home, role, op], bytes)
    }

    #[test]
    fn the_journal_has_the_reason_of_most_of_it() {
        assert_eq!(
            said(&[
                copy("wal", "allocate", 60),
                copy("db", "write", 11),
                (["data", "regular", "wal", "", "wal", "write"], 29),
            ]),
            [
                "71 ext4's journal mostly because the WAL grew",
                "29 SQLite's WAL "
            ]
        );
    }

    #[test]
    fn there_are_at_most_three_and_the_others() {
        let file = |role| (["data", "regular", role, "", role, "write"], 24);
        let rows = [
            file("db"),
            file("wal"),
            file("shm"),
            file("rollback_journal"),
        ];
        let said = said(&[rows[0], rows[1], rows[2], rows[3], copy("", "", 4)]);
        assert_eq!(said.len(), 4);
        assert_eq!(said[3], "28 others ");
    }

    #[test]
    fn files_without_a_store_are_contents() {
        let file = (["data", "regular", "other", "", "other", "write"], 10);
        assert_eq!(said(&[file]), ["100 the files' contents "]);
    }
}

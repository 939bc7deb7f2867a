// SPDX-License-Identifier: MIT OR Apache-2.0
//! The operations by which a culprit caused what was written.

use std::cmp::Reverse;

use super::base::Row;
use super::culprits::{Bytes, Culprit};
use super::{found, is_part, size};
use crate::tables::Label;
use crate::tally::Tally;

/// Number of operations that are named, and the least share of each, per cent.
const MOST: usize = 3;
const LEAST: u64 = 10;

/// Returns ` (rename 3.3 MB, unlink 3.3 MB, write 819.2 KB)`; nothing if the only operation is writing or reading contents.
/// The rows are by process and operation.
pub(super) fn words<'g>(
    rows: impl Iterator<Item = Row<'g>>,
    culprit: &Culprit<'_>,
    of: Bytes,
) -> String {
    let processes = culprit.labels();
    let mut sums: Vec<(&str, u64)> = Vec::new();
    for row in rows {
        if let [Label::Text(operation)] = row.labels
            && processes.contains(row.process)
        {
            let new = || (operation.as_str(), 0);
            let is_it = |(known, _): &(&str, u64)| *known == operation;
            found(&mut sums, is_it, new).1.tally(of(row.totals));
        }
    }
    sums.retain(|(_, bytes)| is_part(*bytes, culprit.bytes, LEAST));
    sums.sort_by_key(|(operation, bytes)| (Reverse(*bytes), *operation));
    sums.truncate(MOST);
    match sums[..] {
        [] | [("write" | "read", _)] => String::new(),
        _ => {
            let each = |(operation, bytes): &(&str, u64)| {
                format!("{} {}", called(operation), size(*bytes as f64))
            };
            let all: Vec<String> = sums.iter().map(each).collect();
            format!(" ({})", all.join(", "))
        }
    }
}

/// Returns the tables' word for an operation, or a plainer one where that is not a call's name.
fn called(operation: &str) -> &str {
    match operation {
        "allocate" => "growth",
        "time" => "times",
        "atomic_write" => "atomic write",
        "lazy_init" => "lazy initialisation",
        "orphan_cleanup" => "orphan cleanup",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::finding::base::Base;
    use crate::tables::{Groups, Totals};

    fn said(rows: &[(&str, &str, u64)]) -> String {
        let mut groups = Groups::default();
        groups.groups = rows
            .iter()
            .map(|(process, operation, bytes)| {
                let totals = Totals {
                    write_bytes: *bytes,
                    ..Totals::default()
                };
                let labels = [process, operation, "exact"];
                let labels = labels.map(|word| Label::Text((*word).to_owned()));
                (labels.to_vec(), totals)
            })
            .collect();
        let its = rows.iter().filter(|(process, ..)| *process == "app:7");
        let culprit = Culprit {
            processes: vec!["app:7"],
            bytes: its.map(|(.., bytes)| bytes).sum(),
        };
        words(Base::Certain.rows(&groups), &culprit, |t| t.write_bytes)
    }

    #[test]
    fn operations_are_named_by_their_bytes() {
        let rows = [
            ("app:7", "write", 819),
            ("app:7", "rename", 3_270),
            ("app:7", "unlink", 3_260),
            ("app:7", "time", 700),
            ("other:8", "mkdir", 9_000),
        ];
        assert_eq!(
            said(&rows),
            " (rename 3.3 KB, unlink 3.3 KB, write 819 bytes)"
        );
        assert_eq!(
            said(&[("app:7", "time", 5), ("app:7", "allocate", 4)]),
            " (times 5 bytes, growth 4 bytes)"
        );
    }

    #[test]
    fn that_contents_were_written_goes_without_saying() {
        assert_eq!(said(&[("app:7", "write", 91), ("app:7", "time", 9)]), "");
        assert_eq!(said(&[("app:7", "read", 100)]), "");
        assert_eq!(said(&[("app:7", "unlink", 100)]), " (unlink 100 bytes)");
    }
}

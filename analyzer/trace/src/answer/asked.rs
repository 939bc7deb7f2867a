// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes that applications passed to write() and the like.

use mostrace_bundle::Manifest;

use crate::sums::Groups;
use crate::sums::layer::{self, Layer};
use crate::tally::sum;
use crate::transactions::{self, Asked, Database};

/// The bytes by which a call may dirty more than it writes: a block at either end.
const BLOCKS_BYTES: u64 = 2 * 4096;

/// Returns the bytes that all calls of a trace passed; None if some calls are unknown, if none passed any, or if something other
/// than calls changed files. The groups are the answer's first.
pub fn of(manifest: Option<&Manifest>, databases: &[Database], layers: &Groups) -> Option<u64> {
    let is_known = transactions::are_calls_whole(manifest, databases);
    let all = || sum(databases.iter().map(Database::total));
    let asked = is_known.then(all)?;
    Some(asked.bytes).filter(|bytes| *bytes > 0 && may_be_all(&asked, layers))
}

/// Returns true if the calls may have changed all contents of files that were written. A mapped file changes without a call,
/// and direct IO may come from tasks whose calls are unknown.
fn may_be_all(asked: &Asked, layers: &Groups) -> bool {
    let contents = layers.groups.iter().filter(|(labels, _)| {
        let layer = labels.get(..layer::COLUMNS.len());
        matches!(layer.and_then(Layer::of), Some(Layer::File(_)))
    });
    let contents: u64 = contents.map(|(_, totals)| totals.write_bytes).sum();
    let ends = asked.writes.saturating_mul(BLOCKS_BYTES);
    contents <= asked.bytes.saturating_add(ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sums::{Label, Totals};
    use mostrace_map::class::Role;

    fn layers(contents: u64, metadata: u64) -> Groups {
        let row = |class: &str, kind: &str, write_bytes: u64| {
            let labels = [class, kind, "other", ""].map(|word| Label::Text(word.into()));
            let totals = Totals {
                write_bytes,
                ..Totals::default()
            };
            (labels.to_vec(), totals)
        };
        Groups {
            groups: vec![
                row("data", "regular", contents),
                row("metadata", "inode_table", metadata),
            ],
            ..Groups::default()
        }
    }

    fn is_all(bytes: u64, writes: u64, contents: u64, metadata: u64) -> bool {
        let asked = Asked {
            writes,
            bytes,
            ..Asked::default()
        };
        may_be_all(&asked, &layers(contents, metadata))
    }

    #[test]
    fn contents_that_no_call_can_have_changed_are_not_held_against_calls() {
        // A call of one byte dirties a block, one of two bytes perhaps two blocks.
        assert!(is_all(2, 1, 8_194, 0));
        assert!(!is_all(2, 1, 8_195, 0));
        assert!(is_all(2, 1, 0, 8_195));
    }

    #[test]
    fn bytes_are_known_if_calls_passed_all_contents() {
        let whole = Manifest::default();
        let lossy = Manifest {
            losses: [("causes_ring".to_owned(), 1)].into(),
            ..Manifest::default()
        };
        let calls = |bytes, writes| {
            let asked = Asked {
                writes,
                bytes,
                ..Asked::default()
            };
            vec![Database {
                asked: vec![(Role::Other, asked)],
                ..Database::default()
            }]
        };
        let some = [calls(5, 1), calls(2, 0)].concat();
        assert_eq!(of(Some(&whole), &some, &layers(8_199, 99)), Some(7));
        assert_eq!(of(Some(&whole), &some, &layers(8_200, 0)), None);
        assert_eq!(of(Some(&whole), &calls(1, 0), &layers(0, 0)), Some(1));
        assert_eq!(of(Some(&whole), &calls(0, 1), &layers(0, 0)), None);
        assert_eq!(of(Some(&whole), &calls(0, 1), &layers(9_000, 0)), None);
        // Some calls are unknown, or all.
        assert_eq!(of(Some(&lossy), &some, &layers(0, 0)), None);
        assert_eq!(of(None, &some, &layers(0, 0)), None);
        assert_eq!(of(Some(&whole), &[], &layers(0, 0)), None);
    }
}

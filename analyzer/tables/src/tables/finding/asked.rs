// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bytes that applications passed to write(), reported if many more or far fewer bytes were written.

use mostrace_bundle::Manifest;

use super::size;
use crate::tables::layer::Layer;
use crate::tables::{Groups, ratio};
use mostrace_trace::tally::sum;
use mostrace_trace::transactions::{self, Asked, Database};

/// The ratio of written to passed bytes from which on, or up to which, the passed bytes are reported.
const TIMES: f64 = 1.5;
const PART: f64 = 0.5;
/// The bytes by which a call may dirty more than it writes: a block at either end.
const BLOCKS_BYTES: u64 = 2 * 4096;

/// Returns what all calls of a trace passed; None if some calls are unknown.
pub(super) fn of(manifest: Option<&Manifest>, databases: &[Database]) -> Option<Asked> {
    let is_known = transactions::are_calls_whole(manifest, databases);
    let all = || databases.iter().map(Database::total);
    is_known.then(|| sum(all()))
}

/// Returns ` for 74.9 KB passed to write() (222 ×)`; nothing if about as much was written, or if something other than calls
/// changed files.
pub(super) fn words(asked: Option<Asked>, layers: &Groups) -> String {
    let written = layers.total.write_bytes;
    let Some(asked) = asked.filter(|asked| may_be_all(asked, layers)) else {
        return String::new();
    };
    let passed = || format!(" for {} passed to write()", size(asked.bytes as f64));
    match ratio(written, asked.bytes) {
        Some(times) if times >= 100.0 => format!("{} ({times:.0} ×)", passed()),
        Some(times) if times >= TIMES => format!("{} ({times:.1} ×)", passed()),
        Some(times) if times <= PART => passed(),
        _ => String::new(),
    }
}

/// Returns true if the calls may have changed all contents of files that were written. A mapped file changes without a call,
/// and direct IO may come from tasks whose calls are unknown.
fn may_be_all(asked: &Asked, layers: &Groups) -> bool {
    let contents = layers.groups.iter().filter(|(labels, _)| {
        let layer = labels.get(..crate::tables::layer::COLUMNS.len());
        matches!(layer.and_then(Layer::of), Some(Layer::File(_)))
    });
    let contents: u64 = contents.map(|(_, totals)| totals.write_bytes).sum();
    let ends = asked.writes.saturating_mul(BLOCKS_BYTES);
    contents <= asked.bytes.saturating_add(ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Label, Totals};

    fn passed(bytes: u64, writes: u64, contents: u64, metadata: u64) -> String {
        let row = |class: &str, kind: &str, write_bytes: u64| {
            let labels = [class, kind, "other", ""].map(|word| Label::Text(word.into()));
            let totals = Totals {
                write_bytes,
                ..Totals::default()
            };
            (labels.to_vec(), totals)
        };
        let mut layers = Groups::default();
        layers.groups = vec![
            row("data", "regular", contents),
            row("metadata", "inode_table", metadata),
        ];
        layers.total.write_bytes = contents + metadata;
        let asked = Asked {
            writes,
            bytes,
            ..Asked::default()
        };
        words(Some(asked), &layers)
    }

    #[test]
    fn much_more_and_much_less_than_what_was_asked_is_said() {
        let times = |written: u64| passed(1_000, 100, written, 0);
        assert_eq!(times(2_200), " for 1.0 KB passed to write() (2.2 ×)");
        assert_eq!(times(15_548), " for 1.0 KB passed to write() (15.5 ×)");
        assert_eq!(times(222_000), " for 1.0 KB passed to write() (222 ×)");
        assert_eq!([times(1_499), times(501)], ["", ""]);
        assert_eq!(times(500), " for 1.0 KB passed to write()");
        assert_eq!(words(None, &Groups::default()), "");
    }

    #[test]
    fn contents_that_no_call_can_have_changed_are_not_held_against_calls() {
        // A call of one byte dirties a block, one of two bytes perhaps two blocks.
        assert_eq!(
            passed(2, 1, 8_194, 0),
            " for 2 bytes passed to write() (4097 ×)"
        );
        assert_eq!(passed(2, 1, 8_195, 0), "");
        assert_eq!(
            passed(2, 1, 0, 8_195),
            " for 2 bytes passed to write() (4098 ×)"
        );
        assert_eq!(passed(0, 0, 0, 100), "");
    }
}

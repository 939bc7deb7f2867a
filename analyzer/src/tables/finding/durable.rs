// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cost of each call by which the first culprit made something durable, if it has no transactions.

use mostrace_bundle::Manifest;

use super::beside::{FEW_BYTES, MANY_FLUSHES};
use super::culprits::{Culprit, Culprits};
use super::size;
use crate::tally::sum;
use crate::text::grouped;
use crate::transactions::{Database, are_calls_whole};

/// The words, and how many flushes they report.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Durable {
    pub words: String,
    pub flushes: u64,
}

/// Returns `; 200 calls for durability: 36.9 KB and 1 flush each`; nothing if calls are unknown or few,
/// or if each cost 1 MB or more.
pub(super) fn words(
    manifest: Option<&Manifest>,
    databases: &[Database],
    culprits: &Culprits<'_>,
    written: u64,
) -> Durable {
    if !culprits.tells_operations || !are_calls_whole(manifest, databases) {
        return Durable::default();
    }
    let writers = culprits.writers(written);
    let Some(first) = writers.first() else {
        return Durable::default();
    };
    let calls = calls_of(first, databases);
    let flushes = flushes_of(first, culprits);
    if calls < MANY_FLUSHES || first.bytes >= calls.saturating_mul(FEW_BYTES) {
        return Durable::default();
    }
    let whose = match &writers[..] {
        [_] => String::new(),
        _ => format!(" by {}", first.short_name()),
    };
    let each = |part: u64| part as f64 / calls as f64;
    Durable {
        words: format!(
            "; {} calls for durability{whose}: {}{} and {}{} each",
            grouped(calls),
            culprits.at_least(|t| t.write_bytes),
            size(each(first.bytes)),
            culprits.at_least(|t| t.flushes),
            many_flushes(each(flushes)),
        ),
        flushes,
    }
}

/// Returns the number of these processes' calls for durability on any file.
fn calls_of(culprit: &Culprit<'_>, databases: &[Database]) -> u64 {
    let labels = culprit.labels();
    let its = databases
        .iter()
        .filter(|of| labels.contains(&*of.process()));
    sum(its.map(|of| of.total().syncs))
}

fn flushes_of(culprit: &Culprit<'_>, culprits: &Culprits<'_>) -> u64 {
    let rows = culprits.rows(|t| t.write_bytes);
    let labels = culprit.labels();
    let its = rows.filter(|row| labels.contains(row.process));
    sum(its.map(|row| row.totals.flushes))
}

/// Formats a number of flushes: `1 flush`, `1.9 flushes`.
fn many_flushes(each: f64) -> String {
    let number = format!("{each:.1}");
    match number.strip_suffix(".0").unwrap_or(&number) {
        "1" => "1 flush".into(),
        number => format!("{number} flushes"),
    }
}

#[cfg(test)]
mod tests {
    use mostrace_map::class::Role;

    use super::*;
    use crate::tables::{Groups, Label, Totals};
    use crate::transactions::Asked;

    fn sums(rows: &[(&str, u64, u64)]) -> Groups {
        let row = |(process, write_bytes, flushes): &(&str, u64, u64)| {
            let labels = [*process, "write", "exact"].map(|word| Label::Text(word.to_owned()));
            let totals = Totals {
                write_bytes: *write_bytes,
                flushes: *flushes,
                ..Totals::default()
            };
            (labels.to_vec(), totals)
        };
        let mut sums = Groups::default();
        sums.groups = rows.iter().map(row).collect();
        sums.total = sum(sums.groups.iter().map(|(_, totals)| *totals));
        sums
    }

    fn said(rows: &[(&str, u64, u64)], syncs: u64) -> Durable {
        let processes = sums(rows);
        let culprits = Culprits {
            processes: &processes,
            files: &Groups::default(),
            tells_operations: true,
        };
        let asked = Asked {
            syncs,
            ..Asked::default()
        };
        let app = Database {
            tgid: 7,
            comm: b"app"[..].into(),
            asked: vec![(Role::Other, asked)],
            ..Database::default()
        };
        let other = Database {
            tgid: 8,
            ..app.clone()
        };
        let written = rows.iter().map(|(_, bytes, _)| bytes).sum();
        words(
            Some(&Manifest::default()),
            &[app, other],
            &culprits,
            written,
        )
    }

    #[test]
    fn bytes_and_flushes_are_told_for_each_call_of_the_first() {
        let app = ("app:7", 1_000_000, 190);
        assert_eq!(
            said(&[app], 100),
            Durable {
                words: "; 100 calls for durability: 10.0 KB and 1.9 flushes each".into(),
                flushes: 190,
            }
        );
        let other = ("other:8", 200_000, 5);
        assert_eq!(
            said(&[app, other], 190).words,
            "; 190 calls for durability by app: 5.3 KB and 1 flush each"
        );
    }

    #[test]
    fn what_has_no_known_cause_may_be_the_firsts() {
        let rows = [
            ("app:7", 1_000_000, 100),
            ("jbd2/loop0-8 (submitter)", 100_000, 2),
        ];
        assert_eq!(
            said(&rows, 100).words,
            "; 100 calls for durability: at least 10.0 KB and at least 1 flush each"
        );
        let rows = [
            ("app:7", 1_000_000, 100),
            ("jbd2/loop0-8 (submitter)", 10_000, 0),
        ];
        assert_eq!(
            said(&rows, 100).words,
            "; 100 calls for durability: 10.0 KB and 1 flush each"
        );
    }

    #[test]
    fn few_calls_and_many_bytes_are_not_divided() {
        assert_eq!(said(&[("app:7", 9_999_999, 10)], 9), Durable::default());
        assert_eq!(said(&[("app:7", 10_000_000, 10)], 10), Durable::default());
        assert_eq!(said(&[("app:9", 1_000, 10)], 10), Durable::default());
    }
}

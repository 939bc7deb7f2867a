// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums up a trace in one sentence: how much was written and [for whom](subject), the [parts](part) of it, and what else
//! was done [beside](beside) it.
//!
//! ```text
//! subject ─┬─ asked                                     : part ── kind      ; durable, beside
//!          └─ culprits ─┬─ target
//!             │         └─ operations
//!            base
//! 16.7 MB were written for 74.9 KB passed to write() (222 ×), 100 % by python3:17 for /app.log (times 8.3 MB, write 8.3 MB):
//!     75 % ext4's journal of inode tables, …, 25 % file contents; 1,000 calls for durability: 16.7 KB and 1 flush each
//! ```

mod asked;
mod base;
mod beside;
mod culprits;
mod durable;
mod kind;
mod operations;
mod part;
mod subject;
mod target;

use mostrace_bundle::Manifest;

pub(super) use self::base::{Base, KNOWN, Row};
use self::culprits::Culprits;
use self::kind::Opened;
use self::part::Parts;
use self::subject::Subject;
pub(super) use self::target::Targets;
use super::layer;
use super::{Grouping, Groups, Result};
use crate::facts::Facts;
use crate::transactions::{Database, Transactions};

/// Number of layers that are named.
const MOST: usize = 4;
/// The least share of a named layer, per cent.
const LEAST: u64 = 1;

/// Beyond this many characters, the contents of the journal are left out, unless the trace is mostly of transactions.
const LONG: usize = 300;

/// The groupings that the sentence needs, each also by how certain the process is: by layer, and role and operation of the
/// cause; by the process of the cause, or else of the submitter, and its operation; by that process, its file and its database.
pub(super) const GROUPINGS: [(&[&str], Option<usize>); 3] = [
    (
        &[
            layer::COLUMNS[0],
            layer::COLUMNS[1],
            layer::COLUMNS[2],
            layer::COLUMNS[3],
            "cause_role",
            "cause_op",
            KNOWN,
        ],
        None,
    ),
    (&["cause_or_submitter", "cause_op", KNOWN], None),
    (
        &[
            "cause_or_submitter",
            "cause_or_file",
            "cause_database",
            KNOWN,
        ],
        Some(MOST_FILES),
    ),
];
/// The most pairs of a process and a file among which named files and directories are sought.
const MOST_FILES: usize = 1 << 16;

/// Returns the sentence for all rows.
///
/// # Errors
/// Returns an error if a temporary file cannot be read.
pub fn sentence(
    facts: &Facts,
    manifest: Option<&Manifest>,
    databases: &[Database],
) -> Result<String> {
    let groups = Groups::several(facts, &GROUPINGS.map(Grouping::of), None)?;
    Ok(of(&groups, manifest, databases))
}

/// Returns the sentence, given the sums by [`GROUPINGS`].
pub(super) fn of(groups: &[Groups], manifest: Option<&Manifest>, databases: &[Database]) -> String {
    let [layers, processes, files] = groups else {
        return String::new();
    };
    let total = &layers.total;
    let transactions = Transactions::new(manifest, databases);
    let base = Base::of(processes, |t| t.write_bytes);
    let are_much = subject::are_transactions_much(&transactions, layers, base);
    let culprits = Culprits {
        processes,
        files,
        tells_operations: !are_much,
    };
    match total.write_bytes {
        0 if total.requests == 0 => "No IO was seen: was this the device?".to_owned(),
        0 => beside::nothing_written(total, &culprits) + &beside::words(total, 0),
        written => {
            let payload = manifest.and_then(|m| m.payload.as_ref());
            let asked = asked::of(manifest, databases);
            let subject = Subject::new(&transactions, payload, asked, layers, &culprits);
            let filesystem = manifest.and_then(|m| m.filesystem.as_ref());
            let filesystem = filesystem.map(|f| crate::text::escape(f.kind.as_bytes()));
            let parts = Parts::new(
                layers,
                base,
                filesystem.as_deref().unwrap_or("the filesystem"),
            );
            // Operations are reported only once.
            let opened = match culprits.operations(written).is_empty() {
                true => Opened::Deeds,
                false => Opened::Kinds,
            };
            let subject = subject.words(written);
            let durable = durable::words(manifest, databases, &culprits, written);
            let (first, last) = match total.read_bytes {
                read if read <= written => (String::new(), String::new()),
                _ if beside::is_mostly_read(total) => {
                    (beside::reads(total, &culprits) + "; ", String::new())
                }
                _ => (
                    String::new(),
                    "; ".to_owned() + &beside::reads(total, &culprits),
                ),
            };
            let beside = beside::words(total, durable.flushes);
            let all = |opened: Opened| {
                let parts = parts.words(written, opened);
                format!("{first}{subject}: {parts}{last}{}{beside}", durable.words)
            };
            match all(opened) {
                long if culprits.tells_operations && long.chars().count() > LONG => all(Opened::No),
                said => said,
            }
        }
    }
}

/// Returns the item for which `is_it` holds, or else a new one at the end.
fn found<T>(items: &mut Vec<T>, is_it: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> &mut T {
    let at = items.iter().position(is_it).unwrap_or_else(|| {
        let at = items.len();
        items.push(new());
        at
    });
    &mut items[at]
}

/// Joins words: `a, b and c`.
fn listed<S: AsRef<str>>(words: &[S]) -> String {
    match words {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", first.join(", "), last.as_ref())
        }
    }
}

/// Returns `part` in per cent of `whole`, rounded.
fn percent(part: u64, whole: u64) -> u64 {
    (part as f64 * 100.0 / whole as f64).round() as u64
}

/// Returns true if `part` is at least `percent` per cent of `whole`.
fn is_part(part: u64, whole: u64, percent: u64) -> bool {
    let times = |bytes: u64, by: u64| u128::from(bytes).saturating_mul(by.into());
    times(part, 100) >= times(whole, percent)
}

/// Formats bytes with a decimal unit.
#[must_use]
pub fn size(bytes: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB")];
    match UNITS.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes / unit),
        None => format!("{bytes:.0} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{Label, Totals};
    use crate::text::grouped;

    /// Makes the groups of one process and its file, with the bytes that it wrote and read.
    fn one(process: &str, file: &str, write_bytes: u64, read_bytes: u64) -> [Groups; 3] {
        let totals = Totals {
            requests: 2,
            write_bytes,
            read_bytes,
            ..Totals::default()
        };
        let text = |word: &&str| match *word {
            "" => Label::Empty,
            word => Label::Text(word.to_owned()),
        };
        let layer = ["data", "regular", "other", "", "other", "write", "exact"];
        let sums = |labels: &[&str]| {
            let mut sums = Groups::default();
            sums.groups = vec![(labels.iter().map(text).collect(), totals)];
            sums.total = totals;
            sums
        };
        let by_process = [process, "write", "exact"];
        [&layer[..], &by_process, &[process, file, "", "exact"]].map(sums)
    }

    #[test]
    fn a_name_is_what_it_is_in_the_tables() {
        // The columns have the name escaped.
        let name = crate::text::escape(b"/q\\z\x1b");
        assert_eq!(name, r"/q\\z\x1b");
        assert_eq!(
            of(&one("cp:7", &name, 1_000, 0), None, &[]),
            format!("1.0 KB were written, 100 % by cp:7 for {name}: 100 % file contents")
        );
    }

    #[test]
    fn reads_come_first_where_they_are_many() {
        let of = |written, read| of(&one("app:7", "/f", written, read), None, &[]);
        let written = "1.0 KB were written, 100 % by app:7 for /f: 100 % file contents";
        assert_eq!(of(1_000, 1_000), written);
        assert_eq!(
            of(1_000, 9_999),
            format!("{written}; 10.0 KB were read, 100 % by app:7 for /f")
        );
        assert_eq!(
            of(1_000, 10_000),
            format!("10.0 KB were read, 100 % by app:7 for /f; {written}")
        );
        assert_eq!(
            of(0, 500),
            "Nothing was written, and 500 bytes were read, 100 % by app:7 for /f"
        );
        assert_eq!(of(0, 0), "Nothing was written, and nothing read");
    }

    #[test]
    fn numbers_and_lists_are_as_people_write_them() {
        assert_eq!(
            [grouped(1), grouped(999), grouped(1000), grouped(1_234_567)],
            ["1", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [size(108.0), size(58_613.0), size(1.5e9)],
            ["108 bytes", "58.6 KB", "1.5 GB"]
        );
        assert_eq!(
            [
                listed(&["a"]),
                listed(&["a", "b"]),
                listed(&["a", "b", "c"])
            ],
            ["a", "a and b", "a, b and c"]
        );
    }
}

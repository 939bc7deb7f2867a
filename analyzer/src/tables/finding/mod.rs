// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trace shows, in one sentence: how much was written and [for whom](subject), of which [parts](part) it is, and what else
//! was done [beside](beside) it.
//!
//! ```text
//! subject ─┬─ asked              : part ── kind            ; beside
//!          └─ culprits ── target
//! 16.7 MB were written for 74.9 KB passed to write() (222 ×), 100 % by python3:17 for /app.log:
//!     75 % ext4's journal of inode tables that files' writing dirtied, …, 25 % file contents; 1,001 flushes were asked for
//! ```

mod asked;
mod beside;
mod culprits;
mod kind;
mod part;
mod subject;
mod target;

use mostrace_bundle::Manifest;

use self::culprits::Culprits;
use self::part::Parts;
use self::subject::Subject;
use super::layer;
use super::{Grouping, Groups, Result};
use crate::facts::Facts;
use crate::transactions::{Database, Transactions};

/// Layers that are named.
const MOST: usize = 4;
/// What has a smaller part is not named, per cent.
const LEAST: u64 = 1;

/// The ways in which the rows are summed up for it: by layer, role and operation of who caused it; by the process that caused it;
/// and by its file and database too.
pub(super) const GROUPINGS: [(&[&str], Option<usize>); 3] = [
    (
        &[
            layer::COLUMNS[0],
            layer::COLUMNS[1],
            layer::COLUMNS[2],
            layer::COLUMNS[3],
            "cause_role",
            "cause_op",
        ],
        None,
    ),
    (&["cause_process"], None),
    (
        &["cause_process", "cause_file", "cause_database"],
        Some(MOST_FILES),
    ),
];
/// Pairs of a process and a file among which those are that are named, or their folders.
const MOST_FILES: usize = 1 << 16;

/// The sentence, of all rows.
///
/// # Errors
/// A temporary file cannot be read.
pub fn sentence(
    facts: &Facts,
    manifest: Option<&Manifest>,
    databases: &[Database],
) -> Result<String> {
    let groups = Groups::several(facts, &GROUPINGS.map(Grouping::of), None)?;
    Ok(of(&groups, manifest, databases))
}

/// The same of the sums by [`GROUPINGS`].
pub(super) fn of(groups: &[Groups], manifest: Option<&Manifest>, databases: &[Database]) -> String {
    let [layers, processes, files] = groups else {
        return String::new();
    };
    let total = &layers.total;
    let culprits = Culprits { processes, files };
    match total.write_bytes {
        0 if total.requests == 0 => "No IO was seen: was this the device?".to_owned(),
        0 => beside::nothing_written(total, &culprits) + &beside::words(total),
        written => {
            let transactions = Transactions::new(manifest, databases);
            let payload = manifest.and_then(|m| m.payload.as_ref());
            let asked = asked::of(manifest, databases);
            let subject = Subject::new(&transactions, payload, asked, layers, &culprits);
            let filesystem = manifest.and_then(|m| m.filesystem.as_ref());
            let filesystem = filesystem.map(|f| crate::text::escape(f.kind.as_bytes()));
            let parts = Parts::new(layers, filesystem.as_deref().unwrap_or("the filesystem"));
            let (subject, parts) = (subject.words(written), parts.words(written));
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
            format!("{first}{subject}: {parts}{last}{}", beside::words(total))
        }
    }
}

/// The item that is meant; a new one, at the end, if there is none.
fn found<T>(items: &mut Vec<T>, is_it: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> &mut T {
    let at = items.iter().position(is_it).unwrap_or_else(|| {
        let at = items.len();
        items.push(new());
        at
    });
    &mut items[at]
}

/// `a, b and c`.
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

/// How much of it something is, rounded.
fn percent(part: u64, whole: u64) -> u64 {
    (part as f64 * 100.0 / whole as f64).round() as u64
}

/// Whether it is so many per cent of it at least.
fn is_part(part: u64, whole: u64, percent: u64) -> bool {
    let times = |bytes: u64, by: u64| u128::from(bytes).saturating_mul(by.into());
    times(part, 100) >= times(whole, percent)
}

/// Bytes with a decimal unit.
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

    /// A process and its file, with what it wrote and read.
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
        let layer = ["data", "regular", "other", "", "other", "write"];
        let sums = |labels: &[&str]| {
            let mut sums = Groups::default();
            sums.groups = vec![(labels.iter().map(text).collect(), totals)];
            sums.total = totals;
            sums
        };
        [&layer[..], &[process], &[process, file, ""]].map(sums)
    }

    #[test]
    fn a_name_is_what_it_is_in_the_tables() {
        // As the columns have it.
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

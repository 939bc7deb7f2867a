// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trace shows, in one sentence: how much was written and [for whom](subject), and of which [parts](part) it is.

mod part;
mod subject;

use mostrace_bundle::Manifest;

use self::part::Parts;
use self::subject::{Culprits, Subject};
use super::layer;
use super::{Grouping, Groups, Result};
use crate::facts::Facts;
use crate::transactions::{Database, Transactions};

/// Layers that are named.
const MOST: usize = 4;
/// What has a smaller part is not named, per cent.
const LEAST: u64 = 1;

/// The ways in which the rows are summed up for it: by layer, role and operation of who caused it; by the process that caused it;
/// and by its file too.
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
    (&["cause_process", "cause_file"], Some(MOST_FILES)),
];
/// Pairs of a process and a file among which those are that are named.
const MOST_FILES: usize = 20;

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
    let total = layers.total;
    let culprits = Culprits { processes, files };
    let transactions = Transactions::new(manifest, databases);
    let payload = manifest.and_then(|m| m.payload.as_ref());
    let sentence = match total.write_bytes {
        0 if total.requests == 0 => "No IO was seen: was this the device?".to_owned(),
        0 => culprits.of_reads(total),
        written => {
            let subject = Subject::new(&transactions, payload, layers, &culprits).words(written);
            let filesystem = manifest.and_then(|m| m.filesystem.as_ref());
            let filesystem = filesystem.map_or("the filesystem", |f| f.kind.as_str());
            let parts = Parts::new(layers, filesystem).words(written);
            format!("{subject}: {parts}{}", subject::beside(total))
        }
    };
    crate::text::escape(sentence.as_bytes())
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
pub(crate) fn size(bytes: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB")];
    match UNITS.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes / unit),
        None => format!("{bytes:.0} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::grouped;

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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trace shows, in one sentence.

use mostrace_bundle::Manifest;

use super::layer::{self, Layer, plural};
use super::{Grouping, Groups, Label, Result, ratio};
use crate::facts::{Column, Facts};
use crate::transactions::{Database, Source, Transactions};

/// Layers that are named, and kinds of the journal's copies.
const MOST: usize = 4;
const MOST_KINDS: usize = 3;
/// What has a smaller part is not named, per cent.
const LEAST: u64 = 1;

/// The columns that it is made of: those of the layers, then who caused the journal's bytes.
pub(super) const COLUMNS: [&str; 6] = [
    "class",
    "kind",
    "role",
    "home_kind",
    "cause_role",
    "cause_op",
];

/// The sentence; None where nothing was written.
///
/// # Errors
/// A temporary file cannot be read.
pub fn sentence(
    facts: &Facts,
    manifest: Option<&Manifest>,
    databases: &[Database],
) -> Result<Option<String>> {
    let by = COLUMNS.iter().filter_map(|name| Column::find(name));
    let by = Grouping {
        by: by.collect(),
        top: None,
    };
    let groups = Groups::new(facts, by, None)?;
    Ok(of(&groups, manifest, databases))
}

/// The same of the sums by [`COLUMNS`].
pub(super) fn of(
    groups: &Groups,
    manifest: Option<&Manifest>,
    databases: &[Database],
) -> Option<String> {
    let written = groups.total.write_bytes;
    if written == 0 {
        return None;
    }
    let filesystem = manifest.and_then(|m| m.filesystem.as_ref());
    let filesystem = filesystem.map_or("the filesystem", |f| f.kind.as_str());
    let subject = subject(&Transactions::new(manifest, databases), written);
    let mut layers = Layers::new(groups, filesystem);
    layers.0.sort_by_key(|layer| std::cmp::Reverse(layer.bytes));
    let named = layers
        .0
        .iter()
        .filter(|layer| layer.bytes * 100 >= written * LEAST);
    let parts: Vec<String> = named.take(MOST).map(|layer| layer.words(written)).collect();
    let sentence = format!("{subject}: {}", parts.join(", "));
    Some(crate::text::escape(sentence.as_bytes()))
}

/// How much was written, and for how many transactions.
fn subject(transactions: &Transactions, written: u64) -> String {
    let count = transactions.count;
    let all = size(written as f64);
    let Some(divisor) = count.divisor() else {
        return format!("{all} were written");
    };
    match (transactions.payload_bytes, transactions.source) {
        (Some(stored), _) => {
            let times = ratio(written, stored).unwrap_or_default();
            format!(
                "{count} transactions of {} wrote {} each ({times:.0} ×)",
                size(stored as f64 / divisor as f64),
                size(written as f64 / divisor as f64),
            )
        }
        (None, Source::Calls) => {
            format!("{all} were written while {count} of SQLite's transactions were committed")
        }
        (None, Source::Application) => {
            format!("{all} were written while {count} transactions were committed")
        }
    }
}

/// Role of the file and operation that caused something, as far as they are known.
type Deed = (Option<String>, Option<String>);

/// A layer with its bytes, and those of the journal by what they are copies of and who caused them.
struct Part {
    name: String,
    bytes: u64,
    homes: Vec<(String, u64)>,
    causes: Vec<(Deed, u64)>,
}

struct Layers(Vec<Part>);

impl Layers {
    fn new(groups: &Groups, filesystem: &str) -> Layers {
        let mut layers = Layers(Vec::new());
        for (labels, totals) in &groups.groups {
            let (layer, cause) = labels.split_at(layer::COLUMNS.len());
            if let Some(layer) = Layer::of(layer).filter(|_| totals.write_bytes > 0) {
                layers.add(&layer, cause, totals.write_bytes, filesystem);
            }
        }
        layers
    }

    fn add(&mut self, layer: &Layer, cause: &[Label], bytes: u64, filesystem: &str) {
        let name = layer.name(filesystem);
        let at = self.0.iter().position(|part| part.name == name);
        let at = at.unwrap_or_else(|| {
            self.0.push(Part {
                name,
                bytes: 0,
                homes: Vec::new(),
                causes: Vec::new(),
            });
            self.0.len() - 1
        });
        let part = &mut self.0[at];
        part.bytes += bytes;
        if let Layer::Journal { home, .. } = layer {
            if let Some(home) = home {
                add(&mut part.homes, kind_of_home(home).to_owned(), bytes);
            }
            let word = |at: usize| cause.get(at).and_then(Label::text);
            add(&mut part.causes, (word(0), word(1)), bytes);
        }
    }
}

fn add<K: PartialEq>(sums: &mut Vec<(K, u64)>, key: K, bytes: u64) {
    match sums.iter_mut().find(|(known, _)| *known == key) {
        Some((_, sum)) => *sum += bytes,
        None => sums.push((key, bytes)),
    }
}

/// Bitmaps are one thing in a sentence.
fn kind_of_home(home: &str) -> &str {
    match home {
        "block_bitmap" | "inode_bitmap" => "bitmaps",
        other => plural(other),
    }
}

impl Part {
    fn words(&self, written: u64) -> String {
        let percent = (self.bytes as f64 * 100.0 / written as f64).round();
        let mut words = format!("{percent} % {}", self.name);
        let mut homes = self.homes.clone();
        homes.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        homes.truncate(MOST_KINDS);
        let homes: Vec<&str> = homes.iter().map(|(name, _)| name.as_str()).collect();
        if !homes.is_empty() {
            words += &format!(" of {}", listed(&homes));
            words += &self.dirtied_by().unwrap_or_default();
        }
        words
    }

    /// What of which file's dirtied most of it, if that is known.
    fn dirtied_by(&self) -> Option<String> {
        let mut roles: Vec<(&str, u64)> = Vec::new();
        for ((role, _), bytes) in &self.causes {
            if let Some(role) = role {
                add(&mut roles, role.as_str(), *bytes);
            }
        }
        let (role, bytes) = roles.into_iter().max_by_key(|(_, bytes)| *bytes)?;
        let file = match role {
            "db" => "the database",
            "rollback_journal" => "the rollback journal",
            "wal" => "the WAL",
            _ => return None,
        };
        if bytes * 2 < self.bytes {
            return None;
        }
        let mut deeds: Vec<(&str, u64)> = Vec::new();
        for ((of, operation), bytes) in &self.causes {
            if let (Some(of), Some(operation)) = (of, operation)
                && of == role
            {
                add(&mut deeds, deed(operation), *bytes);
            }
        }
        deeds.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        deeds.retain(|(_, of_it)| of_it * 10 >= bytes);
        let deeds: Vec<&str> = deeds.into_iter().map(|(deed, _)| deed).collect();
        Some(format!(" that {file}'s {} dirtied", listed(&deeds)))
    }
}

/// What an operation is, of a file.
fn deed(operation: &str) -> &'static str {
    match operation {
        "create" => "creation",
        "unlink" => "deletion",
        "truncate" => "truncation",
        "rename" => "renaming",
        "allocate" => "growth",
        "write" => "contents",
        "time" => "times",
        "xattr" => "attributes",
        _ => "other changes",
    }
}

/// `a, b and c`.
fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
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
    fn the_journal_is_said_to_be_whose_it_mostly_is() {
        let role = |role: &str, operation: &str, bytes| {
            ((Some(role.to_owned()), Some(operation.to_owned())), bytes)
        };
        let mut journal = Part {
            name: "ext4's journal".into(),
            bytes: 1000,
            homes: vec![
                ("directories".into(), 100),
                ("inode tables".into(), 300),
                ("bitmaps".into(), 250),
                ("the superblock".into(), 50),
            ],
            causes: vec![
                role("rollback_journal", "create", 200),
                role("db", "allocate", 300),
                role("rollback_journal", "unlink", 290),
                role("rollback_journal", "time", 10),
                ((None, None), 200),
            ],
        };
        assert_eq!(
            journal.words(2000),
            "50 % ext4's journal of inode tables, bitmaps and directories that the rollback journal's deletion and \
             creation dirtied"
        );
        // No file's is half of it.
        journal.bytes = 1100;
        assert_eq!(
            journal.words(2000),
            "55 % ext4's journal of inode tables, bitmaps and directories"
        );
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

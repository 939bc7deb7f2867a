// SPDX-License-Identifier: MIT OR Apache-2.0
//! The layers that the bytes are of; of the filesystem's journal what it holds copies of, and whose deed dirtied those.

use std::cmp::Reverse;

use super::{LEAST, MOST, is_part, listed, percent};
use crate::tables::layer::{self, Layer, plural};
use crate::tables::{Groups, Label};
use crate::tally::{Tally, sum};

/// Kinds of the journal's blocks that are named, each with so much of it at least, per cent.
const MOST_KINDS: usize = 3;
const LEAST_OF_KIND: u64 = 10;
/// Who is named has dirtied so much of each kind, per cent.
const MOST_OF_IT: u64 = 50;
/// A deed is named that did so much of what those did, per cent.
const LEAST_OF_DEEDS: u64 = 10;

/// Role of the file and operation that caused something, as far as they are known.
type Deed = (Option<String>, Option<String>);

/// Blocks of one kind in the journal.
#[derive(Clone, Debug, PartialEq)]
struct Kind {
    name: String,
    /// Whether they are copies of blocks that somebody has dirtied.
    is_copy: bool,
    bytes: u64,
    deeds: Vec<(Deed, u64)>,
}

/// A layer.
#[derive(Debug)]
struct Part {
    name: String,
    bytes: u64,
    /// Of the journal.
    kinds: Vec<Kind>,
}

/// All layers.
pub(super) struct Parts(Vec<Part>);

impl Parts {
    /// Of the first of the finding's sums.
    pub fn new(groups: &Groups, filesystem: &str) -> Parts {
        let mut parts = Parts(Vec::new());
        for (labels, totals) in &groups.groups {
            let (layer, cause) = labels.split_at(layer::COLUMNS.len());
            if let Some(layer) = Layer::of(layer).filter(|_| totals.write_bytes > 0) {
                parts.add(&layer, cause, totals.write_bytes, filesystem);
            }
        }
        parts.0.sort_by_key(|part| Reverse(part.bytes));
        parts
    }

    fn add(&mut self, layer: &Layer, cause: &[Label], bytes: u64, filesystem: &str) {
        let name = layer.name(filesystem);
        let part = found(
            &mut self.0,
            |part| part.name == name,
            || Part {
                name: name.clone(),
                bytes: 0,
                kinds: Vec::new(),
            },
        );
        part.bytes.tally(bytes);
        if let Layer::Journal { kind, home } = layer {
            let word = |at: usize| cause.get(at).and_then(Label::text);
            part.add(kind, home.as_deref(), (word(0), word(1)), bytes);
        }
    }

    /// The largest of them, and what is left over.
    pub fn words(&self, written: u64) -> String {
        let is_named = |part: &&Part| is_part(part.bytes, written, LEAST);
        let named: Vec<&Part> = self.0.iter().filter(is_named).take(MOST).collect();
        let rest = written.saturating_sub(sum(named.iter().map(|part| part.bytes)));
        let words = |part: &&Part| {
            let percent = percent(part.bytes, written);
            format!("{percent} % {}{}", part.name, part.of_kinds())
        };
        let mut words: Vec<String> = named.iter().map(words).collect();
        if is_part(rest, written, LEAST) {
            words.push(format!("{} % others", percent(rest, written)));
        }
        words.join(", ")
    }
}

impl Part {
    fn add(&mut self, kind: &str, home: Option<&str>, deed: Deed, bytes: u64) {
        let name = match home {
            Some(home) => name_of_home(home),
            None if kind.ends_with("_copy") => "copies of unknown blocks",
            None => plural(kind),
        };
        let kind = found(
            &mut self.kinds,
            |known| known.name == name,
            || Kind {
                name: name.to_owned(),
                is_copy: home.is_some(),
                bytes: 0,
                deeds: Vec::new(),
            },
        );
        kind.bytes.tally(bytes);
        add(&mut kind.deeds, &deed, bytes);
    }

    /// ` of bitmaps and inode tables that the WAL's growth dirtied, and of descriptors`
    fn of_kinds(&self) -> String {
        let mut kinds: Vec<&Kind> = self
            .kinds
            .iter()
            .filter(|kind| is_part(kind.bytes, self.bytes, LEAST_OF_KIND))
            .collect();
        kinds.sort_by_key(|kind| Reverse(kind.bytes));
        kinds.truncate(MOST_KINDS);
        let names = |kinds: &[&Kind]| {
            let names: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
            listed(&names)
        };
        let Some(culprit) = Culprit::of(&kinds) else {
            return match kinds.is_empty() {
                true => String::new(),
                false => format!(" of {}", names(&kinds)),
            };
        };
        let (dirtied, others): (Vec<&Kind>, Vec<&Kind>) =
            kinds.into_iter().partition(|kind| culprit.did(kind));
        let others = match others.is_empty() {
            true => String::new(),
            false => format!(", and of {}", names(&others)),
        };
        format!(
            " of {} that {} dirtied{others}",
            names(&dirtied),
            culprit.words()
        )
    }
}

/// Whose deeds dirtied most of each of some kinds of blocks.
struct Culprit {
    role: String,
    /// Operations, the one that dirtied most first.
    deeds: Vec<String>,
}

impl Culprit {
    /// None where no kind's copies are mostly one file's, or that file has no name in words.
    fn of(kinds: &[&Kind]) -> Option<Culprit> {
        let copies: Vec<&&Kind> = kinds.iter().filter(|kind| kind.is_copy).collect();
        let role = most(copies.iter().flat_map(|kind| kind.of_roles()))?;
        in_words(&role)?;
        let of_role = |((of, operation), bytes): &(Deed, u64)| {
            (of.as_ref() == Some(&role)).then_some((operation.clone()?, *bytes))
        };
        let mut deeds: Vec<(String, u64)> = Vec::new();
        let its = copies.iter().filter(|kind| kind.is_mostly_of(&role));
        for (operation, bytes) in its.flat_map(|kind| kind.deeds.iter().filter_map(of_role)) {
            let deed = deed(&operation).to_owned();
            add(&mut deeds, &deed, bytes);
        }
        let all: u64 = sum(deeds.iter().map(|(_, bytes)| *bytes));
        deeds.retain(|(_, bytes)| is_part(*bytes, all, LEAST_OF_DEEDS));
        deeds.sort_by_key(|(_, bytes)| Reverse(*bytes));
        let deeds: Vec<String> = deeds.into_iter().map(|(deed, _)| deed).collect();
        let culprit = Culprit { role, deeds };
        copies
            .iter()
            .any(|kind| culprit.did(kind))
            .then_some(culprit)
    }

    /// Whether the deeds that are named dirtied most of it.
    fn did(&self, kind: &Kind) -> bool {
        let is_its = |((role, operation), _): &&(Deed, u64)| {
            let is_named = |operation: &String| self.deeds.iter().any(|d| d == deed(operation));
            role.as_ref() == Some(&self.role) && operation.as_ref().is_some_and(is_named)
        };
        let its = kind.deeds.iter().filter(is_its);
        let its = sum(its.map(|(_, bytes)| *bytes));
        kind.is_copy && is_part(its, kind.bytes, MOST_OF_IT)
    }

    fn words(&self) -> String {
        let file = in_words(&self.role).unwrap_or_default();
        format!("{file}'s {}", listed(&self.deeds))
    }
}

impl Kind {
    fn of_roles(&self) -> impl Iterator<Item = (String, u64)> {
        let deeds = self.deeds.iter();
        deeds.filter_map(|((role, _), bytes)| Some((role.clone()?, *bytes)))
    }

    fn is_mostly_of(&self, role: &str) -> bool {
        let its = self.of_roles().filter(|(of, _)| of == role);
        let its = sum(its.map(|(_, bytes)| bytes));
        is_part(its, self.bytes, MOST_OF_IT)
    }
}

/// The one with the most bytes.
fn most(all: impl Iterator<Item = (String, u64)>) -> Option<String> {
    let mut sums: Vec<(String, u64)> = Vec::new();
    for (name, bytes) in all {
        add(&mut sums, &name, bytes);
    }
    sums.into_iter()
        .max_by_key(|(_, bytes)| *bytes)
        .map(|(name, _)| name)
}

/// Adds bytes to the sum of this name.
fn add<K: Clone + PartialEq>(sums: &mut Vec<(K, u64)>, name: &K, bytes: u64) {
    let sum = found(sums, |(known, _)| known == name, || (name.clone(), 0));
    sum.1.tally(bytes);
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

/// Bitmaps are one thing in a sentence.
fn name_of_home(home: &str) -> &str {
    match home {
        "block_bitmap" | "inode_bitmap" => "bitmaps",
        other => plural(other),
    }
}

fn in_words(role: &str) -> Option<&'static str> {
    match role {
        "db" => Some("the database"),
        "rollback_journal" => Some("the rollback journal"),
        "wal" => Some("the WAL"),
        _ => None,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// One in the journal: what it is, what it is a copy of, whose, by what, bytes.
    type Row<'a> = (&'a str, &'a str, &'a str, &'a str, u64);

    fn journal(rows: &[Row<'_>]) -> Parts {
        let some = |word: &str| Some(word.to_owned()).filter(|word| !word.is_empty());
        let mut part = Part {
            name: "ext4's journal".into(),
            bytes: 0,
            kinds: Vec::new(),
        };
        for (kind, home, role, operation, bytes) in rows {
            part.bytes += bytes;
            let home = Some(*home).filter(|home| !home.is_empty());
            part.add(kind, home, (some(role), some(operation)), *bytes);
        }
        Parts(vec![part])
    }

    const COPY: &str = "metadata_copy";
    const JOURNAL: &str = "rollback_journal";

    #[test]
    fn what_was_dirtied_and_by_whom_is_of_the_same_rows() {
        let parts = journal(&[
            (COPY, "inode_table", JOURNAL, "unlink", 200),
            (COPY, "inode_table", "db", "allocate", 100),
            (COPY, "block_bitmap", JOURNAL, "create", 150),
            (COPY, "inode_bitmap", JOURNAL, "unlink", 100),
            (COPY, "directory", "db", "time", 200),
            ("descriptor", "", JOURNAL, "unlink", 99),
        ]);
        // The directories are another's; what is none of three is not named.
        assert_eq!(
            parts.words(1698),
            "50 % ext4's journal of inode tables and bitmaps that the rollback journal's deletion and creation dirtied, \
             and of directories, 50 % others"
        );
    }

    /// As in PERSIST: the copies are the fewest, and their deed is not that of the other blocks.
    #[test]
    fn blocks_that_are_no_copies_are_nobodys_deed() {
        let parts = journal(&[
            ("descriptor", "", JOURNAL, "time", 400),
            ("commit", "", JOURNAL, "time", 400),
            (COPY, "inode_table", JOURNAL, "time", 300),
            (COPY, "block_bitmap", "db", "allocate", 9),
        ]);
        assert_eq!(
            parts.words(1109),
            "100 % ext4's journal of inode tables that the rollback journal's times dirtied, and of descriptors and \
             commit blocks"
        );
    }

    #[test]
    fn nobody_is_named_who_has_not_most() {
        let parts = journal(&[
            (COPY, "inode_table", JOURNAL, "unlink", 49),
            (COPY, "inode_table", "db", "allocate", 40),
            (COPY, "inode_table", "", "", 11),
        ]);
        assert_eq!(parts.words(100), "100 % ext4's journal of inode tables");
        // Of no file that has a name in words.
        let parts = journal(&[(COPY, "directory", "other", "create", 100)]);
        assert_eq!(parts.words(100), "100 % ext4's journal of directories");
    }
}

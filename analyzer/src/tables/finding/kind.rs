// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the filesystem's journal holds copies of, and whose deed dirtied those blocks.

use std::cmp::Reverse;

use super::{found, is_part, listed};
use crate::tables::layer::plural;
use crate::tally::Tally;

/// Kinds of the journal's blocks that are named, each with so much of it at least, per cent.
const MOST_KINDS: usize = 3;
const LEAST_OF_KIND: u64 = 10;
/// So much is taken for all: of what is named, and of what those dirtied who are, per cent.
const NEARLY_ALL: u64 = 90;
/// Who is named has dirtied so much of each kind, per cent.
const MOST_OF_IT: u64 = 50;
/// So many deeds are named, each of which did so much of what all did, per cent.
const MOST_DEEDS: usize = 3;
const LEAST_OF_DEEDS: u64 = 10;

/// What was done, and to what, in words: `the WAL's`, `growth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deed {
    whose: &'static str,
    act: &'static str,
}

impl Deed {
    /// By the role of the file that it was done to, and the operation. None where it is not known to what it was done.
    pub fn of(role: Option<&str>, operation: Option<&str>) -> Option<Deed> {
        let operation = operation?;
        let whose = match (role, operation) {
            (Some("db"), _) => "the database's",
            (Some("rollback_journal"), _) => "the rollback journal's",
            (Some("wal"), _) => "the WAL's",
            (Some("unknown"), _) => return None,
            (Some(_), _) => "files'",
            (None, "mkdir") => "directories'",
            (None, _) => return None,
        };
        let act = match operation {
            "create" | "mkdir" => "creation",
            "unlink" => "deletion",
            "truncate" => "truncation",
            "rename" => "renaming",
            "allocate" => "growth",
            "write" => "writing",
            "time" => "times",
            "xattr" => "attributes",
            _ => "other changes",
        };
        Some(Deed { whose, act })
    }
}

/// Blocks of one kind in the journal.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kind {
    name: String,
    /// Whether they are copies of blocks that somebody has dirtied.
    is_copy: bool,
    bytes: u64,
    deeds: Vec<(Option<Deed>, u64)>,
}

impl Kind {
    /// What a block of the journal is called by its kind, and by what it is a copy of. Bitmaps are one thing in a sentence.
    pub fn name<'a>(kind: &'a str, home: Option<&'a str>) -> &'a str {
        match home {
            Some("block_bitmap" | "inode_bitmap") => "bitmaps",
            Some("regular") => "file contents",
            Some(home) => plural(home),
            None if kind.ends_with("_copy") => "copies of unknown blocks",
            None => plural(kind),
        }
    }

    pub fn new(name: &str, is_copy: bool) -> Kind {
        Kind {
            name: name.to_owned(),
            is_copy,
            bytes: 0,
            deeds: Vec::new(),
        }
    }

    pub fn is_called(&self, name: &str) -> bool {
        self.name == name
    }

    pub fn add(&mut self, deed: Option<Deed>, bytes: u64) {
        self.bytes.tally(bytes);
        found(&mut self.deeds, |(known, _)| *known == deed, || (deed, 0))
            .1
            .tally(bytes);
    }

    /// What deeds of some sort dirtied of it.
    fn bytes_of(&self, is_it: impl Fn(&Deed) -> bool) -> u64 {
        let known = self.known().filter(|(deed, _)| is_it(deed));
        known.map(|(_, bytes)| bytes).sum()
    }

    fn known(&self) -> impl Iterator<Item = (Deed, u64)> {
        let deeds = self.deeds.iter();
        deeds.filter_map(|(deed, bytes)| Some(((*deed)?, *bytes)))
    }
}

/// How much is said of the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opened {
    /// That it is the journal.
    No,
    /// What it holds.
    Kinds,
    /// The same, and whose deed dirtied that.
    Deeds,
}

/// ` of bitmaps and inode tables that the WAL's growth dirtied, and of descriptors and others`
pub(super) fn of_kinds(all: &[Kind], opened: Opened) -> String {
    let kinds = large(all);
    if kinds.is_empty() || opened == Opened::No {
        return String::new();
    }
    let is_all = is_part(bytes(&kinds), all.iter().map(|k| k.bytes).sum(), NEARLY_ALL);
    let rest = (!is_all).then_some("others");
    let Some(dirtier) = Dirtier::of(&kinds).filter(|_| opened == Opened::Deeds) else {
        return format!(" of {}", names(&kinds, rest));
    };
    let (dirtied, others): (Vec<&Kind>, Vec<&Kind>) =
        kinds.into_iter().partition(|kind| dirtier.did(kind));
    let others = match names(&others, rest) {
        none if none.is_empty() => none,
        names => format!(", and of {names}"),
    };
    let by = dirtier.words(&dirtied);
    format!(" of {} that {by} dirtied{others}", names(&dirtied, None))
}

/// Those that are named, the largest first.
fn large(all: &[Kind]) -> Vec<&Kind> {
    let whole = all.iter().map(|kind| kind.bytes).sum();
    let large = |kind: &&Kind| is_part(kind.bytes, whole, LEAST_OF_KIND);
    let mut kinds: Vec<&Kind> = all.iter().filter(large).collect();
    kinds.sort_by_key(|kind| Reverse(kind.bytes));
    kinds.truncate(MOST_KINDS);
    kinds
}

fn bytes(kinds: &[&Kind]) -> u64 {
    kinds.iter().map(|kind| kind.bytes).sum()
}

fn names(kinds: &[&Kind], rest: Option<&str>) -> String {
    let names = kinds.iter().map(|kind| kind.name.as_str());
    listed(&names.chain(rest).collect::<Vec<_>>())
}

/// Whose deeds dirtied most of each of some kinds of blocks.
struct Dirtier {
    whose: &'static str,
    /// What was done, that which dirtied most first.
    acts: Vec<&'static str>,
}

impl Dirtier {
    /// None where no kind's copies are mostly one's.
    fn of(kinds: &[&Kind]) -> Option<Dirtier> {
        let copies = || kinds.iter().copied().filter(|kind| kind.is_copy);
        let whose = summed(copies().flat_map(Kind::known).map(|(d, b)| (d.whose, b)));
        let (whose, _) = *whose.first()?;
        let is_mostly_its = |kind: &&Kind| {
            let its = kind.bytes_of(|deed| deed.whose == whose);
            is_part(its, kind.bytes, MOST_OF_IT)
        };
        let its = copies().filter(is_mostly_its).flat_map(Kind::known);
        let acts = its.filter(|(deed, _)| deed.whose == whose);
        let acts = summed(acts.map(|(deed, bytes)| (deed.act, bytes)));
        let all: u64 = acts.iter().map(|(_, bytes)| bytes).sum();
        let large = acts
            .into_iter()
            .filter(|(_, bytes)| is_part(*bytes, all, LEAST_OF_DEEDS));
        let dirtier = Dirtier {
            whose,
            acts: large.map(|(act, _)| act).take(MOST_DEEDS).collect(),
        };
        copies().any(|kind| dirtier.did(kind)).then_some(dirtier)
    }

    /// Whether the deeds that are named dirtied most of it.
    fn did(&self, kind: &Kind) -> bool {
        kind.is_copy && is_part(self.bytes(kind), kind.bytes, MOST_OF_IT)
    }

    /// What they dirtied of it.
    fn bytes(&self, kind: &Kind) -> u64 {
        kind.bytes_of(|deed| deed.whose == self.whose && self.acts.contains(&deed.act))
    }

    /// Its deeds, by which these were dirtied, or mostly by these.
    fn words(&self, dirtied: &[&Kind]) -> String {
        let its = dirtied.iter().map(|kind| self.bytes(kind)).sum();
        let mostly = match is_part(its, bytes(dirtied), NEARLY_ALL) {
            true => "",
            false => "mostly ",
        };
        format!("{mostly}{} {}", self.whose, listed(&self.acts))
    }
}

/// The sum of each, the largest first.
fn summed(all: impl Iterator<Item = (&'static str, u64)>) -> Vec<(&'static str, u64)> {
    let mut sums: Vec<(&'static str, u64)> = Vec::new();
    for (name, bytes) in all {
        found(&mut sums, |(known, _)| *known == name, || (name, 0))
            .1
            .tally(bytes);
    }
    sums.sort_by_key(|(_, bytes)| Reverse(*bytes));
    sums
}

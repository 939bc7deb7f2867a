// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kinds of blocks in the filesystem's journal, and the deeds that dirtied them.

use std::cmp::Reverse;

use super::{found, is_part, listed};
use crate::tables::layer::plural;
use mostrace_trace::tally::Tally;

/// Number of kinds of the journal's blocks that are named, and the least share of each, per cent.
const MOST_KINDS: usize = 3;
const LEAST_OF_KIND: u64 = 10;
/// From this share on, per cent, the sentence names the kinds, or the deeds, as if they were all.
const NEARLY_ALL: u64 = 90;
/// The least share of each kind that the named deeds must have dirtied, per cent.
const MOST_OF_IT: u64 = 50;
/// Number of deeds that are named, and the least share of each, per cent.
const MOST_DEEDS: usize = 3;
const LEAST_OF_DEEDS: u64 = 10;

/// A change of a file, in words: `the WAL's`, `growth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deed {
    whose: &'static str,
    act: &'static str,
}

impl Deed {
    /// Makes a deed from the role of the file and the operation; None if the file is unknown.
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

/// The blocks of one kind in the journal.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kind {
    name: String,
    /// True if they are copies of blocks that somebody dirtied.
    is_copy: bool,
    bytes: u64,
    deeds: Vec<(Option<Deed>, u64)>,
}

impl Kind {
    /// Returns the name of a journal block by its kind and by what it is a copy of. All bitmaps share one name.
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

    /// Returns the bytes of this kind that matching deeds dirtied.
    fn bytes_of(&self, is_it: impl Fn(&Deed) -> bool) -> u64 {
        let known = self.known().filter(|(deed, _)| is_it(deed));
        known.map(|(_, bytes)| bytes).sum()
    }

    fn known(&self) -> impl Iterator<Item = (Deed, u64)> {
        let deeds = self.deeds.iter();
        deeds.filter_map(|(deed, bytes)| Some(((*deed)?, *bytes)))
    }
}

/// The detail in which the journal is described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opened {
    /// Only that it is the journal.
    No,
    /// The kinds of blocks that it holds.
    Kinds,
    /// The kinds, and the deeds that dirtied them.
    Deeds,
}

/// Returns ` of bitmaps and inode tables that the WAL's growth dirtied, and of descriptors and others`.
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

/// Returns the kinds that are named, the largest first.
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

/// The files whose deeds dirtied most of each of some kinds of blocks.
struct Dirtier {
    whose: &'static str,
    /// The deeds, the one that dirtied most first.
    acts: Vec<&'static str>,
}

impl Dirtier {
    /// Finds the deeds; None if no kind's copies are mostly by one file's deeds.
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

    /// Returns true if the named deeds dirtied most of a kind.
    fn did(&self, kind: &Kind) -> bool {
        kind.is_copy && is_part(self.bytes(kind), kind.bytes, MOST_OF_IT)
    }

    /// Returns the bytes of a kind that the named deeds dirtied.
    fn bytes(&self, kind: &Kind) -> u64 {
        kind.bytes_of(|deed| deed.whose == self.whose && self.acts.contains(&deed.act))
    }

    /// Returns the words for the deeds, with `mostly` if they did not dirty nearly all.
    fn words(&self, dirtied: &[&Kind]) -> String {
        let its = dirtied.iter().map(|kind| self.bytes(kind)).sum();
        let mostly = match is_part(its, bytes(dirtied), NEARLY_ALL) {
            true => "",
            false => "mostly ",
        };
        format!("{mostly}{} {}", self.whose, listed(&self.acts))
    }
}

/// Sums by name, the largest first.
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A tree of the bytes from the application to the device: by process and database, and by the layers between.
//!
//! ```text
//! payload ─ write() ─┬─ rollback journal or WAL, database ──────────┬─ device
//!                    └─ the filesystem's metadata and its journal ──┘
//! ```
//! The leaves under `device` are the bytes that the device completed, each once.

// A recording may come from anybody: no number in it may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod target;

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::hash::Hash;

use mostrace_bundle::manifest::Payload;
use serde_json::{Value, json};

use crate::attribute::{HashMap, SUBMITTER};
use crate::sums::layer::{COLUMNS, Layer};
use crate::sums::{Groups, Label, Totals};
use crate::tally::{Tally, sum};
use crate::text::escape;
use crate::transactions::{Asked, Count, Database, Transactions};
use target::{Row, Targets};

/// The groupings that a tree needs: by owner; by owner and layer; by the process and the files of submitters.
pub const GROUPINGS: [&[&str]; 3] = [
    &[OWNER[0], OWNER[1], OWNER[2], OWNER[3]],
    &[
        OWNER[0], OWNER[1], OWNER[2], OWNER[3], COLUMNS[0], COLUMNS[1], COLUMNS[2], COLUMNS[3],
    ],
    &[
        "cause_or_submitter",
        "cause_or_final_file",
        "cause_database",
    ],
];
/// The columns that determine an owner: process and database.
const OWNER: [&str; 4] = [
    "cause_tgid",
    "cause_or_submitter",
    "cause_database",
    "bundle",
];

/// A part of what reached the device, with its own parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    /// The part's name.
    pub name: String,
    /// Bytes written; for a node with parts, their sum.
    pub bytes: u64,
    /// Its parts, the largest first.
    pub parts: Vec<Node>,
}

/// A process and a database, a process and its other files, or an unknown process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Owner {
    tgid: Option<u64>,
    /// The recording's name.
    bundle: String,
    /// `name:tgid` of the cause, or of the submitter (marked as such) if the cause is unknown; None if both are.
    pub process: Option<String>,
    /// A submitter's ` for /file` if most is for one file; else empty.
    target: String,
    /// The path of the database.
    pub database: Option<String>,
    /// The number of transactions found in its calls.
    pub transactions: Count,
    /// The sums of its calls, by role.
    pub asked: Vec<(String, Asked)>,
    /// The bytes that reached the device for it.
    pub device: Node,
    /// The same with its requests and flushes.
    pub totals: Totals,
}

/// The whole tree.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// The owners; the one with the most bytes comes first.
    pub owners: Vec<Owner>,
    /// The sums of all rows, or of those that pass the filter.
    pub total: Totals,
    /// True if a filter selects rows. The tree then has no calls and no transactions, because calls are not rows.
    pub is_filtered: bool,
}

const DEVICE: &str = "device";

/// Process, database, recording.
type Key = (Option<String>, Option<String>, String);
/// The number of a process, its database and its recording.
type Place = (Option<u64>, Option<String>, String);

impl Tree {
    /// Builds the tree of rows that were summed by [`GROUPINGS`]. If a filter left out rows, the calls are not theirs.
    pub fn of(
        [owners, leaves, files]: [Groups; GROUPINGS.len()],
        databases: &[Database],
        filesystem: &str,
        is_filtered: bool,
    ) -> Tree {
        let databases = if is_filtered { &[] } else { databases };
        let mut tree = Tree {
            owners: Vec::new(),
            total: owners.total,
            is_filtered,
        };
        let mut by: BTreeMap<Key, usize> = BTreeMap::new();
        let known = by_key(databases.iter().map(|database| (place(database), database)));
        for (labels, totals) in &owners.groups {
            by.insert(key(labels), tree.owners.len());
            let owner = Owner::new(labels, *totals, !databases.is_empty());
            tree.owners.push(owner.knowing(&known));
        }
        for (labels, totals) in leaves.groups.iter().filter(|(_, t)| t.write_bytes > 0) {
            let (owner, layer) = labels.split_at(OWNER.len());
            if let (Some(&at), Some(layer)) = (by.get(&key(owner)), Layer::of(layer)) {
                let path = [Some(layer.name(filesystem)), layer.part()];
                tree.owners[at]
                    .device
                    .add(path.into_iter().flatten(), totals.write_bytes);
            }
        }
        let files = by_key(files.groups.iter().filter_map(target::row));
        for owner in &mut tree.owners {
            owner.device.sort();
            owner.target = owner.target_in(&files);
        }
        // Requests without bytes, such as the device's own flushes, have no owner and get no line.
        tree.owners
            .retain(|owner| owner.process.is_some() || owner.wrote());
        // Nothing has reached the device yet for some databases.
        let owners = by_key(tree.owners.iter().map(|owner| (owner.place(), owner)));
        let is_silent = |database: &&Database| {
            let owners = owners.get(&place(database)).into_iter().flatten();
            !owners.into_iter().any(|owner| owner.is_of(database))
        };
        let silent: Vec<&Database> = databases.iter().filter(is_silent).collect();
        tree.owners.extend(silent.into_iter().map(Owner::silent));
        tree.owners.sort_by_key(|o| Reverse(o.device.bytes));
        tree
    }

    /// Returns how many owners have at least `percent` per cent of all bytes, or have committed transactions.
    pub fn notable(&self, percent: u64) -> usize {
        let least = u128::from(self.total.write_bytes).saturating_mul(percent.into());
        let is_notable = |owner: &&Owner| {
            let bytes = u128::from(owner.device.bytes) * 100;
            bytes > 0 && bytes >= least || owner.transactions.least > 0
        };
        // The largest owners come first.
        self.owners.iter().take_while(is_notable).count()
    }

    /// Returns the tree with the parts that are smaller than `percent` per cent of all bytes summed up beside their neighbours,
    /// for a terminal.
    #[must_use]
    pub fn folded(&self, percent: u64) -> Tree {
        let least = u128::from(self.total.write_bytes).saturating_mul(percent.into()) / 100;
        let mut tree = self.clone();
        for owner in &mut tree.owners {
            owner.device.fold(u64::try_from(least).unwrap_or(u64::MAX));
        }
        tree
    }

    /// Returns the bytes of all leaves: those that the device completed.
    pub fn leaves(&self) -> u64 {
        sum(self.owners.iter().map(|owner| owner.device.leaves()))
    }

    /// Returns a line for each node; all owners but the first `top` become one.
    pub fn lines(&self, top: usize) -> Vec<TreeLine> {
        let mut lines = Vec::new();
        let (shown, others) = self.owners.split_at(top.min(self.owners.len()));
        for owner in shown {
            owner.lines(owner.name(), &mut lines);
        }
        if !others.is_empty() {
            let name = format!("({} others)", others.len());
            Owner::together(others).lines(name, &mut lines);
        }
        lines
    }

    /// Returns the whole tree for programs. If a filter selects rows, everything about transactions is null.
    pub fn value(&self, payload: Option<&Payload>, transactions: &Transactions) -> Value {
        let transactions = (!self.is_filtered).then_some(transactions);
        let owners = self.owners.iter();
        json!({
            "payload": payload,
            "transactions": transactions.map(|t| t.count.least),
            "transactions_sure": transactions.map(|t| t.count.sure),
            "transactions_source": transactions.map(|t| t.source),
            "device_bytes": self.total.write_bytes,
            "flushes": self.total.flushes,
            "fua_writes": self.total.fua_writes,
            "owners": owners.map(|owner| owner.value(self.is_filtered)).collect::<Vec<_>>(),
        })
    }
}

/// Returns process, database and recording of a group of [`OWNER`].
fn key(labels: &[Label]) -> Key {
    let text = |at: usize| labels.get(at).and_then(Label::text);
    (text(1), text(2), text(3).unwrap_or_default())
}

/// A line of the tree for people.
#[derive(Debug, Default)]
pub struct TreeLine {
    /// Its name, behind the branches.
    pub what: String,
    /// Bytes that were passed to calls, or that reached the device.
    pub bytes: Option<u64>,
    /// The transactions of its owner.
    pub transactions: Count,
    /// Calls that wrote.
    pub calls: Option<u64>,
    /// Calls for durability.
    pub syncs: Option<u64>,
    /// Flushes that were asked for.
    pub flushes: Option<u64>,
    /// Writes with forced unit access.
    pub fua_writes: Option<u64>,
    /// True if it is an owner's first.
    pub is_owner: bool,
    /// True if it is about what reached the device.
    pub is_devices: bool,
}

/// Returns the place of a database's owner.
fn place(database: &Database) -> Place {
    let path = database.path.as_deref().map(escape);
    (
        Some(database.tgid.into()),
        path,
        database.bundle.as_ref().into(),
    )
}

/// Returns what there is of each key, in order: nothing is searched for once for each of the others.
fn by_key<K: Eq + Hash, V>(all: impl Iterator<Item = (K, V)>) -> HashMap<K, Vec<V>> {
    let mut lists: HashMap<K, Vec<V>> = HashMap::default();
    for (key, value) in all {
        lists.entry(key).or_default().push(value);
    }
    lists
}

impl Owner {
    fn new(labels: &[Label], totals: Totals, has_calls: bool) -> Owner {
        let (process, database, bundle) = key(labels);
        let tgid = match labels.first() {
            Some(Label::Id(tgid)) => Some(*tgid),
            _ => None,
        };
        let mut owner = Owner {
            tgid,
            bundle,
            process,
            database,
            totals,
            // Without calls, the number of transactions is unknown.
            transactions: Count::new(0, has_calls),
            ..Owner::default()
        };
        owner.device.name = DEVICE.into();
        owner
    }

    /// Takes what its own database tells.
    fn knowing(mut self, databases: &HashMap<Place, Vec<&Database>>) -> Owner {
        let mut known = databases.get(&self.place()).into_iter().flatten();
        if let Some(known) = known.find(|known| self.is_of(known)) {
            self.ask(known);
        }
        self
    }

    /// Makes an owner for whom nothing was written to the device.
    fn silent(database: &Database) -> Owner {
        let mut owner = Owner {
            tgid: Some(database.tgid.into()),
            bundle: database.bundle.as_ref().into(),
            process: Some(database.process()),
            database: database.path.as_deref().map(escape),
            ..Owner::default()
        };
        owner.device.name = DEVICE.into();
        owner.ask(database);
        owner
    }

    fn wrote(&self) -> bool {
        self.device.bytes > 0 || self.totals.flushes > 0 || self.totals.fua_writes > 0
    }

    /// Returns what a submitter wrote for; a cause's line names the database instead.
    fn target_in(&self, files: &HashMap<&str, Vec<Row<'_>>>) -> String {
        let process = self.process.as_deref();
        let process = process.filter(|name| name.ends_with(SUBMITTER));
        process.map_or(String::new(), |process| {
            let files = files.get(process).into_iter().flatten().copied();
            Targets::new(files).words(self.device.bytes)
        })
    }

    fn place(&self) -> Place {
        (self.tgid, self.database.clone(), self.bundle.clone())
    }

    /// Returns true if a database with the same place is this owner's.
    fn is_of(&self, database: &Database) -> bool {
        // With several recordings, the label has the recording's name behind it.
        let process = self.process.as_deref();
        process.is_some_and(|label| label.starts_with(&database.process()))
    }

    fn ask(&mut self, database: &Database) {
        let asked = database.asked.iter();
        self.asked = asked
            .map(|(role, asked)| (role.as_str().to_owned(), *asked))
            .collect();
        self.transactions = database.transactions();
    }

    /// Returns the name of the owner and of what it wrote.
    pub fn name(&self) -> String {
        match (&self.process, &self.database) {
            (Some(process), Some(database)) => format!("{process} {database}"),
            (Some(process), None) if process.ends_with(SUBMITTER) => {
                format!("{process}{}", self.target)
            }
            (Some(process), None) => format!("{process}, other files"),
            (None, Some(database)) => format!("nobody known, {database}"),
            (None, None) => "nobody known".into(),
        }
    }

    fn value(&self, is_filtered: bool) -> Value {
        let calls = |(role, asked): &(String, Asked)| json!({ "role": role, "calls": asked.writes, "bytes": asked.bytes, "syncs": asked.syncs });
        json!({
            "process": self.process,
            "database": self.database,
            "transactions": (!is_filtered).then_some(self.transactions.least),
            "transactions_sure": (!is_filtered).then_some(self.transactions.sure),
            "write_calls": self.asked.iter().map(calls).collect::<Vec<_>>(),
            "device": self.device.value(),
            "flushes": self.totals.flushes,
            "fua_writes": self.totals.fua_writes,
        })
    }

    /// Merges several owners into one, without their calls.
    fn together(owners: &[Owner]) -> Owner {
        let mut all = Owner::default();
        for owner in owners {
            all.device.name.clone_from(&owner.device.name);
            all.device.take_in(&owner.device);
            all.totals.tally(owner.totals);
        }
        all.device.sort();
        all
    }

    fn lines(&self, what: String, lines: &mut Vec<TreeLine>) {
        let transactions = self.transactions;
        lines.push(TreeLine {
            what,
            transactions,
            is_owner: true,
            ..TreeLine::default()
        });
        let asked = sum(self.asked.iter().map(|(_, asked)| *asked));
        let of_calls = |what: String, asked: &Asked| TreeLine {
            what,
            bytes: Some(asked.bytes),
            calls: Some(asked.writes),
            syncs: Some(asked.syncs),
            transactions,
            ..TreeLine::default()
        };
        if !self.asked.is_empty() {
            lines.push(of_calls("├─ write()".into(), &asked));
        }
        for (nth, (role, asked)) in (1..).zip(&self.asked) {
            let branch = if nth == self.asked.len() {
                "└─"
            } else {
                "├─"
            };
            lines.push(of_calls(format!("│  {branch} {role}"), asked));
        }
        lines.push(TreeLine {
            what: format!("└─ {}", self.device.name),
            bytes: Some(self.device.bytes),
            flushes: Some(self.totals.flushes),
            fua_writes: Some(self.totals.fua_writes),
            transactions,
            is_devices: true,
            ..TreeLine::default()
        });
        self.device.lines("   ", transactions, lines);
    }
}

impl Node {
    fn add(&mut self, mut path: impl Iterator<Item = String>, bytes: u64) {
        self.bytes.tally(bytes);
        if let Some(name) = path.next() {
            let at = self.parts.iter().position(|part| part.name == name);
            let at = at.unwrap_or_else(|| {
                let at = self.parts.len();
                self.parts.push(Node {
                    name,
                    ..Node::default()
                });
                at
            });
            self.parts[at].add(path, bytes);
        }
    }

    /// Merges another node of the same name, with its parts.
    fn take_in(&mut self, other: &Node) {
        self.bytes.tally(other.bytes);
        for part in &other.parts {
            match self.parts.iter_mut().find(|own| own.name == part.name) {
                Some(own) => own.take_in(part),
                None => self.parts.push(part.clone()),
            }
        }
    }

    /// Sums up the parts with fewer bytes than `least`, if there are several.
    fn fold(&mut self, least: u64) {
        self.parts.iter_mut().for_each(|part| part.fold(least));
        // The largest parts come first.
        let large = self.parts.partition_point(|part| part.bytes >= least);
        let small = self.parts.split_off(large);
        match small.len() {
            0 | 1 => self.parts.extend(small),
            many => self.parts.push(Node {
                name: format!("({many} smaller)"),
                bytes: sum(small.iter().map(|part| part.bytes)),
                parts: Vec::new(),
            }),
        }
    }

    fn sort(&mut self) {
        self.parts.iter_mut().for_each(Node::sort);
        self.parts.sort_by_key(|part| Reverse(part.bytes));
    }

    /// Returns the bytes of its leaves.
    pub fn leaves(&self) -> u64 {
        match &self.parts[..] {
            [] => self.bytes,
            parts => sum(parts.iter().map(Node::leaves)),
        }
    }

    fn value(&self) -> Value {
        let parts: Vec<Value> = self.parts.iter().map(Node::value).collect();
        json!({ "name": self.name, "bytes": self.bytes, "parts": parts })
    }

    fn lines(&self, before: &str, transactions: Count, lines: &mut Vec<TreeLine>) {
        for (nth, part) in (1..).zip(&self.parts) {
            let (here, below) = match nth == self.parts.len() {
                true => ("└─ ", "   "),
                false => ("├─ ", "│  "),
            };
            lines.push(TreeLine {
                what: format!("{before}{here}{}", part.name),
                bytes: Some(part.bytes),
                transactions,
                is_devices: true,
                ..TreeLine::default()
            });
            part.lines(&format!("{before}{below}"), transactions, lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wrote_little_is_not_shown_one_by_one() {
        let owner = |bytes: u64, transactions: u64| Owner {
            device: Node {
                bytes,
                ..Node::default()
            },
            transactions: Count::new(transactions, true),
            ..Owner::default()
        };
        let mut tree = Tree {
            owners: [(960, 0), (10, 0), (9, 3), (9, 0), (0, 0)]
                .map(|(bytes, transactions)| owner(bytes, transactions))
                .into(),
            ..Tree::default()
        };
        tree.total.write_bytes = 1000;
        assert_eq!((tree.notable(1), tree.notable(2)), (3, 1));
        let leaf = |name: &str, bytes| Node {
            name: name.into(),
            bytes,
            parts: Vec::new(),
        };
        tree.owners[0].device.parts = vec![leaf("a", 950), leaf("b", 7), leaf("c", 3)];
        let folded = tree.folded(1).owners[0].device.clone();
        assert_eq!(folded.parts, [leaf("a", 950), leaf("(2 smaller)", 10)]);
        // If nothing was written, nobody wrote a part of it.
        tree.total.write_bytes = 0;
        tree.owners = vec![owner(0, 0)];
        assert_eq!(tree.notable(1), 0);
    }

    #[test]
    fn several_owners_have_one_tree() {
        let owner = |path: [&str; 2], bytes| {
            let mut owner = Owner::default();
            owner.device.add(path.map(String::from).into_iter(), bytes);
            owner.totals.write_bytes = bytes;
            owner
        };
        let all = [
            owner(["data", "db"], 10),
            owner(["data", "wal"], 30),
            owner(["journal", "commit"], 50),
            owner(["data", "db"], 5),
        ];
        let together = Owner::together(&all);
        let parts = |node: &Node| {
            let part = |part: &Node| (part.name.clone(), part.bytes);
            node.parts.iter().map(part).collect::<Vec<_>>()
        };
        let of = |name: &str, bytes| (name.to_owned(), bytes);
        assert_eq!(parts(&together.device), [of("journal", 50), of("data", 45)]);
        assert_eq!(
            parts(&together.device.parts[1]),
            [of("wal", 30), of("db", 15)]
        );
        let sums = (together.device.bytes, together.totals.write_bytes);
        assert_eq!(sums, (95, 95));
    }

    #[test]
    fn nobody_known_has_a_line_only_for_what_was_written() {
        let text = |word: &str| match word {
            "" => Label::Empty,
            word => Label::Text(word.into()),
        };
        let wrote = |write_bytes, flushes, fua_writes| Totals {
            write_bytes,
            flushes,
            fua_writes,
            device_flushes: 1,
            ..Totals::default()
        };
        let groups = |rows: &[([&str; 4], Totals)], layer: &[&str]| Groups {
            groups: rows
                .iter()
                .map(|(owner, totals)| {
                    (
                        owner.iter().chain(layer).map(|word| text(word)).collect(),
                        *totals,
                    )
                })
                .collect(),
            ..Groups::default()
        };
        let rows = [
            (["", "", "/bytes", ""], wrote(1, 0, 0)),
            (["", "", "/flush", ""], wrote(0, 1, 0)),
            (["", "", "/fua", ""], wrote(0, 0, 1)),
            (["", "", "/nothing", ""], wrote(0, 0, 0)),
            (["", "", "", ""], wrote(0, 0, 0)),
            (["", "app:7", "", ""], wrote(0, 0, 0)),
        ];
        let layer = ["data", "regular", "db", ""];
        let sums = [groups(&rows, &[]), groups(&rows, &layer), Groups::default()];
        let tree = Tree::of(sums, &[], "ext4", false);
        let names: Vec<String> = tree.owners.iter().map(Owner::name).collect();
        let expected = [
            "nobody known, /bytes",
            "nobody known, /flush",
            "nobody known, /fua",
            "app:7, other files",
        ];
        assert_eq!(names, expected);
    }
}

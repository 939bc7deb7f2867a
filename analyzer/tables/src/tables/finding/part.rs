// SPDX-License-Identifier: MIT OR Apache-2.0
//! The layers that the bytes belong to, with [the contents](super::kind) of the filesystem's journal.

use std::cmp::Reverse;

use mostrace_map::stores::called;

use super::base::Base;
use super::kind::{Deed, Kind, Opened, of_kinds};
use super::subject::SQLITES;
use super::{LEAST, MOST, found, is_part, percent};
use crate::tables::layer::{self, Layer};
use crate::tables::{Groups, Label};
use mostrace_trace::tally::Tally;

/// The least share of a journal whose contents are reported, per cent.
const LEAST_OPENED: u64 = 10;

/// A layer and its bytes.
#[derive(Debug)]
struct Part {
    name: String,
    bytes: u64,
    /// The kinds of the journal's blocks; empty for other layers.
    kinds: Vec<Kind>,
}

/// All layers.
pub(super) struct Parts(Vec<Part>);

impl Parts {
    /// Takes the first of the finding's sums. Deeds are those of the base.
    pub fn new(groups: &Groups, base: Base, filesystem: &str) -> Parts {
        let layers = groups.groups.iter().filter_map(|(labels, totals)| {
            let (layer, cause) = labels.split_at(layer::COLUMNS.len());
            let layer = Layer::of(layer).filter(|_| totals.write_bytes > 0)?;
            let cause = if base.has(cause.last()) { cause } else { &[] };
            Some((layer, cause, totals.write_bytes))
        });
        let layers: Vec<(Layer, &[Label], u64)> = layers.collect();
        let has_stores = layers.iter().any(|(layer, ..)| is_stores(layer));
        let mut parts = Parts(Vec::new());
        for (layer, cause, bytes) in &layers {
            let name = match layer {
                // Files are `other files` only beside a store's files.
                Layer::File(role) if !has_stores && role != "unknown" => "file contents".into(),
                layer => layer.name(filesystem),
            };
            parts.add(name, layer, cause, *bytes);
        }
        parts.0.sort_by_key(|part| Reverse(part.bytes));
        parts
    }

    fn add(&mut self, name: String, layer: &Layer, cause: &[Label], bytes: u64) {
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
            let deed = Deed::of(word(0).as_deref(), word(1).as_deref());
            part.add(kind, home.as_deref(), deed, bytes);
        }
    }

    /// Returns the words for the largest layers and for the rest.
    pub fn words(&self, written: u64, opened: Opened) -> String {
        let is_named = |part: &&Part| is_part(part.bytes, written, LEAST);
        let named: Vec<&Part> = self.0.iter().filter(is_named).take(MOST).collect();
        let rest = written.saturating_sub(named.iter().map(|part| part.bytes).sum());
        let words = |part: &&Part| {
            let kinds = match is_part(part.bytes, written, LEAST_OPENED) {
                true => of_kinds(&part.kinds, opened),
                false => String::new(),
            };
            format!("{} % {}{kinds}", percent(part.bytes, written), part.name)
        };
        let mut words: Vec<String> = named.iter().map(words).collect();
        if is_part(rest, written, LEAST) {
            words.push(format!("{} % others", percent(rest, written)));
        }
        words.join(", ")
    }
}

impl Part {
    fn add(&mut self, kind: &str, home: Option<&str>, deed: Option<Deed>, bytes: u64) {
        let name = Kind::name(kind, home);
        let new = || Kind::new(name, home.is_some());
        found(&mut self.kinds, |known| known.is_called(name), new).add(deed, bytes);
    }
}

/// Returns true if the layer is a file of SQLite or another store.
fn is_stores(layer: &Layer) -> bool {
    let is_role = |role: &str| SQLITES.contains(&role) || called(role).is_some();
    matches!(layer, Layer::File(role) if is_role(role))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Totals;

    /// A row of the journal: kind, kind at home, role, operation, bytes.
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
            let deed = Deed::of(some(role).as_deref(), some(operation).as_deref());
            part.add(kind, home, deed, *bytes);
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
        // The directories are somebody else's; kinds beyond the third are not named.
        assert_eq!(
            parts.words(1698, Opened::Deeds),
            "50 % ext4's journal of inode tables and bitmaps that mostly the rollback journal's deletion and creation dirtied, \
             and of directories and others, 50 % others"
        );
    }

    /// In mode PERSIST, copies are the smallest part, and their deed is not that of the other blocks.
    #[test]
    fn blocks_that_are_no_copies_are_nobodys_deed() {
        let parts = journal(&[
            ("descriptor", "", JOURNAL, "time", 400),
            ("commit", "", JOURNAL, "time", 400),
            (COPY, "inode_table", JOURNAL, "time", 300),
            (COPY, "block_bitmap", "db", "allocate", 9),
        ]);
        assert_eq!(
            parts.words(1109, Opened::Deeds),
            "100 % ext4's journal of inode tables that the rollback journal's times dirtied, and of descriptors and \
             commit blocks"
        );
    }

    #[test]
    fn deeds_that_are_said_elsewhere_are_not_said() {
        let parts = journal(&[
            (COPY, "inode_table", "other", "rename", 60),
            (COPY, "directory", "other", "unlink", 40),
        ]);
        assert_eq!(
            parts.words(100, Opened::Kinds),
            "100 % ext4's journal of inode tables and directories"
        );
        assert_eq!(parts.words(100, Opened::No), "100 % ext4's journal");
    }

    #[test]
    fn nobody_is_named_who_has_not_most() {
        let parts = journal(&[
            (COPY, "inode_table", JOURNAL, "unlink", 49),
            (COPY, "inode_table", "db", "allocate", 40),
            (COPY, "inode_table", "", "", 11),
        ]);
        assert_eq!(
            parts.words(100, Opened::Deeds),
            "100 % ext4's journal of inode tables"
        );
        // A directory was changed by an unknown task.
        let parts = journal(&[(COPY, "directory", "", "create", 100)]);
        assert_eq!(
            parts.words(100, Opened::Deeds),
            "100 % ext4's journal of directories"
        );
    }

    #[test]
    fn files_that_are_not_sqlites_dirty_blocks_too() {
        let parts = journal(&[
            (COPY, "inode_table", "other", "create", 60),
            (COPY, "inode_table", "temp", "rename", 20),
            (COPY, "directory", "", "mkdir", 20),
        ]);
        assert_eq!(
            parts.words(100, Opened::Deeds),
            "100 % ext4's journal of inode tables that files' creation and renaming dirtied, and of directories"
        );
        let parts = journal(&[(COPY, "directory", "", "mkdir", 100)]);
        assert_eq!(
            parts.words(100, Opened::Deeds),
            "100 % ext4's journal of directories that directories' creation dirtied"
        );
    }

    #[test]
    fn kinds_that_are_not_named_are_others() {
        let parts = journal(&[
            (COPY, "inode_table", "db", "time", 40),
            (COPY, "directory", "db", "create", 30),
            ("commit", "", "", "", 19),
            ("descriptor", "", "", "", 11),
        ]);
        assert_eq!(
            parts.words(100, Opened::Deeds),
            "100 % ext4's journal of inode tables and directories that the database's times and creation dirtied, and of \
             commit blocks and others"
        );
        let parts = journal(&[("commit", "", "", "", 91), ("descriptor", "", "", "", 9)]);
        assert_eq!(
            parts.words(100, Opened::Deeds),
            "100 % ext4's journal of commit blocks"
        );
        // The contents of a small journal are not reported.
        assert_eq!(
            parts.words(1001, Opened::Deeds),
            "10 % ext4's journal, 90 % others"
        );
    }

    #[test]
    fn files_are_others_only_beside_sqlites() {
        let words = |roles: &[&str]| {
            let label = |word: &str| Some(word).filter(|w| !w.is_empty()).map(str::to_owned);
            let row = |role: &&str| {
                let labels = ["data", "regular", role, "", role, "write", "exact"].map(label);
                let labels = labels.map(|word| word.map_or(Label::Empty, Label::Text));
                let totals = Totals {
                    write_bytes: 50,
                    ..Totals::default()
                };
                (labels.to_vec(), totals)
            };
            let mut groups = Groups::default();
            groups.groups = roles.iter().map(row).collect();
            let parts = Parts::new(&groups, Base::Certain, "ext4");
            parts.words(50 * roles.len() as u64, Opened::Deeds)
        };
        assert_eq!(words(&["other", "temp"]), "100 % file contents");
        assert_eq!(
            words(&["other", "unknown"]),
            "50 % file contents, 50 % files without a known name"
        );
        assert_eq!(
            words(&["other", "db"]),
            "50 % other files, 50 % the database"
        );
        assert_eq!(
            words(&["other", "rocksdb_wal"]),
            "50 % other files, 50 % RocksDB's write-ahead log"
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Layers: readable names for what the written bytes are.

use mostrace_map::stores;

use super::Label;

/// The columns that determine the layer, in this order.
pub const COLUMNS: [&str; 4] = ["class", "kind", "role", "home_kind"];

/// A layer, with the kind of its blocks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// Contents of a regular file, by its role.
    File(String),
    /// Blocks of directories.
    Directories,
    /// Targets of symbolic links.
    Links,
    /// The filesystem's metadata, by kind.
    Metadata(String),
    /// The filesystem's journal: copies by the kind at their home, other blocks by their own kind.
    Journal {
        /// The kind of the block.
        kind: String,
        /// The kind of the block that it is a copy of.
        home: Option<String>,
    },
    /// Blocks of an unknown owner, by kind.
    Unknown(String),
}

impl Layer {
    /// Determines the layer from the labels of [`COLUMNS`]; None for rows without data.
    pub fn of(labels: &[Label]) -> Option<Layer> {
        let [class, kind, role, home] = [0, 1, 2, 3].map(|at| labels.get(at).and_then(Label::text));
        let kind = kind?;
        Some(match class?.as_str() {
            "data" if kind == "regular" => Layer::File(role.unwrap_or_else(|| "unknown".into())),
            "data" if kind == "symlink" => Layer::Links,
            "data" => Layer::Directories,
            "metadata" => Layer::Metadata(kind),
            "journal" => Layer::Journal { kind, home },
            _ => Layer::Unknown(kind),
        })
    }

    /// Returns the layer's name. `filesystem` is the kernel's name of the filesystem.
    pub fn name(&self, filesystem: &str) -> String {
        match self {
            Layer::File(role) => match role.as_str() {
                "db" => "the database".into(),
                "rollback_journal" => "SQLite's rollback journal".into(),
                "wal" => "SQLite's WAL".into(),
                "shm" => "SQLite's index of the WAL".into(),
                "super_journal" => "SQLite's super-journal".into(),
                "unknown" => "files without a known name".into(),
                role => stores::called(role).unwrap_or("other files").into(),
            },
            Layer::Directories => "directories".into(),
            Layer::Links => "symbolic links".into(),
            Layer::Metadata(_) => format!("{filesystem}'s metadata"),
            Layer::Journal { .. } => format!("{filesystem}'s journal"),
            Layer::Unknown(_) => "blocks of no known owner".into(),
        }
    }

    /// Returns the part of the layer that the blocks are; None if the name says all.
    pub fn part(&self) -> Option<String> {
        match self {
            Layer::File(_) | Layer::Directories | Layer::Links => None,
            Layer::Metadata(kind) | Layer::Unknown(kind) => Some(plural(kind).into()),
            Layer::Journal { kind, home } => match (kind.as_str(), home) {
                ("metadata_copy" | "data_copy", Some(home)) => {
                    Some(format!("copies of {}", plural(home)))
                }
                ("metadata_copy" | "data_copy", None) => Some("copies of unknown blocks".into()),
                (kind, _) => Some(plural(kind).into()),
            },
        }
    }
}

/// Returns the plural of a kind's name.
pub fn plural(kind: &str) -> &str {
    match kind {
        "superblock" => "the superblock",
        "jbd2_superblock" => "its superblock",
        "group_desc" => "group descriptors",
        "block_bitmap" => "block bitmaps",
        "inode_bitmap" => "inode bitmaps",
        "inode_table" => "inode tables",
        "extent_tree" => "extent trees",
        "xattr" => "extended attributes",
        "quota" => "quota files",
        "orphan_file" => "the orphan file",
        "descriptor" => "descriptors",
        "commit" => "commit blocks",
        "revoke" => "revoke blocks",
        "fast_commit" => "fast commits",
        "journal_block" => "blocks of the journal",
        "regular" => "files",
        "directory" => "directories",
        "symlink" => "symbolic links",
        "checkpoint" => "checkpoints",
        "sit" => "segment information",
        "nat" => "node addresses",
        "ssa" => "segment summaries",
        "fat" => "allocation tables",
        "fsinfo" => "free-space hints",
        "boot_record" => "boot records",
        "hot_node" => "nodes of directories",
        "warm_node" => "nodes of files",
        "fsync_node" => "nodes of synced files",
        "btree" => "trees",
        "cold_node" => "indirect nodes",
        "free" => "free blocks",
        "unmapped" => "unmapped blocks",
        other => other,
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words that a block is described with: class, kind, role, provenance.

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant,)+ }

        impl $name {
            /// Every value, in the order the tables print them.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The word used in tables and files.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

words! {
    /// The paper's three classes, and `unknown`, which is never guessed away.
    Class {
        /// What the filesystem keeps about files and free space.
        Metadata = "metadata",
        /// The filesystem's own journal.
        Journal = "journal",
        /// Contents of files, directories and long symlinks.
        Data = "data",
        /// No owner was found.
        Unknown = "unknown",
    }
}

words! {
    /// The sub-type below the class; the names are those of the on-disk structures.
    Kind {
        /// Primary or backup superblock.
        Superblock = "superblock",
        /// f2fs: checkpoint pack.
        Checkpoint = "checkpoint",
        /// f2fs: segment information table.
        Sit = "sit",
        /// f2fs: node address table.
        Nat = "nat",
        /// f2fs: segment summary area.
        Ssa = "ssa",
        /// f2fs: direct node of a directory.
        HotNode = "hot_node",
        /// f2fs: direct node of any other file.
        WarmNode = "warm_node",
        /// f2fs: a warm node that an fsync wrote, marked for roll-forward recovery.
        FsyncNode = "fsync_node",
        /// f2fs: indirect node.
        ColdNode = "cold_node",
        /// f2fs: node of which no more is known.
        Node = "node",
        /// FAT: boot record or its backup, and the other reserved sectors.
        BootRecord = "boot_record",
        /// FAT32: free-space hints.
        Fsinfo = "fsinfo",
        /// FAT: a copy of the file allocation table.
        Fat = "fat",
        /// Group descriptors, and the blocks reserved for their growth (the resize inode).
        GroupDesc = "group_desc",
        /// Block (or cluster) bitmap.
        BlockBitmap = "block_bitmap",
        /// Inode bitmap.
        InodeBitmap = "inode_bitmap",
        /// Inode table.
        InodeTable = "inode_table",
        /// Extent index and leaf blocks, or indirect blocks.
        ExtentTree = "extent_tree",
        /// External extended attribute block or attribute inode.
        Xattr = "xattr",
        /// Multi-mount protection.
        Mmp = "mmp",
        /// Quota file.
        Quota = "quota",
        /// Orphan file.
        OrphanFile = "orphan_file",
        /// jbd2 superblock.
        Jbd2Superblock = "jbd2_superblock",
        /// jbd2 descriptor block.
        Descriptor = "descriptor",
        /// Journalled copy of a metadata block.
        MetadataCopy = "metadata_copy",
        /// Journalled copy of a file's block (data=journal).
        DataCopy = "data_copy",
        /// jbd2 commit record.
        Commit = "commit",
        /// jbd2 revoke block.
        Revoke = "revoke",
        /// Block of the fast-commit area.
        FastCommit = "fast_commit",
        /// In the journal, but its contents at the time are not known.
        JournalBlock = "journal_block",
        /// Contents of a regular file.
        Regular = "regular",
        /// Directory entries.
        Directory = "directory",
        /// Target of a long symbolic link.
        Symlink = "symlink",
        /// Inside the filesystem, without an owner at the snapshot.
        Free = "free",
        /// Outside the filesystem, or not resolved.
        Unmapped = "unmapped",
    }
}

impl Kind {
    /// An f2fs node, hot, warm or cold.
    pub const fn is_node(self) -> bool {
        use Kind::*;
        matches!(self, HotNode | WarmNode | FsyncNode | ColdNode | Node)
    }

    /// The class this kind belongs to.
    pub const fn class(self) -> Class {
        use Kind::*;
        match self {
            Superblock | GroupDesc | BlockBitmap | InodeBitmap | InodeTable | ExtentTree
            | Xattr | Mmp | Quota | OrphanFile | Checkpoint | Sit | Nat | Ssa | HotNode
            | WarmNode | FsyncNode | ColdNode | Node | BootRecord | Fsinfo | Fat => Class::Metadata,
            Jbd2Superblock | Descriptor | MetadataCopy | DataCopy | Commit | Revoke
            | FastCommit | JournalBlock => Class::Journal,
            Regular | Directory | Symlink => Class::Data,
            Free | Unmapped => Class::Unknown,
        }
    }
}

words! {
    /// How a file name was found.
    Provenance {
        /// Seen by a probe while the block was on its way.
        Live = "live",
        /// From the filesystem's metadata as saved when the capture stopped.
        Snapshot = "snapshot",
        /// From the filesystem's layout: a block that belongs to no file.
        Layout = "layout",
        /// Not found.
        Unknown = "unknown",
    }
}

words! {
    /// What a regular file is to SQLite, from its name alone.
    Role {
        /// A database.
        Db = "db",
        /// `NAME-journal`.
        RollbackJournal = "rollback_journal",
        /// `NAME-wal`.
        Wal = "wal",
        /// `NAME-shm`.
        Shm = "shm",
        /// `NAME-mjXXXXXXXXX` (SQLite 3.x) or `NAME.db-mjX…`: the super-journal.
        SuperJournal = "super_journal",
        /// `NAME.bak`.
        Backup = "backup",
        /// `NAME.tmp`, `etilqs_…`.
        Temp = "temp",
        /// Any other regular file.
        Other = "other",
    }
}

impl Role {
    /// The role of a regular file with this name (last path component, raw bytes).
    ///
    /// Source: SQLite's "Temporary Files Used By SQLite" page, and Android's
    /// SharedPreferences for `.bak`.
    pub fn of_name(name: &[u8]) -> Role {
        let ends = |suffix: &str| name.ends_with(suffix.as_bytes());
        if ends("-journal") {
            Role::RollbackJournal
        } else if ends("-wal") {
            Role::Wal
        } else if ends("-shm") {
            Role::Shm
        } else if is_super_journal(name) {
            Role::SuperJournal
        } else if ends(".bak") {
            Role::Backup
        } else if ends(".tmp") || name.starts_with(b"etilqs_") {
            Role::Temp
        } else if ends(".db") || ends(".sqlite") || ends(".sqlite3") || ends(".db3") {
            Role::Db
        } else {
            Role::Other
        }
    }
}

/// `…-mj` followed by hexadecimal digits only, as `vdbeCommit` of SQLite names it.
fn is_super_journal(name: &[u8]) -> bool {
    name.windows(3)
        .rposition(|w| w == b"-mj")
        .map(|at| &name[at + 3..])
        .is_some_and(|tail| !tail.is_empty() && tail.iter().all(u8::is_ascii_hexdigit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_follow_the_name() {
        for (name, role) in [
            ("test.db", Role::Db),
            ("test.db-journal", Role::RollbackJournal),
            ("test.db-wal", Role::Wal),
            ("test.db-shm", Role::Shm),
            ("test.db-mj0A1B2C3D9", Role::SuperJournal),
            ("test.db-mjx", Role::Other),
            ("prefs.xml.bak", Role::Backup),
            ("x.tmp", Role::Temp),
            ("etilqs_abc", Role::Temp),
            ("photo.jpg", Role::Other),
            ("", Role::Other),
        ] {
            assert_eq!(Role::of_name(name.as_bytes()), role, "{name}");
        }
    }

    #[test]
    fn every_kind_has_a_class_and_a_distinct_word() {
        let words: std::collections::HashSet<_> = Kind::ALL.iter().map(|k| k.as_str()).collect();
        assert_eq!(words.len(), Kind::ALL.len());
    }
}

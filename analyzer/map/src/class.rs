// SPDX-License-Identifier: MIT OR Apache-2.0
//! The vocabulary that describes a block: class, kind, role and provenance.

use strum::{Display, IntoStaticStr, VariantArray};

use crate::stores::StoreFile;

/// The coarsest description of a block: metadata, journal or data, and `unknown` where no owner was found.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Display, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum Class {
    /// The filesystem's own records of files and free space.
    Metadata,
    /// The filesystem's own journal.
    Journal,
    /// Contents of files, directories and long symlinks.
    Data,
    /// No owner was found.
    Unknown,
}

impl Class {
    /// Every value, in the order in which tables print them.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the word used in tables and files.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The kind of a block within its class; the names are those of the on-disk structures.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Display, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    /// A superblock, primary or backup.
    Superblock,
    /// f2fs: checkpoint pack.
    Checkpoint,
    /// f2fs: segment information table.
    Sit,
    /// f2fs: node address table.
    Nat,
    /// f2fs: segment summary area.
    Ssa,
    /// f2fs: direct node of a directory.
    HotNode,
    /// f2fs: direct node of any other file.
    WarmNode,
    /// f2fs: a warm node that an fsync wrote, marked for roll-forward recovery.
    FsyncNode,
    /// f2fs: indirect node.
    ColdNode,
    /// f2fs: node about which no more is known.
    Node,
    /// btrfs: node or leaf of one of the trees.
    Btree,
    /// FAT: boot record or its backup, and the other reserved sectors.
    BootRecord,
    /// FAT32: free-space hints.
    Fsinfo,
    /// FAT: a copy of the file allocation table.
    Fat,
    /// Block group descriptors, and the blocks reserved for more of them.
    GroupDesc,
    /// Block (or cluster) bitmap.
    BlockBitmap,
    /// Inode bitmap.
    InodeBitmap,
    /// Inode table.
    InodeTable,
    /// Extent index and leaf blocks, or indirect blocks.
    ExtentTree,
    /// External extended attribute block or attribute inode.
    Xattr,
    /// Multi-mount protection.
    Mmp,
    /// Quota file.
    Quota,
    /// Orphan file.
    OrphanFile,
    /// jbd2 superblock.
    Jbd2Superblock,
    /// jbd2 descriptor block.
    Descriptor,
    /// Journalled copy of a metadata block.
    MetadataCopy,
    /// Journalled copy of a file's block (data=journal).
    DataCopy,
    /// jbd2 commit record.
    Commit,
    /// jbd2 revoke block.
    Revoke,
    /// Block of the fast-commit area.
    FastCommit,
    /// A block in the journal whose contents at that time are not known.
    JournalBlock,
    /// Contents of a regular file.
    Regular,
    /// Directory entries.
    Directory,
    /// Target of a long symbolic link.
    Symlink,
    /// A block inside the filesystem that had no owner when the snapshot was taken.
    Free,
    /// A block outside the filesystem, or one whose owner could not be resolved.
    Unmapped,
}

impl Kind {
    /// Every value, in the order in which tables print them.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the word used in tables and files.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns true for an f2fs node, hot, warm or cold.
    pub const fn is_node(self) -> bool {
        use Kind::*;
        matches!(self, HotNode | WarmNode | FsyncNode | ColdNode | Node)
    }

    /// Returns the class of this kind.
    pub const fn class(self) -> Class {
        use Kind::*;
        match self {
            Superblock | GroupDesc | BlockBitmap | InodeBitmap | InodeTable | ExtentTree
            | Xattr | Mmp | Quota | OrphanFile | Checkpoint | Sit | Nat | Ssa | HotNode
            | WarmNode | FsyncNode | ColdNode | Node | Btree | BootRecord | Fsinfo | Fat => {
                Class::Metadata
            }
            Jbd2Superblock | Descriptor | MetadataCopy | DataCopy | Commit | Revoke
            | FastCommit | JournalBlock => Class::Journal,
            Regular | Directory | Symlink => Class::Data,
            Free | Unmapped => Class::Unknown,
        }
    }
}

/// The way in which a file name was found.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Display, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum Provenance {
    /// A probe saw it while the block was on its way.
    Live,
    /// It comes from the filesystem's metadata, saved when the capture stopped.
    Snapshot,
    /// The block follows from the filesystem's layout and belongs to no file.
    Layout,
    /// It was not found.
    Unknown,
    /// It comes from the mounted tree before or after the capture.
    Tree,
    /// It comes from the snapshot, and the path holds encrypted names instead of the real ones.
    Encrypted,
}

impl Provenance {
    /// Every value, in the order in which tables print them.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the word used in tables and files.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The purpose of a regular file in SQLite or in another store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// An SQLite database.
    Db,
    /// `NAME-journal`.
    RollbackJournal,
    /// `NAME-wal`.
    Wal,
    /// `NAME-shm`.
    Shm,
    /// `NAME-mjXXXXXXXXX` (SQLite 3.x) or `NAME.db-mjX…`: the super-journal.
    SuperJournal,
    /// `NAME.bak`.
    Backup,
    /// `NAME.tmp`, `etilqs_…`.
    Temp,
    /// Any other regular file.
    Other,
    /// A file in the folder of a store other than SQLite.
    Store(StoreFile),
}

/// SQLite's roles and `other`, in the order in which tables print them.
const OWN: [(Role, &str); 8] = [
    (Role::Db, "db"),
    (Role::RollbackJournal, "rollback_journal"),
    (Role::Wal, "wal"),
    (Role::Shm, "shm"),
    (Role::SuperJournal, "super_journal"),
    (Role::Backup, "backup"),
    (Role::Temp, "temp"),
    (Role::Other, "other"),
];

impl Role {
    /// Returns every value, in the order in which tables print them.
    pub fn all() -> impl Iterator<Item = Role> {
        let own = OWN.iter().map(|(role, _)| *role);
        own.chain(StoreFile::all().map(Role::Store))
    }

    /// Returns the position among all values, counted from 0.
    pub fn number(self) -> usize {
        let own = OWN.iter().position(|(role, _)| *role == self);
        match (self, own) {
            (Role::Store(file), _) => file.number().saturating_add(OWN.len()),
            (_, own) => own.unwrap_or_default(),
        }
    }

    /// Returns the word used in tables and files.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Store(file) => file.as_str(),
            own => OWN.get(own.number()).map_or("other", |(_, word)| *word),
        }
    }

    /// Returns the role in SQLite of a regular file with this name (last path component, raw bytes).
    ///
    /// Source: SQLite's "Temporary Files Used By SQLite" page, and for `.bak` Android's SharedPreferences.
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

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// Returns true for `…-mj` followed by hexadecimal digits only, the form that SQLite's `vdbeCommit` uses.
fn is_super_journal(name: &[u8]) -> bool {
    name.windows(3)
        .rposition(|w| w == b"-mj")
        .and_then(|at| name.get(at.checked_add(3)?..))
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
    fn roles_are_numbered_as_they_are_listed() {
        let numbers: Vec<usize> = Role::all().map(Role::number).collect();
        assert_eq!(numbers, (0..numbers.len()).collect::<Vec<_>>());
        let words: std::collections::HashSet<_> = Role::all().map(Role::as_str).collect();
        assert_eq!(words.len(), numbers.len());
    }

    #[test]
    fn words_are_distinct_and_padded_like_text() {
        let words: std::collections::HashSet<_> = Kind::ALL.iter().map(|k| k.as_str()).collect();
        assert_eq!(words.len(), Kind::ALL.len());
        for (kind, word) in [
            (Kind::Jbd2Superblock, "jbd2_superblock"),
            (Kind::Fsinfo, "fsinfo"),
            (Kind::Mmp, "mmp"),
        ] {
            assert_eq!((kind.as_str(), kind.to_string()), (word, word.to_owned()));
        }
        assert_eq!(
            format!("{:>6}|{:<5}|", Class::Data, Role::Db),
            "  data|db   |"
        );
    }
}

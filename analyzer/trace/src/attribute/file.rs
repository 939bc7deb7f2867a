// SPDX-License-Identifier: MIT OR Apache-2.0
//! One file of a trace.

use mostrace_map::class::{Kind, Provenance, Role};

/// The number of a [`File`] in its list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

impl FileId {
    /// No file, or an unknown one.
    pub const NONE: FileId = FileId(0);
}

/// One file under one name. Unknown fields are None.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct File {
    /// Inode number.
    pub inode: Option<u64>,
    /// `i_generation`.
    pub generation: Option<u32>,
    /// The kind of its contents: regular, directory, symlink, or a file of the filesystem's own.
    pub kind: Kind,
    /// The path from the filesystem's root, with a leading `/`. A path without one is a bare file name; its directory is
    /// unknown. Raw bytes.
    pub path: Option<Box<[u8]>>,
    /// True if the file had a name that the user did not ask to record: a name of another time does not replace it.
    pub name_withheld: bool,
    /// The way in which the path was found.
    pub provenance: Provenance,
    /// The role of a regular file in SQLite or another store; None if it is not regular or has no name.
    pub role: Option<Role>,
    /// The path that the file has in the end; None if it is not known, and until the trace was read.
    pub final_path: Option<Box<[u8]>>,
}

impl File {
    pub(crate) const NONE: File = File {
        inode: None,
        generation: None,
        kind: Kind::Unmapped,
        path: None,
        name_withheld: false,
        provenance: Provenance::Unknown,
        role: None,
        final_path: None,
    };

    /// Returns a file of which nothing is known.
    #[cfg(test)]
    pub(crate) fn unknown() -> File {
        File::NONE
    }

    /// Returns the last component of the path.
    pub fn name(&self) -> Option<&[u8]> {
        self.path
            .as_deref()
            .and_then(|path| path.rsplit(|&b| b == b'/').next())
    }

    /// Returns the path that the file was renamed to, if it was.
    pub fn renamed_to(&self) -> Option<&[u8]> {
        let last = self.final_path.as_deref()?;
        (self.path.as_deref() != Some(last)).then_some(last)
    }

    /// Returns the path of an SQLite database: of the file itself if it is one, or of the database to which it belongs.
    pub fn database(&self) -> Option<&[u8]> {
        match (self.path.as_deref()?, self.role?) {
            (path, Role::Db) => Some(path),
            (path, _) => database_of(path),
        }
    }
}

/// Returns the path of the database that a temporary file of SQLite belongs to.
pub fn database_of(path: &[u8]) -> Option<&[u8]> {
    let cut = match Role::of_name(path) {
        Role::RollbackJournal => path.len().checked_sub("-journal".len()),
        Role::Wal | Role::Shm => path.len().checked_sub("-wal".len()),
        Role::SuperJournal => path.windows(3).rposition(|w| w == b"-mj"),
        _ => None,
    };
    path.get(..cut?)
        .filter(|base| !base.is_empty() && !base.ends_with(b"/"))
}

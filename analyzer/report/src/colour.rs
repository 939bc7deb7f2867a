// SPDX-License-Identifier: MIT OR Apache-2.0
//! The colours in which rows are drawn: by class, and for data by the file's role in SQLite.

use strum::{IntoStaticStr, VariantArray};

/// A colour of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
pub(super) enum Colour {
    /// Contents of a database.
    #[strum(serialize = "databases")]
    Database,
    /// Contents of a rollback journal, a WAL or another file that SQLite keeps beside its database.
    #[strum(serialize = "SQLite's journals")]
    Journal,
    /// Contents of files that are not SQLite's, and directories.
    #[strum(serialize = "file contents")]
    File,
    /// The filesystem's metadata at its home.
    #[strum(serialize = "filesystem metadata")]
    Metadata,
    /// The filesystem's journal.
    #[strum(serialize = "filesystem journal")]
    FilesystemJournal,
    /// Blocks of an unknown owner.
    #[strum(serialize = "unknown")]
    Unknown,
    /// A request without bytes: a flush; also anything else that is neither written nor read nor discarded.
    #[strum(serialize = "flushes")]
    Flush,
    /// Ranges that are discarded or zeroed.
    #[strum(serialize = "discards")]
    Discard,
}

impl Colour {
    /// All colours in the order of their numbers.
    pub const ALL: &[Colour] = Colour::VARIANTS;
    /// Returns the colour of bytes by their class and role.
    pub fn of_class(class: Option<&str>, role: Option<&str>) -> Colour {
        match (class, role) {
            (Some("data"), Some("db")) => Colour::Database,
            (Some("data"), Some("rollback_journal" | "wal" | "shm" | "super_journal")) => {
                Colour::Journal
            }
            (Some("data"), _) => Colour::File,
            (Some("metadata"), _) => Colour::Metadata,
            (Some("journal"), _) => Colour::FilesystemJournal,
            _ => Colour::Unknown,
        }
    }

    /// Returns the colour's name on the page.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

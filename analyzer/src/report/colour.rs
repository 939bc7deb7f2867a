// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a row is drawn as: its class, and of data what the file is to SQLite.

use strum::{IntoStaticStr, VariantArray};

/// One colour of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
pub(super) enum Colour {
    /// Contents of a database.
    #[strum(serialize = "databases")]
    Database,
    /// Contents of a rollback journal, WAL, or what else SQLite has beside its database.
    #[strum(serialize = "SQLite's journals")]
    Journal,
    /// Contents of other files, and directories.
    #[strum(serialize = "other files")]
    File,
    /// The filesystem's metadata at its home.
    #[strum(serialize = "filesystem metadata")]
    Metadata,
    /// The filesystem's journal.
    #[strum(serialize = "filesystem journal")]
    FilesystemJournal,
    /// No owner is known.
    #[strum(serialize = "unknown")]
    Unknown,
    /// No bytes: a flush. Also a discard, and what is neither written nor read.
    #[strum(serialize = "flushes")]
    Flush,
}

impl Colour {
    /// In the order of their numbers.
    pub const ALL: &[Colour] = Colour::VARIANTS;
    /// Those that have bytes.
    pub const WITH_BYTES: usize = Colour::Flush as usize;

    /// Of bytes.
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

    /// In the page's words.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

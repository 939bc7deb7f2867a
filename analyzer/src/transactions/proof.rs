// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether files are SQLite's: their names alone do not say so.

/// What the bytes of a database's files have said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Proof {
    /// One of them begins as SQLite's do.
    has: bool,
    /// One begins otherwise.
    lacks: bool,
}

impl Proof {
    /// A file's beginning was told.
    pub fn see(&mut self, is_sqlites: bool) {
        self.has |= is_sqlites;
        self.lacks |= !is_sqlites;
    }

    /// The files are SQLite's. An encrypted database has a journal that is told by its beginning all the same.
    pub fn is_given(self) -> bool {
        self.has
    }

    /// They are another program's.
    pub fn is_refuted(self) -> bool {
        self.lacks && !self.has
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Evidence whether files are SQLite's, which their names alone do not give.

/// The evidence from the beginnings of a database's files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Proof {
    /// True if one of them begins as SQLite's files do.
    has: bool,
    /// True if one begins otherwise.
    lacks: bool,
}

impl Proof {
    /// Notes a file's beginning.
    pub fn see(&mut self, is_sqlites: bool) {
        self.has |= is_sqlites;
        self.lacks |= !is_sqlites;
    }

    /// Returns true if the files are SQLite's. An encrypted database counts too, because the beginning of its journal is not
    /// encrypted.
    pub fn is_given(self) -> bool {
        self.has
    }

    /// Returns true if the files are another program's.
    pub fn is_refuted(self) -> bool {
        self.lacks && !self.has
    }
}

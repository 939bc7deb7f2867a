// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ways in which a transaction is committed, and the counts of each.

use super::act::{Act, Who};
use crate::tally::{Tally, sum};

/// The way in which a transaction was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The rollback journal was deleted.
    Deleted,
    /// The rollback journal was truncated to 0 bytes.
    Truncated,
    /// The rollback journal's header was zeroed.
    Zeroed,
    /// The transaction's last frame was written to the WAL.
    Wal,
    /// The database was written atomically by f2fs.
    Atomic,
    /// The database was written without a journal, and its change counter was incremented.
    Unjournalled,
}

/// A committed transaction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Commit {
    pub way: Way,
    pub who: Who,
    /// Inode and generation of the file of the call that committed it.
    pub file: (u64, u32),
    pub start_ns: u64,
    pub end_ns: u64,
}

impl Commit {
    pub fn of(way: Way, act: &Act) -> Commit {
        Commit {
            way,
            who: act.who,
            file: act.file,
            start_ns: act.start_ns,
            end_ns: act.end_ns,
        }
    }
}

/// The commits of one process in one database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Commits {
    /// The rollback journal was deleted.
    pub deleted: u64,
    /// The rollback journal was truncated to 0 bytes.
    pub truncated: u64,
    /// The rollback journal's header was zeroed.
    pub zeroed: u64,
    /// A transaction's last frame was written to the WAL.
    pub wal: u64,
    /// The database was written atomically by f2fs.
    pub atomic: u64,
    /// The database was written without a journal, and its change counter was incremented.
    pub unjournalled: u64,
    /// Number of these commits that belong to a transaction counted with another database.
    pub united: u64,
    /// Number of these commits that may belong to such a transaction.
    pub perhaps_united: u64,
}

impl Commits {
    /// Returns the number of transactions in this database.
    pub fn transactions(&self) -> u64 {
        let journalled = [self.deleted, self.truncated, self.zeroed];
        let others = [self.wal, self.atomic, self.unjournalled];
        sum(journalled.into_iter().chain(others))
    }

    pub(super) fn add(&mut self, way: Way) {
        let commits = match way {
            Way::Deleted => &mut self.deleted,
            Way::Truncated => &mut self.truncated,
            Way::Zeroed => &mut self.zeroed,
            Way::Wal => &mut self.wal,
            Way::Atomic => &mut self.atomic,
            Way::Unjournalled => &mut self.unjournalled,
        };
        commits.tally(1);
    }
}

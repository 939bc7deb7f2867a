// SPDX-License-Identifier: MIT OR Apache-2.0
//! The ways in which a transaction is committed, and how many were.

use super::act::{Act, Who};
use crate::tally::{Tally, sum};

/// How a transaction was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// The rollback journal was deleted.
    Deleted,
    /// It was cut to nothing.
    Truncated,
    /// Its header was zeroed.
    Zeroed,
    /// Its last frame was written to the WAL.
    Wal,
    /// The database was written at once, by f2fs's atomic writes.
    Atomic,
    /// The database was written without a journal, and counted it.
    Unjournalled,
}

/// A transaction that was committed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Commit {
    pub way: Way,
    pub who: Who,
    /// Of the call that committed it.
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

/// What was counted of one database in one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Commits {
    /// The rollback journal was deleted.
    pub deleted: u64,
    /// It was cut to nothing.
    pub truncated: u64,
    /// Its header was zeroed.
    pub zeroed: u64,
    /// A transaction's last frame was written to the WAL.
    pub wal: u64,
    /// The database was written at once, by f2fs's atomic writes.
    pub atomic: u64,
    /// The database was written without a journal, and counted it.
    pub unjournalled: u64,
    /// Of all these, those that are parts of a transaction which is counted with another database.
    pub united: u64,
    /// Those that may be such parts.
    pub perhaps_united: u64,
}

impl Commits {
    /// Transactions in this database.
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

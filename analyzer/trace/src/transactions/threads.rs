// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transactions of several databases, in each of which one thread ends its part, one after the other.
//!
//! With rollback journals, all databases are written before the first journal ends; a super-journal that was deleted before
//! that proves that it is one transaction. For WALs and without journals, one transaction of two databases looks like two
//! transactions in succession, unless the thread did something in between.

use super::commits::{Commit, Way};
use crate::attribute::HashSet;

/// The relation of a commit to a transaction that is counted with another database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tie {
    /// The commit is a transaction of its own.
    Alone,
    /// The commit is part of a transaction that was already counted.
    Part,
    /// The commit may be part of such a transaction.
    Perhaps,
}

/// The open journals and recent commits of a thread, by the numbers of databases.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// True if a super-journal was deleted.
    has_super: bool,
    /// The journals that end together with one that has ended; `tie` says how certain that is.
    ending: HashSet<usize>,
    tie: Option<Tie>,
    /// Databases of the commits right before.
    before: HashSet<usize>,
}

impl Thread {
    /// Notes that a super-journal was deleted: the transaction that it lists is committed.
    pub fn super_journal(&mut self) {
        self.has_super = true;
    }

    /// Notes that a journal was begun: it belongs to another transaction than those that are ending.
    pub fn begin(&mut self, database: usize) {
        self.has_super = false;
        self.ending.remove(&database);
        self.turn();
    }

    /// Notes a call that does not occur within the commit of one transaction in several databases.
    pub fn turn(&mut self) {
        self.before.clear();
    }

    /// Classifies a commit in a database. `writing` are other databases that this thread has written in open transactions;
    /// `open` are others whose journals it has begun.
    pub fn tie(
        &mut self,
        database: usize,
        commit: &Commit,
        writing: impl Iterator<Item = usize>,
        open: impl Iterator<Item = usize>,
    ) -> Tie {
        let ended = self.ending.remove(&database).then_some(self.tie).flatten();
        match (commit.way, ended) {
            (_, Some(tie)) => tie,
            (Way::Deleted | Way::Truncated | Way::Zeroed, None) => {
                let is_sure = std::mem::take(&mut self.has_super);
                self.tie = Some(if is_sure { Tie::Part } else { Tie::Perhaps });
                self.ending = writing.collect();
                self.before.clear();
                Tie::Alone
            }
            (Way::Wal | Way::Unjournalled | Way::Atomic, None) => {
                self.tie = Some(Tie::Perhaps);
                self.ending = open.collect();
                self.follow(database)
            }
        }
    }

    /// Classifies a commit that follows others directly.
    fn follow(&mut self, database: usize) -> Tie {
        if self.before.is_empty() || self.before.contains(&database) {
            self.before = HashSet::from_iter([database]);
            return Tie::Alone;
        }
        self.before.insert(database);
        Tie::Perhaps
    }
}

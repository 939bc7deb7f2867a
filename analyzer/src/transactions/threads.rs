// SPDX-License-Identifier: MIT OR Apache-2.0
//! One transaction of several databases: a thread ends what it has begun in each of them, one after the other.
//!
//! With rollback journals all databases are written before the first journal ends; and a super-journal that was deleted ahead of
//! that says that it is one transaction. Of WALs, and without journals, nothing tells one transaction of two databases from two
//! that follow one another, unless the thread did something in between.

use super::commits::{Commit, Way};
use crate::attribute::HashSet;

/// Whether a commit is counted with another database's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tie {
    /// It is a transaction of its own.
    Alone,
    /// It is a part of one that is counted already.
    Part,
    /// It may be.
    Perhaps,
}

/// What a thread has under way, by the numbers of databases.
#[derive(Debug, Default)]
pub(super) struct Thread {
    /// A super-journal was deleted.
    has_super: bool,
    /// The journals that end together with one that has ended, and how sure that is.
    ending: HashSet<usize>,
    tie: Option<Tie>,
    /// Those that were committed right before.
    before: HashSet<usize>,
}

impl Thread {
    /// A super-journal is deleted: what it names is committed.
    pub fn super_journal(&mut self) {
        self.has_super = true;
    }

    /// A journal is begun: it is another transaction's than those that are ending.
    pub fn begin(&mut self, database: usize) {
        self.has_super = false;
        self.ending.remove(&database);
        self.turn();
    }

    /// The thread does what no commit does that goes on in another database.
    pub fn turn(&mut self) {
        self.before.clear();
    }

    /// A commit in a database. `writing`: others that this thread has written in transactions of their journals; `open`:
    /// others of which it has begun the journals.
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

    /// Behind those that were committed right before.
    fn follow(&mut self, database: usize) -> Tie {
        if self.before.is_empty() || self.before.contains(&database) {
            self.before = HashSet::from_iter([database]);
            return Tie::Alone;
        }
        self.before.insert(database);
        Tie::Perhaps
    }
}

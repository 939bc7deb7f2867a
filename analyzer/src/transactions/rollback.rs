// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transactions with a rollback journal, and without any.
//!
//! The journal's pages are written, then the database, and the journal is deleted, cut to nothing, or its header zeroed: that is
//! the commit. (<https://www.sqlite.org/fileformat2.html>, 3) It is as well the end of what was rolled back. Mostly the database was
//! not written then. Where it was, as the cache was too small, it is written back: a page is written twice, or the file is
//! cut. The change counter in the first page tells the two apart, as it is raised by a commit alone; not in the exclusive locking
//! mode, where the first commit alone raises it.
//!
//! Without a journal (journal_mode MEMORY and OFF) a raised counter is all that shows.

use mostrace_bundle::entry::CallKind;

use super::Outcome;
use super::act::{Act, Told, Who};
use super::commits::{Commit, Way};
use super::proof::Proof;
use crate::attribute::HashSet;

/// What was seen of a transaction that is under way.
#[derive(Debug, Default)]
struct Open {
    who: Who,
    /// Inode and generation of the journal.
    file: (u64, u32),
    /// The database's change counter before it.
    counter: Option<u32>,
    /// Where the database was written.
    places: HashSet<u64>,
    /// It was written back, perhaps: a page was written twice, the file was cut, or journalling went on behind it.
    is_suspect: bool,
    first_page: FirstPage,
}

/// The database's first page in a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FirstPage {
    #[default]
    Unwritten,
    /// What was written is not told.
    Untold,
    /// Its counter when it was written first, and last.
    Counts { first: u32, last: u32 },
}

/// How a journal's end is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Committed,
    RolledBack,
    Unknown,
}

/// One database's.
#[derive(Debug, Default)]
pub(super) struct Rollback {
    open: Option<Open>,
    /// The change counter as it was seen last.
    counter: Option<u32>,
    /// How the last journal ended.
    ended: Option<Way>,
    /// Anything was done to the journal or the database.
    is_seen: bool,
    /// By its first page, as it was seen last.
    has_wal: Option<bool>,
    /// f2fs's atomic writes: one is under way, and has written anything.
    atomic: Option<bool>,
    /// The thread that copies the whole file.
    copier: Option<u32>,
}

impl Rollback {
    /// Whether this thread has begun to write the database in a transaction that is under way.
    pub fn is_writing(&self, pid: u32) -> bool {
        self.is_open(pid)
            && self
                .open
                .as_ref()
                .is_some_and(|open| !open.places.is_empty())
    }

    /// Whether a transaction of this thread is under way.
    pub fn is_open(&self, pid: u32) -> bool {
        self.open.as_ref().is_some_and(|open| open.who.pid == pid)
    }

    pub fn journal(&mut self, act: &Act, proof: &mut Proof, outcome: &mut Outcome) {
        match act.kind {
            CallKind::Write if act.is_zeroing() => self.end(Way::Zeroed, act, outcome),
            CallKind::Write => self.journalled(act, proof, outcome),
            CallKind::Unlink => self.end(Way::Deleted, act, outcome),
            CallKind::Truncate if act.offset == 0 => self.end(Way::Truncated, act, outcome),
            _ => {}
        }
        self.is_seen = true;
    }

    fn journalled(&mut self, act: &Act, proof: &mut Proof, outcome: &mut Outcome) {
        if act.told.is_journal() {
            proof.see(true);
        } else if act.offset == 0 && !act.told.is_zero() && act.told != Told::Nothing {
            proof.see(false);
        }
        self.end_unseen(act, outcome);
        let counter = self.counter;
        let open = self.open.get_or_insert_with(|| Open {
            who: act.who,
            file: act.file,
            counter,
            ..Open::default()
        });
        open.is_suspect |= !open.places.is_empty();
    }

    /// Another journal is written: that of before has ended, and the call that ended it was not recorded.
    fn end_unseen(&mut self, act: &Act, outcome: &mut Outcome) {
        let is_before = |open: &mut Open| (open.who.tgid, open.file) != (act.who.tgid, act.file);
        let Some(open) = self.open.take_if(is_before) else {
            return;
        };
        let end = Act {
            who: open.who,
            ..*act
        };
        if self.judge(&open, Way::Deleted, &end) == End::Committed {
            outcome.commits.push(Commit::of(Way::Deleted, &end));
        }
        outcome.doubt = true;
    }

    /// The journal is void.
    fn end(&mut self, way: Way, act: &Act, outcome: &mut Outcome) {
        let Some(open) = self.open.take() else {
            // It began ahead of the recording, or was left over.
            outcome.doubt = !self.is_seen;
            return;
        };
        match self.judge(&open, way, act) {
            End::Committed => outcome.commits.push(Commit::of(way, act)),
            End::RolledBack => {}
            End::Unknown => outcome.doubt = true,
        }
        self.ended = Some(way);
    }

    fn judge(&self, open: &Open, way: Way, act: &Act) -> End {
        // Whoever finds another's journal rolls back; who has not written the database has nothing to commit.
        if open.places.is_empty() || open.who.tgid != act.who.tgid {
            return End::RolledBack;
        }
        let deletes = way == Way::Deleted && self.ended.is_none_or(|ended| ended == way);
        match open.first_page {
            FirstPage::Counts { first, last } => {
                let before = open.counter.unwrap_or(first);
                match (before != last, open.is_suspect) {
                    (true, _) => End::Committed,
                    (false, false) if open.counter.is_none() || !deletes => End::Committed,
                    // A deleted journal is none of the exclusive locking mode's.
                    (false, true) if open.counter.is_some() && deletes => End::RolledBack,
                    _ => End::Unknown,
                }
            }
            FirstPage::Unwritten if self.counter.is_some() && deletes => End::RolledBack,
            _ if open.is_suspect => End::Unknown,
            _ => End::Committed,
        }
    }

    /// `has_wal`: one was seen, into which transactions go.
    pub fn database(&mut self, act: &Act, has_wal: bool, proof: &mut Proof, outcome: &mut Outcome) {
        match act.kind {
            CallKind::Write if act.bytes > 0 => self.written(act, has_wal, proof, outcome),
            CallKind::Truncate => {
                // Of a mapped database the file is made longer ahead of its pages.
                if let Some(open) = &mut self.open {
                    open.is_suspect |= open.places.iter().any(|&at| at >= act.offset);
                }
            }
            CallKind::AtomicStart => self.atomic = Some(false),
            CallKind::AtomicCommit => {
                let commit = self.atomic.take().unwrap_or(false);
                outcome
                    .commits
                    .extend(commit.then(|| Commit::of(Way::Atomic, act)));
            }
            CallKind::AtomicAbort => self.atomic = None,
            _ => {}
        }
        self.is_seen = true;
    }

    fn written(&mut self, act: &Act, has_wal: bool, proof: &mut Proof, outcome: &mut Outcome) {
        match act.told {
            Told::FirstPage { .. } => proof.see(true),
            Told::First(_) if act.offset == 0 => proof.see(false),
            _ => {}
        }
        let before = self.counter;
        self.see_first_page(act);
        if let Some(is_written) = &mut self.atomic {
            *is_written = true;
        } else if let Some(open) = &mut self.open {
            open.is_suspect |= !open.places.insert(act.offset);
            open.see_first_page(act);
        } else if self.copier != Some(act.who.pid) {
            self.unjournalled(act, before, has_wal, outcome);
        }
    }

    fn see_first_page(&mut self, act: &Act) {
        if act.offset != 0 {
            return;
        }
        let first_page = act.first_page();
        let is_copy = matches!(act.told, Told::FirstPage { .. }) && first_page.is_none();
        self.copier = is_copy.then_some(act.who.pid);
        self.counter = first_page.map(|(counter, _)| counter);
        self.has_wal = first_page.map(|(_, has_wal)| has_wal).or(self.has_wal);
    }

    /// The database was written while there was no journal. With a WAL that is a checkpoint; else a commit, of which the
    /// counter tells only some, or a part of one.
    fn unjournalled(
        &mut self,
        act: &Act,
        before: Option<u32>,
        has_wal: bool,
        outcome: &mut Outcome,
    ) {
        if self.has_wal.unwrap_or(has_wal) {
            return;
        }
        outcome.doubt = true;
        if let Some((counter, _)) = act.first_page()
            && before.is_some_and(|before| before.wrapping_add(1) == counter)
        {
            outcome.commits.push(Commit::of(Way::Unjournalled, act));
        }
    }
}

impl Open {
    fn see_first_page(&mut self, act: &Act) {
        if act.offset != 0 {
            return;
        }
        self.first_page = match (act.first_page(), self.first_page) {
            (None, _) | (_, FirstPage::Untold) => FirstPage::Untold,
            (Some((counter, _)), FirstPage::Unwritten) => FirstPage::Counts {
                first: counter,
                last: counter,
            },
            (Some((last, _)), FirstPage::Counts { first, .. }) => FirstPage::Counts { first, last },
        };
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transactions with a rollback journal, and without any journal.
//!
//! SQLite writes pages to the journal, then to the database, and then deletes the journal, truncates it to 0 bytes or zeroes
//! its header: that is the commit. (<https://www.sqlite.org/fileformat2.html>, 3) A rollback ends the journal in the same
//! way. Usually the database was not written then. If it was, because the cache was too small, the old pages are written
//! back: a page is written twice, or the file is truncated. The change counter in the first page distinguishes the two,
//! because only a commit increments it; in the exclusive locking mode, however, only the first commit does.
//!
//! Without a journal (journal_mode MEMORY and OFF), an incremented counter is the only sign.

use mostrace_bundle::entry::CallKind;

use super::Outcome;
use super::act::{Act, Content, Who};
use super::commits::{Commit, Way};
use super::proof::Proof;
use crate::attribute::HashSet;

/// The calls so far of an open transaction.
#[derive(Debug, Default)]
struct Open {
    who: Who,
    /// Inode and generation of the journal.
    file: (u64, u32),
    /// The database's change counter before the transaction.
    counter: Option<u32>,
    /// Offsets at which the database was written.
    places: HashSet<u64>,
    /// True if it may have been rolled back: a page was written twice, the file was truncated, or the journal was written
    /// again.
    is_suspect: bool,
    first_page: FirstPage,
}

/// The transaction's writes to the database's first page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum FirstPage {
    #[default]
    Unwritten,
    /// The page was written, but the trace does not have its bytes.
    Unknown,
    /// The change counter in the first and in the last write of the page.
    Counts { first: u32, last: u32 },
}

/// The meaning of a journal's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Committed,
    RolledBack,
    Unknown,
}

/// The state of one database.
#[derive(Debug, Default)]
pub(super) struct Rollback {
    open: Option<Open>,
    /// The change counter when it was last seen.
    counter: Option<u32>,
    /// The way in which the last journal ended.
    ended: Option<Way>,
    /// True if the journal or the database was used at all.
    is_seen: bool,
    /// WAL mode, by the first page when it was last seen.
    has_wal: Option<bool>,
    /// Some during an f2fs atomic write; true if it has written anything.
    atomic: Option<bool>,
    /// The thread that copies the whole file.
    copier: Option<u32>,
}

impl Rollback {
    /// Returns true if this thread has begun to write the database in an open transaction.
    pub fn is_writing(&self, pid: u32) -> bool {
        self.is_open(pid)
            && self
                .open
                .as_ref()
                .is_some_and(|open| !open.places.is_empty())
    }

    /// Returns true if this thread has an open transaction.
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
        if act.content.is_journal() {
            proof.see(true);
        } else if act.offset == 0 && !act.content.is_zero() && act.content != Content::Nothing {
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

    /// Handles the start of another journal: the previous one has ended in a call that was not recorded.
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

    /// Handles the end of a journal.
    fn end(&mut self, way: Way, act: &Act, outcome: &mut Outcome) {
        let Some(open) = self.open.take() else {
            // The journal began before the recording, or was left over.
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
        // A process that finds another's journal rolls back; one that has not written the database has nothing to commit.
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
                    // In the exclusive locking mode, journals are not deleted.
                    (false, true) if open.counter.is_some() && deletes => End::RolledBack,
                    _ => End::Unknown,
                }
            }
            FirstPage::Unwritten if self.counter.is_some() && deletes => End::RolledBack,
            _ if open.is_suspect => End::Unknown,
            _ => End::Committed,
        }
    }

    /// Handles a call on the database file. `has_wal` is true if a WAL was seen, which then takes the transactions.
    pub fn database(&mut self, act: &Act, has_wal: bool, proof: &mut Proof, outcome: &mut Outcome) {
        match act.kind {
            CallKind::Write if act.bytes > 0 => self.written(act, has_wal, proof, outcome),
            CallKind::Truncate => {
                // For a mapped database, the file is extended before its pages are written.
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
        match act.content {
            Content::FirstPage { .. } => proof.see(true),
            Content::First(_) if act.offset == 0 => proof.see(false),
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
        let is_copy = matches!(act.content, Content::FirstPage { .. }) && first_page.is_none();
        self.copier = is_copy.then_some(act.who.pid);
        self.counter = first_page.map(|(counter, _)| counter);
        self.has_wal = first_page.map(|(_, has_wal)| has_wal).or(self.has_wal);
    }

    /// Handles a write to the database without an open journal. In WAL mode it is a checkpoint, otherwise a commit or a part
    /// of one; the counter reveals only some of these.
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
            (None, _) | (_, FirstPage::Unknown) => FirstPage::Unknown,
            (Some((counter, _)), FirstPage::Unwritten) => FirstPage::Counts {
                first: counter,
                last: counter,
            },
            (Some((last, _)), FirstPage::Counts { first, .. }) => FirstPage::Counts { first, last },
        };
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commits of jbd2: when each was written, and who took part in its transaction.

use std::collections::{BTreeMap, HashMap, HashSet};

use mostrace_bundle::entry::RawHandle;

use super::ask::Ask;
use super::latest::{Ends, Latest};
use super::span::{Span, What};
use crate::facts::{NONE, NONE_32};

/// The most commits that are kept, and the most open transactions of a journal. Handles are read 20 ms ahead, in which jbd2 can commit
/// some 400 times.
const KEPT: usize = 1 << 14;
/// The most rows among which the first one of a commit is looked for.
const BEFORE: usize = 1 << 12;

/// A commit whose record was written; times are in ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Commit {
    pub tid: u32,
    /// The thread that wrote it.
    pub pid: u32,
    /// The first Q of what that thread wrote for it.
    pub begin: u64,
    /// The time when its record was durable.
    pub end: u64,
    /// Its record.
    pub record: Span,
}

/// The tasks that had a handle in a transaction.
#[derive(Default)]
struct Members {
    /// Device number of the filesystem, major << 20 | minor.
    s_dev: u32,
    inodes: HashSet<(u64, u32)>,
    tgids: HashSet<u32>,
}

/// A commit and who took part in its transaction.
struct Done {
    commit: Commit,
    /// None if it is not known, or if another filesystem on the disk had an open transaction of the same number.
    members: Option<Members>,
}

impl Ends for Done {
    fn end_ns(&self) -> u64 {
        self.commit.end
    }
}

/// The transactions of one journal that are not committed.
#[derive(Default)]
struct Journal {
    open: BTreeMap<u32, Members>,
    /// The last one that was forgotten.
    forgotten: Option<u32>,
}

/// The latest commits.
pub(super) struct Commits {
    done: Latest<Done>,
    /// The transaction that each journal's thread is writing, and when it began, ns.
    running: HashMap<u32, (u32, u64)>,
    /// The journals, by the device numbers of their filesystems.
    journals: BTreeMap<u32, Journal>,
}

impl Default for Commits {
    fn default() -> Self {
        Commits {
            done: Latest::new(KEPT),
            running: HashMap::new(),
            journals: BTreeMap::new(),
        }
    }
}

impl Commits {
    /// Notes a handle's part in its transaction.
    pub fn handle(&mut self, raw: &RawHandle) {
        let s_dev = raw.s_dev.get();
        let journal = self.journals.entry(s_dev).or_default();
        let members = journal.open.entry(raw.tid.get()).or_default();
        members.s_dev = s_dev;
        members.inodes.insert((raw.ino.get(), raw.generation.get()));
        members.tgids.insert(raw.tgid.get());
        if journal.open.len() > KEPT {
            let oldest = journal.open.pop_first();
            journal.forgotten = journal.forgotten.max(oldest.map(|(tid, _)| tid));
        }
    }

    /// Notes a completed row; `before` are those that were completed earlier.
    pub fn see(&mut self, span: &Span, before: &Latest<Span>) {
        match span.what {
            What::Journal | What::CommitRecord if span.tid != NONE_32 => {
                let begin = match self.running.get(&span.pid) {
                    Some(&(tid, begin)) if tid == span.tid => begin,
                    _ => self.first_queued(span, before),
                };
                let begin = begin.min(span.queued);
                self.running.insert(span.pid, (span.tid, begin));
                if span.what == What::CommitRecord {
                    self.end(Commit {
                        tid: span.tid,
                        pid: span.pid,
                        begin,
                        end: span.completed,
                        record: *span,
                    });
                }
            }
            // The record's flush sequence ends.
            What::Flush => {
                let mut latest = self.done.iter_mut().rev().take(BEFORE);
                if let Some(done) = latest.find(|done| span.ends(&done.commit.record)) {
                    done.commit.end = span.completed;
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, commit: Commit) {
        let tid = commit.tid;
        let was_forgotten = |journal: &Journal| journal.forgotten.is_some_and(|last| tid <= last);
        if self.journals.values().any(was_forgotten) {
            self.done.forget(commit.end);
        }
        let journals = self.journals.values_mut();
        let mut with_it = journals.filter(|journal| journal.open.contains_key(&tid));
        let members = match (with_it.next(), with_it.next()) {
            (Some(journal), None) => journal.commit(tid),
            _ => None,
        };
        self.done.push(Done { commit, members });
    }

    /// Returns when the journal's thread queued what it wrote first for the transaction of this row: contents that must be on the
    /// disk ahead of the commit are not marked as the journal's.
    fn first_queued(&self, span: &Span, before: &Latest<Span>) -> u64 {
        let mut earlier = self.done.iter().rev().map(|done| &done.commit);
        let earlier = earlier.find(|commit| commit.pid == span.pid);
        let last_end = earlier.map_or(0, |commit| commit.end);
        let since = before
            .iter()
            .rev()
            .take(BEFORE)
            .take_while(|row| row.completed > last_end);
        let own = since.filter(|row| row.pid == span.pid && row.writes && row.queued >= last_end);
        let queued = own.map(|row| row.queued).filter(|&queued| queued != NONE);
        queued.min().unwrap_or(NONE)
    }

    /// Returns the number of commits that ended during a call; None if more may have.
    pub fn during(&self, ask: &Ask) -> Option<usize> {
        let is_whole = self.done.has_all_since(ask.start_ns);
        is_whole.then(|| self.done.during(ask.start_ns, ask.end_ns).len())
    }

    /// Returns the commit that a call waited for, and the others: the latest one that ended during the call and whose transaction
    /// the file took part in. A handle names one file, and may be for several: if none names this one, it is the latest one in
    /// which the process took part, but only if the call did not flush the cache itself (`flushed`): a call that waited for a
    /// commit need not flush it.
    pub fn of(&self, ask: &Ask, flushed: bool) -> Option<Commit> {
        // sync is for all filesystems.
        let is_its = |members: &&Members| members.s_dev == ask.s_dev || ask.s_dev == 0;
        let find = |took_part: &dyn Fn(&Members) -> bool| {
            let mut latest_first = self.done.during(ask.start_ns, ask.end_ns).rev();
            latest_first
                .find(|done| done.members.as_ref().filter(is_its).is_some_and(took_part))
                .map(|done| done.commit)
        };
        if ask.is_of_all() {
            return find(&|_| true);
        }
        let by_file = find(&|members| members.inodes.contains(&ask.file));
        by_file.or_else(|| match flushed {
            true => None,
            false => find(&|members| members.tgids.contains(&ask.tgid)),
        })
    }
}

impl Journal {
    /// Removes and returns the members of a transaction. Earlier ones are committed too.
    fn commit(&mut self, tid: u32) -> Option<Members> {
        let later = self.open.split_off(&tid);
        self.open = later;
        self.open.remove(&tid)
    }
}

#[cfg(test)]
mod tests {
    use mostrace_bundle::entry::CallKind;
    use zerocopy::FromZeros;

    use super::*;

    const JBD2: u32 = 50;
    const S_DEV: u32 = 7 << 20;

    fn span(what: What, tid: u32, queued: u64, completed: u64) -> Span {
        Span {
            what,
            writes: true,
            is_cached: false,
            has_preflush: false,
            queued,
            issued: queued,
            completed,
            dirtied: NONE,
            sector: u64::from(tid),
            process: 1,
            pid: JBD2,
            tgid: JBD2,
            file: (0, 0),
            tid,
        }
    }

    fn handle(s_dev: u32, tid: u32, tgid: u32, inode: u64) -> RawHandle {
        let mut raw = RawHandle::new_zeroed();
        (raw.s_dev, raw.tid) = (s_dev.into(), tid.into());
        (raw.tgid, raw.ino) = (tgid.into(), inode.into());
        raw
    }

    fn ask(kind: CallKind, start_ns: u64, end_ns: u64, tgid: u32, inode: u64) -> Ask {
        Ask {
            start_ns,
            end_ns,
            kind,
            pid: tgid,
            tgid,
            file: (inode, 0),
            s_dev: S_DEV,
        }
    }

    /// Transaction 1 of file 12 and process 100 is written from 10 to 30, transaction 2 of file 13 and process 200 from 35 on,
    /// with contents first, to 60, when its flush ends.
    fn two() -> Commits {
        two_after(Commits::default())
    }

    fn two_after(mut commits: Commits) -> Commits {
        commits.handle(&handle(S_DEV, 1, 100, 12));
        commits.handle(&handle(S_DEV, 2, 200, 13));
        let flush = Span {
            writes: false,
            ..span(What::Flush, NONE_32, 45, 60)
        };
        let mut before = Latest::new(9);
        for span in [
            span(What::Journal, 1, 10, 20),
            span(What::CommitRecord, 1, 21, 30),
            span(What::Data, NONE_32, 35, 40),
            span(What::Journal, 2, 41, 44),
            span(What::CommitRecord, 2, 45, 50),
            Span { sector: 2, ..flush },
        ] {
            commits.see(&span, &before);
            before.push(span);
        }
        commits
    }

    fn waited(commits: &Commits, ask: Ask, flushed: bool) -> Option<(u32, u64, u64)> {
        let commit = commits.of(&ask, flushed)?;
        Some((commit.tid, commit.begin, commit.end))
    }

    #[test]
    fn a_call_waits_for_the_commit_that_its_file_took_part_in() {
        let commits = two();
        let of = |kind, from, to, tgid, inode, flushed| {
            waited(&commits, ask(kind, from, to, tgid, inode), flushed)
        };
        let fsync = CallKind::Fsync;
        assert_eq!(of(fsync, 5, 70, 100, 12, false), Some((1, 10, 30)));
        // Another process made the file.
        assert_eq!(of(fsync, 5, 70, 300, 13, true), Some((2, 35, 60)));
        // The commit ended after the call, or before it.
        assert_eq!(of(fsync, 5, 55, 200, 13, false), None);
        assert_eq!(of(fsync, 31, 70, 100, 12, false), None);
        // The process took part, and nothing tells of the file.
        assert_eq!(of(fsync, 5, 70, 200, 99, false), Some((2, 35, 60)));
        assert_eq!(of(fsync, 5, 70, 200, 99, true), None);
        assert_eq!(of(fsync, 5, 70, 300, 99, false), None);
        assert_eq!(of(CallKind::Sync, 5, 70, 300, 0, true), Some((2, 35, 60)));
    }

    #[test]
    fn transactions_of_two_filesystems_with_one_number_are_nobodys() {
        let mut commits = Commits::default();
        commits.handle(&handle(S_DEV + 1, 1, 100, 12));
        let commits = two_after(commits);
        let asked = ask(CallKind::Fsync, 5, 40, 100, 12);
        assert_eq!(waited(&commits, asked, false), None);
    }

    /// Handles are read ahead of the rows: of a fast journal those of many transactions come before the first commit.
    #[test]
    fn a_call_finds_its_commit_among_thousands_that_were_read_ahead() {
        let mut commits = Commits::default();
        let many = 5_000;
        for tid in 1..=many {
            commits.handle(&handle(S_DEV, tid, 100, tid.into()));
        }
        let before = Latest::new(1);
        for tid in 1..=many {
            let at = u64::from(tid) * 10;
            commits.see(&span(What::CommitRecord, tid, at, at + 5), &before);
        }
        for tid in [1, 64, 65, many] {
            let asked = ask(
                CallKind::Fsync,
                u64::from(tid) * 10,
                100_000,
                100,
                tid.into(),
            );
            assert_eq!(
                waited(&commits, asked, false).map(|found| found.0),
                Some(tid)
            );
        }
    }

    #[test]
    fn of_transactions_that_were_forgotten_no_call_is_divided() {
        let mut commits = Commits::default();
        let many = u32::try_from(KEPT).unwrap() + 2;
        for tid in 1..=many {
            commits.handle(&handle(S_DEV, tid, 100, tid.into()));
        }
        for tid in 1..=3 {
            let at = u64::from(tid) * 10;
            commits.see(&span(What::CommitRecord, tid, at, at + 5), &Latest::new(1));
        }
        assert_eq!(commits.during(&ask(CallKind::Fsync, 25, 90, 100, 2)), None);
        assert_eq!(
            commits.during(&ask(CallKind::Fsync, 26, 90, 100, 3)),
            Some(1)
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commits of jbd2: when each was written, and who took part in its transaction.

use std::collections::{HashMap, HashSet, VecDeque};

use mostrace_bundle::entry::RawHandle;

use super::ask::Ask;
use super::span::{Span, What};
use crate::facts::{NONE, NONE_32};

/// The most transactions and commits that are kept; a call waits for one of the latest.
const KEPT: usize = 64;
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
    inodes: HashSet<(u64, u32)>,
    tgids: HashSet<u32>,
}

/// The latest commits.
#[derive(Default)]
pub(super) struct Commits {
    done: VecDeque<Commit>,
    /// The transaction that each journal's thread is writing, and when it began, ns.
    running: HashMap<u32, (u32, u64)>,
    members: HashMap<(u32, u32), Members>,
    order: VecDeque<(u32, u32)>,
}

impl Commits {
    /// Notes a handle's part in its transaction.
    pub fn handle(&mut self, raw: &RawHandle) {
        let id = (raw.s_dev.get(), raw.tid.get());
        let members = self.members.entry(id).or_insert_with(|| {
            self.order.push_back(id);
            Members::default()
        });
        members.inodes.insert((raw.ino.get(), raw.generation.get()));
        members.tgids.insert(raw.tgid.get());
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.members.remove(&oldest);
        }
    }

    /// Notes a completed row; `before` are those that were completed earlier.
    pub fn see(&mut self, span: &Span, before: &VecDeque<Span>) {
        match span.what {
            What::Journal | What::CommitRecord if span.tid != NONE_32 => {
                let begin = match self.running.get(&span.pid) {
                    Some(&(tid, begin)) if tid == span.tid => begin,
                    _ => self.first_queued(span, before),
                };
                let begin = begin.min(span.queued);
                self.running.insert(span.pid, (span.tid, begin));
                if span.what == What::CommitRecord {
                    self.done.push_back(Commit {
                        tid: span.tid,
                        pid: span.pid,
                        begin,
                        end: span.completed,
                        record: *span,
                    });
                }
                if self.done.len() > KEPT {
                    self.done.pop_front();
                }
            }
            // The record's flush sequence ends.
            What::Flush => {
                let mut latest = self.done.iter_mut().rev();
                if let Some(commit) = latest.find(|commit| span.ends(&commit.record)) {
                    commit.end = span.completed;
                }
            }
            _ => {}
        }
    }

    /// Returns when the journal's thread queued what it wrote first for the transaction of this row: contents that must be on the
    /// disk ahead of the commit are not marked as the journal's.
    fn first_queued(&self, span: &Span, before: &VecDeque<Span>) -> u64 {
        let earlier = self.done.iter().rev().find(|commit| commit.pid == span.pid);
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

    /// Returns the commit that a call waited for, and the others: the latest one that ended during the call and whose transaction
    /// the file took part in. A handle names one file, and may be for several: if none names this one, it is the latest one in
    /// which the process took part, but only if the call did not flush the cache itself (`flushed`): a call that waited for a
    /// commit need not flush it.
    pub fn of(&self, ask: &Ask, flushed: bool) -> Option<Commit> {
        let ended = |commit: &&Commit| (ask.start_ns..=ask.end_ns).contains(&commit.end);
        let candidates = || self.done.iter().rev().filter(ended).copied();
        if ask.is_of_all() {
            return candidates().find(|commit| self.members(ask, commit.tid).is_some());
        }
        let by_file = candidates().find(|commit| {
            let members = self.members(ask, commit.tid);
            members.is_some_and(|members| members.inodes.contains(&ask.file))
        });
        by_file.or_else(|| {
            candidates().find(|commit| {
                let members = self.members(ask, commit.tid);
                !flushed && members.is_some_and(|members| members.tgids.contains(&ask.tgid))
            })
        })
    }

    /// Returns who took part in a transaction; None if it is not known, or if another filesystem on the disk has one of the same
    /// number.
    fn members(&self, ask: &Ask, tid: u32) -> Option<&Members> {
        let mut same = self.order.iter().filter(|(_, other)| *other == tid);
        let (first, second) = (same.next(), same.next());
        // sync is for all filesystems.
        let is_its = |s_dev: u32| s_dev == ask.s_dev || ask.s_dev == 0;
        let id = first.filter(|(s_dev, _)| second.is_none() && is_its(*s_dev))?;
        self.members.get(id)
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
        let mut commits = Commits::default();
        commits.handle(&handle(S_DEV, 1, 100, 12));
        commits.handle(&handle(S_DEV, 2, 200, 13));
        let flush = Span {
            writes: false,
            ..span(What::Flush, NONE_32, 45, 60)
        };
        let mut before = VecDeque::new();
        for span in [
            span(What::Journal, 1, 10, 20),
            span(What::CommitRecord, 1, 21, 30),
            span(What::Data, NONE_32, 35, 40),
            span(What::Journal, 2, 41, 44),
            span(What::CommitRecord, 2, 45, 50),
            Span { sector: 2, ..flush },
        ] {
            commits.see(&span, &before);
            before.push_back(span);
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
        let mut commits = two();
        commits.handle(&handle(S_DEV + 1, 1, 100, 12));
        let asked = ask(CallKind::Fsync, 5, 40, 100, 12);
        assert_eq!(waited(&commits, asked, false), None);
    }
}

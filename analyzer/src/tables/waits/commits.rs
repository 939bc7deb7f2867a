// SPDX-License-Identifier: MIT OR Apache-2.0
//! The commits of jbd2: when each was written, and who took part in its transaction.

use std::collections::{HashMap, HashSet, VecDeque};

use mostrace_bundle::entry::{RawHandle, handle_flags};

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
    /// When its record was durable.
    pub end: u64,
    /// Its record.
    pub record: Span,
}

/// Who had a handle in a transaction.
#[derive(Default)]
struct Members {
    inodes: HashSet<(u64, u32)>,
    tgids: HashSet<u32>,
    /// True if there may be inodes that no handle names.
    is_partial: bool,
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
        members.is_partial |= !raw.head.flags.has(handle_flags::EACH_CAUSE);
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
    /// the file took part in. If it is not known which files did, it is one in which the process took part, unless the call
    /// flushed the cache itself (`flushed`): after a commit that it waited for, it need not.
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

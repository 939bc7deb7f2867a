// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds what forced a row. Unlike its cause, this need not have changed what is written.

use mostrace_bundle::entry::{CallKind, Origin};
use mostrace_map::class::{Class, Kind};

use super::{Causer, Place, user};
use crate::attribute::{Op, Registry, Request, Row};
use crate::causes::calls::Call;
use crate::causes::forced::{Force, Forced};

/// How much earlier and later than its interval jbd2's timer may end a transaction, ns: a tick of the kernel's clock, and the second
/// to which `round_jiffies_up` rounds the timer, with the time until the thread runs.
const TIMER_NS: (u64, u64) = (10_000_000, 1_100_000_000);

impl<R> Causer<'_, R> {
    /// Finds what forced a row; None if it is not known. A commit's own row must not have been judged yet.
    pub(super) fn forced(
        &mut self,
        request: &Request,
        row: &Row,
        registry: &Registry<'_>,
    ) -> Option<Forced> {
        if !matches!(row.op, Op::Write | Op::Flush) || !self.tables.has_calls() {
            return None;
        }
        if row.op == Op::Flush
            && let Some((.., forced)) = self.commits.iter().rfind(|(at, ..)| *at == row.sector)
        {
            return *forced;
        }
        if let Some(place) = place_in_journal(row) {
            return self.of_commit(request, row, place, registry);
        }
        let q_ns = row.q_ns?;
        let pid = registry.process(row.process).pid?;
        let (mut is_in_call, mut asked) = (false, None);
        self.found.calls.each_at(pid, q_ns, |call| {
            is_in_call = true;
            if call.asks {
                asked = Forced::of_any(asked.into_iter().chain([call.into()]));
            }
        });
        let is_users = user(row.process, registry).is_some();
        match is_in_call {
            false if row.op == Op::Flush => {
                let process = user(row.process, registry);
                let call = self.call_of_flush(process, row, registry)?;
                self.one_of(&call, q_ns)
            }
            false if is_users => None,
            false => self.by_kernel(row, q_ns, registry),
            // What a kernel's thread syncs it syncs for somebody else, such as a loop device's.
            true if !is_users => None,
            true => asked,
        }
    }

    /// What forced a commit of which this is a block: the call that lasted from before its first block was queued until this one was
    /// completed, by a process that took part in the transaction.
    fn of_commit(
        &mut self,
        request: &Request,
        row: &Row,
        place: Place,
        registry: &Registry<'_>,
    ) -> Option<Forced> {
        let transaction = self.journals.get(place)?;
        let first = row.q_ns.into_iter().chain(transaction.first_q_ns).min()?;
        transaction.first_q_ns = Some(first);
        let is_new = transaction.waiting.is_none() || row.kind == Some(Kind::Commit);
        if is_new {
            let waiting = self.waiting(place, first, row.q_ns?, registry);
            self.journals.get(place)?.waiting = Some(waiting);
        }
        let transaction = self.journals.get(place)?;
        let until = match row.kind {
            Some(Kind::Commit) => row.q_ns?,
            _ => request.time_ns,
        };
        let waiting = transaction.waiting.iter().flatten();
        let waiting = waiting.filter(|call| call.start_ns <= first && call.end_ns >= until);
        if let Some(forced) = Forced::of_any(waiting.map(Forced::from)) {
            return Some(forced);
        }
        if transaction.asking().is_some() {
            return Some(Force::Call.into());
        }
        let age_ns = first.checked_sub(transaction.begun_ns()?)?;
        let due_ns = self.commit_ns?;
        let (early, late) = TIMER_NS;
        let is_due = (due_ns.saturating_sub(early)..=due_ns.saturating_add(late)).contains(&age_ns);
        (is_due && self.is_whole).then(|| Force::Timer.into())
    }

    /// What a kernel's thread wrote that was in no call.
    fn by_kernel(&self, row: &Row, q_ns: u64, registry: &Registry<'_>) -> Option<Forced> {
        let checkpoint = self.found.f2fs.checkpoint(q_ns);
        if let Some(checkpoint) = checkpoint {
            let requesters = checkpoint.requesters.iter();
            let calls =
                requesters.map(|requester| self.call(requester.caller.process, q_ns, registry));
            let calls: Option<Vec<Call>> = calls.collect();
            return Forced::of_any(calls?.iter().map(Forced::from));
        }
        let is_cached = row
            .origin
            .is_some_and(|origin| [Origin::FILE, Origin::BDEV, Origin::NODE].contains(&origin));
        let comm = registry.process(row.process).comm.as_deref()?;
        // sync has such threads write, too.
        let is_sync = |call: &Call| call.kind == CallKind::Sync;
        let may_be_sync = !self.is_whole || self.found.calls.is_any(q_ns, is_sync);
        match comm {
            _ if !is_cached || may_be_sync => None,
            [b'k', b'w', b'o', b'r', b'k', b'e', b'r', b'/', ..] => Some(Force::Writeback.into()),
            [b'k', b's', b'w', b'a', b'p', b'd', ..] => Some(Force::Memory.into()),
            _ => None,
        }
    }

    /// The call, unless its process made another for the same file meanwhile.
    fn one_of(&self, call: &Call, q_ns: u64) -> Option<Forced> {
        let is_other = |other: &Call| {
            other.inode == call.inode && (other.pid, other.start_ns) != (call.pid, call.start_ns)
        };
        let other = self.found.calls.first_sync(q_ns, q_ns, is_other);
        Forced::of_any(
            [Some(call), other.as_ref()]
                .into_iter()
                .flatten()
                .map(Forced::from),
        )
    }
}

fn place_in_journal(row: &Row) -> Option<Place> {
    let block = row.journal?;
    let kind = row.kind.filter(|kind| kind.class() == Class::Journal)?;
    let is_commits = !matches!(kind, Kind::FastCommit | Kind::Jbd2Superblock);
    is_commits.then_some(())?;
    Some(Place {
        sector: row.sector,
        tid: block.tid?,
        home: block.home_of_block(),
    })
}

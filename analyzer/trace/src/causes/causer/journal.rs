// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges blocks of jbd2's journal.

use mostrace_bundle::entry::CallKind;
use mostrace_map::class::Kind;

use super::flush::Asked;
use super::{Causer, Found, Place, user};
use crate::attribute::{JournalBlock, Registry, Request, Row};
use crate::causes::calls::Call;
use crate::causes::handle::Handle;
use crate::causes::transactions::Transaction;

/// More commits than can wait for their flush; a journal has one at a time.
const COMMITS: usize = 64;

impl<R> Causer<'_, R> {
    /// Judges a block of jbd2's journal.
    pub(super) fn journal(
        &mut self,
        request: &Request,
        row: &Row,
        block: &JournalBlock,
        registry: &Registry<'_>,
    ) -> Option<u64> {
        if row.kind == Some(Kind::Jbd2Superblock) {
            self.journal_superblock(row, registry);
            return None;
        }
        let Causer {
            journals,
            found,
            homes,
            sharing,
            ..
        } = self;
        let place = block.tid.map(|tid| Place {
            sector: row.sector,
            tid,
            home: block.home_of_block(),
        });
        let transaction = place.and_then(|place| journals.get(place));
        let Some(transaction) = transaction else {
            self.unknown(row.bytes);
            return None;
        };
        transaction.first_q_ns = row.q_ns.into_iter().chain(transaction.first_q_ns).min();
        let mut causers = |handle: &Handle| found.causers(handle);
        match row.kind {
            Some(Kind::MetadataCopy | Kind::DataCopy) => {
                let home = block.home_of_block();
                let blame = home.map(|home| transaction.blame(home, &mut causers));
                let blame = blame.unwrap_or_default();
                let blame = match row.kind {
                    Some(Kind::DataCopy) => {
                        home.into_iter().for_each(|home| homes.holds_contents(home));
                        found.as_written(&blame)
                    }
                    _ => blame,
                };
                self.blame(&blame, row.bytes);
                None
            }
            Some(Kind::Commit) => {
                let weights = transaction.weights(*sharing, &mut causers);
                weights.share(row.bytes, self.is_whole, &mut self.verdicts);
                // Its last part commits.
                match block.behind {
                    0 => self.commit(request, row, place?, registry),
                    _ => None,
                }
            }
            Some(Kind::Descriptor | Kind::Revoke) => {
                let weights = transaction.weights(*sharing, &mut causers);
                weights.share(row.bytes, self.is_whole, &mut self.verdicts);
                None
            }
            _ => {
                self.unknown(row.bytes);
                None
            }
        }
    }

    /// Ends a transaction. Returns the time from the start of what forced it to the completion, ns.
    fn commit(
        &mut self,
        request: &Request,
        row: &Row,
        place: Place,
        registry: &Registry<'_>,
    ) -> Option<u64> {
        let asked = self.asked_by(row, place, registry);
        let forced = self.forced(request, row, registry);
        if self.commits.len() >= COMMITS {
            self.commits.pop_front();
        }
        self.commits.push_back((row.sector, asked, forced));
        for transaction in self.journals.committed(place) {
            self.committed(transaction);
        }
        asked.map(|asked| request.time_ns.saturating_sub(asked.start_ns))
    }

    /// Notes the blocks that a committed transaction leaves to be written home or discarded.
    pub(super) fn committed(&mut self, mut transaction: Transaction) {
        let Causer {
            found,
            homes,
            freed,
            ..
        } = self;
        let mut causers = |handle: &Handle| found.causers(handle);
        let weights = transaction.weights(self.sharing, &mut causers);
        self.since_superblock.add_all(weights);
        freed.committed(weights, |causer| found.list.get(causer));
        let mut causers = |handle: &Handle| found.causers(handle);
        for (home, time_ns, blame) in transaction.blocks(&mut causers) {
            homes.dirtied(home, time_ns, blame);
        }
    }

    /// Returns the reason for a commit: the first call that waited for all of it. Otherwise it is the first handle that asked for
    /// the commit. None if the timer or a lack of room caused the commit.
    fn asked_by(&mut self, row: &Row, place: Place, registry: &Registry<'_>) -> Option<Asked> {
        let from_ns = self.journals.get(place)?.first_q_ns?;
        let waiting = self.waiting(place, from_ns, row.q_ns?, registry);
        let first = waiting
            .iter()
            .min_by_key(|call| (call.start_ns, call.end_ns));
        let handle = || self.journals.get(place)?.asking().map(Asked::from);
        first.map(Asked::from).or_else(handle)
    }

    /// Returns the calls that lasted while blocks of a transaction were queued and may wait for its commit: their process took part
    /// in it, or a kernel thread did work for the process.
    pub(super) fn waiting(
        &mut self,
        place: Place,
        from_ns: u64,
        to_ns: u64,
        registry: &Registry<'_>,
    ) -> Vec<Call> {
        let Found { calls, list, .. } = &self.found;
        let Some(transaction) = self.journals.get(place) else {
            return Vec::new();
        };
        let is_its = |causer, tgid| {
            let process = registry.process(list.get(causer).process);
            process.tgid == Some(tgid)
        };
        let took_part = |call: &Call| {
            let has_part = call.kind == CallKind::Sync
                || transaction.has(call.tgid)
                || transaction
                    .causers()
                    .any(|causer| is_its(causer, call.tgid));
            has_part && user(call.caller.process, registry).is_some()
        };
        calls.syncs(from_ns, to_ns, took_part)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The journals on a disk, and their transactions that are not committed yet. Each journal numbers its own transactions.

use std::collections::BTreeMap;

use mostrace_bundle::entry::{RawDirtied, dirtied_flags};

use super::blame::Blame;
use super::handle::Handle;
use super::transactions::{Modification, Transaction};
use crate::attribute::HashMap;

/// Number of open transactions of a journal; beyond it, the oldest is forgotten. jbd2 has two at a time, and more begin while handles
/// are read ahead: 2^16 are some 3 million commits a second.
const MOST: usize = 1 << 16;
/// Number of journals that are known apart.
const JOURNALS: usize = 64;
/// Number of handles whose blocks wait for them; beyond it, all are forgotten.
const WAITING: usize = 1 << 16;
/// If there are several journals, a block belongs to the one with blocks within this distance, sectors.
const NEAR: u64 = 1 << 16;

/// A block of a journal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub sector: u64,
    /// Number of the transaction.
    pub tid: u32,
    /// The sector of its home, if it is a copy.
    pub home: Option<u64>,
}

/// One journal.
struct Journal {
    /// Device number of its filesystem, major << 20 | minor.
    s_dev: u32,
    under_way: BTreeMap<u32, Transaction>,
    /// The first transaction of which a handle was seen.
    first: u32,
    /// The last transaction that is committed.
    last: Option<u32>,
    /// The first and last sector of the copies that were recognised.
    seen: Option<(u64, u64)>,
}

/// A block that a handle modified.
struct Block {
    home: u64,
    modification: Modification,
    are_all: bool,
}

/// The journals of which handles were seen.
#[derive(Default)]
pub(super) struct Journals {
    journals: Vec<Journal>,
    /// Blocks of handles whose own entries were not read yet, by the handle's id.
    waiting: HashMap<u64, Vec<Block>>,
    /// True if changes were forgotten, or came too late for their transaction's commit.
    are_partial: bool,
}

impl Journals {
    /// Adds a handle of the filesystem on this device.
    pub fn add(&mut self, s_dev: u32, tid: u32, handle: Handle) {
        let blocks = self.waiting.remove(&handle.id).unwrap_or_default();
        let Some(journal) = self.journal(s_dev, tid) else {
            self.are_partial = true;
            return;
        };
        let is_kept = journal.make_room(tid);
        let transaction = journal.open(tid);
        transaction.add(handle);
        for block in blocks {
            transaction.modified(block.home, block.modification, block.are_all);
        }
        self.are_partial |= !is_kept;
    }

    /// Returns true if changes are missing that later answers would need.
    pub fn are_partial(&self) -> bool {
        self.are_partial
    }

    /// Notes that a handle modified the block with this home. The entry does not name the filesystem, but its handle does.
    pub fn modified(&mut self, raw: &RawDirtied, home: u64) {
        let block = Block {
            home,
            modification: Modification {
                time_ns: raw.head.time_ns.get(),
                handle: raw.handle.get(),
            },
            are_all: raw.head.flags.has(dirtied_flags::EACH),
        };
        let id = block.modification.handle;
        let mut open = self
            .journals
            .iter_mut()
            .filter_map(|journal| journal.under_way.get_mut(&raw.tid.get()));
        if let Some(transaction) = open.find(|transaction| transaction.has_handle(id)) {
            return transaction.modified(home, block.modification, block.are_all);
        }
        if self.waiting.len() >= WAITING {
            self.waiting.clear();
            self.are_partial = true;
        }
        self.waiting.entry(id).or_default().push(block);
    }

    /// Returns the open transaction that a block of a journal belongs to; None if it is not known.
    pub fn get(&mut self, place: Place) -> Option<&mut Transaction> {
        let at = self.find(place)?;
        let journal = self.journals.get_mut(at)?;
        if place.home.is_some() {
            journal.see(place.sector);
        }
        journal.under_way.get_mut(&place.tid)
    }

    /// Returns the transaction that was running at `time_ns`: the newest that a handle had joined. None if there may be
    /// several journals.
    pub fn running(&mut self, time_ns: u64) -> Option<&mut Transaction> {
        let [journal] = &mut self.journals[..] else {
            return None;
        };
        let mut newest_first = journal.under_way.values_mut().rev();
        newest_first.find(|transaction| transaction.has_begun(time_ns))
    }

    /// Removes and returns the transactions up to the one of a commit block: earlier ones are committed too.
    pub fn committed(&mut self, place: Place) -> Vec<Transaction> {
        let journal = self.find(place).and_then(|at| self.journals.get_mut(at));
        let mut taken = Vec::new();
        if let Some(journal) = journal {
            while journal.first_open().is_some_and(|tid| tid <= place.tid) {
                taken.extend(journal.take_first());
            }
        }
        taken
    }

    /// Removes and returns the transactions that were certainly committed by `time_ns`, although their commit block was not seen:
    /// it is on another disk, or was lost. jbd2 commits one transaction while the next one is running, so all earlier ones are
    /// committed.
    pub fn outdated(&mut self, time_ns: u64) -> Vec<Transaction> {
        let mut taken = Vec::new();
        for journal in &mut self.journals {
            while journal.is_first_outdated(time_ns) {
                taken.extend(journal.take_first());
            }
        }
        taken
    }

    /// Removes the block with this home from all transactions, and returns its causers in each that had it. The block is being
    /// written home, so those are committed.
    pub fn written(&mut self, home: u64, causers: &mut impl FnMut(&Handle) -> Blame) -> Vec<Blame> {
        let all = self
            .journals
            .iter_mut()
            .flat_map(|journal| journal.under_way.values_mut());
        all.filter_map(|transaction| transaction.take(home, causers))
            .collect()
    }

    /// Returns the index of the journal that a block belongs to.
    fn find(&self, place: Place) -> Option<usize> {
        if let [_] = &self.journals[..] {
            return Some(0);
        }
        let is_its = |journal: &Journal| match place.home {
            Some(home) => journal
                .under_way
                .get(&place.tid)
                .is_some_and(|transaction| transaction.has_block(home)),
            None => journal.is_near(place.sector),
        };
        let mut found = self
            .journals
            .iter()
            .enumerate()
            .filter(|(_, journal)| is_its(journal));
        let (at, _) = found.next()?;
        found.next().is_none().then_some(at)
    }

    fn journal(&mut self, s_dev: u32, tid: u32) -> Option<&mut Journal> {
        let known = self.journals.iter().position(|j| j.s_dev == s_dev);
        if known.is_none() && self.journals.len() < JOURNALS {
            self.journals.push(Journal {
                s_dev,
                under_way: BTreeMap::new(),
                first: tid,
                last: None,
                seen: None,
            });
        }
        let last = self.journals.len().checked_sub(1)?;
        self.journals
            .get_mut(known.unwrap_or(last))
            .filter(|journal| journal.s_dev == s_dev)
    }
}

impl Journal {
    /// Makes room for a transaction. Returns false if another one is forgotten for it, or if it is committed already, so that its handle
    /// comes too late.
    fn make_room(&mut self, tid: u32) -> bool {
        let is_full = self.under_way.len() >= MOST && !self.under_way.contains_key(&tid);
        if is_full {
            self.take_first();
        }
        !is_full && self.last.is_none_or(|last| last < tid)
    }

    fn first_open(&self) -> Option<u32> {
        self.under_way.first_key_value().map(|(tid, _)| *tid)
    }

    fn take_first(&mut self) -> Option<Transaction> {
        let (tid, transaction) = self.under_way.pop_first()?;
        self.last = self.last.max(Some(tid));
        Some(transaction)
    }

    /// Returns true if a handle of the last but one transaction after the first open one, or of a later one, had ended by `time_ns`.
    fn is_first_outdated(&self, time_ns: u64) -> bool {
        let next_but_one = self.first_open().and_then(|tid| tid.checked_add(2));
        let later = next_but_one.and_then(|tid| self.under_way.range(tid..).next());
        later.is_some_and(|(_, transaction)| transaction.had_ended_handle(time_ns))
    }

    fn open(&mut self, tid: u32) -> &mut Transaction {
        let is_cut = tid <= self.first;
        self.under_way
            .entry(tid)
            .or_insert_with(|| Transaction::new(is_cut))
    }

    fn see(&mut self, sector: u64) {
        let (first, last) = self.seen.unwrap_or((sector, sector));
        self.seen = Some((first.min(sector), last.max(sector)));
    }

    fn is_near(&self, sector: u64) -> bool {
        self.seen.is_some_and(|(first, last)| {
            first
                .saturating_sub(sector)
                .max(sector.saturating_sub(last))
                < NEAR
        })
    }
}

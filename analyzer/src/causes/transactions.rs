// SPDX-License-Identifier: MIT OR Apache-2.0
//! The journal's open transactions: their handles, and the blocks that these dirtied.

use std::collections::BTreeMap;

use super::blame::{Blame, Weights};
use super::handle::Handle;
use super::{CauseId, Known, Sharing};
use crate::attribute::HashMap;

/// Number of transactions that are kept without a commit that was seen: jbd2 has two at a time.
const MOST: usize = 64;
/// Number of handles that are searched, in either direction, for those that were open at the same time.
const MEETING: usize = 1 << 10;

/// One transaction.
#[derive(Default)]
pub(super) struct Transaction {
    /// Handles, almost in the order of their ends.
    handles: Vec<Handle>,
    by_id: HashMap<u64, u32>,
    /// The id of the handle that dirtied each block first, by home sector; the handle's entry may come later.
    blocks: HashMap<u64, u64>,
    /// The causers of each handle that was asked for.
    blames: HashMap<u32, Blame>,
    weights: Option<Weights>,
    /// The first Q of its blocks, ns.
    pub first_q_ns: Option<u64>,
    /// True if the recording may have begun within it.
    is_cut: bool,
}

impl Transaction {
    pub fn add(&mut self, handle: Handle) {
        let at = u32::try_from(self.handles.len()).unwrap_or(u32::MAX);
        self.by_id.insert(handle.id, at);
        self.handles.push(handle);
    }

    /// Returns true if a process had a handle in it.
    pub fn has(&self, tgid: u32) -> bool {
        self.handles.iter().any(|handle| handle.tgid == tgid)
    }

    /// Returns the causers of a block. `causers` finds those of a handle.
    pub fn blame(&mut self, home: u64, causers: &mut impl FnMut(&Handle) -> Blame) -> Blame {
        let at = self.blocks.get(&home).and_then(|id| self.by_id.get(id));
        match at {
            Some(&at) => self.blame_of(at, causers),
            None => Blame::Unknown,
        }
    }

    /// Removes all blocks and returns each one's home sector, the time when it was dirtied (ns) and its causers.
    pub fn blocks(&mut self, causers: &mut impl FnMut(&Handle) -> Blame) -> Vec<(u64, u64, Blame)> {
        let blocks = std::mem::take(&mut self.blocks);
        let told = |(home, id): (u64, u64)| {
            let at = *self.by_id.get(&id)?;
            let end_ns = self.handles.get(at as usize)?.end_ns;
            Some((home, end_ns, self.blame_of(at, causers)))
        };
        blocks.into_iter().filter_map(told).collect()
    }

    /// Returns how many blocks each causer dirtied in the transaction.
    pub fn weights(
        &mut self,
        sharing: Sharing,
        causers: &mut impl FnMut(&Handle) -> Blame,
    ) -> &Weights {
        if self.weights.is_none() {
            let mut weights = Weights::default();
            if self.is_cut {
                weights.add(CauseId::UNKNOWN, 1);
            } else {
                let has_no_weight =
                    |handle: &Handle| handle.dirtied == 0 && handle.may_have_dirtied();
                let mut are_exact = !self.handles.iter().any(has_no_weight);
                for at in 0..self.handles.len() {
                    let dirtied = self.handles[at].dirtied;
                    if dirtied > 0 {
                        // There are no more handles than fit into 32 bits.
                        let blame = self.blame_of(at as u32, causers);
                        for (causer, part) in blame.parts(dirtied, sharing) {
                            weights.add(causer, part.into());
                        }
                        are_exact &= blame.known() == Known::Exact;
                    }
                }
                if are_exact {
                    weights.are_all();
                }
            }
            self.weights = Some(weights);
        }
        self.weights.get_or_insert_default()
    }

    /// Returns the causers of the transaction; none before [`Self::weights`] was called.
    pub fn causers(&self) -> impl Iterator<Item = CauseId> {
        self.weights.iter().flat_map(Weights::causers)
    }

    /// Returns the causers of a handle and of the handles that cannot be distinguished from it.
    fn blame_of(&mut self, at: u32, causers: &mut impl FnMut(&Handle) -> Blame) -> Blame {
        if let Some(blame) = self.blames.get(&at) {
            return blame.clone();
        }
        let Some(handle) = self.handles.get(at as usize) else {
            return Blame::Unknown;
        };
        let own = causers(handle);
        let blame = match handle.overlaps {
            false => own,
            true => {
                let mut all = own.causers().to_vec();
                for other in self.meeting(at as usize) {
                    all.extend(causers(other).causers());
                }
                Blame::of(all)
            }
        };
        self.blames.insert(at, blame.clone());
        blame
    }

    /// Returns the other handles that may have dirtied what this one is said to have dirtied.
    fn meeting(&self, at: usize) -> impl Iterator<Item = &Handle> {
        let handle = &self.handles[at];
        let before = self.handles[..at].iter().rev().take(MEETING);
        let after = self.handles[at..].iter().skip(1).take(MEETING);
        before
            .chain(after)
            .filter(|other| other.may_be_meant_for(handle))
    }
}

/// The transactions that are not committed yet at the trace's current time.
#[derive(Default)]
pub(super) struct Transactions {
    under_way: BTreeMap<u32, Transaction>,
    /// The first transaction that a handle was seen of.
    first: Option<u32>,
    /// Device number of the filesystem that they belong to.
    s_dev: Option<u32>,
    /// True if the disk has several journals. Each numbers its own transactions, and a journal block does not name its
    /// journal, so its transaction is unknown then.
    are_mixed: bool,
}

impl Transactions {
    /// Adds a handle of the filesystem on this device.
    pub fn add(&mut self, s_dev: u32, tid: u32, handle: Handle) {
        self.are_mixed |= *self.s_dev.get_or_insert(s_dev) != s_dev;
        self.open(tid).add(handle);
    }

    /// Notes that a handle dirtied a block.
    pub fn dirtied(&mut self, tid: u32, handle: u64, home: u64) {
        self.open(tid).blocks.entry(home).or_insert(handle);
    }

    fn open(&mut self, tid: u32) -> &mut Transaction {
        if self.under_way.len() >= MOST && !self.under_way.contains_key(&tid) {
            self.under_way.pop_first();
        }
        let first = *self.first.get_or_insert(tid);
        self.under_way.entry(tid).or_insert_with(|| Transaction {
            is_cut: tid <= first,
            ..Transaction::default()
        })
    }

    /// Returns an open transaction; None if there are several journals.
    pub fn get(&mut self, tid: u32) -> Option<&mut Transaction> {
        let transaction = self.under_way.get_mut(&tid);
        transaction.filter(|_| !self.are_mixed)
    }

    /// Removes and returns the transactions up to `tid`, which is committed: earlier ones are committed too.
    pub fn committed(&mut self, tid: u32) -> Vec<Transaction> {
        let mut taken = Vec::new();
        while let Some(first) = self.under_way.first_entry()
            && *first.key() <= tid
        {
            taken.push(first.remove());
        }
        taken
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A journal's open transactions: their handles, and the blocks that these dirtied.

use std::collections::hash_map::Entry;

use super::blame::{Blame, Others, Weights};
use super::calls::Call;
use super::handle::Handle;
use super::tables::DISORDER_NS;
use super::{CauseId, Known, Sharing};
use crate::attribute::HashMap;

/// Number of handles that are searched, in either direction, for those that were open at the same time; with more, anybody may have been.
const MEETING: usize = 1 << 10;

/// One transaction.
#[derive(Default)]
pub(super) struct Transaction {
    /// Handles, almost in the order of their ends.
    handles: Vec<Handle>,
    by_id: HashMap<u64, u32>,
    /// The handles that dirtied each block, by home sector; a handle's entry may come later.
    blocks: HashMap<u64, Modified>,
    /// The causers of each handle that was asked for.
    blames: Vec<Option<Blame>>,
    /// The causers of all handles.
    others: Option<Others>,
    weights: Option<Weights>,
    /// The time when its first handle began, and the earliest end of one, ns.
    begun_ns: Option<u64>,
    ended_ns: Option<u64>,
    /// The length of its longest handle, ns.
    longest_ns: u64,
    /// The first Q of its blocks, ns.
    pub first_q_ns: Option<u64>,
    /// The calls that lasted when its first block was queued and may wait for its commit; None if they were not looked for yet.
    pub waiting: Option<Vec<Call>>,
    /// True if the recording may have begun within it, unless the handle that opened it was seen.
    is_cut: bool,
}

/// A modification of a block: its time (ns) and the handle's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Modification {
    pub time_ns: u64,
    pub handle: u64,
}

/// The modifications of a block that are known.
struct Modified {
    first: Modification,
    later: Vec<Modification>,
    /// True if there is an entry for every handle that modified the block; otherwise there is one for the first handle only.
    are_all: bool,
}

impl Modified {
    fn add(&mut self, new: Modification) {
        let later = std::cmp::max(self.first, new);
        self.first = self.first.min(new);
        let after = self.later.partition_point(|known| *known <= later);
        self.later.insert(after, later);
    }

    /// Returns the handles' ids, the first one first.
    fn handles(&self) -> impl Iterator<Item = u64> {
        std::iter::once(&self.first)
            .chain(&self.later)
            .map(|modification| modification.handle)
    }
}

impl Transaction {
    /// Begins a transaction; `is_cut` is true if the recording may have begun within it.
    pub fn new(is_cut: bool) -> Transaction {
        Transaction {
            is_cut,
            ..Transaction::default()
        }
    }

    /// Notes that a handle modified a block; `are_all` is true if all modifications of the block have entries.
    pub fn modified(&mut self, home: u64, modification: Modification, are_all: bool) {
        match self.blocks.entry(home) {
            Entry::Vacant(place) => {
                place.insert(Modified {
                    first: modification,
                    later: Vec::new(),
                    are_all,
                });
            }
            Entry::Occupied(known) if are_all => known.into_mut().add(modification),
            Entry::Occupied(_) => {}
        }
    }

    /// Returns true if it has the handle with this id.
    pub fn has_handle(&self, id: u64) -> bool {
        self.by_id.contains_key(&id)
    }

    /// Returns true if it has a block with this home.
    pub fn has_block(&self, home: u64) -> bool {
        self.blocks.contains_key(&home)
    }

    pub fn add(&mut self, handle: Handle) {
        let at = u32::try_from(self.handles.len()).unwrap_or(u32::MAX);
        self.is_cut &= !handle.opens;
        self.begun_ns = self.begun_ns.into_iter().chain([handle.start_ns]).min();
        self.ended_ns = self.ended_ns.into_iter().chain([handle.end_ns]).min();
        self.longest_ns = self.longest_ns.max(handle.length_ns());
        self.by_id.insert(handle.id, at);
        self.handles.push(handle);
    }

    /// Returns true if a process had a handle in it.
    pub fn has(&self, tgid: u32) -> bool {
        self.handles.iter().any(|handle| handle.tgid == tgid)
    }

    /// The time when its first handle began, ns; None if it may have begun before the recording.
    pub fn begun_ns(&self) -> Option<u64> {
        self.begun_ns.filter(|_| !self.is_cut)
    }

    /// Returns the first handle that asked for the commit.
    pub fn asking(&self) -> Option<&Handle> {
        let mut all = self.handles.iter();
        all.find(|handle| handle.asks && !handle.is_kernels)
    }

    /// Returns the causers of a block. `causers` finds those of a handle.
    pub fn blame(&mut self, home: u64, causers: &mut impl FnMut(&Handle) -> Blame) -> Blame {
        match self.blocks.remove(&home) {
            Some(modified) => {
                let blame = self.blame_of_block(&modified, causers);
                self.blocks.insert(home, modified);
                blame
            }
            None => Blame::Unknown,
        }
    }

    /// Removes a block and returns its causers; None if it is not part of the transaction.
    pub fn take(&mut self, home: u64, causers: &mut impl FnMut(&Handle) -> Blame) -> Option<Blame> {
        let modified = self.blocks.remove(&home)?;
        Some(self.blame_of_block(&modified, causers))
    }

    fn blame_of_block(
        &mut self,
        modified: &Modified,
        causers: &mut impl FnMut(&Handle) -> Blame,
    ) -> Blame {
        // The modifications by a handle that was open when the recording began have no entries.
        let are_all = modified.are_all && !self.is_cut;
        let mut blame = |id: u64| match self.by_id.get(&id) {
            Some(&at) => self.blame_of(at, causers),
            None => Blame::Unknown,
        };
        if are_all {
            let blames: Vec<Blame> = modified.handles().map(blame).collect();
            return Blame::joined(&blames);
        }
        blame(modified.first.handle).first(self.others(causers))
    }

    /// Returns the causers of all handles: whoever modified a block after the first one is among them.
    fn others(&mut self, causers: &mut impl FnMut(&Handle) -> Blame) -> &Others {
        if self.others.is_none() {
            let are_known = !self.is_cut && self.handles.iter().all(Handle::tells_all);
            let others = match are_known {
                false => Others::Unknown,
                true => {
                    let all = (0..self.handles.len()).map(|at| self.blame_of(at as u32, causers));
                    Others::among(&all.collect::<Vec<_>>())
                }
            };
            self.others = Some(others);
        }
        self.others.get_or_insert_default()
    }

    /// Removes all blocks and returns each one's home sector, the time when it was dirtied (ns) and its causers.
    pub fn blocks(&mut self, causers: &mut impl FnMut(&Handle) -> Blame) -> Vec<(u64, u64, Blame)> {
        let blocks = std::mem::take(&mut self.blocks);
        let told = |(home, modified): (u64, Modified)| {
            let at = *self.by_id.get(&modified.first.handle)?;
            let end_ns = self.handles.get(at as usize)?.end_ns;
            Some((home, end_ns, self.blame_of_block(&modified, causers)))
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
                for &causer in self.others(causers).causers() {
                    weights.add(causer, 0);
                }
                if are_exact && self.is_of_one_cause(causers) {
                    weights.are_all();
                }
            }
            self.weights = Some(weights);
        }
        self.weights.get_or_insert_default()
    }

    /// Returns the same for a transaction that more handles may join.
    pub fn weights_so_far(
        &mut self,
        sharing: Sharing,
        causers: &mut impl FnMut(&Handle) -> Blame,
    ) -> Weights {
        let mut so_far = Weights::default();
        so_far.add_all(self.weights(sharing, causers));
        (self.weights, self.others) = (None, None);
        self.blames.clear();
        so_far
    }

    /// Returns true if a handle had begun by `time_ns`.
    pub fn has_begun(&self, time_ns: u64) -> bool {
        self.begun_ns.is_some_and(|begun_ns| begun_ns <= time_ns)
    }

    /// Returns true if a handle had ended by `time_ns`.
    pub fn had_ended_handle(&self, time_ns: u64) -> bool {
        self.ended_ns.is_some_and(|ended_ns| ended_ns <= time_ns)
    }

    /// Returns true if all handles that took part are known, and have one causer.
    fn is_of_one_cause(&mut self, causers: &mut impl FnMut(&Handle) -> Blame) -> bool {
        let are_told = self.handles.iter().all(|handle| handle.tells_causes);
        are_told && matches!(self.others(causers), Others::Among(all) if all.len() == 1)
    }

    /// Returns the causers of the transaction; none before [`Self::weights`] was called.
    pub fn causers(&self) -> impl Iterator<Item = CauseId> {
        self.weights.iter().flat_map(Weights::causers)
    }

    /// Returns the causers of a handle and of the handles that cannot be distinguished from it.
    fn blame_of(&mut self, at: u32, causers: &mut impl FnMut(&Handle) -> Blame) -> Blame {
        let at = at as usize;
        if let Some(Some(blame)) = self.blames.get(at) {
            return blame.clone();
        }
        let Some(handle) = self.handles.get(at) else {
            return Blame::Unknown;
        };
        let own = causers(handle);
        let blame = match handle.overlaps {
            false => own,
            true => {
                let mut all = own.causers().to_vec();
                let (others, are_all) = self.meeting(at);
                for other in others {
                    all.extend(causers(other).causers());
                }
                match are_all {
                    true => Blame::of(all),
                    false => Blame::of(all).first(&Others::Unknown),
                }
            }
        };
        self.blames.resize(self.handles.len(), None);
        self.blames[at] = Some(blame.clone());
        blame
    }

    /// Returns the other handles that may have dirtied what this one is said to have dirtied; false if there may be more.
    fn meeting(&self, at: usize) -> (impl Iterator<Item = &Handle>, bool) {
        let handle = &self.handles[at];
        let earliest_ns = handle.start_ns.saturating_sub(DISORDER_NS);
        let latest_ns = handle.end_ns.saturating_add(self.longest_ns);
        let latest_ns = latest_ns.saturating_add(DISORDER_NS);
        let before = self.handles[..at].iter().rev();
        let before = before.take_while(move |other| other.end_ns >= earliest_ns);
        let after = self.handles[at..].iter().skip(1);
        let after = after.take_while(move |other| other.end_ns <= latest_ns);
        let are_all = before.clone().nth(MEETING).is_none() && after.clone().nth(MEETING).is_none();
        let searched = before.take(MEETING).chain(after.take(MEETING));
        let meant = searched.filter(|other| other.may_be_meant_for(handle));
        (meant, are_all)
    }
}

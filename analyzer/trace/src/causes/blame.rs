// SPDX-License-Identifier: MIT OR Apache-2.0
//! The causers of one block, and the division of bytes among causers.

use std::rc::Rc;

use smallvec::SmallVec;

use super::share::in_proportion;
use super::{CauseId, Known, Sharing, share::Verdicts};
use crate::tally::Tally;

/// A block with more causers than this counts as unknown.
const MOST: usize = 1 << 12;

/// The causer or causers of a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Blame {
    /// The causer is unknown.
    #[default]
    Unknown,
    /// This causer made every change.
    Exact(CauseId),
    /// These causers made every change, the first one first.
    Shared(Rc<[CauseId]>),
    /// This causer made the first change; others may have made more.
    First(CauseId, Others),
    /// One of these or several of them, the likeliest first; others may have made changes too.
    Set(Rc<[CauseId]>, Others),
}

/// Causers that may have changed the block, in addition to the known ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Others {
    /// Nobody else changed the block.
    #[default]
    None,
    /// They are among these.
    Among(Rc<[CauseId]>),
    /// Anybody may be one.
    Unknown,
}

impl Others {
    /// Returns them; `CauseId::UNKNOWN` stands for anybody.
    pub fn causers(&self) -> &[CauseId] {
        match self {
            Others::None => &[],
            Others::Among(all) => all,
            Others::Unknown => &[CauseId::UNKNOWN],
        }
    }

    /// Returns all causers of these blames.
    pub fn among(blames: &[Blame]) -> Others {
        let causers = blames.iter().flat_map(|blame| blame.causers());
        match distinct(causers.copied()) {
            Some(causers) => Others::Among(causers.into()),
            None => Others::Unknown,
        }
    }

    fn joined<'b>(all: impl IntoIterator<Item = &'b Others>) -> Others {
        let causers = all.into_iter().flat_map(|others| others.causers());
        match distinct(causers.copied()) {
            None => Others::Unknown,
            Some(none) if none.is_empty() => Others::None,
            Some(causers) => Others::Among(causers.into()),
        }
    }
}

impl Blame {
    /// Combines all possible causers; the result is exact if they are all the same, and unknown if one is unknown.
    pub fn of(causers: impl IntoIterator<Item = CauseId>) -> Blame {
        Blame::combined(causers, |causers| Blame::Set(causers, Others::None))
    }

    /// Every causer changed the block, and nobody else did. Keeps their order.
    pub fn all(causers: impl IntoIterator<Item = CauseId>) -> Blame {
        Blame::combined(causers, Blame::Shared)
    }

    fn combined(
        causers: impl IntoIterator<Item = CauseId>,
        several: impl FnOnce(Rc<[CauseId]>) -> Blame,
    ) -> Blame {
        match distinct(causers) {
            None => Blame::Unknown,
            Some(causers) => match causers[..] {
                [] => Blame::Unknown,
                [one] => Blame::Exact(one),
                _ if causers.len() > MOST => Blame::Unknown,
                _ => several(causers.into()),
            },
        }
    }

    /// Returns the blame for a block that these causers changed first, and that `others` may have changed later.
    pub fn first(self, others: &Others) -> Blame {
        match self {
            Blame::Unknown => Blame::Unknown,
            Blame::Exact(one) | Blame::First(one, _) => Blame::First(one, others.clone()),
            Blame::Shared(all) | Blame::Set(all, _) => Blame::Set(all, others.clone()),
        }
    }

    /// Combines the blames for successive changes of a block that was written after the last of them.
    pub fn joined(changes: &[Blame]) -> Blame {
        match changes {
            [] => Blame::Unknown,
            [one] => one.clone(),
            _ => {
                let causers = changes.iter().flat_map(|blame| blame.causers());
                let causers = causers.copied();
                match changes.iter().all(Blame::is_complete) {
                    true => Blame::all(causers),
                    false => {
                        Blame::of(causers).first(&Others::joined(changes.iter().map(Blame::others)))
                    }
                }
            }
        }
    }

    /// Returns true if no causer is missing.
    fn is_complete(&self) -> bool {
        matches!(self, Blame::Exact(_) | Blame::Shared(_))
    }

    pub fn known(&self) -> Known {
        match self {
            Blame::Unknown => Known::Unknown,
            Blame::Exact(_) => Known::Exact,
            Blame::Shared(_) => Known::Shared,
            Blame::First(..) => Known::First,
            Blame::Set(..) => Known::Set,
        }
    }

    /// Returns the causers; `CauseId::UNKNOWN` if none is known.
    pub fn causers(&self) -> &[CauseId] {
        match self {
            Blame::Unknown => &[CauseId::UNKNOWN],
            Blame::Exact(one) | Blame::First(one, _) => std::slice::from_ref(one),
            Blame::Set(all, _) | Blame::Shared(all) => all,
        }
    }

    /// Returns the causers that may have made changes beside [`Self::causers`].
    pub fn others(&self) -> &Others {
        match self {
            Blame::First(_, others) | Blame::Set(_, others) => others,
            _ => &Others::None,
        }
    }

    /// Returns the same blame with each causer replaced.
    pub fn map(&self, mut to: impl FnMut(CauseId) -> CauseId) -> Blame {
        let mut all =
            |causers: &Rc<[CauseId]>| causers.iter().map(|&one| to(one)).collect::<Vec<_>>();
        match self {
            Blame::Unknown => Blame::Unknown,
            Blame::Set(causers, others) => match Blame::of(all(causers)) {
                Blame::Set(causers, _) => Blame::Set(causers, others.clone()),
                one => one.first(others),
            },
            Blame::Shared(causers) => Blame::all(all(causers)),
            Blame::Exact(one) => Blame::Exact(to(*one)),
            Blame::First(one, others) => Blame::First(to(*one), others.clone()),
        }
    }

    /// Divides `whole` among the causers.
    pub fn parts(&self, whole: u32, sharing: Sharing) -> impl Iterator<Item = (CauseId, u32)> {
        let causers = self.causers();
        let last = causers.len().saturating_sub(1);
        let weight = |at: usize| match sharing {
            Sharing::First => u64::from(at == 0),
            Sharing::Last => u64::from(at == last),
            Sharing::Equal => 1,
        };
        let weights: SmallVec<[u64; 1]> = (0..causers.len()).map(weight).collect();
        causers.iter().copied().zip(in_proportion(whole, &weights))
    }
}

/// Returns each causer once, in the order of the first occurrences; None if one is unknown.
fn distinct(causers: impl IntoIterator<Item = CauseId>) -> Option<Vec<CauseId>> {
    let mut distinct: Vec<CauseId> = Vec::new();
    for causer in causers {
        if causer == CauseId::UNKNOWN {
            return None;
        }
        if !distinct.contains(&causer) {
            distinct.push(causer);
        }
    }
    Some(distinct)
}

/// The number of blocks for which each causer is responsible: 0 for one that took part, but was the first to change none.
#[derive(Clone, Debug, Default)]
pub(super) struct Weights {
    causers: Vec<(CauseId, u64)>,
    places: crate::attribute::HashMap<CauseId, usize>,
    /// True if there are no other causers and each block's causer is certain.
    are_all: bool,
}

impl Weights {
    pub fn add(&mut self, causer: CauseId, blocks: u64) {
        let causers = &mut self.causers;
        let place = *self.places.entry(causer).or_insert_with(|| {
            let place = causers.len();
            causers.push((causer, 0));
            place
        });
        causers[place].1.tally(blocks);
    }

    pub fn is_empty(&self) -> bool {
        self.causers.is_empty()
    }

    pub fn add_all(&mut self, other: &Weights) {
        for &(causer, blocks) in &other.causers {
            self.add(causer, blocks);
        }
    }

    /// Declares that there are no other blocks, and that the causer of each is certain. A single causer is then exact rather than
    /// proportional.
    pub fn are_all(&mut self) {
        self.are_all = true;
    }

    pub fn causers(&self) -> impl Iterator<Item = CauseId> {
        self.causers.iter().map(|&(causer, _)| causer)
    }

    /// Returns each causer with its blocks.
    pub fn iter(&self) -> impl Iterator<Item = (CauseId, u64)> {
        self.causers.iter().copied()
    }

    /// Divides the bytes of a row by the weights; they go to `CauseId::UNKNOWN` if there are none. No share is exact unless all
    /// changes are known (`is_whole`).
    pub fn share(&self, bytes: u32, is_whole: bool, verdicts: &mut Verdicts) {
        let weights: SmallVec<[u64; 1]> = self.causers.iter().map(|&(_, blocks)| blocks).collect();
        let parts = in_proportion(bytes, &weights);
        let known = |causer| match causer {
            CauseId::UNKNOWN => Known::Unknown,
            _ if is_whole && self.are_all && self.causers.len() == 1 => Known::Exact,
            _ => Known::Proportional,
        };
        let shares = self.causers.iter().zip(parts);
        verdicts.add_each(shares.map(|(&(causer, _), part)| (causer, known(causer), part)));
        if !is_whole {
            verdicts.add_others(Others::Unknown.causers());
        }
        // Otherwise `Verdicts::end` would add an unknown share of 0 bytes.
        if self.causers.is_empty() {
            verdicts.add(CauseId::UNKNOWN, Known::Unknown, bytes);
        }
    }
}

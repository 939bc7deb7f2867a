// SPDX-License-Identifier: MIT OR Apache-2.0
//! The causers of one block, and the division of bytes among causers.

use std::rc::Rc;

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
    /// This causer, for certain.
    Exact(CauseId),
    /// One of these or several of them, the likeliest first.
    Set(Rc<[CauseId]>),
}

impl Blame {
    /// Combines all possible causers; the result is exact if they are all the same, and unknown if one is unknown.
    pub fn of(causers: impl IntoIterator<Item = CauseId>) -> Blame {
        let mut distinct: Vec<CauseId> = Vec::new();
        for causer in causers {
            if causer == CauseId::UNKNOWN {
                return Blame::Unknown;
            }
            if !distinct.contains(&causer) {
                distinct.push(causer);
            }
        }
        match distinct[..] {
            [] => Blame::Unknown,
            [one] => Blame::Exact(one),
            _ if distinct.len() > MOST => Blame::Unknown,
            _ => Blame::Set(distinct.into()),
        }
    }

    pub fn known(&self) -> Known {
        match self {
            Blame::Unknown => Known::Unknown,
            Blame::Exact(_) => Known::Exact,
            Blame::Set(_) => Known::Set,
        }
    }

    /// Returns the causers; `CauseId::UNKNOWN` if none is known.
    pub fn causers(&self) -> &[CauseId] {
        match self {
            Blame::Unknown => &[CauseId::UNKNOWN],
            Blame::Exact(one) => std::slice::from_ref(one),
            Blame::Set(all) => all,
        }
    }

    /// Divides `whole` among the causers.
    pub fn parts(&self, whole: u32, sharing: Sharing) -> impl Iterator<Item = (CauseId, u32)> {
        let causers = self.causers();
        let weights = match sharing {
            Sharing::First => {
                let first = |at: usize| u64::from(at == 0);
                (0..causers.len()).map(first).collect()
            }
            Sharing::Equal => vec![1; causers.len()],
        };
        causers.iter().copied().zip(in_proportion(whole, &weights))
    }
}

/// The number of blocks that each causer must answer for.
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

    pub fn add_all(&mut self, other: &Weights) {
        for &(causer, blocks) in &other.causers {
            self.add(causer, blocks);
        }
    }

    /// Declares that there are no other blocks and that the causer of each is certain: if there is a single causer, its
    /// share is then exact rather than proportional.
    pub fn are_all(&mut self) {
        self.are_all = true;
    }

    pub fn causers(&self) -> impl Iterator<Item = CauseId> {
        self.causers.iter().map(|&(causer, _)| causer)
    }

    /// Divides the bytes of a row by the weights; they go to `CauseId::UNKNOWN` if there are none.
    pub fn share(&self, bytes: u32, verdicts: &mut Verdicts) {
        let weights: Vec<u64> = self.causers.iter().map(|&(_, blocks)| blocks).collect();
        let parts = in_proportion(bytes, &weights);
        for (&(causer, _), part) in self.causers.iter().zip(parts) {
            let known = match causer {
                CauseId::UNKNOWN => Known::Unknown,
                _ if self.are_all && self.causers.len() == 1 => Known::Exact,
                _ => Known::Proportional,
            };
            verdicts.add_another(causer, known, part);
        }
        // Otherwise `Verdicts::end` would add an unknown share of 0 bytes.
        if self.causers.is_empty() {
            verdicts.add_another(CauseId::UNKNOWN, Known::Unknown, bytes);
        }
    }
}

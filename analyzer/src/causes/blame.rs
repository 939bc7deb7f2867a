// SPDX-License-Identifier: MIT OR Apache-2.0
//! The causers of one block.

use std::rc::Rc;

use super::share::in_proportion;
use super::{CauseId, Known, Sharing, share::Verdicts};
use crate::tally::Tally;

/// More causers of one block than this say nothing any more.
const MOST: usize = 1 << 12;

/// Whose doing a block is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Blame {
    /// Not known.
    #[default]
    Unknown,
    /// This one's.
    Exact(CauseId),
    /// One of these, the likeliest first.
    Set(Rc<[CauseId]>),
}

impl Blame {
    /// Of those that may have been it; exact if all are one.
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

    /// The causers; the unknown one, if none is known.
    pub fn causers(&self) -> &[CauseId] {
        match self {
            Blame::Unknown => &[CauseId::UNKNOWN],
            Blame::Exact(one) => std::slice::from_ref(one),
            Blame::Set(all) => all,
        }
    }

    /// Shares a number out among them.
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

/// Blocks that causers have to answer for.
#[derive(Clone, Debug, Default)]
pub(super) struct Weights {
    causers: Vec<(CauseId, u64)>,
    places: crate::attribute::HashMap<CauseId, usize>,
    /// They are all that there are, and each block is known to be its causer's.
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

    /// There are no other blocks than those, and of each the causer is exact: what has a single causer is that one's then, not
    /// its part.
    pub fn are_all(&mut self) {
        self.are_all = true;
    }

    pub fn causers(&self) -> impl Iterator<Item = CauseId> {
        self.causers.iter().map(|&(causer, _)| causer)
    }

    /// Shares the bytes of a row out by them, to the unknown one if there are none.
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
        // Ended without a share, a row is the unknown one's: only of its bytes, if it has none.
        if self.causers.is_empty() {
            verdicts.add_another(CauseId::UNKNOWN, Known::Unknown, bytes);
        }
    }
}

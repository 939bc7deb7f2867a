// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides bytes among causers, in whole bytes that sum to the total.

use std::num::NonZero;

use smallvec::{SmallVec, smallvec};

use super::{CauseId, Force, Forced, Known, Reason};
use crate::attribute::HashSet;
use crate::tally::Tally;

/// The rule for sharing the bytes of a block that several causers had changed by the time it was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Sharing {
    /// All of them, equally
    #[default]
    Equal,
    /// The task that changed it first
    First,
    /// The task that changed it last
    Last,
}

/// A causer's share of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The causer.
    pub cause: CauseId,
    /// The certainty of the causer.
    pub known: Known,
    /// Bytes; 0 if the row has none.
    pub bytes: u32,
}

/// The causers of some rows, in the order of the rows.
#[derive(Clone, Debug, Default)]
pub struct Verdicts {
    shares: Vec<Share>,
    rows: Vec<Verdict>,
    /// The index of the first share of the row that is being judged.
    begun: usize,
    /// The reason for that row.
    reason: Option<Reason>,
    /// True if that row's causers are of one process.
    is_one_process: bool,
    /// Causers that may have changed that row's bytes without having a share of them.
    others: Vec<CauseId>,
}

/// The result for one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    from: usize,
    to: usize,
    /// Number of known causers, including those whose share is 0.
    pub causers: u32,
    /// How certain it is that the largest share's cause is the row's.
    pub known: Known,
    /// Time from the start of the call that forced the row to the device's completion, ns.
    pub latency_ns: Option<u64>,
    /// What forced the row; None if it is not known.
    pub forced: Option<Forced>,
    /// Why f2fs wrote the checkpoint that the row belongs to.
    pub reason: Option<Reason>,
    /// True if all certain or possible causers are known and belong to one process.
    pub is_one_process: bool,
}

impl Verdicts {
    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.shares.clear();
        self.rows.clear();
        self.begun = 0;
        self.reason = None;
        self.is_one_process = false;
        self.others.clear();
    }

    /// Returns each row's verdict with its shares, the largest share first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Verdict, &[Share])> {
        let shares = |v: &Verdict| self.shares.get(v.from..v.to).unwrap_or_default();
        self.rows
            .iter()
            .map(move |verdict| (verdict, shares(verdict)))
    }

    /// Adds bytes to a share of the row that is being judged.
    pub(super) fn add(&mut self, cause: CauseId, known: Known, bytes: u32) {
        let mine = self.shares.get_mut(self.begun..).unwrap_or_default();
        let same = |share: &&mut Share| (share.cause, share.known) == (cause, known);
        match mine.iter_mut().find(same) {
            Some(share) => share.bytes.tally(bytes),
            None => self.add_another(cause, known, bytes),
        }
    }

    /// Adds bytes to shares of the row that is being judged, each of another cause.
    pub(super) fn add_each(&mut self, shares: impl Iterator<Item = (CauseId, Known, u32)>) {
        let is_first = self.begun == self.shares.len();
        for (cause, known, bytes) in shares {
            match is_first {
                true => self.add_another(cause, known, bytes),
                false => self.add(cause, known, bytes),
            }
        }
    }

    /// Adds a share for a cause that the row has no share of yet.
    fn add_another(&mut self, cause: CauseId, known: Known, bytes: u32) {
        self.shares.push(Share {
            cause,
            known,
            bytes,
        });
    }

    /// Sets the reason of the checkpoint that the row being judged belongs to.
    pub(super) fn checkpoint(&mut self, reason: Reason) {
        self.reason = Some(reason);
    }

    /// Notes that these causers may have changed bytes of the row that is being judged.
    pub(super) fn add_others(&mut self, others: &[CauseId]) {
        if !self.others.ends_with(others) {
            self.others.extend_from_slice(others);
        }
    }

    /// Returns the certain and possible causers of the row that is being judged, including those whose share is 0.
    pub(super) fn causers(&self) -> impl Iterator<Item = CauseId> {
        let mine = self.shares.get(self.begun..).unwrap_or_default();
        let shares = mine.iter().map(|share| share.cause);
        shares.chain(self.others.iter().copied())
    }

    /// Notes that the row's causers belong to one process.
    pub(super) fn one_process(&mut self) {
        self.is_one_process = true;
    }

    /// Ends the row. Its largest share comes first (the first of equal ones); other shares of 0 bytes are dropped.
    pub(super) fn end(&mut self, latency_ns: Option<u64>, forced: Option<Forced>) {
        let begun = self.begun;
        let mine = self.shares.get(begun..).unwrap_or_default();
        let causers = number_of_causers(mine);
        let known = known_of(mine);
        let largest = (begun..self.shares.len())
            .rev()
            .max_by_key(|&at| self.shares[at].bytes);
        match largest {
            Some(at) => self.shares[begun..=at].rotate_right(1),
            None => self.add_another(CauseId::UNKNOWN, Known::Unknown, 0),
        }
        let kept = self.keep_with_bytes(begun.saturating_add(1));
        self.rows.push(Verdict {
            from: begun,
            to: kept,
            causers: u32::try_from(causers).unwrap_or(u32::MAX),
            known,
            latency_ns,
            forced,
            reason: self.reason.take(),
            is_one_process: std::mem::take(&mut self.is_one_process),
        });
        self.begun = kept;
        self.others.clear();
    }

    /// Makes the verdict on one row of a checkpoint that has one exact cause, for tests of what is made of verdicts.
    #[doc(hidden)]
    pub fn for_tests(reason: Reason, latency_ns: u64) -> Verdicts {
        let mut verdicts = Verdicts::default();
        verdicts.checkpoint(reason);
        verdicts.one_process();
        verdicts.add(CauseId(1), Known::Exact, 4096);
        verdicts.end(
            Some(latency_ns),
            Some(Forced {
                by: Force::Fsync,
                call: Some((7, 100)),
            }),
        );
        verdicts
    }

    /// Drops shares of 0 bytes from index `from` on; returns where the others end.
    fn keep_with_bytes(&mut self, from: usize) -> usize {
        let mut kept = from;
        for at in from..self.shares.len() {
            if self.shares[at].bytes > 0 {
                self.shares.swap(kept, at);
                kept.tally(1);
            }
        }
        self.shares.truncate(kept);
        kept
    }
}

fn number_of_causers(shares: &[Share]) -> usize {
    let known = shares.iter().map(|share| share.cause);
    let known = known.filter(|&cause| cause != CauseId::UNKNOWN);
    match shares {
        [_] => known.count(),
        _ => known.collect::<HashSet<_>>().len(),
    }
}

/// Returns how certain it is that one cause is the whole row's, whose blocks may have causes of their own.
fn known_of(shares: &[Share]) -> Known {
    let least = shares.iter().map(|share| share.known).min();
    let least = least.unwrap_or_default();
    let is_one = shares.windows(2).all(|pair| match pair {
        [a, b] => a.cause == b.cause,
        _ => true,
    });
    if is_one {
        return least;
    }
    let is_divided = shares
        .iter()
        .any(|share| share.known == Known::Proportional);
    match least {
        _ if is_divided => Known::Proportional,
        Known::Shared | Known::Exact => Known::Shared,
        _ => Known::Set,
    }
}

/// Divides `whole` in proportion to the weights by the largest-remainder method, so that the parts sum to it; of equal
/// remainders the first wins. If all weights are 0, the first part gets everything.
pub fn in_proportion(whole: u32, weights: &[u64]) -> SmallVec<[u32; 1]> {
    // Nearly every block has one causer.
    if let [_] = weights {
        return smallvec![whole];
    }
    let Some(sum) = NonZero::new(weights.iter().copied().map(u128::from).sum::<u128>()) else {
        let mut parts = smallvec![0; weights.len()];
        parts.iter_mut().take(1).for_each(|first| *first = whole);
        return parts;
    };
    // 32 bits times 64 bits fit into 128.
    let exact = |weight: u64| u128::from(whole).wrapping_mul(weight.into());
    // No part is larger than the whole.
    let mut parts: SmallVec<[u32; 1]> = weights.iter().map(|&w| (exact(w) / sum) as u32).collect();
    let given: u32 = parts.iter().sum();
    let mut by_remainder: Vec<usize> = (0..weights.len()).collect();
    by_remainder.sort_by_key(|&at| std::cmp::Reverse(exact(weights[at]) % sum));
    // The rest is less than one for each part.
    let left = whole.saturating_sub(given) as usize;
    for at in by_remainder.into_iter().take(left) {
        parts[at].tally(1);
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_sum_to_the_whole_and_are_within_one_of_their_due(
            whole in 0u32.., weights in prop::collection::vec(0u64..1 << 40, 1..40)
        ) {
            let parts = in_proportion(whole, &weights);
            prop_assert_eq!(parts.iter().map(|&p| u64::from(p)).sum::<u64>(), u64::from(whole));
            let sum: u64 = weights.iter().sum();
            for (&part, &weight) in parts.iter().zip(&weights).filter(|_| sum > 0) {
                let due = f64::from(whole) * weight as f64 / sum as f64;
                prop_assert!((f64::from(part) - due).abs() <= 1.0, "{part} for {due}");
            }
        }

        #[test]
        fn the_shares_of_a_row_keep_its_bytes(
            rows in prop::collection::vec(prop::collection::vec((0u32..5, 0u8..6, 0u32..3), 0..9), 0..9)
        ) {
            let mut verdicts = Verdicts::default();
            for row in &rows {
                for &(cause, known, bytes) in row {
                    let known = Known::from_repr(known).unwrap();
                    verdicts.add(CauseId(cause), known, bytes * 4096);
                }
                verdicts.end(None, None);
            }
            prop_assert_eq!(verdicts.iter().len(), rows.len());
            for ((verdict, shares), row) in verdicts.iter().zip(&rows) {
                let whole: u32 = row.iter().map(|(_, _, bytes)| bytes * 4096).sum();
                prop_assert_eq!(shares.iter().map(|s| s.bytes).sum::<u32>(), whole);
                prop_assert!(!shares.is_empty());
                prop_assert!(shares.iter().all(|s| s.bytes <= shares[0].bytes));
                prop_assert!(shares.len() == 1 || shares.iter().all(|s| s.bytes > 0));
                let known: std::collections::HashSet<_> =
                    row.iter().map(|(cause, ..)| cause).filter(|cause| **cause != 0).collect();
                prop_assert_eq!(verdict.causers as usize, known.len());
            }
        }
    }

    /// A row of two blocks is nobody's alone if each has a cause of its own.
    #[test]
    fn a_row_is_exact_if_all_of_it_is_of_one_cause() {
        let known = |shares: &[(u32, Known)]| {
            let share = |&(cause, known): &(u32, Known)| Share {
                cause: CauseId(cause),
                known,
                bytes: 4096,
            };
            known_of(&shares.iter().map(share).collect::<Vec<_>>())
        };
        use Known::{Exact, First, Proportional, Set, Shared, Unknown};
        assert_eq!(known(&[]), Unknown);
        assert_eq!(known(&[(1, Exact)]), Exact);
        assert_eq!(known(&[(1, Exact), (1, First)]), First);
        assert_eq!(known(&[(1, Exact), (2, Exact)]), Shared);
        assert_eq!(known(&[(1, Shared), (2, Shared), (2, Exact)]), Shared);
        assert_eq!(known(&[(1, Exact), (2, First)]), Set);
        assert_eq!(known(&[(1, Exact), (0, Unknown)]), Set);
        assert_eq!(known(&[(1, Proportional), (0, Unknown)]), Proportional);
    }

    #[test]
    fn the_first_of_equal_shares_is_shown() {
        let mut verdicts = Verdicts::default();
        for (cause, bytes) in [(7, 1), (8, 2), (9, 2)] {
            verdicts.add(CauseId(cause), Known::Exact, bytes);
        }
        verdicts.end(Some(5), None);
        let (verdict, shares) = verdicts.iter().next().unwrap();
        let order: Vec<u32> = shares.iter().map(|s| s.cause.0).collect();
        assert_eq!((verdict.causers, verdict.latency_ns), (3, Some(5)));
        assert_eq!(order, [8, 7, 9]);
    }
}

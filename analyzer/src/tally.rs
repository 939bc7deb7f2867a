// SPDX-License-Identifier: MIT OR Apache-2.0
//! Counting and adding up what a recording tells. It may come from anybody, and tell of any numbers.
//!
//! A row has fewer than 2^32 bytes, so that no recording has enough of them to reach the most of a sum of rows: it
//! conserves their bytes. What a call tells of itself has 64 bits, and does reach it.

/// A number that is counted up: where it would overflow, it stays at its most.
pub(crate) trait Tally {
    /// Adds so many.
    fn tally(&mut self, more: Self);
}

/// All of them together.
pub(crate) fn sum<T: Tally + Default>(all: impl IntoIterator<Item = T>) -> T {
    let mut sum = T::default();
    all.into_iter().for_each(|more| sum.tally(more));
    sum
}

macro_rules! tallied {
    ($($number:ty),+) => {
        $(impl Tally for $number {
            #[inline]
            fn tally(&mut self, more: Self) {
                *self = self.saturating_add(more);
            }
        })+
    };
}

tallied!(u32, u64, usize, i64);

/// Item by item.
impl<T: Tally, const N: usize> Tally for [T; N] {
    fn tally(&mut self, more: [T; N]) {
        for (sum, more) in self.iter_mut().zip(more) {
            sum.tally(more);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Saturating counters and sums for the numbers in a recording, which may come from anybody and contain any number.
//!
//! A row has fewer than 2^32 bytes, so no recording has enough rows for a sum of them to saturate: bytes of rows are
//! conserved. The length in a system call's entry has 64 bits, and a sum of these can saturate.

/// A number that saturates at its maximum instead of overflowing.
pub trait Tally {
    /// Adds `more`.
    fn tally(&mut self, more: Self);
}

/// Returns the sum of all items.
pub fn sum<T: Tally + Default>(all: impl IntoIterator<Item = T>) -> T {
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

/// Adds structs field by field.
#[macro_export]
macro_rules! tallied_by_field {
    ($name:ident: $($field:ident),+ $(,)?) => {
        impl $crate::tally::Tally for $name {
            fn tally(&mut self, more: $name) {
                $(self.$field.tally(more.$field);)+
            }
        }
    };
}

pub use crate::tallied_by_field;

/// Arrays are added element by element.
impl<T: Tally, const N: usize> Tally for [T; N] {
    fn tally(&mut self, more: [T; N]) {
        for (sum, more) in self.iter_mut().zip(more) {
            sum.tally(more);
        }
    }
}

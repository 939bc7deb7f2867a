// SPDX-License-Identifier: MIT OR Apache-2.0
//! On-disk bitmaps as sets of numbers.

use std::ops::Range;

use fixedbitset::FixedBitSet;

/// Converts a bitmap in which the lowest bit of a byte comes first.
pub fn lowest_first(bytes: &[u8]) -> FixedBitSet {
    let word = |bytes: &[u8]| {
        let add = |word: usize, byte: &u8| word.wrapping_shl(8) | usize::from(*byte);
        bytes.iter().rev().fold(0, add)
    };
    let words = bytes.chunks(size_of::<usize>()).map(word);
    FixedBitSet::with_capacity_and_blocks(bytes.len().saturating_mul(8), words)
}

/// Converts a bitmap in which the highest bit of a byte comes first.
pub fn highest_first(bytes: &[u8]) -> FixedBitSet {
    let bytes: Vec<u8> = bytes.iter().map(|byte| byte.reverse_bits()).collect();
    lowest_first(&bytes)
}

/// Adds a number to a set. Returns true if it is new; a number beyond the set's capacity is ignored.
pub fn insert(set: &mut FixedBitSet, n: usize) -> bool {
    n < set.len() && !set.put(n)
}

/// Returns the members of a set as runs of consecutive numbers.
pub fn runs(set: &FixedBitSet) -> impl Iterator<Item = Range<usize>> + '_ {
    runs_of(set.ones())
}

/// Groups ascending numbers into runs of consecutive ones.
pub fn runs_of(numbers: impl Iterator<Item = usize>) -> impl Iterator<Item = Range<usize>> {
    let mut ones = numbers.peekable();
    std::iter::from_fn(move || {
        let first = ones.next()?;
        let mut end = first.saturating_add(1);
        while ones.next_if_eq(&end).is_some() {
            end = end.saturating_add(1);
        }
        Some(first..end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_bit_is_where_its_order_says(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let (low, high) = (lowest_first(&bytes), highest_first(&bytes));
            for n in 0..bytes.len() * 8 + 70 {
                let byte = bytes.get(n / 8).copied().unwrap_or(0);
                prop_assert_eq!(low.contains(n), byte >> (n % 8) & 1 == 1);
                prop_assert_eq!(high.contains(n), byte << (n % 8) & 0x80 != 0);
            }
            prop_assert!(runs(&low).flatten().eq(low.ones()));
            let runs: Vec<_> = runs(&low).collect();
            prop_assert!(runs.windows(2).all(|pair| pair[0].end < pair[1].start));
        }
    }

    #[test]
    fn what_lies_behind_the_end_is_never_in_a_set() {
        let mut set = FixedBitSet::with_capacity(10);
        assert!(insert(&mut set, 9) && !insert(&mut set, 9) && !insert(&mut set, 10));
        assert!(set.contains(9) && !set.contains(10));
    }
}

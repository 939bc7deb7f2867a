// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order in which records are read or written.

/// Returns the numbers of all records in ascending order.
pub(super) fn in_sequence(records: u64) -> Vec<u64> {
    (0..records).collect()
}

/// Returns as many record numbers in random order. `overlap` per cent of them, rounded down, repeat other numbers; as
/// many records are left out.
pub(super) fn by_chance(records: u64, overlap: u8, chance: &mut fastrand::Rng) -> Vec<u64> {
    let mut numbers = in_sequence(records);
    chance.shuffle(&mut numbers);
    let again = records.saturating_mul(overlap.into()) / 100;
    let once = numbers
        .len()
        .saturating_sub(usize::try_from(again).unwrap_or(usize::MAX));
    let (once, others) = numbers.split_at_mut(once);
    for other in others {
        if let Some(number) = chance.choice(once.iter()) {
            *other = *number;
        }
    }
    chance.shuffle(&mut numbers);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn as_many_are_again_as_asked_for(records in 1_u64..500, overlap in 0_u8..100, seed: u64) {
            let numbers = by_chance(records, overlap, &mut fastrand::Rng::with_seed(seed));
            let different: BTreeSet<u64> = numbers.iter().copied().collect();
            prop_assert_eq!(numbers.len() as u64, records);
            prop_assert_eq!(different.len() as u64, records - records * u64::from(overlap) / 100);
            prop_assert!(different.iter().all(|number| *number < records));
        }
    }
}

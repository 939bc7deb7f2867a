// SPDX-License-Identifier: MIT OR Apache-2.0
//! One bit for each block of the main area; and f2fs's own bitmaps.

/// Bits by number. What lies behind the end is never set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// `bits` zeros, rounded up to whole words.
    pub fn new(bits: u32) -> Bits {
        let words = usize::try_from(bits.div_ceil(64)).unwrap_or(usize::MAX);
        Bits {
            words: vec![0; words],
        }
    }

    /// Whether bit `n` is set.
    pub fn get(&self, n: u32) -> bool {
        let (word, mask) = place(n);
        self.words.get(word).is_some_and(|word| word & mask != 0)
    }

    /// Sets bit `n`; says whether it was not set before.
    pub fn set(&mut self, n: u32) -> bool {
        let (word, mask) = place(n);
        match self.words.get_mut(word) {
            Some(word) if *word & mask == 0 => {
                *word |= mask;
                true
            }
            _ => false,
        }
    }

    /// Clears bit `n`.
    pub fn clear(&mut self, n: u32) {
        let (word, mask) = place(n);
        if let Some(word) = self.words.get_mut(word) {
            *word &= !mask;
        }
    }

    /// Words from the one with bit `n` on, to be written as a whole.
    pub fn words_from(&mut self, n: u32) -> impl Iterator<Item = &mut u64> {
        self.words.iter_mut().skip(place(n).0)
    }

    /// The bits that are set here, but not in `other`.
    pub fn without(&self, other: &Bits) -> Bits {
        let others = other.words.iter().chain(std::iter::repeat(&0));
        let words = self.words.iter().zip(others).map(|(a, b)| a & !b);
        Bits {
            words: words.collect(),
        }
    }

    /// How many are set.
    pub fn count(&self) -> u64 {
        self.words
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .fold(0, u64::saturating_add)
    }

    /// The set bits as runs: the first bit, and how many.
    pub fn runs(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let first = self.find(at, true)?;
            let end = self.find(first, false).unwrap_or(u32::MAX);
            at = end;
            Some((first, end.saturating_sub(first)))
        })
    }

    /// The first bit from `from` on that is set, or is not; None behind the last word.
    fn find(&self, from: u32, set: bool) -> Option<u32> {
        let (first, mask) = place(from);
        let mut unseen = !mask.wrapping_sub(1);
        for (nth, word) in self.words.iter().enumerate().skip(first) {
            let hits = unseen & if set { *word } else { !word };
            unseen = u64::MAX;
            if hits != 0 {
                let base = u32::try_from(nth).ok()?.checked_mul(64)?;
                return base.checked_add(hits.trailing_zeros());
            }
        }
        let bits = self.words.len().checked_mul(64)?;
        (!set).then(|| u32::try_from(bits).ok()).flatten()
    }
}

fn place(n: u32) -> (usize, u64) {
    let word = usize::try_from(n >> 6).unwrap_or(usize::MAX);
    (word, 1u64.wrapping_shl(n))
}

/// `f2fs_test_bit`, of the SIT's and the NAT's version bitmaps: the highest bit of a byte is first.
pub fn test_bit(map: &[u8], n: u32) -> bool {
    let byte = usize::try_from(n >> 3).ok().and_then(|byte| map.get(byte));
    byte.is_some_and(|byte| byte.wrapping_shl(n & 7) & 0x80 != 0)
}

/// `test_bit_le`, of the directory entries' bitmap: the lowest bit of a byte is first.
pub fn test_bit_le(map: &[u8], n: usize) -> bool {
    let byte = map.get(n >> 3);
    byte.is_some_and(|byte| byte >> (n & 7) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_go_over_words() {
        let mut bits = Bits::new(200);
        for n in [0, 1, 63, 64, 65, 128, 199] {
            assert!(bits.set(n));
            assert!(!bits.set(n));
        }
        let runs: Vec<_> = bits.runs().collect();
        assert_eq!(runs, [(0, 2), (63, 3), (128, 1), (199, 1)]);
        assert_eq!(bits.count(), 7);
        bits.clear(64);
        assert!(!bits.get(64) && bits.get(65) && !bits.get(5000));
        let mut full = Bits::new(128);
        full.words_from(0).for_each(|word| *word = u64::MAX);
        assert_eq!(full.runs().collect::<Vec<_>>(), [(0, 128)]);
        assert_eq!(full.without(&bits).count(), 128 - 4);
    }

    #[test]
    fn the_two_orders_of_bits() {
        let map = [0x80, 0x01];
        let set = |test: &dyn Fn(u32) -> bool| (0..20).filter(|&n| test(n)).collect::<Vec<_>>();
        assert_eq!(set(&|n| test_bit(&map, n)), [0, 15]);
        assert_eq!(set(&|n| test_bit_le(&map, n as usize)), [7, 8]);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! One block of a block or inode bitmap.

/// A bitmap block, lowest bit of the lowest byte first.
pub struct Bitmap(pub Vec<u8>);

impl Bitmap {
    /// Whether a bit is set; false past the end.
    pub fn has(&self, bit: u64) -> bool {
        let byte = usize::try_from(bit >> 3).ok().and_then(|at| self.0.get(at));
        byte.is_some_and(|byte| byte >> (bit & 7) & 1 == 1)
    }

    /// Runs of set bits below `bits`, as first bit and length.
    pub fn runs(&self, bits: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let first = (at..bits).find(|&bit| self.has(bit))?;
            let end = (first..bits).find(|&bit| !self.has(bit)).unwrap_or(bits);
            at = end;
            Some((first, end.saturating_sub(first)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Bitmap;

    #[test]
    fn runs_are_the_set_bits() {
        let bitmap = Bitmap(vec![0b1000_0110, 0b0000_0001, 0xff]);
        assert_eq!(
            bitmap.runs(24).collect::<Vec<_>>(),
            [(1, 2), (7, 2), (16, 8)]
        );
        assert_eq!(
            bitmap.runs(18).collect::<Vec<_>>(),
            [(1, 2), (7, 2), (16, 2)]
        );
        assert_eq!(Bitmap(vec![0; 3]).runs(24).count(), 0);
        assert!(!bitmap.has(1000));
    }
}

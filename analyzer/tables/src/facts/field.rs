// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small codes packed into one number, so that a row takes little room.

/// Some bits of a word.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    shift: u32,
    width: u32,
}

impl Field {
    /// Makes a field of the lowest bits.
    pub const fn first(width: u32) -> Field {
        Field { shift: 0, width }
    }

    /// Makes a field of the bits above this one.
    pub const fn then(self, width: u32) -> Field {
        Field {
            shift: self.shift.saturating_add(self.width),
            width,
        }
    }

    /// Returns the largest value that fits.
    pub const fn max(self) -> u64 {
        !(u64::MAX << self.width)
    }

    /// Returns the field's value in a word.
    pub const fn of(self, word: u64) -> u64 {
        word >> self.shift & self.max()
    }

    /// Returns a word with this value in the field and zeros elsewhere. A value that does not fit becomes the largest.
    pub const fn word(self, value: u64) -> u64 {
        (if value > self.max() {
            self.max()
        } else {
            value
        }) << self.shift
    }
}

#[cfg(test)]
mod tests {
    use super::Field;

    #[test]
    fn fields_lie_side_by_side() {
        const A: Field = Field::first(3);
        const B: Field = A.then(5);
        let word = A.word(6) | B.word(17);
        assert_eq!((A.of(word), B.of(word)), (6, 17));
        assert_eq!(B.of(B.word(99)), 31);
    }
}

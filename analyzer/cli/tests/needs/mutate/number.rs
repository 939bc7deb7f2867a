// SPDX-License-Identifier: MIT OR Apache-2.0
//! Numbers at which arithmetic may overflow.

use super::random::Random;

/// Limits of types, of sectors (2^55 of them are 2^64 bytes) and of devices, and sizes of which a few add up to much.
const EXTREMES: [u64; 20] = [
    0,
    1,
    2,
    511,
    513,
    1 << 20,
    1 << 24,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 4096,
    u32::MAX as u64,
    1 << 32,
    1 << 40,
    (1 << 55) - 1,
    1 << 55,
    i64::MAX as u64,
    1 << 63,
    u64::MAX - 4095,
    u64::MAX - 1,
    u64::MAX,
];

/// Returns another number instead of `was`: an extreme one or one close to it.
pub fn other(random: &mut Random, was: u64) -> u64 {
    match random.below(8) {
        0 => was.wrapping_add(1),
        1 => was.wrapping_sub(1),
        2 => was ^ 1 << random.below(64),
        3 => was.wrapping_mul(1 << random.below(20)),
        4 => (1 << random.below(64)) - random.below(2),
        _ => extreme(random),
    }
}

pub fn extreme(random: &mut Random) -> u64 {
    EXTREMES[random.below(EXTREMES.len() as u64) as usize]
}

/// A place in a bundle's records where a number may be: a multiple of the number's width.
pub struct Place {
    at: usize,
    width: usize,
}

impl Place {
    /// Returns a place within this many bytes; None if there is no room.
    pub fn within(random: &mut Random, bytes: usize) -> Option<Place> {
        let width = [1, 2, 4, 4, 8, 8][random.below(6) as usize];
        let places = bytes / width;
        let at = (places > 0).then(|| random.below(places as u64) as usize * width)?;
        Some(Place { at, width })
    }

    /// Returns the place at this byte.
    pub fn at(at: usize, width: usize) -> Place {
        Place { at, width }
    }

    /// Returns true if the place overlaps these bytes.
    pub fn touches(&self, bytes: std::ops::Range<usize>) -> bool {
        self.at < bytes.end && bytes.start < self.at + self.width
    }

    /// Returns the number at the place; None if the record is too short.
    pub fn get(&self, record: &[u8]) -> Option<u64> {
        let bytes = record.get(self.at..self.at + self.width)?;
        Some(bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
    }

    pub fn put(&self, record: &mut [u8], number: u64) {
        if let Some(bytes) = record.get_mut(self.at..self.at + self.width) {
            bytes.copy_from_slice(&number.to_le_bytes()[..self.width]);
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes to bytes of unknown structure.

use super::hostile;
use super::random::Random;

/// Makes one change: a bit, a run of bytes, the length.
pub fn change(random: &mut Random, bytes: &mut Vec<u8>) {
    let from = random.below(bytes.len() as u64 + 1) as usize;
    let to = (from + random.below(200) as usize).min(bytes.len());
    match random.below(8) {
        0 => bytes.truncate(from),
        1 => drop(bytes.drain(from..to)),
        2 => {
            let run = bytes[from..to].to_vec();
            bytes.splice(to..to, run);
        }
        3 => bytes[from..to].fill([0, 0xff][random.below(2) as usize]),
        4 => drop(bytes.splice(from..to, hostile::name(random))),
        _ => flip(random, bytes),
    }
}

fn flip(random: &mut Random, bytes: &mut [u8]) {
    for _ in 0..=random.below(8) {
        let bit = random.below(bytes.len() as u64 * 8 + 1) as usize;
        if let Some(byte) = bytes.get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
    }
}

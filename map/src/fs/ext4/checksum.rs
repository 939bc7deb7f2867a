// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checksum of an inode, of filesystems with metadata_csum.

use super::crc::crc32c;
use super::numbers::Ino;
use super::superblock::{SuperBlock, ro_compat};
use crate::fs::le::{u16_at, u32_at};

/// Where an inode keeps the two halves of its checksum.
const I_CHECKSUM_LO: usize = 0x7c;
const I_CHECKSUM_HI: usize = 0x82;
/// `i_extra_isize` of an inode that has the high half.
const WITH_HIGH_HALF: u16 = 4;

/// Whether a raw inode's checksum is right, or its filesystem has none (`ext4_inode_csum`).
pub fn is_inode_sound(sb: &SuperBlock, number: Ino, raw: &[u8]) -> bool {
    if !sb.ro_compat(ro_compat::METADATA_CSUM) {
        return true;
    }
    let has_high = u16_at(raw, 0x80).is_some_and(|extra| extra >= WITH_HIGH_HALF);
    let halves = if has_high {
        &[I_CHECKSUM_LO, I_CHECKSUM_HI][..]
    } else {
        &[I_CHECKSUM_LO]
    };
    let mut plain = raw.to_vec();
    for &at in halves {
        let half = plain.get_mut(at..).and_then(|rest| rest.first_chunk_mut());
        half.into_iter()
            .for_each(|half: &mut [u8; 2]| *half = [0; 2]);
    }
    let generation = u32_at(raw, 0x64).unwrap_or(0).to_le_bytes();
    let number = number.0.to_le_bytes();
    let sum = [&number[..], &generation, &plain]
        .into_iter()
        .fold(sb.checksum_seed, crc32c);
    let half = |at| u16_at(raw, at).map(u32::from);
    match (half(I_CHECKSUM_LO), half(I_CHECKSUM_HI)) {
        (Some(low), Some(high)) if has_high => sum == high << 16 | low,
        (Some(low), _) => sum & 0xffff == low,
        _ => false,
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checksums of inodes and of extent tree nodes, in filesystems with metadata_csum.

use super::extents;
use super::numbers::Ino;
use super::superblock::{SuperBlock, ro_compat};
use crate::fs::crc::crc32c;
use crate::fs::le::{u16_at, u32_at};

/// Byte offsets of the two halves of an inode's checksum.
const I_CHECKSUM_LO: usize = 0x7c;
const I_CHECKSUM_HI: usize = 0x82;
/// The least `i_extra_isize` of an inode that has the high half.
const WITH_HIGH_HALF: u16 = 4;

/// Returns true if a raw inode's checksum is right, or if the filesystem has none (`ext4_inode_csum`).
pub fn is_inode_sound(sb: &SuperBlock, number: Ino, raw: &[u8]) -> bool {
    if !sb.ro_compat(ro_compat::METADATA_CSUM) {
        return true;
    }
    let sum = inode_sum(sb, number, raw);
    let half = |at| u16_at(raw, at).map(u32::from);
    match (half(I_CHECKSUM_LO), half(I_CHECKSUM_HI)) {
        (Some(low), Some(high)) if has_high_half(raw) => sum == high << 16 | low,
        (Some(low), _) => sum & 0xffff == low,
        _ => false,
    }
}

/// Gives a raw inode that was changed its right checksum.
pub fn seal_inode(sb: &SuperBlock, number: Ino, raw: &mut [u8]) {
    if !sb.ro_compat(ro_compat::METADATA_CSUM) {
        return;
    }
    let [low @ .., a, b] = inode_sum(sb, number, raw).to_le_bytes();
    set(raw, I_CHECKSUM_LO, low);
    if has_high_half(raw) {
        set(raw, I_CHECKSUM_HI, [a, b]);
    }
}

fn has_high_half(raw: &[u8]) -> bool {
    u16_at(raw, 0x80).is_some_and(|extra| extra >= WITH_HIGH_HALF)
}

/// Returns the checksum of a raw inode, which covers it with zeros where the checksum is.
fn inode_sum(sb: &SuperBlock, number: Ino, raw: &[u8]) -> u32 {
    let mut plain = raw.to_vec();
    set(&mut plain, I_CHECKSUM_LO, [0; 2]);
    if has_high_half(raw) {
        set(&mut plain, I_CHECKSUM_HI, [0; 2]);
    }
    let generation = u32_at(raw, 0x64).unwrap_or(0);
    crc32c(seed_of_inode(sb, number, generation), &plain)
}

fn set(raw: &mut [u8], at: usize, half: [u8; 2]) {
    let field = raw.get_mut(at..).and_then(|rest| rest.first_chunk_mut());
    field.into_iter().for_each(|field| *field = half);
}

/// The initial value of the checksums of an inode's own blocks (`ei->i_csum_seed`).
#[derive(Clone, Copy, Debug)]
pub struct Seed(u32);

impl Seed {
    /// Returns an inode's seed; None in a filesystem without metadata_csum.
    pub fn of_inode(sb: &SuperBlock, number: Ino, i_generation: u32) -> Option<Seed> {
        let has_sums = sb.ro_compat(ro_compat::METADATA_CSUM);
        has_sums.then(|| Seed(seed_of_inode(sb, number, i_generation)))
    }
}

fn seed_of_inode(sb: &SuperBlock, number: Ino, i_generation: u32) -> u32 {
    let number = crc32c(sb.checksum_seed, &number.0.to_le_bytes());
    crc32c(number, &i_generation.to_le_bytes())
}

/// Returns true if the checksum of an extent tree node in a block is right (`ext4_extent_block_csum`).
pub fn is_extent_node_sound(seed: Seed, node: &[u8]) -> bool {
    let tail = extents::tail(node);
    let covered = node.get(..tail);
    covered.is_some_and(|covered| u32_at(node, tail) == Some(crc32c(seed.0, covered)))
}

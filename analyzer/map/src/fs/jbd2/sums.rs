// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checksums of a journal's blocks: v2 and v3 are CRC-32C of single blocks, v1 is a CRC-32 of a whole transaction.

use super::be::u32_at;
use super::descriptor::{Checksum, TAIL_LEN, Tag};
use super::superblock::Superblock;
use crate::fs::crc::crc32c;

/// Byte offsets in `struct commit_header`.
const H_CHKSUM_TYPE: usize = 0xc;
const H_CHKSUM: usize = 0x10;
const H_COMMIT_SEC: usize = 0x30;
const JBD2_CRC32_CHKSUM: [u8; 2] = [1, 4];

/// Checks a descriptor or revoke block: `jbd2_descriptor_block_csum_verify`.
pub fn is_descriptor_sound(sb: &Superblock, block: &[u8]) -> bool {
    let tail = block.len().saturating_sub(TAIL_LEN);
    !sb.has_tail() || is_right(sb, block, tail)
}

/// Checks a commit block: `jbd2_commit_block_csum_verify`. `transaction` is the checksum of what lies before it.
pub fn is_commit_sound(sb: &Superblock, block: &[u8], transaction: u32) -> bool {
    if sb.has_tail() {
        return is_right(sb, block, H_CHKSUM);
    }
    if !sb.has_transaction_sum() {
        return true;
    }
    let kind = block
        .get(H_CHKSUM_TYPE..)
        .and_then(|rest| rest.first_chunk());
    let found = u32_at(block, H_CHKSUM);
    match kind {
        Some(&JBD2_CRC32_CHKSUM) => found == Some(transaction),
        // The commit was written without the option.
        Some(&[0, 0]) => found == Some(0),
        _ => false,
    }
}

/// Checks a copy: `jbd2_block_tag_csum_verify`. Checksums cover what lies in the log, not what it is a copy of.
pub fn is_copy_sound(sb: &Superblock, tid: u32, tag: &Tag, block: &[u8]) -> bool {
    let sum = || crc32c(crc32c(sb.csum_seed, &tid.to_be_bytes()), block);
    match tag.checksum {
        None => true,
        Some(Checksum::V3(checksum)) => sum() == checksum,
        Some(Checksum::V2(checksum)) => sum() & 0xffff == checksum.into(),
    }
}

/// Returns the time of a commit: seconds and nanoseconds.
pub fn commit_time(block: &[u8]) -> Option<(u64, u32)> {
    let seconds = block.get(H_COMMIT_SEC..)?.first_chunk()?;
    Some((
        u64::from_be_bytes(*seconds),
        u32_at(block, H_COMMIT_SEC.checked_add(8)?)?,
    ))
}

/// Checks a block whose checksum is at byte `at` and covers the block with zeros there.
fn is_right(sb: &Superblock, block: &[u8], at: usize) -> bool {
    let mut plain = block.to_vec();
    if let Some(field) = plain
        .get_mut(at..)
        .and_then(|rest| rest.first_chunk_mut::<4>())
    {
        field.fill(0);
    }
    u32_at(block, at) == Some(crc32c(sb.csum_seed, &plain))
}

/// Continues the checksum `crc` over `bytes`: the kernel's `crc32_be`, which begins with all ones.
pub fn crc32_be(crc: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(crc, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte) << 24, |crc, _| match crc >> 31 {
            0 => crc << 1,
            _ => crc << 1 ^ 0x04c1_1db7,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_crc32_be() {
        // CRC-32/MPEG-2; its check value is published.
        assert_eq!(crc32_be(u32::MAX, b"123456789"), 0x0376_e6e7);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct journal_superblock_s`: the description of the log.

use super::be::u32_at;
use super::header::{BlockType, Header};
use crate::fs::crc::crc32c;

const JBD2_FEATURE_COMPAT_CHECKSUM: u32 = 0x1;
const JBD2_FEATURE_INCOMPAT_ASYNC_COMMIT: u32 = 0x4;

const JBD2_FEATURE_INCOMPAT_64BIT: u32 = 0x2;
const JBD2_FEATURE_INCOMPAT_CSUM_V2: u32 = 0x8;
const JBD2_FEATURE_INCOMPAT_CSUM_V3: u32 = 0x10;
const JBD2_FEATURE_INCOMPAT_FAST_COMMIT: u32 = 0x20;
/// The known bits: revoke, 64bit, async_commit, csum_v2, csum_v3 and fast_commit.
const JBD2_KNOWN_INCOMPAT_FEATURES: u32 = 0x3f;
const JBD2_DEFAULT_FAST_COMMIT_BLOCKS: u32 = 256;

/// The fields that are needed for reading the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Size of a block in bytes.
    pub s_blocksize: u32,
    /// First block of the log.
    pub s_first: u32,
    /// The block behind the log's last one, where fast commits begin.
    pub end: u32,
    /// The number of blocks behind `end` that are for fast commits.
    pub fast_commit_blocks: u32,
    /// The number of the first transaction that a mount replays.
    pub s_sequence: u32,
    /// The first block that a mount replays; 0 if there is nothing to replay.
    pub s_start: u32,
    /// The initial value of checksums.
    pub csum_seed: u32,
    /// False if the superblock's own checksum is wrong.
    pub is_sound: bool,
    s_feature_compat: u32,
    s_feature_incompat: u32,
}

/// Byte offset of `s_checksum`, and the length of the superblock.
const S_CHECKSUM: usize = 0xfc;
const LEN: usize = 1024;

/// Checks the checksum of a superblock that has one.
fn is_sum_right(block: &[u8]) -> Option<bool> {
    let mut plain = block.get(..LEN)?.to_vec();
    plain.get_mut(S_CHECKSUM..)?.first_chunk_mut::<4>()?.fill(0);
    Some(crc32c(u32::MAX, &plain) == u32_at(block, S_CHECKSUM)?)
}

impl Superblock {
    /// Parses a superblock; None if it does not describe a log that can be read.
    pub fn read(block: &[u8]) -> Option<Superblock> {
        if Header::read(block)?.h_blocktype != BlockType::Superblock {
            return None;
        }
        let s_maxlen = u32_at(block, 0x10)?;
        let s_feature_incompat = u32_at(block, 0x28)?;
        let fast_commit = match u32_at(block, 0x54)? {
            _ if s_feature_incompat & JBD2_FEATURE_INCOMPAT_FAST_COMMIT == 0 => 0,
            0 => JBD2_DEFAULT_FAST_COMMIT_BLOCKS,
            s_num_fc_blks => s_num_fc_blks,
        };
        let mut sb = Superblock {
            s_blocksize: u32_at(block, 0xc)?,
            s_first: u32_at(block, 0x14)?,
            end: s_maxlen.checked_sub(fast_commit)?,
            fast_commit_blocks: fast_commit,
            s_sequence: u32_at(block, 0x18)?,
            s_start: u32_at(block, 0x1c)?,
            csum_seed: crc32c(u32::MAX, block.get(0x30..0x40)?),
            is_sound: true,
            s_feature_compat: u32_at(block, 0x24)?,
            s_feature_incompat,
        };
        sb.is_sound = !sb.has_tail() || is_sum_right(block)?;
        let is_possible = (1024..=65536).contains(&sb.s_blocksize)
            && sb.s_blocksize.is_power_of_two()
            && sb.s_first > 0
            && sb.s_first < sb.end;
        is_possible.then_some(sb)
    }

    fn incompat(&self, feature: u32) -> bool {
        self.s_feature_incompat & feature != 0
    }

    /// Returns the feature bits that this reader does not know; 0 if there are none.
    pub fn unknown(&self) -> u32 {
        self.s_feature_incompat & !JBD2_KNOWN_INCOMPAT_FEATURES
    }

    /// Returns true if the commit block has a checksum of the whole transaction (v1).
    pub fn has_transaction_sum(&self) -> bool {
        self.s_feature_compat & JBD2_FEATURE_COMPAT_CHECKSUM != 0
    }

    /// Returns true if a commit block may be written before its transaction's other blocks.
    pub fn is_async(&self) -> bool {
        self.incompat(JBD2_FEATURE_INCOMPAT_ASYNC_COMMIT)
    }

    /// Returns true if block numbers have 64 bits.
    pub fn is_64bit(&self) -> bool {
        self.incompat(JBD2_FEATURE_INCOMPAT_64BIT)
    }

    /// Returns true if tags are `journal_block_tag3_t`.
    pub fn has_tag3(&self) -> bool {
        self.incompat(JBD2_FEATURE_INCOMPAT_CSUM_V3)
    }

    /// Returns true if tags have two more bytes, for a checksum.
    pub fn has_csum_v2(&self) -> bool {
        self.incompat(JBD2_FEATURE_INCOMPAT_CSUM_V2)
    }

    /// Returns true if descriptor and revoke blocks end with a checksum.
    pub fn has_tail(&self) -> bool {
        self.has_tag3() || self.has_csum_v2()
    }
}

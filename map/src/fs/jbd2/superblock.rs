// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct journal_superblock_s`: the description of the log.

use super::be::u32_at;
use super::header::{BlockType, Header};

const JBD2_FEATURE_INCOMPAT_64BIT: u32 = 0x2;
const JBD2_FEATURE_INCOMPAT_CSUM_V2: u32 = 0x8;
const JBD2_FEATURE_INCOMPAT_CSUM_V3: u32 = 0x10;
const JBD2_FEATURE_INCOMPAT_FAST_COMMIT: u32 = 0x20;
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
    s_feature_incompat: u32,
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
        let sb = Superblock {
            s_blocksize: u32_at(block, 0xc)?,
            s_first: u32_at(block, 0x14)?,
            end: s_maxlen.checked_sub(fast_commit)?,
            s_feature_incompat,
        };
        let is_sound = (1024..=65536).contains(&sb.s_blocksize)
            && sb.s_blocksize.is_power_of_two()
            && sb.s_first > 0
            && sb.s_first < sb.end;
        is_sound.then_some(sb)
    }

    fn incompat(&self, feature: u32) -> bool {
        self.s_feature_incompat & feature != 0
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

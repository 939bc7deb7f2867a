// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct journal_header_s`: the header of every block in the log that is not a copy.

use super::be::u32_at;

/// Length of the header in bytes.
pub const LEN: usize = 12;
const JBD2_MAGIC_NUMBER: u32 = 0xc03b_3998;

/// `h_blocktype`: the kind of block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockType {
    /// JBD2_DESCRIPTOR_BLOCK
    Descriptor,
    /// JBD2_COMMIT_BLOCK
    Commit,
    /// JBD2_SUPERBLOCK_V1, JBD2_SUPERBLOCK_V2
    Superblock,
    /// JBD2_REVOKE_BLOCK
    Revoke,
}

/// A block's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub h_blocktype: BlockType,
    /// The transaction's number.
    pub h_sequence: u32,
}

impl Header {
    /// Parses a header; None if the block does not begin with one.
    pub fn read(block: &[u8]) -> Option<Header> {
        if u32_at(block, 0x0)? != JBD2_MAGIC_NUMBER {
            return None;
        }
        let h_blocktype = match u32_at(block, 0x4)? {
            1 => BlockType::Descriptor,
            2 => BlockType::Commit,
            3 | 4 => BlockType::Superblock,
            5 => BlockType::Revoke,
            _ => return None,
        };
        Some(Header {
            h_blocktype,
            h_sequence: u32_at(block, 0x8)?,
        })
    }
}

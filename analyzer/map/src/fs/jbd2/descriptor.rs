// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tags of a descriptor block: `journal_block_tag_t`, `journal_block_tag3_t`. Each describes one copy; the copies
//! follow the descriptor.

use super::be::{u16_at, u32_at};
use super::header;
use super::superblock::Superblock;

const JBD2_FLAG_ESCAPE: u32 = 1;
const JBD2_FLAG_SAME_UUID: u32 = 2;
const JBD2_FLAG_LAST_TAG: u32 = 8;

const UUID_LEN: usize = 16;
/// Length in bytes of `struct jbd2_journal_block_tail`.
pub const TAIL_LEN: usize = 4;

/// One tag: the home of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The home, in blocks of the filesystem.
    pub t_blocknr: u64,
    /// True if the block's first four bytes were the magic number; they are zeros in the copy.
    pub is_escaped: bool,
    /// The checksum of the copy: 32 bits in v3, 16 in v2, none before.
    pub checksum: Option<Checksum>,
}

/// The checksum of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// All of it.
    V3(u32),
    /// Its low half.
    V2(u16),
}

/// Returns the tags of a descriptor block, up to where it is damaged.
pub fn tags(sb: &Superblock, block: &[u8]) -> Vec<Tag> {
    let tail = if sb.has_tail() { TAIL_LEN } else { 0 };
    let end = block.len().saturating_sub(tail);
    let mut rest = block.get(header::LEN..end).unwrap_or_default();
    let mut tags = Vec::new();
    while let Some((tag, flags)) = tag(sb, rest) {
        tags.push(tag);
        let mut len = tag_len(sb);
        if flags & JBD2_FLAG_SAME_UUID == 0 {
            len = len.saturating_add(UUID_LEN);
        }
        rest = rest.get(len..).unwrap_or_default();
        if flags & JBD2_FLAG_LAST_TAG != 0 {
            break;
        }
    }
    tags
}

/// Returns the length of a tag in bytes: `journal_tag_bytes()`.
fn tag_len(sb: &Superblock) -> usize {
    match (sb.has_tag3(), sb.has_csum_v2(), sb.is_64bit()) {
        (true, ..) => 16,
        (_, false, false) => 8,
        (_, true, false) => 10,
        (_, false, true) => 12,
        (_, true, true) => 14,
    }
}

/// Returns the first tag and its flags.
fn tag(sb: &Superblock, buf: &[u8]) -> Option<(Tag, u32)> {
    let buf = buf.get(..tag_len(sb))?;
    let low = u32_at(buf, 0x0)?;
    let flags = match sb.has_tag3() {
        true => u32_at(buf, 0x4)?,
        false => u16_at(buf, 0x6)?.into(),
    };
    let high = match sb.is_64bit() {
        true => u32_at(buf, 0x8)?,
        false => 0,
    };
    let checksum = match (sb.has_tag3(), sb.has_csum_v2()) {
        (true, _) => Some(Checksum::V3(u32_at(buf, 0xc)?)),
        (false, true) => Some(Checksum::V2(u16_at(buf, 0x4)?)),
        (false, false) => None,
    };
    let tag = Tag {
        t_blocknr: u64::from(high) << 32 | u64::from(low),
        is_escaped: flags & JBD2_FLAG_ESCAPE != 0,
        checksum,
    };
    Some((tag, flags))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Builds a superblock with these features.
    fn superblock(incompat: u32) -> Superblock {
        let mut block = vec![0; 1024];
        let fields = [
            (0x0, 0xc03b_3998),
            (0x4, 4),
            (0xc, 4096),
            (0x10, 1024),
            (0x14, 1),
            (0x28, incompat),
        ];
        for (at, value) in fields {
            block[at..at + 4].copy_from_slice(&u32::to_be_bytes(value));
        }
        Superblock::read(&block).unwrap()
    }

    /// Builds a descriptor block with these homes, as jbd2_journal_commit_transaction writes it.
    fn descriptor(sb: &Superblock, homes: &[(u64, bool)]) -> Vec<u8> {
        let mut block = [0xc03b_3998_u32, 1, 7].map(u32::to_be_bytes).concat();
        for (at, &(home, escaped)) in homes.iter().enumerate() {
            let mut flags = u32::from(escaped);
            flags |= if at > 0 { JBD2_FLAG_SAME_UUID } else { 0 };
            flags |= if at + 1 == homes.len() {
                JBD2_FLAG_LAST_TAG
            } else {
                0
            };
            let mut tag = (home as u32).to_be_bytes().to_vec();
            if sb.has_tag3() {
                tag.extend(flags.to_be_bytes());
                tag.extend(((home >> 32) as u32).to_be_bytes());
                tag.extend([0xaa; 4]);
            } else {
                tag.extend([0xaa; 2]);
                tag.extend((flags as u16).to_be_bytes());
                tag.extend(((home >> 32) as u32).to_be_bytes());
                tag.extend([0xaa; 2]);
                tag.truncate(tag_len(sb));
            }
            block.extend(tag);
            if at == 0 {
                block.extend([0x55; UUID_LEN]);
            }
        }
        block.resize(4096, 0);
        block
    }

    proptest! {
        #[test]
        fn tags_are_read_as_they_are_written(
            homes in prop::collection::vec((any::<u64>(), any::<bool>()), 1..200),
            features in prop::sample::select(vec![0x0, 0x2, 0x8, 0xa, 0x10, 0x12]),
        ) {
            let sb = superblock(features);
            let homes: Vec<(u64, bool)> = homes
                .into_iter()
                .map(|(home, escaped)| (if sb.is_64bit() { home } else { home & 0xffff_ffff }, escaped))
                .collect();
            let found: Vec<(u64, bool)> = tags(&sb, &descriptor(&sb, &homes))
                .into_iter()
                .map(|tag| (tag.t_blocknr, tag.is_escaped))
                .collect();
            prop_assert_eq!(found, homes);
        }

        #[test]
        fn any_bytes_are_read(
            block in prop::collection::vec(any::<u8>(), 0..2048),
            features in prop::sample::select(vec![0x0, 0x2, 0x8, 0xa, 0x10, 0x12]),
        ) {
            prop_assert!(tags(&superblock(features), &block).len() <= block.len() / 8);
        }
    }
}

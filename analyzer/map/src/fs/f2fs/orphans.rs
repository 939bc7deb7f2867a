// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct f2fs_orphan_block`: files that were deleted while open. They own blocks but have no name.

use std::collections::{HashMap, HashSet};

use super::block::{self, Blocks, part, u32_of, u32s};
use super::checkpoint::{Checkpoint, flag};
use super::numbers::Ino;
use super::superblock::{SuperBlock, feature};
use crate::fs::error::Result;
use crate::fs::notices::Notices;
use crate::map::Inode;

/// The number of bytes behind the inode numbers in a block, and the place of `entry_count` in them.
const TAIL: usize = 16;
const ENTRY_COUNT: usize = 8;

/// Notes how many files without a name are neither orphans nor quota files.
pub fn note_nameless(
    blocks: Blocks<'_>,
    sb: &SuperBlock,
    cp: &Checkpoint,
    inodes: &HashMap<u64, Inode>,
    notices: &mut Notices,
) -> Result<()> {
    let mut expected = read(blocks, sb, cp)?;
    if sb.has(feature::QUOTA_INO) {
        expected.extend(sb.qf_ino);
    }
    let expected: HashSet<u64> = expected.into_iter().map(u64::from).collect();
    let nameless = inodes
        .iter()
        .filter(|(ino, inode)| inode.names.is_empty() && !expected.contains(ino))
        .map(|(ino, _)| *ino);
    let (count, first) = nameless.fold((0usize, u64::MAX), |(count, first), ino| {
        (count.saturating_add(1), first.min(ino))
    });
    if count > 0 {
        notices.push(format!(
            "{count} files, the first is inode {first}, have no name"
        ));
    }
    Ok(())
}

/// Reads the orphans' inode numbers from the blocks between the checkpoint and its summaries.
fn read(blocks: Blocks<'_>, sb: &SuperBlock, cp: &Checkpoint) -> Result<Vec<Ino>> {
    let first = cp.start.plus(1).plus(sb.cp_payload);
    let before = sb.cp_payload.saturating_add(1);
    let count = cp.cp_pack_start_sum.saturating_sub(before);
    if !cp.has(flag::ORPHAN_PRESENT) || count == 0 {
        return Ok(Vec::new());
    }
    let buf = blocks.read(first, count, "orphans")?;
    let mut orphans = Vec::new();
    for nth in 0..count {
        let block = blocks.nth(&buf, nth);
        let room = block.len().saturating_sub(TAIL);
        let count = block::index(u32_of(block, room.saturating_add(ENTRY_COUNT)));
        let bytes = count.saturating_mul(4).min(room);
        orphans.extend(u32s(part(block, 0, bytes)).map(Ino));
    }
    Ok(orphans)
}

#[cfg(test)]
mod tests {
    use super::super::numbers::BlkAddr;
    use super::*;
    use crate::fs::image::Image;

    #[test]
    fn every_block_counts_its_own() {
        let mut bytes = vec![9; 1 << 21];
        let at = 514 << 12;
        bytes.resize(at, 0);
        for (block, count) in [(0, 1020u32), (1, 3)] {
            for n in 0..1020u32 {
                bytes.extend((block * 2000 + n).to_le_bytes());
            }
            bytes.extend([0; 8]);
            bytes.extend(count.to_le_bytes());
            bytes.extend([0; 4]);
        }
        let len = u64::try_from(bytes.len()).expect("length");
        let image = Image::new("x".as_ref(), len, bytes);
        let cp = |flags| Checkpoint::for_tests(BlkAddr(512), flags, 4);
        let sb = SuperBlock::for_tests(1);
        let blocks = Blocks {
            image: &image,
            size: sb.block_size,
        };
        let orphans = read(blocks, &sb, &cp(flag::ORPHAN_PRESENT)).expect("orphans");
        assert_eq!(orphans.len(), 1023);
        assert_eq!(orphans[1019..], [1019, 2000, 2001, 2002].map(Ino));
        assert!(read(blocks, &sb, &cp(0)).expect("orphans").is_empty());
    }
}

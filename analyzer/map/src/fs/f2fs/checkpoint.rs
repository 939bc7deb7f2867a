// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct f2fs_checkpoint`: the state from which all other areas are interpreted.
//!
//! ```text
//! pack: │ checkpoint │ bitmaps (cp_payload) │ orphans │ summaries │ checkpoint again │
//!        start        + 1                              + start_sum  + total - 1
//! ```

use super::block::{self, BLOCKS_PER_SEG, Blocks, part, u16_of, u32_of, u64_of};
use super::crc;
use super::numbers::BlkAddr;
use super::superblock::SuperBlock;
use crate::fs::bits;
use crate::fs::error::Result;
use crate::fs::notices::Notices;
use fixedbitset::FixedBitSet;

/// Bits of `ckpt_flags`.
pub mod flag {
    pub const UMOUNT: u32 = 0x1;
    pub const ORPHAN_PRESENT: u32 = 0x2;
    pub const COMPACT_SUM: u32 = 0x4;
    pub const FASTBOOT: u32 = 0x20;
    pub const CRC_RECOVERY: u32 = 0x40;
    pub const NOCRC_RECOVERY: u32 = 0x200;
    pub const LARGE_NAT_BITMAP: u32 = 0x400;
    pub const DISABLED: u32 = 0x1000;
}

/// The offset of the bitmaps in a checkpoint block, which is the least `checksum_offset`. The greatest is that of the last word.
const BITMAPS: usize = 192;
/// The number of logs whose summaries precede the last block of a pack: `NR_CURSEG_PERSIST_TYPE`.
const LOGS: u32 = 6;

/// The valid checkpoint; its fields have the kernel's names.
#[derive(Debug)]
pub struct Checkpoint {
    /// First block of the pack.
    pub start: BlkAddr,
    pub checkpoint_ver: u64,
    pub ckpt_flags: u32,
    pub cp_pack_total_block_count: u32,
    pub cp_pack_start_sum: u32,
    /// The segment that the log of warm nodes writes to, and the next free block in it.
    pub warm_node: (u32, u16),
    /// The SIT blocks whose second copy is valid.
    pub sit_bitmap: FixedBitSet,
    /// The NAT blocks whose second copy is valid.
    pub nat_bitmap: FixedBitSet,
    crc: u32,
}

impl Checkpoint {
    /// Reads both packs and returns the newer one of those that are whole.
    pub fn read(blocks: Blocks<'_>, sb: &SuperBlock, notices: &mut Notices) -> Result<Checkpoint> {
        let second = sb.cp_blkaddr.plus(BLOCKS_PER_SEG);
        let start = match (version(blocks, sb.cp_blkaddr), version(blocks, second)) {
            (Ok(one), Ok(two)) if two.wrapping_sub(one).cast_signed() > 0 => second,
            (Ok(_), Ok(_)) => sb.cp_blkaddr,
            (Ok(_), Err(why)) => {
                notices.push(format!("checkpoint pack 2 is not valid: {why}"));
                sb.cp_blkaddr
            }
            (Err(why), Ok(_)) => {
                notices.push(format!("checkpoint pack 1 is not valid: {why}"));
                second
            }
            (Err(one), Err(two)) => {
                let what = format!("neither pack is valid: {one}; {two}");
                return Err(blocks.image.corrupt("checkpoint", what));
            }
        };
        let count = sb.cp_payload.saturating_add(1);
        let buf = blocks.read(start, count, "checkpoint")?;
        Checkpoint::parse(&buf, start, sb).map_err(|what| blocks.image.corrupt("checkpoint", what))
    }

    fn parse(
        buf: &[u8],
        start: BlkAddr,
        sb: &SuperBlock,
    ) -> std::result::Result<Checkpoint, String> {
        let ckpt_flags = u32_of(buf, 132);
        let (sit_bytes, nat_bytes) = (u32_of(buf, 156), u32_of(buf, 160));
        if (sit_bytes, nat_bytes) != (sb.sit_blocks() / 8, sb.nat_blocks() / 8) {
            return Err(format!("bitmaps of {sit_bytes} and {nat_bytes} bytes"));
        }
        let (sit_bytes, nat_bytes) = (block::index(sit_bytes), block::index(nat_bytes));
        let behind = |first: usize| BITMAPS.saturating_add(first);
        let (sit_at, nat_at) = if ckpt_flags & flag::LARGE_NAT_BITMAP != 0 {
            (behind(nat_bytes).saturating_add(4), behind(4))
        } else if sb.cp_payload > 0 {
            (sb.block_size.len(), BITMAPS)
        } else {
            (BITMAPS, behind(sit_bytes))
        };
        let sit_bitmap = part(buf, sit_at, sit_bytes);
        let nat_bitmap = part(buf, nat_at, nat_bytes);
        if (sit_bitmap.len(), nat_bitmap.len()) != (sit_bytes, nat_bytes) {
            return Err("the bitmaps are longer than the checkpoint".into());
        }
        let cp_pack_start_sum = u32_of(buf, 140);
        let last = BLOCKS_PER_SEG.saturating_sub(1).saturating_sub(LOGS);
        if cp_pack_start_sum <= sb.cp_payload || cp_pack_start_sum > last {
            return Err(format!("its summaries start at block {cp_pack_start_sum}"));
        }
        Ok(Checkpoint {
            start,
            checkpoint_ver: u64_of(buf, 0),
            ckpt_flags,
            cp_pack_total_block_count: u32_of(buf, 136),
            cp_pack_start_sum,
            warm_node: (u32_of(buf, 40), u16_of(buf, 70)),
            sit_bitmap: bits::highest_first(sit_bitmap),
            nat_bitmap: bits::highest_first(nat_bitmap),
            crc: u32_of(buf, block::index(u32_of(buf, 164))),
        })
    }

    /// Returns true if any of these bits of `ckpt_flags` is set.
    pub fn has(&self, flags: u32) -> bool {
        self.ckpt_flags & flags != 0
    }

    /// Returns true if a node with this `cp_ver` was written after this checkpoint and before the next one:
    /// `is_recoverable_dnode`.
    pub fn is_followed_by(&self, cp_ver: u64) -> bool {
        if self.has(flag::NOCRC_RECOVERY) {
            self.checkpoint_ver << 32 == cp_ver << 32
        } else if self.has(flag::CRC_RECOVERY) {
            self.checkpoint_ver | u64::from(self.crc) << 32 == cp_ver
        } else {
            self.checkpoint_ver == cp_ver
        }
    }
}

/// Returns the version of a pack whose first and last block are valid and have the same version; otherwise what is
/// wrong with it.
fn version(blocks: Blocks<'_>, start: BlkAddr) -> std::result::Result<u64, String> {
    let valid = |blkaddr: BlkAddr| {
        let buf = blocks
            .read(blkaddr, 1, "checkpoint")
            .map_err(|e| e.to_string())?;
        if is_crc_valid(&buf) {
            Ok(buf)
        } else {
            Err(format!("block {blkaddr}: wrong checksum"))
        }
    };
    let first = valid(start)?;
    let total = u32_of(&first, 136);
    if !(3..=BLOCKS_PER_SEG).contains(&total) {
        return Err(format!("block {start}: a pack of {total} blocks"));
    }
    let last = valid(start.plus(total.saturating_sub(1)))?;
    let [first, last] = [first, last].map(|buf| u64_of(&buf, 0));
    if first != last {
        return Err(format!(
            "it begins with version {first}, and ends with {last}"
        ));
    }
    Ok(first)
}

/// Returns true if a checkpoint block's checksum is right. It covers the whole block except its own field; large NAT
/// bitmaps lie behind that.
fn is_crc_valid(block: &[u8]) -> bool {
    let offset = block::index(u32_of(block, 164));
    if !(BITMAPS..=block.len().saturating_sub(4)).contains(&offset) {
        return false;
    }
    let sum = crc::crc32(crc::SEED, part(block, 0, offset));
    let behind = offset.saturating_add(4);
    let sum = crc::crc32(sum, block.get(behind..).unwrap_or_default());
    u32_of(block, offset) == sum
}

#[cfg(test)]
impl Checkpoint {
    pub fn for_tests(start: BlkAddr, ckpt_flags: u32, cp_pack_start_sum: u32) -> Checkpoint {
        Checkpoint {
            start,
            checkpoint_ver: 0x1234_5678,
            ckpt_flags,
            cp_pack_total_block_count: 10,
            cp_pack_start_sum,
            warm_node: (0, 0),
            sit_bitmap: FixedBitSet::new(),
            nat_bitmap: FixedBitSet::new(),
            crc: 0xaabb_ccdd,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(ckpt_flags: u32) -> Checkpoint {
        Checkpoint::for_tests(BlkAddr(512), ckpt_flags, 1)
    }

    #[test]
    fn nodes_after_the_checkpoint_carry_its_version_and_checksum() {
        for (flags, yes, no) in [
            (0, 0x1234_5678, 0xaabb_ccdd_1234_5678),
            (flag::CRC_RECOVERY, 0xaabb_ccdd_1234_5678, 0x1234_5678),
            (flag::NOCRC_RECOVERY, 0xffff_ffff_1234_5678, 0x1234_5679),
            (flag::NOCRC_RECOVERY | flag::CRC_RECOVERY, 0x1234_5678, 1),
        ] {
            assert!(checkpoint(flags).is_followed_by(yes), "{flags:#x}");
            assert!(!checkpoint(flags).is_followed_by(no), "{flags:#x}");
        }
    }

    #[test]
    fn a_checksum_in_the_middle_covers_what_is_behind_it() {
        let mut block = vec![7; 4096];
        for (offset, valid) in [
            (192, true),
            (1000, true),
            (4092, true),
            (188, false),
            (4093, false),
        ] {
            block[164..168].copy_from_slice(&(offset as u32).to_le_bytes());
            let sum = crc::crc32(crc::SEED, &block[..offset]);
            let end = (offset + 4).min(block.len());
            let sum = crc::crc32(sum, &block[end..]).to_le_bytes();
            block[offset..end].copy_from_slice(&sum[..end - offset]);
            assert_eq!(is_crc_valid(&block), valid, "{offset}");
            block[191] ^= 1;
            assert!(!is_crc_valid(&block));
            block[191] ^= 1;
        }
    }

    #[test]
    fn the_three_places_of_the_bitmaps() {
        let mut buf: Vec<u8> = (0..2 * 4096).map(|n| (n / 4) as u8).collect();
        buf[156..160].copy_from_slice(&64u32.to_le_bytes());
        buf[160..164].copy_from_slice(&128u32.to_le_bytes());
        buf[140..144].copy_from_slice(&3u32.to_le_bytes());
        for (payload, flags, sit, nat) in [
            (0, 0, 192, 192 + 64),
            (1, 0, 4096, 192),
            (0, flag::LARGE_NAT_BITMAP, 196 + 128, 196),
            (1, flag::LARGE_NAT_BITMAP, 196 + 128, 196),
        ] {
            buf[132..136].copy_from_slice(&flags.to_le_bytes());
            let set = |at: usize, len| bits::highest_first(&buf[at..at + len]);
            let cp = Checkpoint::parse(&buf, BlkAddr(512), &SuperBlock::for_tests(payload))
                .expect("checkpoint");
            assert_eq!(cp.sit_bitmap, set(sit, 64), "{payload} {flags:#x}");
            assert_eq!(cp.nat_bitmap, set(nat, 128), "{payload} {flags:#x}");
        }
    }
}

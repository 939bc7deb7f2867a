// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct f2fs_super_block`: the areas of the filesystem.

use super::block::{BLOCKS_PER_SEG, BlockSize, SEG_BITS, index, part, u32_of, u64_of};
use super::crc;
use super::numbers::{BlkAddr, Ino};
use crate::fs::error::{Error, Result};
use crate::fs::image::Image;
use crate::fs::notices::Notices;
use fixedbitset::FixedBitSet;

/// The length of an entry of the segment information table in bytes.
pub const SIT_ENTRY_SIZE: u32 = 74;

/// `SIT_ENTRY_PER_BLOCK`.
pub fn sit_entries_per_block(size: BlockSize) -> u32 {
    size.bytes() / SIT_ENTRY_SIZE
}

/// Bits of `feature`.
pub mod feature {
    pub const INODE_CHKSUM: u32 = 0x20;
    pub const FLEXIBLE_INLINE_XATTR: u32 = 0x40;
    pub const QUOTA_INO: u32 = 0x80;
    pub const SB_CHKSUM: u32 = 0x800;
    pub const COMPRESSION: u32 = 0x2000;
    pub const RO: u32 = 0x4000;
    pub const DEVICE_ALIAS: u32 = 0x8000;
    pub const PACKED_SSA: u32 = 0x10000;
    /// All known bits: those from encrypt to compression, ro, device_alias, packed_ssa and encrypted_inline_data.
    pub const KNOWN: u32 = 0x3ffff;
}

const F2FS_SUPER_MAGIC: u32 = 0xf2f5_2010;
/// The byte offset of a copy of the superblock in its block. The two copies are in the first two blocks.
const OFFSET: u64 = 1024;
const SIZE: usize = 3072;
const CRC_OFFSET: usize = 3068;

/// The least number of blocks in a checkpoint: `F2FS_CP_PACKS` of its own, and a summary for each of the
/// `NR_CURSEG_PERSIST_TYPE` logs.
const CP_BLOCKS: u32 = 2 + 6;

/// The fields that are used here, with the kernel's names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuperBlock {
    pub block_size: BlockSize,
    /// Size of the filesystem in blocks.
    pub block_count: u64,
    pub segment_count_ckpt: u32,
    pub segment_count_sit: u32,
    pub segment_count_nat: u32,
    pub segment_count_ssa: u32,
    pub segment_count_main: u32,
    pub cp_blkaddr: BlkAddr,
    pub sit_blkaddr: BlkAddr,
    pub nat_blkaddr: BlkAddr,
    pub ssa_blkaddr: BlkAddr,
    pub main_blkaddr: BlkAddr,
    pub root_ino: Ino,
    /// Number of blocks with bitmaps behind the checkpoint's first block.
    pub cp_payload: u32,
    pub feature: u32,
    /// The user, group and project quota inodes; 0 where there is none.
    pub qf_ino: [Ino; 3],
    /// The initial value of the inodes' checksums.
    pub chksum_seed: u32,
    /// The devices, in the order of their blocks; none if there is only the one with the superblock.
    pub devs: Vec<Dev>,
}

/// `struct f2fs_device`: what the filesystem has of one of its devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dev {
    /// The device's path, as it was named when the filesystem was made.
    pub path: Vec<u8>,
    pub blocks: u64,
}

/// The offset of `devs` in the superblock, and the lengths of an entry and of the path in it; `MAX_DEVICES`.
const DEVS: usize = 2201;
const DEV_LEN: usize = 68;
const PATH_LEN: usize = 64;
const MAX_DEVICES: usize = 8;

/// The reason why a copy of the superblock is not used.
enum Fault {
    Corrupt(String),
    Unsupported(String),
}

impl SuperBlock {
    /// Reads both copies and returns the first sound one, as the kernel does.
    pub fn read(image: &Image, notices: &mut Notices) -> Result<SuperBlock> {
        Self::read_of(image, image.bytes(), notices)
    }

    /// Reads it from the first of several devices.
    pub fn read_part(image: &Image, notices: &mut Notices) -> Result<SuperBlock> {
        Self::read_of(image, u64::MAX, notices)
    }

    /// Reads it of a filesystem that may have `bytes` bytes.
    fn read_of(image: &Image, bytes: u64, notices: &mut Notices) -> Result<SuperBlock> {
        let first = read_copy(image, bytes, 0);
        let second = match &first {
            Ok(first) => read_copy(image, bytes, first.block_size.bytes().into()),
            Err(_) => second_of_any_size(image, bytes),
        };
        let sb = match (first, second) {
            (Ok(first), Ok(second)) => {
                if first != second {
                    notices.push("the two superblocks differ, the first is used");
                }
                first
            }
            (Ok(sb), Err(error)) => {
                notices.push(format!("the second superblock is bad: {error}"));
                sb
            }
            (Err(error), Ok(sb)) => {
                notices.push(format!("the first superblock is bad: {error}"));
                sb
            }
            // A sound copy with an unsupported feature is a better explanation than a damaged one.
            (Err(Error::Corrupt { .. }), Err(error @ Error::Unsupported { .. }))
            | (Err(error), Err(_)) => return Err(error),
        };
        let unknown = sb.feature & !feature::KNOWN;
        if unknown != 0 {
            notices.push(format!("unknown feature bits {unknown:#x}"));
        }
        Ok(sb)
    }

    fn parse(buf: &[u8], image_bytes: u64) -> std::result::Result<SuperBlock, Fault> {
        let u32 = |offset| u32_of(buf, offset);
        let corrupt = |what: &str| Err(Fault::Corrupt(what.to_owned()));
        if u32(0) != F2FS_SUPER_MAGIC {
            return corrupt("no magic number");
        }
        let feature = u32(2180);
        if feature & feature::SB_CHKSUM != 0 && !is_crc_valid(buf) {
            return corrupt("wrong checksum");
        }
        let sectors = u32(8).checked_add(u32(12));
        let block_size =
            BlockSize::of_log(u32(16)).filter(|_| sectors == Some(u32(16)) && u32(20) == SEG_BITS);
        let Some(block_size) = block_size else {
            return corrupt("block, segment or sector size out of range");
        };
        let devs = devices(buf);
        // Of each of several devices whole segments are used.
        let most = match &devs[..] {
            [] => u64::MAX,
            all => all
                .iter()
                .fold(0, |sum: u64, dev| sum.saturating_add(dev.blocks)),
        };
        let sb = SuperBlock {
            block_size,
            block_count: u64_of(buf, 36).min(most),
            segment_count_ckpt: u32(52),
            segment_count_sit: u32(56),
            segment_count_nat: u32(60),
            segment_count_ssa: u32(64),
            segment_count_main: u32(68),
            cp_blkaddr: BlkAddr(u32(76)),
            sit_blkaddr: BlkAddr(u32(80)),
            nat_blkaddr: BlkAddr(u32(84)),
            ssa_blkaddr: BlkAddr(u32(88)),
            main_blkaddr: BlkAddr(u32(92)),
            root_ino: Ino(u32(96)),
            cp_payload: u32(1664),
            feature,
            qf_ino: [2745, 2749, 2753].map(|offset| Ino(u32(offset))),
            chksum_seed: crc::crc32(u32::MAX, part(buf, 108, 16)),
            devs,
        };
        if BlkAddr(u32(72)) != sb.cp_blkaddr {
            return corrupt("segment 0 is not the checkpoint's");
        }
        if (u32(100), u32(104), sb.root_ino) != (1, 2, Ino(3)) {
            return corrupt("reserved inodes with unknown numbers");
        }
        if feature & feature::DEVICE_ALIAS != 0 {
            return Err(Fault::Unsupported("device aliasing".into()));
        }
        if let Some(what) = sb.incomplete(image_bytes) {
            return Err(Fault::Unsupported(what));
        }
        match sb.impossible(image_bytes) {
            Some(what) => Err(Fault::Corrupt(what)),
            None => Ok(sb),
        }
    }

    /// Returns a description of what an image lacks that is the first of several devices.
    fn incomplete(&self, image_bytes: u64) -> Option<String> {
        let [first, others @ ..] = &self.devs[..] else {
            return None;
        };
        let bytes = self.block_size.bytes_of(self.block_count);
        let paths = others.iter().map(|dev| String::from_utf8_lossy(&dev.path));
        let paths = paths.collect::<Vec<_>>().join(", ");
        let is_alone = first.blocks < self.block_count && bytes > image_bytes;
        is_alone.then(|| format!("one of several devices; the others are {paths}"))
    }

    /// Returns a description of the first inconsistency between the areas, if there is one.
    fn impossible(&self, image_bytes: u64) -> Option<String> {
        let ends = |blkaddr: BlkAddr, segments: u32| {
            u64::from(segments)
                .saturating_mul(BLOCKS_PER_SEG.into())
                .saturating_add(blkaddr.into())
        };
        let areas = [
            (
                "checkpoint",
                self.cp_blkaddr,
                self.segment_count_ckpt,
                self.sit_blkaddr,
            ),
            (
                "SIT",
                self.sit_blkaddr,
                self.segment_count_sit,
                self.nat_blkaddr,
            ),
            (
                "NAT",
                self.nat_blkaddr,
                self.segment_count_nat,
                self.ssa_blkaddr,
            ),
            (
                "SSA",
                self.ssa_blkaddr,
                self.segment_count_ssa,
                self.main_blkaddr,
            ),
        ];
        for (area, at, segments, next) in areas {
            if ends(at, segments) != u64::from(next) {
                return Some(format!(
                    "{area}: {segments} segments at block {at}, before block {next}"
                ));
            }
        }
        let main_end = ends(self.main_blkaddr, self.segment_count_main);
        let entries = u64::from(self.sit_blocks())
            .saturating_mul(sit_entries_per_block(self.block_size).into());
        let bytes = self.block_count.checked_mul(self.block_size.bytes().into());
        if main_end > self.block_count || main_end >= u64::from(u32::MAX) {
            Some(format!(
                "the main area ends at block {main_end} of {}",
                self.block_count
            ))
        } else if bytes.is_none_or(|bytes| bytes > image_bytes) {
            let blocks = self.block_count;
            Some(format!(
                "{blocks} blocks, but the image ends at byte {image_bytes}"
            ))
        } else if self.segment_count_ckpt < 2 || self.cp_blkaddr < BlkAddr(2) {
            Some("no room for two checkpoints or two superblocks".into())
        } else if !self.segment_count_sit.is_multiple_of(2)
            || !self.segment_count_nat.is_multiple_of(2)
        {
            Some("no two copies of SIT and NAT".into())
        } else if u64::from(self.segment_count_main) > entries {
            Some(format!(
                "{} segments, but the SIT has {entries}",
                self.segment_count_main
            ))
        } else if self.segment_count_main == 0 {
            Some("no main area".into())
        } else if self.cp_payload >= BLOCKS_PER_SEG.saturating_sub(CP_BLOCKS) {
            Some(format!(
                "{} blocks of bitmaps in a checkpoint",
                self.cp_payload
            ))
        } else {
            None
        }
    }

    /// Returns true if all these bits of `feature` are set.
    pub fn has(&self, bits: u32) -> bool {
        self.feature & bits == bits
    }

    /// Returns the number of blocks in one copy of the SIT.
    pub fn sit_blocks(&self) -> u32 {
        (self.segment_count_sit / 2).saturating_mul(BLOCKS_PER_SEG)
    }

    /// Returns the number of blocks in one copy of the NAT.
    pub fn nat_blocks(&self) -> u32 {
        (self.segment_count_nat / 2).saturating_mul(BLOCKS_PER_SEG)
    }

    /// Returns the number of blocks in the main area.
    pub fn main_blocks(&self) -> u32 {
        self.segment_count_main.saturating_mul(BLOCKS_PER_SEG)
    }

    /// Returns an empty set for blocks of the main area, by their index within it.
    pub fn no_main_blocks(&self) -> FixedBitSet {
        FixedBitSet::with_capacity(index(self.main_blocks()))
    }

    /// Returns a block's index within the main area; None outside it.
    pub fn in_main(&self, blkaddr: BlkAddr) -> Option<usize> {
        let n = blkaddr.0.checked_sub(self.main_blkaddr.0)?;
        (n < self.main_blocks()).then_some(index(n))
    }

    /// Returns the address of a block by its index within the main area.
    pub fn main_block(&self, n: usize) -> BlkAddr {
        let n = u32::try_from(n).unwrap_or(u32::MAX);
        self.main_blkaddr.plus(n)
    }

    /// Returns the address of a block by segment and offset within the main area; None outside it.
    pub fn blkaddr(&self, segno: u32, blkoff: u16) -> Option<BlkAddr> {
        let blkoff = Some(u32::from(blkoff)).filter(|&blkoff| blkoff < BLOCKS_PER_SEG)?;
        let n = segno.checked_mul(BLOCKS_PER_SEG)?.checked_add(blkoff)?;
        (n < self.main_blocks()).then(|| self.main_blkaddr.plus(n))
    }
}

/// Reads the second copy if the first one does not tell the size of a block. It must lie where its own block size puts it.
fn second_of_any_size(image: &Image, bytes: u64) -> Result<SuperBlock> {
    let copies = BlockSize::ALL.map(|size| {
        let copy = read_copy(image, bytes, size.bytes().into());
        copy.map(|sb| Some(sb).filter(|sb| sb.block_size == size))
    });
    let mut error = None;
    for copy in copies {
        match copy {
            Ok(Some(sb)) => return Ok(sb),
            Ok(None) => {}
            Err(why) => error = error.or(Some(why)),
        }
    }
    Err(error.unwrap_or_else(|| image.corrupt("superblock", "none is sound".to_owned())))
}

/// Reads the copy in the block that begins at this byte.
fn read_copy(image: &Image, bytes: u64, block: u64) -> Result<SuperBlock> {
    let offset = block.saturating_add(OFFSET);
    let at = format!("superblock at byte {offset}");
    let buf = image.read(offset, SIZE, &at)?;
    SuperBlock::parse(&buf, bytes).map_err(|fault| match fault {
        Fault::Corrupt(what) => image.corrupt(&at, what),
        Fault::Unsupported(what) => image.unsupported(&at, what),
    })
}

/// Reads the list of devices; the kernel passes over a list of one. The first device has the blocks ahead of its segments too.
fn devices(buf: &[u8]) -> Vec<Dev> {
    let entries = part(buf, DEVS, MAX_DEVICES.saturating_mul(DEV_LEN)).chunks(DEV_LEN);
    let entries = entries.take_while(|entry| entry.first() != Some(&0));
    let mut devs: Vec<Dev> = entries
        .map(|entry| Dev {
            path: part(entry, 0, PATH_LEN)
                .split(|&byte| byte == 0)
                .next()
                .unwrap_or_default()
                .to_vec(),
            blocks: u64::from(u32_of(entry, PATH_LEN)).saturating_mul(BLOCKS_PER_SEG.into()),
        })
        .collect();
    if devs.len() < 2 {
        return Vec::new();
    }
    if let Some(first) = devs.first_mut() {
        first.blocks = first.blocks.saturating_add(u32_of(buf, 72).into());
    }
    devs
}

fn is_crc_valid(buf: &[u8]) -> bool {
    let crc = crc::crc32(crc::SEED, part(buf, 0, CRC_OFFSET));
    usize::try_from(u32_of(buf, 32)) == Ok(CRC_OFFSET) && u32_of(buf, CRC_OFFSET) == crc
}

#[cfg(test)]
impl SuperBlock {
    /// A superblock with one pair of SIT segments and two pairs of NAT segments.
    pub fn for_tests(cp_payload: u32) -> SuperBlock {
        SuperBlock {
            block_size: BlockSize::ALL[0],
            block_count: 1 << 20,
            segment_count_ckpt: 2,
            segment_count_sit: 2,
            segment_count_nat: 4,
            segment_count_ssa: 1,
            segment_count_main: 9,
            cp_blkaddr: BlkAddr(512),
            sit_blkaddr: BlkAddr(1536),
            nat_blkaddr: BlkAddr(2560),
            ssa_blkaddr: BlkAddr(4608),
            main_blkaddr: BlkAddr(5120),
            root_ino: Ino(3),
            cp_payload,
            feature: 0,
            qf_ino: [Ino(0); 3],
            chksum_seed: 0,
            devs: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_a_segment_is_a_block_of_the_main_area() {
        let sb = SuperBlock::for_tests(0);
        for (segno, blkoff, blkaddr) in [
            (0, 0, Some(5120)),
            (1, 511, Some(5120 + 1023)),
            (8, 511, Some(5120 + 4607)),
            (1, 512, None),
            (9, 0, None),
            (u32::MAX, 0, None),
        ] {
            assert_eq!(sb.blkaddr(segno, blkoff), blkaddr.map(BlkAddr));
        }
    }
}

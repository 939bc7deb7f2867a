// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct ext4_super_block`: the fields that determine the layout.

use std::ops::Range;

use super::numbers::{FileBlock, FsBlock, Ino};
use crate::fs::crc;
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::le::{u16_at, u32_at, u64_at};

/// Bits of `s_feature_compat`.
pub mod compat {
    pub const HAS_JOURNAL: u32 = 0x4;
    pub const SPARSE_SUPER2: u32 = 0x200;
    pub const FAST_COMMIT: u32 = 0x400;
    pub const ORPHAN_FILE: u32 = 0x1000;
}

/// Bits of `s_feature_incompat`.
pub mod incompat {
    pub const RECOVER: u32 = 0x4;
    pub const JOURNAL_DEV: u32 = 0x8;
    pub const META_BG: u32 = 0x10;
    pub const BIT64: u32 = 0x80;
    pub const CSUM_SEED: u32 = 0x2000;
    pub const MMP: u32 = 0x100;
    /// The known bits: filetype, recover, journal_dev, meta_bg, extents, 64bit, mmp, flex_bg, ea_inode, dirdata, csum_seed,
    /// largedir, inline_data, encrypt and casefold, but not compression (0x1).
    pub const KNOWN: u32 = 0x2
        | 0x4
        | 0x8
        | 0x10
        | 0x40
        | 0x80
        | 0x100
        | 0x200
        | 0x400
        | 0x1000
        | 0x2000
        | 0x4000
        | 0x8000
        | 0x10000
        | 0x20000;
}

/// Bits of `s_feature_ro_compat`.
pub mod ro_compat {
    pub const SPARSE_SUPER: u32 = 0x1;
    pub const GDT_CSUM: u32 = 0x10;
    pub const QUOTA: u32 = 0x100;
    pub const BIGALLOC: u32 = 0x200;
    pub const METADATA_CSUM: u32 = 0x400;
    pub const SHARED_BLOCKS: u32 = 0x4000;
}

/// Bytes from the start of the filesystem to the primary superblock.
const OFFSET: u64 = 1024;
const EXT2_SUPER_MAGIC: u16 = 0xef53;
const EXT2_ERROR_FS: u16 = 2;
/// Byte offset of `s_uuid` from the start of the filesystem.
pub const UUID: u64 = OFFSET + 0x68;

/// The fields that are used here, with the kernel's names; low and high halves are joined.
#[derive(Clone, Debug)]
pub struct SuperBlock {
    pub s_inodes_count: u32,
    pub s_blocks_count: u64,
    pub s_first_data_block: u32,
    /// Block size in bytes, 1024 to 65536.
    pub block_size: u32,
    /// Number of blocks in a cluster; 1 without bigalloc.
    pub cluster_ratio: u32,
    pub s_blocks_per_group: u32,
    pub s_inodes_per_group: u32,
    pub s_inode_size: u16,
    pub s_feature_compat: u32,
    pub s_feature_incompat: u32,
    pub s_feature_ro_compat: u32,
    pub s_journal_inum: Ino,
    pub s_journal_dev: u32,
    pub s_journal_uuid: [u8; 16],
    /// Length of a group descriptor in bytes; 32 without 64bit.
    pub desc_size: u16,
    pub s_reserved_gdt_blocks: u16,
    pub s_first_meta_bg: u32,
    pub s_mmp_block: FsBlock,
    pub s_backup_bgs: [u32; 2],
    /// User, group and project quota inodes; 0 where there is none.
    pub quota_inums: [Ino; 3],
    pub s_orphan_file_inum: Ino,
    /// The first of the list of orphans; 0 if there is none.
    pub s_last_orphan: Ino,
    /// The first inode that is not the filesystem's own.
    pub s_first_ino: Ino,
    /// True if the kernel found errors (EXT2_ERROR_FS in `s_state`).
    pub has_errors: bool,
    /// The initial value of metadata's checksums.
    pub checksum_seed: u32,
    /// Number of block groups.
    pub groups: u32,
}

/// Returns the blocks of a run that may not be all zeros.
pub fn data_blocks<'a>(
    image: &'a Image,
    sb: &'a SuperBlock,
    run: Range<u64>,
) -> impl Iterator<Item = FsBlock> + 'a {
    let mut at = FsBlock(run.start);
    std::iter::from_fn(move || {
        let block = sb.next_data(image, at);
        at = block.plus(1);
        (block.0 < run.end).then_some(block)
    })
}

impl SuperBlock {
    /// Reads the primary superblock of a filesystem and checks that its layout is possible.
    pub fn read(image: &Image) -> Result<SuperBlock> {
        let sb = Self::read_any(image, 0)?;
        match sb.impossible() {
            Some(what) => Err(image.corrupt("superblock", what)),
            None => Ok(sb),
        }
    }

    /// Reads the primary superblock of a filesystem, or of a journal's own device, that begins at byte `start` of the image.
    pub fn read_any(image: &Image, start: u64) -> Result<SuperBlock> {
        let buf = image.read(start.saturating_add(OFFSET), 1024, "superblock")?;
        if u16_at(&buf, 0x38) != Some(EXT2_SUPER_MAGIC) {
            let what = "not an ext2, ext3 or ext4 filesystem (no magic number at byte 1080)";
            return Err(image.corrupt("superblock", what));
        }
        let sb = Self::parse(&buf).ok_or_else(|| {
            image.corrupt(
                "superblock",
                "block, cluster or descriptor size out of range",
            )
        })?;
        let unknown = sb.s_feature_incompat & !incompat::KNOWN;
        if unknown != 0 {
            let what = format!("incompatible feature bits {unknown:#x}");
            return Err(image.unsupported("superblock", what));
        }
        match sb.s_blocks_count.checked_mul(sb.block_size.into()) {
            Some(_) => Ok(sb),
            None => {
                let what = format!("{} blocks", sb.s_blocks_count);
                Err(image.corrupt("superblock", what))
            }
        }
    }

    /// Parses a superblock; None if a size is out of range.
    fn parse(buf: &[u8]) -> Option<SuperBlock> {
        let u32 = |offset| u32_at(buf, offset);
        let u16 = |offset| u16_at(buf, offset);
        let s_feature_incompat = u32(0x60)?;
        let s_feature_ro_compat = u32(0x64)?;
        let bit64 = s_feature_incompat & incompat::BIT64 != 0;
        let bigalloc = s_feature_ro_compat & ro_compat::BIGALLOC != 0;
        let block_log = u32(0x18).filter(|&log| log <= 6)?;
        let cluster_log = if bigalloc {
            u32(0x1c)?.checked_sub(block_log)?
        } else {
            0
        };
        let dynamic = u32(0x4c)? >= 1;
        let blocks_hi = if bit64 { u32(0x150)? } else { 0 };
        let s_blocks_count = u64::from(blocks_hi) << 32 | u64::from(u32(0x4)?);
        let s_first_data_block = u32(0x14)?;
        let s_blocks_per_group = u32(0x20)?;
        let groups = s_blocks_count
            .checked_sub(s_first_data_block.into())?
            .checked_add(s_blocks_per_group.into())?
            .checked_sub(1)?
            .checked_div(s_blocks_per_group.into())?;
        Some(SuperBlock {
            s_inodes_count: u32(0x0)?,
            s_blocks_count,
            s_first_data_block,
            block_size: 1024 << block_log,
            cluster_ratio: Some(cluster_log)
                .filter(|&log| log <= 20)
                .map(|log| 1 << log)?,
            s_blocks_per_group,
            s_inodes_per_group: u32(0x28)?,
            s_inode_size: if dynamic { u16(0x58)? } else { 128 },
            s_feature_compat: u32(0x5c)?,
            s_feature_incompat,
            s_feature_ro_compat,
            s_journal_inum: Ino(u32(0xe0)?),
            s_journal_dev: u32(0xe4)?,
            s_journal_uuid: *buf.get(0xd0..)?.first_chunk()?,
            desc_size: if bit64 { u16(0xfe)? } else { 32 },
            s_reserved_gdt_blocks: u16(0xce)?,
            s_first_meta_bg: u32(0x104)?,
            s_mmp_block: FsBlock(u64_at(buf, 0x168)?),
            s_backup_bgs: [u32(0x24c)?, u32(0x250)?],
            quota_inums: [Ino(u32(0x240)?), Ino(u32(0x244)?), Ino(u32(0x26c)?)],
            s_orphan_file_inum: Ino(u32(0x280)?),
            s_last_orphan: Ino(u32(0xe8)?),
            s_first_ino: Ino(if dynamic { u32(0x54)? } else { 11 }),
            has_errors: u16(0x3a)? & EXT2_ERROR_FS != 0,
            checksum_seed: if s_feature_incompat & incompat::CSUM_SEED != 0 {
                u32(0x270)?
            } else {
                crc::crc32c(u32::MAX, buf.get(0x68..0x78)?)
            },
            groups: u32::try_from(groups).ok()?,
        })
    }

    /// Returns what is impossible in a parsed superblock, if anything is.
    fn impossible(&self) -> Option<String> {
        let bits = u64::from(self.block_size).saturating_mul(8);
        let clusters = u64::from(self.s_blocks_per_group).checked_div(self.cluster_ratio.into());
        let inodes = u64::from(self.groups).saturating_mul(self.s_inodes_per_group.into());
        let size_ok = |size: u16, least: u16, most: u32| {
            size.is_power_of_two() && size >= least && u32::from(size) <= most
        };
        if self.groups == 0 {
            Some(format!(
                "{} blocks make no block group",
                self.s_blocks_count
            ))
        } else if clusters.is_none_or(|clusters| clusters == 0 || clusters > bits) {
            Some(format!("{} blocks in a group", self.s_blocks_per_group))
        } else if self.s_inodes_per_group == 0 || u64::from(self.s_inodes_per_group) > bits {
            Some(format!("{} inodes in a group", self.s_inodes_per_group))
        } else if u64::from(self.s_inodes_count) != inodes {
            Some(format!(
                "{} inodes, but its groups have {inodes}",
                self.s_inodes_count
            ))
        } else if !size_ok(self.s_inode_size, 128, self.block_size) {
            Some(format!("inodes of {} bytes", self.s_inode_size))
        } else if !size_ok(self.desc_size, 32, 1024) {
            Some(format!("group descriptors of {} bytes", self.desc_size))
        } else {
            None
        }
    }

    /// Returns true if all these bits of `s_feature_compat` are set.
    pub fn compat(&self, bits: u32) -> bool {
        self.s_feature_compat & bits == bits
    }

    /// Returns true if all these bits of `s_feature_incompat` are set.
    pub fn incompat(&self, bits: u32) -> bool {
        self.s_feature_incompat & bits == bits
    }

    /// Returns true if all these bits of `s_feature_ro_compat` are set.
    pub fn ro_compat(&self, bits: u32) -> bool {
        self.s_feature_ro_compat & bits == bits
    }

    /// Returns true if the `*_UNINIT` flags of the group descriptors are valid.
    pub fn has_group_desc_csum(&self) -> bool {
        self.ro_compat(ro_compat::GDT_CSUM) || self.ro_compat(ro_compat::METADATA_CSUM)
    }

    /// Returns the number behind the last block.
    pub fn end(&self) -> FsBlock {
        FsBlock(self.s_blocks_count)
    }

    /// Returns the byte offset of a block from the start of the filesystem. The block must be inside.
    pub fn byte_of(&self, block: FsBlock) -> u64 {
        block.0.saturating_mul(self.block_size.into())
    }

    /// Returns the first block from this one on that may not be all zeros.
    pub fn next_data(&self, image: &Image, block: FsBlock) -> FsBlock {
        let byte = image.next_data(self.byte_of(block));
        let next = byte.checked_div(self.block_size.into()).unwrap_or(0);
        FsBlock(next).max(block)
    }

    /// Returns true if a block lies in a hole of the image and so is zeros.
    pub fn is_hole(&self, image: &Image, block: FsBlock) -> bool {
        let byte = self.byte_of(block);
        byte < image.bytes() && image.is_hole(byte..byte.saturating_add(self.block_size.into()))
    }

    /// Returns the byte offset of a block in its file; None if no file is so long.
    pub fn offset_of(&self, block: FileBlock) -> Option<u64> {
        block.0.checked_mul(self.block_size.into())
    }

    /// Returns the block size as a length in memory.
    pub fn block_bytes(&self) -> usize {
        usize::try_from(self.block_size).unwrap_or(usize::MAX)
    }

    /// Returns the first block of a group.
    pub fn group_first_block(&self, group: u32) -> FsBlock {
        let before = u64::from(group).saturating_mul(self.s_blocks_per_group.into());
        FsBlock(self.s_first_data_block.into()).plus(before)
    }

    /// Returns the number of blocks in the inode table of one group.
    pub fn inode_table_blocks(&self) -> u64 {
        u64::from(self.s_inodes_per_group)
            .saturating_mul(self.s_inode_size.into())
            .div_ceil(self.block_size.into())
    }

    /// Reads one block; `at` names the structure in errors.
    pub fn read_block(
        &self,
        image: &Image,
        block: FsBlock,
        at: impl std::fmt::Display,
    ) -> Result<Vec<u8>> {
        image.read(self.byte_of(block), self.block_bytes(), at)
    }
}

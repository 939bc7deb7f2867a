// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block groups: where superblock copies and descriptors lie, and what the descriptors say.

use super::numbers::FsBlock;
use super::superblock::{SuperBlock, compat, incompat, ro_compat};
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::le::{u16_at, u32_at};

const EXT4_BG_INODE_UNINIT: u16 = 0x1;
const EXT4_BG_BLOCK_UNINIT: u16 = 0x2;

/// `struct ext4_group_desc`: the fields used here, low and high halves joined.
#[derive(Clone, Debug)]
pub struct GroupDesc {
    pub bg_block_bitmap: FsBlock,
    pub bg_inode_bitmap: FsBlock,
    pub bg_inode_table: FsBlock,
    /// Inodes at the end of the table that were never used; 0 without checksums of descriptors.
    pub bg_itable_unused: u32,
    /// The inode bitmap was never written: no inode of the group is in use.
    pub inode_uninit: bool,
    /// The block bitmap was never written: the group holds layout metadata at most.
    pub block_uninit: bool,
}

impl GroupDesc {
    fn parse(sb: &SuperBlock, buf: &[u8]) -> Option<GroupDesc> {
        let wide = sb.desc_size >= 64;
        let block = |lo, hi| {
            let high = if wide { u32_at(buf, hi)? } else { 0 };
            let low = u32_at(buf, lo)?;
            Some(FsBlock(u64::from(high) << 32 | u64::from(low)))
        };
        let flags = if sb.has_group_desc_csum() {
            u16_at(buf, 0x12)?
        } else {
            0
        };
        let itable_unused = || {
            let high = if wide { u16_at(buf, 0x32)? } else { 0 };
            Some(u32::from(high) << 16 | u32::from(u16_at(buf, 0x1c)?))
        };
        Some(GroupDesc {
            bg_block_bitmap: block(0x0, 0x20)?,
            bg_inode_bitmap: block(0x4, 0x24)?,
            bg_inode_table: block(0x8, 0x28)?,
            bg_itable_unused: if sb.has_group_desc_csum() {
                itable_unused()?
            } else {
                0
            },
            inode_uninit: flags & EXT4_BG_INODE_UNINIT != 0,
            block_uninit: flags & EXT4_BG_BLOCK_UNINIT != 0,
        })
    }
}

/// Reads the primary descriptors of all groups.
pub fn read_all(image: &Image, sb: &SuperBlock) -> Result<Vec<GroupDesc>> {
    let mut groups = Vec::new();
    for nr in 0..desc_blocks(sb) {
        let at = format!("group descriptor block {nr}");
        let buf = sb.read_block(image, descriptor_block(sb, nr), &at)?;
        for desc in buf.chunks_exact(sb.desc_size.into()) {
            if groups.len() < usize::try_from(sb.groups).unwrap_or(usize::MAX) {
                groups.extend(GroupDesc::parse(sb, desc));
            }
        }
    }
    Ok(groups)
}

/// Blocks of the primary descriptors.
pub fn primaries(sb: &SuperBlock) -> impl Iterator<Item = FsBlock> {
    (0..desc_blocks(sb)).map(|nr| descriptor_block(sb, nr))
}

/// Descriptors in one block.
fn desc_per_block(sb: &SuperBlock) -> u32 {
    sb.block_size.checked_div(sb.desc_size.into()).unwrap_or(1)
}

/// Blocks that hold all descriptors.
fn desc_blocks(sb: &SuperBlock) -> u32 {
    sb.groups.div_ceil(desc_per_block(sb))
}

/// Where the primary copy of the `nr`-th descriptor block lies.
fn descriptor_block(sb: &SuperBlock, nr: u32) -> FsBlock {
    if !sb.incompat(incompat::META_BG) || nr < sb.s_first_meta_bg {
        return primary(sb).plus(1).plus(nr.into());
    }
    let group = nr.saturating_mul(desc_per_block(sb));
    base(sb, group).plus(u64::from(bg_has_super(sb, group)))
}

/// Block of the primary superblock.
fn primary(sb: &SuperBlock) -> FsBlock {
    FsBlock(u64::from(sb.block_size == 1024))
}

/// Where a group's copies begin: its first block, but 1 KiB blocks leave block 0 to the boot
/// loader even when it counts as the first one (bigalloc).
fn base(sb: &SuperBlock, group: u32) -> FsBlock {
    if group == 0 {
        primary(sb)
    } else {
        sb.group_first_block(group)
    }
}

/// Whether a group begins with a copy of the superblock.
fn bg_has_super(sb: &SuperBlock, group: u32) -> bool {
    if group == 0 {
        true
    } else if sb.compat(compat::SPARSE_SUPER2) {
        sb.s_backup_bgs.contains(&group)
    } else if group == 1 || !sb.ro_compat(ro_compat::SPARSE_SUPER) {
        true
    } else {
        [3, 5, 7].into_iter().any(|base| is_power_of(group, base))
    }
}

fn is_power_of(number: u32, base: u32) -> bool {
    std::iter::successors(Some(base), |power| power.checked_mul(base))
        .take_while(|&power| power <= number)
        .any(|power| power == number)
}

/// The copies at the start of one group.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// The superblock's.
    pub superblock: Option<FsBlock>,
    /// First block and number of blocks of the group descriptors.
    pub descriptors: Option<(FsBlock, u64)>,
    /// The same of the blocks reserved for more descriptors.
    pub reserved: Option<(FsBlock, u64)>,
}

/// What lies at the start of a group, with and without meta_bg.
pub fn copies(sb: &SuperBlock, group: u32) -> Copies {
    let has_super = bg_has_super(sb, group);
    let base = base(sb, group);
    let after_super = base.plus(u64::from(has_super));
    let superblock = has_super.then_some(base);
    let meta_bg = sb.incompat(incompat::META_BG);
    let per_block = desc_per_block(sb);
    let old_style = !meta_bg || group.checked_div(per_block).unwrap_or(0) < sb.s_first_meta_bg;
    if old_style {
        let blocks = if meta_bg {
            sb.s_first_meta_bg
        } else {
            desc_blocks(sb)
        };
        let reserved_at = after_super.plus(blocks.into());
        return Copies {
            superblock,
            descriptors: has_super.then_some((after_super, blocks.into())),
            reserved: has_super.then_some((reserved_at, sb.s_reserved_gdt_blocks.into())),
        };
    }
    // The first, the second and the last group of a meta group hold its one descriptor block.
    let nth = group.checked_rem(per_block).unwrap_or(0);
    let holds = nth <= 1 || nth.checked_add(1) == Some(per_block);
    Copies {
        superblock,
        descriptors: holds.then_some((after_super, 1)),
        reserved: None,
    }
}

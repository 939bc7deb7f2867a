// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block groups: the places of superblock copies and descriptors, and the contents of the descriptors.

use std::collections::HashSet;

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
    /// The group's number.
    pub group: u32,
    pub bg_block_bitmap: FsBlock,
    pub bg_inode_bitmap: FsBlock,
    pub bg_inode_table: FsBlock,
    /// Number of inodes at the end of the table that were never used; 0 if the descriptors have no checksums.
    pub bg_itable_unused: u32,
    /// True if the inode bitmap was never written: no inode of the group is in use.
    pub inode_uninit: bool,
    /// True if the block bitmap was never written: the group holds at most layout metadata.
    pub block_uninit: bool,
}

impl GroupDesc {
    fn parse(sb: &SuperBlock, group: u32, buf: &[u8]) -> Option<GroupDesc> {
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
            group,
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

    /// Returns true if at least one of its places is not also another group's.
    fn has_own(&self, places: &mut HashSet<FsBlock>) -> bool {
        let own = [
            self.bg_inode_table,
            self.bg_inode_bitmap,
            self.bg_block_bitmap,
        ];
        own.into_iter().any(|block| places.insert(block))
    }
}

/// Reads the primary descriptors of all groups, by number. It leaves out descriptors that are zeros, and those whose inode table
/// and bitmaps are all other groups'.
pub fn read_all(image: &Image, sb: &SuperBlock) -> Result<Vec<GroupDesc>> {
    let mut groups = Vec::new();
    let mut places = HashSet::new();
    let last = desc_blocks(sb).saturating_sub(1);
    let mut nr = 0u32;
    while nr <= last {
        let at = format!("group descriptor block {nr}");
        let buf = sb.read_block(image, descriptor_block(sb, nr), &at)?;
        let first = nr.saturating_mul(desc_per_block(sb));
        let descriptors = buf.chunks_exact(sb.desc_size.into());
        for (group, desc) in (first..sb.groups).zip(descriptors) {
            if desc.iter().any(|&byte| byte != 0) {
                let desc = GroupDesc::parse(sb, group, desc);
                groups.extend(desc.filter(|desc| desc.has_own(&mut places)));
            }
        }
        // The last block is always read, because the image may end before it.
        let next = with_data(image, sb, nr.saturating_add(1)).min(last);
        nr = next.max(nr.saturating_add(1));
    }
    Ok(groups)
}

/// Returns the first descriptor block from number `nr` on that may not be all zeros, or one before it.
fn with_data(image: &Image, sb: &SuperBlock, nr: u32) -> u32 {
    let at = descriptor_block(sb, nr);
    let data = sb.next_data(image, at);
    let skipped = if is_together(sb, nr) {
        at.up_to(data)
    } else {
        let groups = at.up_to(data).checked_div(sb.s_blocks_per_group.into());
        // The group with the data may hold the descriptor block as its second block.
        let blocks = groups.and_then(|groups| groups.checked_div(desc_per_block(sb).into()));
        blocks.unwrap_or(0)
    };
    let next = nr.saturating_add(u32::try_from(skipped).unwrap_or(u32::MAX));
    if is_together(sb, nr) && sb.incompat(incompat::META_BG) {
        return next.min(sb.s_first_meta_bg);
    }
    next
}

/// Returns the blocks of the primary descriptors.
pub fn primaries(sb: &SuperBlock) -> impl Iterator<Item = FsBlock> {
    (0..desc_blocks(sb)).map(|nr| descriptor_block(sb, nr))
}

/// Returns the number of descriptors in one block.
fn desc_per_block(sb: &SuperBlock) -> u32 {
    sb.block_size.checked_div(sb.desc_size.into()).unwrap_or(1)
}

/// Returns the number of blocks that hold all descriptors.
fn desc_blocks(sb: &SuperBlock) -> u32 {
    sb.groups.div_ceil(desc_per_block(sb))
}

/// Returns the place of the primary copy of descriptor block number `nr`.
fn descriptor_block(sb: &SuperBlock, nr: u32) -> FsBlock {
    if is_together(sb, nr) {
        return primary(sb).plus(1).plus(nr.into());
    }
    let group = nr.saturating_mul(desc_per_block(sb));
    base(sb, group).plus(u64::from(bg_has_super(sb, group)))
}

/// Returns true if a descriptor block lies with others behind the superblock, and not in its meta group.
fn is_together(sb: &SuperBlock, nr: u32) -> bool {
    !sb.incompat(incompat::META_BG) || nr < sb.s_first_meta_bg
}

/// Returns the block of the primary superblock.
fn primary(sb: &SuperBlock) -> FsBlock {
    FsBlock(u64::from(sb.block_size == 1024))
}

/// Returns the block at which a group's copies begin. This is its first block, but with 1 KiB blocks block 0 belongs to the boot
/// loader even if it counts as the first one (bigalloc).
fn base(sb: &SuperBlock, group: u32) -> FsBlock {
    if group == 0 {
        primary(sb)
    } else {
        sb.group_first_block(group)
    }
}

/// Returns true if a group begins with a copy of the superblock.
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

/// The copies of the superblock and the descriptors at the start of one group.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// The block of the superblock's copy.
    pub superblock: Option<FsBlock>,
    /// First block and number of blocks of the group descriptors.
    pub descriptors: Option<(FsBlock, u64)>,
    /// First block and number of blocks of those reserved for more descriptors.
    pub reserved: Option<(FsBlock, u64)>,
}

/// Returns the copies at the start of a group, with or without meta_bg.
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The blocks that belong to the filesystem itself, and those that are allocated but have no owner.

use std::collections::HashSet;

use super::claims::Claims;
use super::group_desc::{self, GroupDesc};
use super::numbers::FsBlock;
use super::superblock::{SuperBlock, incompat};
use crate::class::Kind;
use crate::fs::bits;
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::notices::Notices;

/// Claims superblocks, descriptors, bitmaps, inode tables and the MMP block.
pub fn claim(sb: &SuperBlock, groups: &[GroupDesc], claims: &mut Claims, notices: &mut Notices) {
    if sb.block_size == 1024 {
        // This block belongs to the boot loader: ext4 neither uses it nor counts it as free.
        claims.layout(FsBlock(0), 1, Kind::Unmapped);
    }
    for desc in groups {
        let group = desc.group;
        claim_copies(sb, group, claims);
        for (block, blocks, kind) in [
            (desc.bg_block_bitmap, 1, Kind::BlockBitmap),
            (desc.bg_inode_bitmap, 1, Kind::InodeBitmap),
            (
                desc.bg_inode_table,
                sb.inode_table_blocks(),
                Kind::InodeTable,
            ),
        ] {
            if !claims.layout(block, blocks, kind) {
                let line = format!("group {group}: its {kind} at block {block} is outside");
                notices.push(line);
            }
        }
    }
    if sb.incompat(incompat::MMP) && !claims.layout(sb.s_mmp_block, 1, Kind::Mmp) {
        notices.push(format!("the mmp block {} is outside", sb.s_mmp_block));
    }
}

/// Claims the copies at the start of a group. If the last group is short, its copies may lie past the end; that is no error.
fn claim_copies(sb: &SuperBlock, group: u32, claims: &mut Claims) {
    let copies = group_desc::copies(sb, group);
    if let Some(block) = copies.superblock {
        claims.layout(block, 1, Kind::Superblock);
    }
    if let Some((block, blocks)) = copies.descriptors {
        claims.layout(block, blocks, Kind::GroupDesc);
    }
}

/// Claims the blocks reserved for more descriptors. The resize inode holds them; these claims are for what it does not list.
pub fn claim_reserved(sb: &SuperBlock, groups: &[GroupDesc], claims: &mut Claims) {
    for desc in groups {
        if let Some((block, blocks)) = group_desc::copies(sb, desc.group).reserved {
            claims.layout(block, blocks, Kind::GroupDesc);
        }
    }
}

/// Claims as free what the next mount frees, although the block bitmaps still have it; by whole clusters, as it is freed.
pub fn claim_freed(sb: &SuperBlock, freed: &[(FsBlock, u64)], claims: &mut Claims) {
    let ratio = u64::from(sb.cluster_ratio).max(1);
    let first = FsBlock(sb.s_first_data_block.into());
    for &(block, blocks) in freed {
        let at = first.up_to(block);
        let within = at.checked_rem(ratio).unwrap_or(0);
        let start = block.0.saturating_sub(within);
        let len = blocks
            .saturating_add(within)
            .div_ceil(ratio)
            .saturating_mul(ratio);
        let len = len.min(FsBlock(start).up_to(sb.end()));
        claims.layout(FsBlock(start), len, Kind::Free);
    }
}

/// The number of allocated runs that may have no owner before the bitmaps count as damaged. In a sound filesystem each run has at
/// least one owner.
const WITHOUT_OWNER: usize = 1 << 18;

/// Claims as `unmapped` what the block bitmaps mark as allocated. It must be called last: what is left then has no owner that could
/// be found. This includes the unused rest of a bigalloc cluster, to which its file's extents do not reach; `debugfs icheck` finds
/// no owner for it either.
pub fn claim_allocated(
    image: &Image,
    sb: &SuperBlock,
    groups: &[GroupDesc],
    claims: &mut Claims,
    notices: &mut Notices,
) {
    let most = claims
        .count()
        .saturating_mul(2)
        .saturating_add(WITHOUT_OWNER);
    let mut bitmaps = HashSet::new();
    let own = |desc: &&GroupDesc| {
        let bitmap = desc.bg_block_bitmap;
        !desc.block_uninit && bitmaps.insert(bitmap) && !sb.is_hole(image, bitmap)
    };
    for desc in groups.iter().filter(own) {
        if claims.count() > most {
            let group = desc.group;
            notices.push(format!(
                "from group {group} on the block bitmaps have more runs than there are owners: \
                                  what is not owned there is unmapped"
            ));
            let first = sb.group_first_block(group);
            claims.layout(first, first.up_to(sb.end()), Kind::Unmapped);
            return;
        }
        claim_group(image, sb, desc, claims)
            .unwrap_or_else(|error| notices.push(error.to_string()));
    }
}

fn claim_group(
    image: &Image,
    sb: &SuperBlock,
    desc: &GroupDesc,
    claims: &mut Claims,
) -> Result<()> {
    let group = desc.group;
    let ratio = u64::from(sb.cluster_ratio);
    let first = sb.group_first_block(group);
    let blocks = first.up_to(sb.end()).min(sb.s_blocks_per_group.into());
    let at = format!("block bitmap of group {group}");
    let buf = sb.read_block(image, desc.bg_block_bitmap, at)?;
    for run in bits::runs(&bits::lowest_first(&buf)) {
        // The bits behind the group's last block are set.
        let block = |cluster: usize| {
            let cluster = u64::try_from(cluster).unwrap_or(u64::MAX);
            cluster.saturating_mul(ratio).min(blocks)
        };
        let (at, end) = (block(run.start), block(run.end));
        let len = end.saturating_sub(at);
        claims.layout(first.plus(at), len, Kind::Unmapped);
    }
    Ok(())
}

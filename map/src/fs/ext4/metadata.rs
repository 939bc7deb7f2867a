// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the metadata lies that a map is built from: the superblock, the descriptors, bitmaps, inode tables, the
//! trees of all inodes, and the contents of directories, long symlinks, the journal and other files of the
//! filesystem's own. What a snapshot saves; without debugfs.

use std::collections::HashSet;
use std::ops::Range;

use super::group_desc::{self, GroupDesc};
use super::inode::{self, BlockMap, InodeRecord, mode};
use super::numbers::{FsBlock, Ino};
use super::superblock::{SuperBlock, compat, incompat, ro_compat};
use super::tree::{Node, extent_node, indirect_node, root};
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::notices::Notices;
use crate::fs::progress::Part;

/// Places on an image.
#[derive(Debug)]
pub struct Metadata {
    /// In bytes; ascending, disjoint and inside the image.
    pub ranges: Vec<Range<u64>>,
    /// What could not be read, a line each.
    pub notices: Vec<String>,
}

/// Finds the metadata of a filesystem: ext4, ext3 or ext2.
///
/// # Errors
/// The superblock or the group descriptors cannot be read.
pub fn metadata(image: &Image) -> Result<Metadata> {
    let sb = &SuperBlock::read(image)?;
    let groups = group_desc::read_all(image, sb)?;
    let mut places = Places {
        image,
        sb,
        blocks: Vec::new(),
        nodes: HashSet::new(),
    };
    places.layout(&groups);
    let mut notices = Notices::default();
    let mut broken = Notices::default();
    let part = Part::new(&|_| {}, "inode tables", groups.len());
    inode::scan(image, sb, &groups, &mut notices, part, |record, raw| {
        places
            .inode(&record, raw)
            .unwrap_or_else(|error| broken.push(error.to_string()));
    });
    let mut notices = notices.into_lines();
    notices.extend(broken.into_lines());
    Ok(Metadata {
        ranges: places.into_ranges(),
        notices,
    })
}

struct Places<'a> {
    image: &'a Image,
    sb: &'a SuperBlock,
    blocks: Vec<Range<u64>>,
    /// Tree nodes that were read: a damaged tree may lead back to one.
    nodes: HashSet<FsBlock>,
}

impl Places<'_> {
    /// The primary copies alone: the others say the same, or are old.
    fn layout(&mut self, groups: &[GroupDesc]) {
        let sb = self.sb;
        // The superblock is at byte 1024, whatever the size of a block.
        self.add(FsBlock(0), 2048u64.div_ceil(sb.block_size.into()));
        for block in group_desc::primaries(sb) {
            self.add(block, 1);
        }
        for desc in groups {
            self.add(desc.bg_block_bitmap, 1);
            self.add(desc.bg_inode_bitmap, 1);
            let unused = u64::from(desc.bg_itable_unused)
                .saturating_mul(sb.s_inode_size.into())
                .checked_div(sb.block_size.into())
                .unwrap_or(0);
            let used = sb.inode_table_blocks().saturating_sub(unused);
            self.add(desc.bg_inode_table, used);
        }
        if sb.incompat(incompat::MMP) {
            self.add(sb.s_mmp_block, 1);
        }
    }

    fn inode(&mut self, record: &InodeRecord, raw: &[u8]) -> Result<()> {
        if record.i_file_acl != FsBlock(0) {
            self.add(record.i_file_acl, 1);
        }
        if record.block_map == BlockMap::None {
            return Ok(());
        }
        let (Some(i_block), contents) = (raw.get(0x28..0x64), self.saves_contents(record)) else {
            return Ok(());
        };
        let extents = record.block_map != BlockMap::Indirect;
        for node in root(i_block, extents) {
            self.walk(&node, extents, contents, record.number)?;
        }
        Ok(())
    }

    /// Whether what the inode holds is the filesystem's own, or leads to names.
    fn saves_contents(&self, record: &InodeRecord) -> bool {
        let sb = self.sb;
        let number = record.number;
        record.is(mode::S_IFDIR)
            || record.is(mode::S_IFLNK)
            || sb.compat(compat::HAS_JOURNAL) && number == sb.s_journal_inum
            || sb.ro_compat(ro_compat::QUOTA) && sb.quota_inums.contains(&number)
            || sb.compat(compat::ORPHAN_FILE) && number == sb.s_orphan_file_inum
    }

    /// Adds a node of a tree and all below it.
    fn walk(&mut self, node: &Node, extents: bool, contents: bool, of: Ino) -> Result<()> {
        let &Node {
            block,
            blocks,
            height,
        } = node;
        if height == 0 {
            if contents {
                self.add(block, blocks);
            }
            return Ok(());
        }
        if block >= self.sb.end() || !self.nodes.insert(block) {
            return Ok(());
        }
        self.add(block, 1);
        let at = format_args!("inode {of}: tree block {block}").to_string();
        let buf = self.sb.read_block(self.image, block, at)?;
        // Of the last level nothing but contents is left.
        if height == 1 && !contents {
            return Ok(());
        }
        let below = if extents {
            extent_node(&buf, height.saturating_sub(1))
        } else {
            indirect_node(&buf, height.saturating_sub(1))
        };
        for node in below {
            self.walk(&node, extents, contents, of)?;
        }
        Ok(())
    }

    /// What of it is inside the filesystem.
    fn add(&mut self, block: FsBlock, blocks: u64) {
        let end = block.plus(blocks).min(self.sb.end());
        if block < end {
            self.blocks.push(block.0..end.0);
        }
    }

    fn into_ranges(mut self) -> Vec<Range<u64>> {
        self.blocks.sort_unstable_by_key(|run| run.start);
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for run in self.blocks {
            let byte = |block| self.sb.byte_of(FsBlock(block)).min(self.image.bytes());
            let (start, end) = (byte(run.start), byte(run.end));
            match ranges.last_mut() {
                Some(last) if start <= last.end => last.end = last.end.max(end),
                _ if start < end => ranges.push(start..end),
                _ => {}
            }
        }
        ranges
    }
}

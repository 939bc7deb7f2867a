// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the metadata from which a map is built, without debugfs: the superblock, the descriptors, bitmaps, inode tables, the trees
//! of all inodes, and the contents of directories, long symlinks, the journal and the filesystem's own files. A snapshot saves
//! these.

use std::ops::Range;

use super::block_list::BlockList;
use super::group_desc::{self, GroupDesc};
use super::inode::{self, InodeRecord, mode};
use super::numbers::FsBlock;
use super::superblock::{SuperBlock, compat, incompat, ro_compat};
use super::walk::Walker;
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::notices::Notices;
use crate::fs::progress::PartProgress;

/// Places on an image.
#[derive(Debug)]
pub struct Metadata {
    /// Byte ranges; ascending, disjoint and inside the image.
    pub ranges: Vec<Range<u64>>,
    /// What could not be read, one line each.
    pub notices: Vec<String>,
}

/// Finds the metadata of an ext4, ext3 or ext2 filesystem.
pub fn metadata(image: &Image) -> Result<Metadata> {
    let sb = &SuperBlock::read(image)?;
    let groups = group_desc::read_all(image, sb)?;
    let mut places = Places {
        image,
        sb,
        blocks: Vec::new(),
    };
    places.layout(&groups);
    let mut notices = Notices::default();
    let mut broken = Notices::default();
    let mut walker = Walker::without_checksums(image, sb);
    let part = PartProgress::new(&|_| {}, "inode tables", groups.len());
    inode::scan(image, sb, &groups, &mut notices, part, |record, raw| {
        let list = walker.list(&record, raw);
        places.inode(&record, &list);
        let number = record.number;
        for complaint in list.complaints.into_lines() {
            broken.push(format!("inode {number}: {complaint}"));
        }
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
}

impl Places<'_> {
    /// Adds the primary copies only: the others say the same, or are old.
    fn layout(&mut self, groups: &[GroupDesc]) {
        let sb = self.sb;
        // The superblock is at byte 1024, whatever the block size.
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

    fn inode(&mut self, record: &InodeRecord, list: &BlockList) {
        if record.i_file_acl != FsBlock(0) {
            self.add(record.i_file_acl, 1);
        }
        for &block in list.tree.iter().chain(&list.upper_tree) {
            self.add(block, 1);
        }
        if self.saves_contents(record) {
            for run in &list.runs {
                self.add(run.block, run.blocks);
            }
        }
    }

    /// Returns true if the inode's contents belong to the filesystem itself, or lead to names.
    fn saves_contents(&self, record: &InodeRecord) -> bool {
        let sb = self.sb;
        let number = record.number;
        record.is(mode::S_IFDIR)
            || record.is(mode::S_IFLNK)
            || sb.compat(compat::HAS_JOURNAL) && number == sb.s_journal_inum
            || sb.ro_compat(ro_compat::QUOTA) && sb.quota_inums.contains(&number)
            || sb.compat(compat::ORPHAN_FILE) && number == sb.s_orphan_file_inum
    }

    /// Adds the part of these blocks that is inside the filesystem.
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

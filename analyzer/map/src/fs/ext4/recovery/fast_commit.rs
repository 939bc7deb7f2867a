// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays fast commits (the kernel's fs/ext4/fast_commit.c) on the inodes of an image.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::super::checksum::seal_inode;
use super::super::dirent;
use super::super::inline_data;
use super::super::inode::{InodeRecord, mode};
use super::super::inode_table::{InodePlace, InodeTable};
use super::super::names::ReplayedNames;
use super::super::numbers::{FsBlock, Ino};
use super::super::superblock::data_blocks;
use super::super::walk::Walker;
use super::tags::{DentryInfo, Tag};
use super::{Changes, Ranges};
use crate::fs::le::{u16_at, u32_at};
use crate::fs::patches::{Patch, Patches};

const I_LINKS_COUNT: usize = 0x1a;
const I_FLAGS: usize = 0x20;
const I_BLOCK: std::ops::Range<usize> = 0x28..0x64;
const EXT4_EXTENTS_FL: u32 = 0x8_0000;
const EXT4_INLINE_DATA_FL: u32 = 0x1000_0000;
/// The header of an empty extent tree in an inode: `eh_magic`, no entries, room for four.
const EMPTY_ROOT: [u8; 12] = [0x0a, 0xf3, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0];

/// The filesystem while fast commits are replayed.
pub struct Replay<'a> {
    table: InodeTable<'a>,
    /// The inodes that were changed.
    raws: BTreeMap<Ino, Vec<u8>>,
    /// Whether they are in use now.
    used: BTreeMap<Ino, bool>,
    changes: Changes,
}

impl<'a> Replay<'a> {
    /// Starts with the inodes as the log of jbd2 left them.
    pub fn new(table: InodeTable<'a>) -> Replay<'a> {
        Replay {
            table,
            raws: BTreeMap::new(),
            used: BTreeMap::new(),
            changes: Changes::default(),
        }
    }

    /// Returns the number of inodes that were changed.
    pub fn inodes(&self) -> usize {
        self.used.len()
    }

    /// Replays one tag. Numbers of inodes that do not exist are passed over, as the kernel does.
    pub fn tag(&mut self, tag: &Tag) {
        match tag {
            Tag::Add {
                inode,
                logical,
                block,
                blocks,
            } => {
                let is_inside = *blocks <= block.up_to(self.table.sb.end());
                if is_inside && let Some(ranges) = self.ranges(*inode) {
                    ranges.add(*logical, *blocks, *block);
                }
            }
            Tag::Delete {
                inode,
                logical,
                blocks,
            } => {
                if let Some(ranges) = self.ranges(*inode) {
                    ranges.delete(*logical, *blocks);
                }
            }
            Tag::Create(entry) => self.create(entry),
            Tag::Link(entry) => {
                if self.add_name(entry) {
                    self.count(entry.inode, 1);
                }
            }
            Tag::Unlink(entry) => self.unlink(entry),
            Tag::Inode { inode, raw } => self.inode(*inode, raw),
        }
    }

    /// Returns the changes of files.
    pub fn into_changes(self) -> Changes {
        self.changes
    }

    fn is_used(&self, number: Ino) -> bool {
        let used = self.used.get(&number).copied();
        used.unwrap_or_else(|| self.table.is_used(number))
    }

    fn raw(&self, number: Ino) -> Option<Vec<u8>> {
        let changed = self.raws.get(&number).cloned();
        changed.or_else(|| self.table.raw(number))
    }

    fn record(&self, number: Ino) -> Option<(InodeRecord, Vec<u8>)> {
        let raw = self.raw(number)?;
        let record = InodeRecord::parse(self.table.sb, number, &raw)?;
        Some((record, raw))
    }

    /// Returns the ranges of a file that exists.
    fn ranges(&mut self, number: Ino) -> Option<&mut Ranges> {
        let exists = self.is_used(number);
        exists.then(|| {
            self.used.insert(number, true);
            self.changes.ranges.entry(number).or_default()
        })
    }

    /// Stores a changed inode.
    fn set(&mut self, number: Ino, mut raw: Vec<u8>, is_used: bool) {
        seal_inode(self.table.sb, number, &mut raw);
        self.raws.insert(number, raw);
        self.used.insert(number, is_used);
    }

    fn set_links(&mut self, number: Ino, links: u16) {
        let Some(mut raw) = self.raw(number) else {
            return;
        };
        if let Some(field) = raw
            .get_mut(I_LINKS_COUNT..)
            .and_then(|rest| rest.first_chunk_mut::<2>())
        {
            *field = links.to_le_bytes();
        }
        self.set(number, raw, true);
    }

    fn links(&self, number: Ino) -> u16 {
        let raw = self.raw(number).unwrap_or_default();
        u16_at(&raw, I_LINKS_COUNT).unwrap_or(0)
    }

    fn count(&mut self, number: Ino, by: i16) {
        let links = self.links(number).saturating_add_signed(by);
        self.set_links(number, links);
        if links == 0 {
            self.delete(number);
        }
    }

    /// Replaces an inode's fields but not its place in the extents: `ext4_fc_replay_inode`.
    fn inode(&mut self, number: Ino, new: &[u8]) {
        let Some(mut raw) = self.raw(number).filter(|_| number != Ino(0)) else {
            return;
        };
        if !self.is_used(number) {
            self.changes.ranges.remove(&number);
        }
        let i_block = raw.get(I_BLOCK).unwrap_or_default().to_vec();
        raw.iter_mut().zip(new).for_each(|(to, from)| *to = *from);
        let i_flags = u32_at(new, I_FLAGS).unwrap_or(0);
        if i_flags & EXT4_INLINE_DATA_FL == 0
            && let Some(field) = raw.get_mut(I_BLOCK)
        {
            field.copy_from_slice(&i_block);
            let is_root = i_block.starts_with(&[0x0a, 0xf3]);
            if i_flags & EXT4_EXTENTS_FL != 0
                && !is_root
                && let Some(header) = field.first_chunk_mut()
            {
                *header = EMPTY_ROOT;
            }
        }
        self.set(number, raw, true);
        if self.links(number) == 0 {
            self.delete(number);
        }
    }

    fn create(&mut self, entry: &DentryInfo) {
        let Some((record, _)) = self.record(entry.inode) else {
            return;
        };
        if record.is(mode::S_IFDIR) {
            // The mount makes its block, with `.` and `..`.
            let names = ReplayedNames::default();
            self.changes.directories.insert(entry.inode, names);
        }
        self.add_name(entry);
        self.set_links(entry.inode, 1);
    }

    /// Adds a name. Returns false if the directory has it already, or does not exist.
    fn add_name(&mut self, entry: &DentryInfo) -> bool {
        let Some(names) = self.names(entry.parent) else {
            return false;
        };
        names.add(&entry.name, entry.inode)
    }

    fn unlink(&mut self, entry: &DentryInfo) {
        let Some(names) = self.names(entry.parent) else {
            return;
        };
        if names.remove(&entry.name, entry.inode) {
            self.count(entry.inode, -1);
        }
    }

    /// Returns the names in a directory.
    fn names(&mut self, parent: Ino) -> Option<&mut ReplayedNames> {
        if !self.changes.directories.contains_key(&parent) {
            let (record, raw) = self.record(parent)?;
            let is_directory = record.is(mode::S_IFDIR) && self.is_used(parent);
            let names = is_directory.then(|| self.read_names(&record, &raw))?;
            self.changes.directories.insert(parent, names);
        }
        self.changes.directories.get_mut(&parent)
    }

    fn read_names(&self, record: &InodeRecord, raw: &[u8]) -> ReplayedNames {
        let InodeTable { image, sb, .. } = self.table;
        let mut names = ReplayedNames::default();
        // A damaged area is told when the map reads the directory's blocks.
        let mut parse = |area: &[u8]| {
            let _ = dirent::parse(area, |entry| {
                names.add(entry.name, Ino(entry.inode));
            });
        };
        if record.is_inline_directory() {
            inline_data::directory_areas(raw).for_each(&mut parse);
        }
        let list = Walker::new(image, sb).list(record, raw);
        for run in &list.runs {
            let blocks = run.block.0..run.block.plus(run.blocks).0;
            for block in data_blocks(image, sb, blocks) {
                let area = sb.read_block(image, block, "directory");
                area.into_iter().for_each(|area| parse(&area));
            }
        }
        names
    }

    /// Deletes an inode that has no name any more.
    fn delete(&mut self, number: Ino) {
        let Some((record, mut raw)) = self.record(number) else {
            return;
        };
        let InodeTable { image, sb, .. } = self.table;
        let list = self
            .changes
            .list(&mut Walker::new(image, sb), &record, &raw);
        self.changes.ranges.remove(&number);
        let freed = &mut self.changes.freed;
        freed.extend(list.freed.iter().copied());
        freed.extend(list.runs.iter().map(|run| (run.block, run.blocks)));
        let nodes = list.tree.iter().chain(&list.upper_tree);
        freed.extend(nodes.map(|&block| (block, 1)));
        if record.i_file_acl != FsBlock(0) {
            freed.push((record.i_file_acl, 1));
        }
        if let Some(i_block) = raw.get_mut(I_BLOCK) {
            i_block.fill(0);
        }
        self.set(number, raw, false);
    }

    /// Writes the changed inodes and the bitmaps to `patches`. Returns the groups whose bitmaps are used for the first time, as
    /// indices of their descriptors.
    pub fn patch(&self, patches: &mut Patches) -> BTreeSet<usize> {
        let InodeTable { image, sb, groups } = self.table;
        let mut blocks: HashMap<FsBlock, Vec<u8>> = HashMap::new();
        let mut begun = BTreeSet::new();
        let read = |block: FsBlock| sb.read_block(image, block, "").ok();
        for (&number, &is_used) in &self.used {
            let Some(InodePlace {
                group,
                bit,
                block,
                byte,
            }) = self.table.place(number)
            else {
                continue;
            };
            if let Some(raw) = self.raws.get(&number)
                && let Some(table) = entry(&mut blocks, block, || read(block))
                && let Some(to) = table.get_mut(byte..)
            {
                to.iter_mut().zip(raw).for_each(|(to, from)| *to = *from);
            }
            let Some(desc) = groups.get(group) else {
                continue;
            };
            let bitmap = || match desc.inode_uninit {
                true => Some(vec![0; sb.block_bytes()]),
                false => read(desc.bg_inode_bitmap),
            };
            if desc.inode_uninit {
                begun.insert(group);
            }
            let at = usize::try_from(bit >> 3).unwrap_or(usize::MAX);
            if let Some(bitmap) = entry(&mut blocks, desc.bg_inode_bitmap, bitmap)
                && let Some(to) = bitmap.get_mut(at)
            {
                let mask = 1u8 << (bit & 7);
                *to = if is_used { *to | mask } else { *to & !mask };
            }
        }
        for (block, bytes) in blocks {
            patches.insert(block.into(), Patch::Bytes(bytes.into()));
        }
        begun
    }
}

/// Returns a block that is changed, which `read` provides the first time.
fn entry(
    blocks: &mut HashMap<FsBlock, Vec<u8>>,
    block: FsBlock,
    read: impl FnOnce() -> Option<Vec<u8>>,
) -> Option<&mut Vec<u8>> {
    if let std::collections::hash_map::Entry::Vacant(vacant) = blocks.entry(block) {
        vacant.insert(read()?);
    }
    blocks.get_mut(&block)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map of an ext2, ext3 or ext4 filesystem.
//!
//! ```text
//! superblock, group descriptors ──→ layout metadata ─────────┐
//! inode bitmaps and tables ──→ inodes in use                 ├─→ claims, first wins ─→ Map
//!        └─→ their trees ──→ their blocks ───────────────────┤
//!                   └─→ directory blocks ──→ names           │
//! block bitmaps ──→ allocated, without owner ────────────────┘
//! ```
//! The time of every step is linear in the size of the metadata. [`By`] selects who lists the blocks of an inode: our own walker,
//! or debugfs.

use std::collections::HashMap;
use std::path::Path;

use crate::class::Kind;
use crate::fs::error::{Error, Result};
use crate::fs::image::Image;
use crate::fs::names::link;
use crate::fs::notices::Notices;
use crate::fs::progress::{PartProgress, Watcher};
use crate::fs::volume::Volume;
use crate::map::{Inode, Map};

mod block_list;
mod checksum;
mod claims;
#[cfg(target_os = "linux")]
mod debugfs;
#[cfg(not(target_os = "linux"))]
#[path = "no_debugfs.rs"]
mod debugfs;
pub mod dirent;
mod extents;
mod group_desc;
mod indirect;
mod inline_data;
mod inode;
mod inode_table;
mod journal;
mod journal_device;
mod layout;
mod metadata;
mod names;
mod node;
mod numbers;
mod recovery;
mod superblock;
mod tree;
mod walk;

pub use crate::fs::state::By;
use crate::fs::state::How;
use block_list::BlockList;
use claims::Claims;
use group_desc::GroupDesc;
use inode::{InodeRecord, mode};
use journal_device::Behind;
pub use journal_device::{parts, uuid as journal_uuid};
pub use metadata::{Metadata, metadata};
use names::{Directory, Tree};
use numbers::{EXT4_BAD_INO, EXT4_RESIZE_INO, EXT4_ROOT_INO, FileBlock, FsBlock, Ino};
use recovery::{Changes, Ending, Recovered};
use superblock::{SuperBlock, compat, ro_compat};
use walk::Walker;

/// Builds the map of a filesystem on a raw image, a block device, or the sparse snapshot of `e2image -r`. `start_sector` is the
/// filesystem's first sector on its disk; all sectors of the map count from the start of the disk. What could not be resolved is
/// listed in [`Map::notices`], and those of its blocks that the block bitmap marks as allocated are `unmapped`.
pub fn build(image: &Path, start_sector: u64) -> Result<Map> {
    build_by(How::default(), &Image::open(image)?, start_sector, &|_| {})
}

/// Builds the map of an opened image as [`build`] does, of the state that `how` says. Progress is reported to `watcher`.
///
/// # Errors
/// Returns an error if the superblock or the group descriptors cannot be read; and, if debugfs is to list the blocks, if it is
/// missing or does not open the filesystem.
pub fn build_by(
    how: impl Into<How>,
    image: &Image,
    start_sector: u64,
    watcher: &Watcher,
) -> Result<Map> {
    let How { by, state } = how.into();
    if let Some(map) = journal_device::map(image, start_sector)? {
        return Ok(map);
    }
    let mut about_journal = Notices::default();
    let Recovered {
        image,
        sb,
        groups,
        changes,
    } = &recovery::recover(state, image, &mut about_journal)?;
    if by == By::Debugfs && !image.patches().is_empty() {
        let what =
            "debugfs does not replay it: map what lies on the disk, or a copy after e2fsck -p";
        return Err(image.unsupported("journal", what));
    }
    let journal = Behind::find(image, sb, &mut about_journal);
    let blocks = sb.s_blocks_count.saturating_add(journal.blocks());
    let volume = Volume::new(image, start_sector, blocks, sb.block_size)?;
    let mut builder = Builder {
        image,
        sb,
        watcher,
        claims: Claims::new(sb, volume),
        changes,
        freed: changes.freed.clone(),
        notices: about_journal,
        inodes: HashMap::new(),
        directories: HashMap::new(),
    };
    builder.note_features();
    builder.note_groups(groups.len());
    layout::claim(sb, groups, &mut builder.claims, &mut builder.notices);
    builder.claim_files(by, groups)?;
    let Builder {
        mut claims,
        freed,
        mut notices,
        mut inodes,
        directories,
        ..
    } = builder;
    claims.settle();
    layout::claim_reserved(sb, groups, &mut claims);
    layout::claim_freed(sb, &freed, &mut claims);
    layout::claim_allocated(image, sb, groups, &mut claims, &mut notices);
    claims.reach_beyond(journal.blocks());
    journal.claim(image, sb, &mut claims, &mut notices);
    let part = PartProgress::new(watcher, "directories", directories.len());
    let tree = Tree::new(image, sb, &directories, &mut notices);
    link(tree, EXT4_ROOT_INO, &mut inodes, part);
    let map = volume.map(claims.into_extents(), inodes);
    Ok(map.with_notices(notices.into_lines()))
}

struct Builder<'a> {
    image: &'a Image,
    sb: &'a SuperBlock,
    watcher: &'a Watcher<'a>,
    claims: Claims<'a>,
    /// What the next mount does to files.
    changes: &'a Changes,
    /// Blocks that the next mount frees.
    freed: Vec<(FsBlock, u64)>,
    notices: Notices,
    inodes: HashMap<u64, Inode>,
    directories: HashMap<Ino, Directory>,
}

impl Builder<'_> {
    /// Notes what the map cannot show of a sound filesystem.
    fn note_features(&mut self) {
        let sb = self.sb;
        if sb.ro_compat(ro_compat::SHARED_BLOCKS) {
            self.notices
                .push("files share blocks (shared_blocks), each is given to the first");
        }
        if self.image.bytes() < sb.byte_of(sb.end()) {
            let (bytes, blocks) = (self.image.bytes(), sb.s_blocks_count);
            self.notices.push(format!(
                "the image ends at byte {bytes}, before its {blocks} blocks"
            ));
        }
    }

    /// Notes how many groups have no descriptor.
    fn note_groups(&mut self, known: usize) {
        let groups = usize::try_from(self.sb.groups).unwrap_or(usize::MAX);
        let missing = groups.saturating_sub(known);
        if missing > 0 {
            let line =
                format!("{missing} of {groups} block groups have no descriptor of their own");
            self.notices.push(line);
        }
    }

    /// Claims the blocks of all inodes, in the order of their numbers.
    fn claim_files(&mut self, by: By, groups: &[GroupDesc]) -> Result<()> {
        let (image, sb) = (self.image, self.sb);
        let mut walker = Walker::new(image, sb);
        let mut sound = Sound::default();
        let mut xattrs = Vec::new();
        let mut notices = Notices::default();
        let part = PartProgress::new(self.watcher, "inode tables", groups.len());
        inode::scan(image, sb, groups, &mut notices, part, |record, raw| {
            let mut list = self.changes.list(&mut walker, &record, raw);
            self.freed.append(&mut list.freed);
            if self.changes.orphans.get(&record.number) == Some(&Ending::Deleted) {
                self.free(&record, &list);
                return;
            }
            self.note_inode(&record, raw);
            if record.i_file_acl != FsBlock(0) {
                xattrs.push((record.number, record.i_file_acl));
            }
            if by == By::Debugfs && list.is_sound() {
                sound.add(record, &list);
                return;
            }
            if record.number == self.compared() && list.is_sound() {
                sound.add(record, &list);
            }
            self.claim_file(&record, list);
        });
        self.notices.append(notices);
        match by {
            By::Debugfs => self.claim_as_debugfs_lists(&sound)?,
            By::Walk => self.compare(&sound),
        }
        for (number, block) in xattrs {
            if !self.claims.inode(block, 1, Kind::Xattr, number) {
                self.notices.push(format!(
                    "inode {number}: its xattr block {block} is outside"
                ));
            }
        }
        Ok(())
    }

    /// Notes the blocks of an inode that the next mount deletes.
    fn free(&mut self, record: &InodeRecord, list: &BlockList) {
        let runs = list.runs.iter().map(|run| (run.block, run.blocks));
        let nodes = list.tree.iter().chain(&list.upper_tree);
        // Another inode may have the same block of attributes; its claim goes ahead.
        let xattr = Some(record.i_file_acl).filter(|&block| block != FsBlock(0));
        let blocks = nodes.copied().chain(xattr).map(|block| (block, 1));
        self.freed.extend(runs.chain(blocks));
    }

    fn claim_as_debugfs_lists(&mut self, sound: &Sound) -> Result<()> {
        let part = PartProgress::new(self.watcher, "block lists of files", sound.records.len());
        let mut notices = Notices::default();
        sound.ask(self.image, &mut notices, part, |record, list| {
            self.claim_file(record, list);
        })?;
        self.notices.append(notices);
        Ok(())
    }

    /// Returns the inode for which debugfs's list is compared with the walker's: the journal, or the root directory.
    fn compared(&self) -> Ino {
        match self.sb.compat(compat::HAS_JOURNAL) && self.sb.s_journal_inum != Ino(0) {
            true => self.sb.s_journal_inum,
            false => EXT4_ROOT_INO,
        }
    }

    /// Asks debugfs, if it is installed, about the filesystem as a whole and about one inode. debugfs reads only files and devices.
    fn compare(&mut self, sound: &Sound) {
        if self.image.file().is_none() {
            return;
        }
        let part = PartProgress::new(self.watcher, "second opinion", sound.records.len());
        let mut notices = Notices::default();
        let mut differs = Vec::new();
        let asked = sound.ask(self.image, &mut notices, part, |record, list| {
            if sound
                .last
                .as_ref()
                .is_some_and(|walked| !walked.agrees_with(&list))
            {
                differs.push(format!(
                    "inode {}: debugfs lists other blocks",
                    record.number
                ));
            }
        });
        let failure = match asked {
            Err(Error::ToolMissing { .. }) | Ok(()) => None,
            Err(Error::Corrupt { at, what, .. } | Error::Unsupported { at, what, .. }) => {
                Some(format!("{at}: {what}"))
            }
            Err(Error::Io { at, source, .. }) => Some(format!("{at}: {source}")),
            Err(error) => Some(error.to_string()),
        };
        self.notices.append(notices);
        let lines = differs.into_iter().chain(failure);
        lines.for_each(|line| self.notices.push(line));
    }

    /// Notes an inode in use.
    fn note_inode(&mut self, record: &InodeRecord, raw: &[u8]) {
        let inode = Inode {
            generation: Some(record.i_generation),
            changed_ns: Some(record.i_ctime),
            ..Inode::default()
        };
        self.inodes.insert(record.number.into(), inode);
        if record.is(mode::S_IFDIR) {
            let areas = inline_data::directory_areas(raw).map(<[u8]>::to_vec);
            let inline = if record.is_inline_directory() {
                areas.collect()
            } else {
                vec![]
            };
            let directory = Directory {
                runs: vec![],
                inline,
                encrypted: record.is_encrypted(),
                replayed: self.changes.directories.get(&record.number).cloned(),
            };
            self.directories.insert(record.number, directory);
        }
    }

    fn claim_file(&mut self, record: &InodeRecord, list: BlockList) {
        let number = record.number;
        let claims_before = self.claims.count();
        let mut inside = true;
        for &block in list.tree.iter().chain(&list.upper_tree) {
            // The single indirect blocks of the resize inode are reserved for group descriptors.
            let reserved = number == EXT4_RESIZE_INO && !list.upper_tree.contains(&block);
            let kind = if reserved {
                Kind::GroupDesc
            } else {
                Kind::ExtentTree
            };
            inside &= self.claims.inode(block, 1, kind, number);
        }
        if self.is_journal(number) {
            for (run, kind) in
                journal::cut(self.image, self.sb, FileBlock(0), &list, &mut self.notices)
            {
                inside &= self.claims.contents(&run, kind, number);
            }
        } else {
            let kind = self.kind(record);
            for run in &list.runs {
                inside &= match number {
                    EXT4_BAD_INO | EXT4_RESIZE_INO => {
                        self.claims.inode(run.block, run.blocks, kind, number)
                    }
                    _ => self.claims.contents(run, kind, number),
                };
            }
        }
        if !inside {
            self.notices
                .push(format!("inode {number}: has blocks outside the filesystem"));
        }
        if !inside || !list.complaints.is_empty() {
            self.claims.doubt(claims_before);
        }
        for complaint in list.complaints.into_lines() {
            self.notices.push(format!("inode {number}: {complaint}"));
        }
        if let Some(directory) = self.directories.get_mut(&number) {
            let sb = self.sb;
            let fits = |run: &block_list::Run| run.block.plus(run.blocks) <= sb.end();
            directory.runs = list.runs.into_iter().filter(fits).collect();
        }
    }

    fn is_journal(&self, number: Ino) -> bool {
        self.sb.compat(compat::HAS_JOURNAL) && number == self.sb.s_journal_inum
    }

    /// Returns the kind of an inode's contents. The bad blocks hold nothing and stay `unmapped`.
    fn kind(&self, record: &InodeRecord) -> Kind {
        let sb = self.sb;
        match record.number {
            EXT4_BAD_INO => Kind::Unmapped,
            EXT4_RESIZE_INO => Kind::GroupDesc,
            n if sb.ro_compat(ro_compat::QUOTA) && sb.quota_inums.contains(&n) => Kind::Quota,
            n if sb.compat(compat::ORPHAN_FILE) && n == sb.s_orphan_file_inum => Kind::OrphanFile,
            _ if record.is_ea_inode() => Kind::Xattr,
            _ if record.is(mode::S_IFDIR) => Kind::Directory,
            _ if record.is(mode::S_IFLNK) => Kind::Symlink,
            _ => Kind::Regular,
        }
    }
}

/// Inodes that have blocks, and in whose trees the walker found no fault.
#[derive(Default)]
struct Sound {
    records: Vec<InodeRecord>,
    /// Number of entries in their trees; debugfs prints no more lines than this.
    entries: u64,
    /// The walker's list for the last of them.
    last: Option<BlockList>,
}

impl Sound {
    fn add(&mut self, record: InodeRecord, list: &BlockList) {
        self.records.push(record);
        self.entries = self.entries.saturating_add(list.entries);
        self.last = Some(list.clone());
    }

    fn ask(
        &self,
        image: &Image,
        notices: &mut Notices,
        part: PartProgress,
        each: impl FnMut(&InodeRecord, BlockList),
    ) -> Result<()> {
        debugfs::list(image, &self.records, self.entries, notices, part, each)
    }
}

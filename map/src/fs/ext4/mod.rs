// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map of an ext2, ext3 or ext4 filesystem.
//!
//! ```text
//! superblock, group descriptors ──→ layout metadata ─────────┐
//! inode bitmaps and tables ──→ inodes in use                 ├─→ claims, first wins ─→ Map
//!        ├─→ extents in the inode ──→ its blocks ────────────┤
//!        └─→ debugfs `ex`, `stat` ──→ blocks of the others ──┤
//!                   └─→ directory blocks ──→ names           │
//! block bitmaps ──→ allocated, without owner ────────────────┘
//! ```
//! All steps are linear in the size of the metadata. Where an inode needs more than itself to
//! list its blocks, or is damaged, debugfs lists them; the rest is plain fields, for which debugfs
//! has no linear or no unambiguous command.

use std::collections::HashMap;
use std::path::Path;

use crate::class::Kind;
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::names::link;
use crate::fs::notices::Notices;
use crate::fs::progress::{Part, Watcher};
use crate::fs::volume::Volume;
use crate::map::{Inode, Map};

mod ask;
mod block_list;
mod checksum;
mod claims;
#[cfg(target_os = "linux")]
mod confine;
mod crc;
mod debugfs;
pub mod dirent;
mod extents;
mod group_desc;
mod inline_data;
mod inode;
mod journal;
mod layout;
mod metadata;
mod names;
mod numbers;
mod reach;
mod session;
mod superblock;
mod tree;

use block_list::BlockList;
use claims::Claims;
use inode::{BlockMap, InodeRecord, mode};
pub use metadata::{Metadata, metadata};
use names::{Directory, Tree};
use numbers::{EXT4_BAD_INO, EXT4_RESIZE_INO, EXT4_ROOT_INO, FsBlock, Ino};
use reach::{Reach, Twice};
use session::{Ask, Question};
use superblock::{SuperBlock, compat, ro_compat};

/// Builds the map of a filesystem: a raw image, a block device, or `e2image -r`'s sparse
/// snapshot. `start_sector` is where the filesystem begins on its disk; all sectors of the map
/// count from there. What could not be resolved stands in [`Map::notices`], and its blocks are
/// `unmapped` as far as the block bitmap says that they are allocated.
///
/// Needs debugfs of e2fsprogs. Fails if the superblock or the group descriptors cannot be read.
pub fn build(image: &Path, start_sector: u64) -> Result<Map> {
    build_with(&Image::open(image)?, start_sector, &|_| {})
}

/// [`build`], of an opened image.
pub(super) fn build_with(image: &Image, start_sector: u64, watcher: &Watcher) -> Result<Map> {
    let sb = &SuperBlock::read(image)?;
    let groups = group_desc::read_all(image, sb)?;
    let volume = Volume::new(image, start_sector, sb.s_blocks_count, sb.block_size)?;
    let mut builder = Builder {
        image,
        sb,
        watcher,
        claims: Claims::new(sb, volume),
        notices: Notices::default(),
        inodes: HashMap::new(),
        directories: HashMap::new(),
    };
    builder.note_features();
    builder.note_groups(groups.len());
    layout::claim(sb, &groups, &mut builder.claims, &mut builder.notices);
    let (records, lines) = builder.scan(&groups);
    builder.claim_files(&records, lines)?;
    let Builder {
        mut claims,
        mut notices,
        mut inodes,
        directories,
        ..
    } = builder;
    claims.settle();
    layout::claim_reserved(sb, &groups, &mut claims);
    layout::claim_allocated(image, sb, &groups, &mut claims, &mut notices);
    let part = Part::new(watcher, "directories", directories.len());
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
    notices: Notices,
    inodes: HashMap<u64, Inode>,
    directories: HashMap<Ino, Directory>,
}

impl Builder<'_> {
    /// Says what the map cannot show of a sound filesystem.
    fn note_features(&mut self) {
        let sb = self.sb;
        if sb.compat(compat::HAS_JOURNAL) && sb.s_journal_inum == Ino(0) {
            let line = format!("the journal is on another device ({:#x})", sb.s_journal_dev);
            self.notices.push(line);
        }
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

    /// Says how many groups have no descriptor.
    fn note_groups(&mut self, known: usize) {
        let groups = usize::try_from(self.sb.groups).unwrap_or(usize::MAX);
        let missing = groups.saturating_sub(known);
        if missing > 0 {
            let line =
                format!("{missing} of {groups} block groups have no descriptor of their own");
            self.notices.push(line);
        }
    }

    /// Notes all inodes in use; returns those that have blocks, and how many lines debugfs can have to say about these.
    fn scan(&mut self, groups: &[group_desc::GroupDesc]) -> (Vec<InodeRecord>, u64) {
        let Builder {
            image,
            sb,
            watcher,
            notices,
            inodes,
            directories,
            ..
        } = self;
        let mut records = Vec::new();
        let mut reach = Reach::new(image, sb);
        let mut twice = Notices::default();
        let part = Part::new(*watcher, "inode tables", groups.len());
        inode::scan(image, sb, groups, notices, part, |mut record, raw| {
            let inode = Inode {
                generation: Some(record.i_generation),
                changed_ns: Some(record.i_ctime),
                ..Inode::default()
            };
            inodes.insert(record.number.into(), inode);
            if record.is(mode::S_IFDIR) {
                let areas = inline_data::directory_areas(raw).map(<[u8]>::to_vec);
                let inline = if record.is_inline_directory() {
                    areas.collect()
                } else {
                    vec![]
                };
                let encrypted = record.is_encrypted();
                directories.insert(
                    record.number,
                    Directory {
                        runs: vec![],
                        inline,
                        encrypted,
                    },
                );
            }
            let i_block = raw.get(0x28..0x64).unwrap_or_default();
            if let Err(Twice(block)) = reach.walk(&record.block_map, i_block) {
                let number = record.number;
                twice.push(format!(
                    "inode {number}: block {block} has a place in a tree already, its blocks are unmapped"
                ));
                record.block_map = BlockMap::None;
            }
            if record.block_map != BlockMap::None || record.i_file_acl != FsBlock(0) {
                records.push(record);
            }
        });
        // debugfs is asked about one inode at least: it checks the filesystem as a whole.
        let known = |record: &&mut InodeRecord| matches!(record.block_map, BlockMap::InInode(_));
        if let Some(first) = records.iter_mut().find(known) {
            first.block_map = BlockMap::Extents;
        }
        twice
            .into_lines()
            .into_iter()
            .for_each(|line| notices.push(line));
        (records, reach.lines())
    }

    /// Claims the blocks of all inodes, in the order of their numbers.
    fn claim_files(&mut self, records: &[InodeRecord], lines: u64) -> Result<()> {
        let asked: Vec<(usize, Question)> = (0..)
            .zip(records)
            .filter_map(|(nth, record)| Some((nth, question(record)?)))
            .collect();
        let questions: Vec<Question> = asked.iter().map(|(_, question)| *question).collect();
        let mut claimed = 0usize;
        let mut notices = Notices::default();
        let part = Part::new(self.watcher, "block lists of files", questions.len());
        ask::ask(
            self.image,
            lines,
            &questions,
            &mut notices,
            part,
            |nth, answer| {
                let Some((at, question)) = asked.get(nth) else {
                    return;
                };
                self.claim_known(records.get(claimed..*at).unwrap_or_default());
                claimed = at.saturating_add(1);
                let list = match question.command {
                    Ask::Extents => BlockList::from_extents(answer),
                    Ask::Stat => BlockList::from_stat(answer),
                };
                if let Some(record) = records.get(*at) {
                    self.claim_file(record, list);
                }
            },
        )?;
        self.claim_known(records.get(claimed..).unwrap_or_default());
        notices
            .into_lines()
            .into_iter()
            .for_each(|line| self.notices.push(line));
        for record in records
            .iter()
            .filter(|record| record.i_file_acl != FsBlock(0))
        {
            if !self
                .claims
                .inode(record.i_file_acl, 1, Kind::Xattr, record.number)
            {
                let (number, block) = (record.number, record.i_file_acl);
                self.notices.push(format!(
                    "inode {number}: its xattr block {block} is outside"
                ));
            }
        }
        Ok(())
    }

    /// Claims the blocks of those inodes that list them themselves.
    fn claim_known(&mut self, records: &[InodeRecord]) {
        for record in records {
            if let BlockMap::InInode(runs) = &record.block_map {
                let runs = runs.to_vec();
                let list = BlockList {
                    runs,
                    ..BlockList::default()
                };
                self.claim_file(record, list);
            }
        }
    }

    fn claim_file(&mut self, record: &InodeRecord, list: BlockList) {
        let number = record.number;
        let claims_before = self.claims.count();
        let mut inside = true;
        for &block in list.tree.iter().chain(&list.upper_tree) {
            // The single indirect blocks of the resize inode are group descriptors to be.
            let reserved = number == EXT4_RESIZE_INO && !list.upper_tree.contains(&block);
            let kind = if reserved {
                Kind::GroupDesc
            } else {
                Kind::ExtentTree
            };
            inside &= self.claims.inode(block, 1, kind, number);
        }
        if self.is_journal(number) {
            for (run, kind) in journal::cut(self.image, self.sb, &list, &mut self.notices) {
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
        for complaint in &list.complaints {
            self.notices
                .push(format!("inode {number}: debugfs: {complaint}"));
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

    /// What the contents of an inode are. The bad blocks hold nothing, and stay `unmapped`.
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

/// `ex` for extents. For indirect blocks `stat`: it alone gives the places of single blocks in a
/// sparse file (`blocks` leaves them out). None where nothing needs to be asked.
fn question(record: &InodeRecord) -> Option<Question> {
    let command = match record.block_map {
        BlockMap::None | BlockMap::InInode(_) => return None,
        BlockMap::Extents => Ask::Extents,
        BlockMap::Indirect => Ask::Stat,
    };
    Some(Question {
        command,
        inode: record.number,
    })
}

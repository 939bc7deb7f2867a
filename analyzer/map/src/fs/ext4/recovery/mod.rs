// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the next mount will find of an ext4 that was not unmounted.
//!
//! ```text
//! log of jbd2 ──→ changed blocks ──→ fast commits ──→ changed inodes, ranges, names ──→ orphans ──→ freed blocks
//! ```
//! Nothing is written: the changed blocks are put in front of the image, the rest is applied while the map is built.

use std::collections::HashMap;

use super::block_list::BlockList;
use super::group_desc::{self, GroupDesc};
use super::inode_table::InodeTable;
use super::journal_device::Behind;
use super::names::ReplayedNames;
use super::numbers::{FileBlock, FsBlock, Ino};
use super::superblock::{SuperBlock, compat, incompat};
use super::walk::Walker;
use crate::class::Kind;
use crate::extent::Extent;
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::jbd2;
use crate::fs::notices::Notices;
use crate::fs::patches::{Patch, Patches};
use crate::fs::state::State;

mod fast_commit;
mod log_area;
mod orphans;
mod ranges;
mod tags;

use fast_commit::Replay;
pub use ranges::Ranges;

/// The filesystem with what the next mount does to it.
pub struct Recovered {
    /// The image with the changed blocks.
    pub image: Image,
    pub sb: SuperBlock,
    pub groups: Vec<GroupDesc>,
    pub changes: Changes,
}

/// What the next mount does to files.
#[derive(Debug, Default)]
pub struct Changes {
    /// Ranges of files that fast commits moved.
    pub ranges: HashMap<Ino, Ranges>,
    /// The names in directories that fast commits changed.
    pub directories: HashMap<Ino, ReplayedNames>,
    /// Files that were deleted or cut while they were in use.
    pub orphans: HashMap<Ino, Ending>,
    /// Blocks that belonged to files that fast commits deleted or cut.
    pub freed: Vec<(FsBlock, u64)>,
}

/// What becomes of an orphan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Deleted,
    /// The file ends before this block.
    Cut(FileBlock),
}

impl Changes {
    /// Returns the blocks of an inode, with these changes; what is freed is among the list's.
    pub fn list(&self, walker: &mut Walker, inode: &super::InodeRecord, raw: &[u8]) -> BlockList {
        let number = inode.number;
        let cut = match self.orphans.get(&number) {
            Some(Ending::Cut(cut)) => *cut,
            _ => FileBlock(u64::MAX),
        };
        let mut list = walker.list_until(cut, inode, raw);
        if let Some(ranges) = self.ranges.get(&number) {
            ranges.apply(&mut list, cut);
        }
        list
    }
}

/// Finds what the map is to show of the filesystem on an image. `notices` say what was done.
pub fn recover(state: State, image: &Image, notices: &mut Notices) -> Result<Recovered> {
    let sb = SuperBlock::read(image)?;
    let groups = group_desc::read_all(image, &sb)?;
    let mut found = Recovered {
        image: image.with(Patches::default()),
        sb,
        groups,
        changes: Changes::default(),
    };
    if state == State::Mounted || image.is_in_use() {
        return Ok(found);
    }
    let is_unclean = found.sb.incompat(incompat::RECOVER);
    if state == State::AsIs {
        if is_unclean {
            notices.push("the journal is not replayed: the map shows what lies on the disk");
        }
        return Ok(found);
    }
    match is_unclean {
        true => found.replay(notices)?,
        false => found.tell_left(notices)?,
    }
    orphans::find(&mut found, notices);
    Ok(found)
}

impl Recovered {
    /// Says that the journal has transactions though the filesystem does not ask for their replay: a mount discards them.
    fn tell_left(&self, notices: &mut Notices) -> Result<()> {
        let Some(runs) = self.log() else {
            return Ok(());
        };
        let left = jbd2::recover(&self.image, runs)?.transactions;
        if left > 0 {
            notices.push(format!(
                "the journal has {left} transactions, but the superblock's needs_recovery is clear: a mount discards them, e2fsck may \
                 replay them, and the map shows what lies on the disk"
            ));
        }
        Ok(())
    }

    /// Replays the journal.
    fn replay(&mut self, notices: &mut Notices) -> Result<()> {
        let Some(runs) = self.log() else {
            notices
                .push("its journal cannot be replayed here: the map shows what lies on the disk");
            return Ok(());
        };
        let log = jbd2::recover(&self.image, runs)?;
        let end = self.sb.s_blocks_count;
        let mut patches = Patches::new(self.sb.block_size);
        for (&block, copied) in log.copies.range(..end) {
            let jbd2::Copied { at, is_escaped } = *copied;
            patches.insert(block, Patch::Copy { at, is_escaped });
        }
        let blocks = patches.len();
        self.change(patches)?;
        if log.transactions > 0 {
            notices.push(format!(
                "the journal was replayed, as the next mount will do: {blocks} blocks of {} transactions",
                log.transactions
            ));
        }
        if let Some(fault) = &log.fault {
            notices.push(format!(
                "journal: {fault}: the kernel would not mount this, and the rest is not replayed"
            ));
        } else if self.sb.compat(compat::FAST_COMMIT) {
            self.replay_fast_commits(&log, notices)?;
        }
        Ok(())
    }

    fn replay_fast_commits(&mut self, log: &jbd2::Recovery, notices: &mut Notices) -> Result<()> {
        let tags = log_area::tags(&self.image, &self.sb, log);
        if tags.is_empty() {
            return Ok(());
        }
        let table = InodeTable {
            image: &self.image,
            sb: &self.sb,
            groups: &self.groups,
        };
        let mut replay = Replay::new(table);
        tags.iter().for_each(|tag| replay.tag(tag));
        notices.push(format!(
            "fast commits were replayed: {} changes of {} inodes; blocks that the mount itself will allocate, for \
             directories and extent trees, are not known",
            tags.len(),
            replay.inodes()
        ));
        let mut patches = self.image.patches().clone();
        let begun = replay.patch(&mut patches);
        self.changes = replay.into_changes();
        for group in begun {
            if let Some(desc) = self.groups.get_mut(group) {
                desc.inode_uninit = false;
            }
        }
        self.image = self.image.with(patches);
        Ok(())
    }

    /// Puts changed blocks in front of the image, and reads from them what was read before.
    fn change(&mut self, patches: Patches) -> Result<()> {
        self.image = self.image.with(patches);
        self.sb = SuperBlock::read(&self.image)?;
        self.groups = group_desc::read_all(&self.image, &self.sb)?;
        Ok(())
    }

    /// Returns the parts of the journal's file, in sectors of the image; None if it is not there.
    fn log(&self) -> Option<Vec<Extent>> {
        let (image, sb) = (&self.image, &self.sb);
        let list = match sb.s_journal_inum {
            Ino(0) => Behind::find(image, sb, &mut Notices::default()).list()?,
            number => {
                let table = InodeTable {
                    image,
                    sb,
                    groups: &self.groups,
                };
                let (record, raw) = table.inode(number)?;
                Walker::new(image, sb).list(&record, &raw)
            }
        };
        let per_block = u64::from(sb.block_size >> 9);
        let extent = |run: super::block_list::Run| Extent {
            sector: run.block.0.saturating_mul(per_block),
            sectors: run.blocks.saturating_mul(per_block),
            kind: Kind::JournalBlock,
            inode: 0,
            file_offset: sb.offset_of(run.logical),
        };
        Some(list.runs.into_iter().map(extent).collect())
    }
}

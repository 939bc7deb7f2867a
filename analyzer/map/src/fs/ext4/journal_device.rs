// SPDX-License-Identifier: MIT OR Apache-2.0
//! A device that is all journal (`mke2fs -O journal_dev`).
//!
//! ```text
//! ext4's superblock, in block 0 or 1 │ jbd2's superblock │ the log … │ fast commits
//! ```

use super::block_list::{BlockList, Run};
use super::claims::Claims;
use super::journal;
use super::numbers::{FileBlock, FsBlock, Ino};
use super::superblock::{SuperBlock, UUID, compat, incompat};
use crate::class::Kind;
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::notices::Notices;
use crate::fs::part::{DevicePart, ExternalJournal, PartDevice};
use crate::fs::volume::Volume;
use crate::map::Map;

/// The bytes up to the end of ext4's superblock.
const SUPERBLOCK_END: u64 = 2048;

/// The device of a journal, in an image.
struct JournalDevice {
    sb: SuperBlock,
    /// Its first block in the image.
    start: FsBlock,
}

impl JournalDevice {
    /// Returns the block of jbd2's superblock.
    fn journal(&self) -> FsBlock {
        let superblock = SUPERBLOCK_END.div_ceil(self.sb.block_size.into());
        self.start.plus(superblock)
    }

    /// Claims its blocks. `filesystem` says whether there are fast commits.
    fn claim(
        &self,
        image: &Image,
        filesystem: &SuperBlock,
        claims: &mut Claims,
        notices: &mut Notices,
    ) {
        let journal = self.journal();
        let superblocks = self.start.up_to(journal);
        // Before the superblock, blocks of 1 KiB have one for a boot loader, which is never used.
        let boot = superblocks.saturating_sub(1);
        claims.layout(self.start, boot, Kind::Unmapped);
        claims.layout(self.start.plus(boot), 1, Kind::Superblock);
        let list = self.list();
        let first = FileBlock(superblocks);
        for (run, kind) in journal::cut(image, filesystem, first, &list, notices) {
            claims.contents(&run, kind, Ino(0));
        }
    }

    /// Returns the blocks from jbd2's superblock on. The log counts its blocks from the beginning of the device
    /// (`jbd2_journal_bmap`).
    fn list(&self) -> BlockList {
        let journal = self.journal();
        let superblocks = self.start.up_to(journal);
        let mut list = BlockList::default();
        list.push(Run {
            logical: FileBlock(superblocks),
            block: journal,
            blocks: self.sb.s_blocks_count.saturating_sub(superblocks),
        });
        list
    }
}

/// Returns the external journal that the superblock names.
fn named(sb: &SuperBlock) -> Option<ExternalJournal> {
    let is_external = sb.compat(compat::HAS_JOURNAL) && sb.s_journal_inum == Ino(0);
    // new_decode_dev in <linux/kdev_t.h>.
    let dev = sb.s_journal_dev;
    is_external.then_some(ExternalJournal {
        dev: ((dev & 0xfff00) >> 8, dev & 0xff | (dev >> 12) & 0xfff00),
        uuid: sb.s_journal_uuid,
    })
}

/// Returns the parts of the filesystem on an image: its own, and its journal's if that has a device.
pub fn parts(image: &Image) -> Result<Vec<DevicePart>> {
    let sb = SuperBlock::read_any(image, 0)?;
    if sb.incompat(incompat::JOURNAL_DEV) {
        return Ok(Vec::new());
    }
    let own = DevicePart {
        device: PartDevice::First,
        bytes: Some(sb.byte_of(sb.end())),
    };
    let journal = named(&sb).map(|journal| DevicePart {
        device: PartDevice::Journal(journal),
        bytes: None,
    });
    Ok([own].into_iter().chain(journal).collect())
}

/// Returns the journal's UUID if the image is a journal's own device; None if it is something else.
pub fn uuid(image: &Image) -> Option<[u8; 16]> {
    let sb = SuperBlock::read_any(image, 0).ok()?;
    let uuid = image.read(UUID, 16, "superblock").ok()?;
    let uuid = uuid.first_chunk().copied();
    uuid.filter(|_| sb.incompat(incompat::JOURNAL_DEV))
}

/// The journal's device behind the end of a filesystem, if an image holds it.
pub struct Behind(Option<JournalDevice>);

impl Behind {
    /// Looks for it. Adds a notice if the journal is on another device that is not there.
    pub fn find(image: &Image, sb: &SuperBlock, notices: &mut Notices) -> Behind {
        let Some(journal) = named(sb) else {
            return Behind(None);
        };
        let start = sb.end();
        let at = sb.byte_of(start);
        let uuid = image.read(at.saturating_add(UUID), 16, "journal device");
        let found = SuperBlock::read_any(image, at).ok().filter(|found| {
            found.incompat(incompat::JOURNAL_DEV)
                && found.block_size == sb.block_size
                && uuid.is_ok_and(|uuid| uuid == journal.uuid)
        });
        if found.is_none() {
            let (major, minor) = journal.dev;
            notices.push(format!(
                "the journal is on another device ({major}:{minor})"
            ));
        }
        Behind(found.map(|sb| JournalDevice { sb, start }))
    }

    /// Returns the number of its blocks.
    pub fn blocks(&self) -> u64 {
        self.0.as_ref().map_or(0, |device| device.sb.s_blocks_count)
    }

    /// Returns its blocks, if the image holds it.
    pub fn list(&self) -> Option<BlockList> {
        self.0.as_ref().map(JournalDevice::list)
    }

    /// Claims its blocks for a filesystem.
    pub fn claim(
        &self,
        image: &Image,
        sb: &SuperBlock,
        claims: &mut Claims,
        notices: &mut Notices,
    ) {
        if let Some(device) = &self.0 {
            device.claim(image, sb, claims, notices);
        }
    }
}

/// Builds the map of a device that is all journal; None if the image is something else.
pub fn map(image: &Image, start_sector: u64) -> Result<Option<Map>> {
    let sb = SuperBlock::read_any(image, 0)?;
    if !sb.incompat(incompat::JOURNAL_DEV) {
        return Ok(None);
    }
    let volume = Volume::new(image, start_sector, sb.s_blocks_count, sb.block_size)?;
    let device = JournalDevice {
        sb: sb.clone(),
        start: FsBlock(0),
    };
    let mut notices = Notices::default();
    let mut claims = Claims::new(&sb, volume);
    device.claim(image, &sb, &mut claims, &mut notices);
    let map = volume.map(claims.into_extents(), Default::default());
    Ok(Some(map.with_notices(notices.into_lines())))
}

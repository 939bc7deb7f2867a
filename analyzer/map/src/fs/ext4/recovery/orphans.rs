// SPDX-License-Identifier: MIT OR Apache-2.0
//! Orphans: files that were deleted or cut while they were in use. The next mount ends what was begun
//! (`ext4_orphan_cleanup` in fs/ext4/orphan.c).

use std::collections::{BTreeSet, HashMap};

use super::super::inode::{InodeRecord, mode};
use super::super::inode_table::InodeTable;
use super::super::numbers::{FileBlock, Ino};
use super::super::superblock::{SuperBlock, compat};
use super::super::walk::Walker;
use super::{Ending, Recovered};
use crate::fs::le::{u16_at, u32_at};
use crate::fs::notices::Notices;

const I_SIZE_LO: usize = 0x4;
/// An orphan's `i_dtime` is the number of the next one.
const I_DTIME: usize = 0x14;
const I_LINKS_COUNT: usize = 0x1a;
const I_SIZE_HIGH: usize = 0x6c;
/// Length in bytes of `struct ext4_orphan_block_tail`.
const TAIL_LEN: usize = 8;

/// Finds the orphans and what becomes of each.
pub fn find(found: &mut Recovered, notices: &mut Notices) {
    let table = InodeTable {
        image: &found.image,
        sb: &found.sb,
        groups: &found.groups,
    };
    let mut numbers = listed(table);
    numbers.extend(filed(table));
    if found.sb.has_errors && !numbers.is_empty() {
        notices.push("the next mount passes over the orphans, because the kernel found errors");
        return;
    }
    let ending = |number: Ino| {
        let (record, raw) = table.inode(number)?;
        Some((number, ending(&found.sb, &record, &raw)?))
    };
    let endings: HashMap<Ino, Ending> = numbers.into_iter().filter_map(ending).collect();
    if !endings.is_empty() {
        let count = endings.len();
        notices.push(format!(
            "{count} files were deleted or cut while in use: the next mount frees their blocks, which are shown as free"
        ));
    }
    found.changes.orphans = endings;
}

/// Follows the list that begins in the superblock, up to an inode that cannot be an orphan.
fn listed(table: InodeTable<'_>) -> BTreeSet<Ino> {
    let mut numbers = BTreeSet::new();
    let mut next = table.sb.s_last_orphan;
    while is_possible(table, next) && numbers.insert(next) {
        let dtime = table.raw(next).and_then(|raw| u32_at(&raw, I_DTIME));
        next = Ino(dtime.unwrap_or(0));
    }
    numbers
}

/// Reads the orphan file.
fn filed(table: InodeTable<'_>) -> BTreeSet<Ino> {
    let InodeTable { image, sb, .. } = table;
    let mut numbers = BTreeSet::new();
    if !sb.compat(compat::ORPHAN_FILE) {
        return numbers;
    }
    let Some((record, raw)) = table.inode(sb.s_orphan_file_inum) else {
        return numbers;
    };
    for run in Walker::new(image, sb).list(&record, &raw).runs {
        for block in run.block.until(run.block.plus(run.blocks)) {
            let block = sb
                .read_block(image, block, "orphan file")
                .unwrap_or_default();
            let room = block.len().saturating_sub(TAIL_LEN);
            let slots = block.get(..room).unwrap_or_default().chunks_exact(4);
            let number = |slot: &[u8]| u32_at(slot, 0).map(Ino);
            numbers.extend(slots.filter_map(number).filter(|&n| is_possible(table, n)));
        }
    }
    numbers
}

/// Returns true if an inode may be an orphan: `ext4_orphan_get`.
fn is_possible(table: InodeTable<'_>, number: Ino) -> bool {
    let sb = table.sb;
    number >= sb.s_first_ino && number.0 <= sb.s_inodes_count && table.is_used(number)
}

/// Returns what becomes of an orphan; None if nothing does.
fn ending(sb: &SuperBlock, record: &InodeRecord, raw: &[u8]) -> Option<Ending> {
    if u16_at(raw, I_LINKS_COUNT)? == 0 {
        return Some(Ending::Deleted);
    }
    // Of symlinks and directories the size has 32 bits.
    let high = match record.is(mode::S_IFREG) {
        true => u32_at(raw, I_SIZE_HIGH)?,
        false => 0,
    };
    let size = u64::from(high) << 32 | u64::from(u32_at(raw, I_SIZE_LO)?);
    Some(Ending::Cut(FileBlock(size.div_ceil(sb.block_size.into()))))
}

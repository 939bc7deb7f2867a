// SPDX-License-Identifier: MIT OR Apache-2.0
//! The node address table (NAT), which gives the block of each nid.
//!
//! Its segments come in pairs; a bit in the checkpoint tells which of the two holds the valid copy of a block.

use super::block::{self, BLOCKS_PER_SEG, BlockSize, Blocks, SEG_BITS, u32_of};
use super::checkpoint::Checkpoint;
use super::journal::Journals;
use super::numbers::{BlkAddr, Ino, Nid};
use super::superblock::SuperBlock;
use crate::fs::error::Result;
use crate::fs::notices::Notices;
use crate::fs::progress::PartProgress;

/// The length of an entry in bytes.
const ENTRY_SIZE: u32 = 9;

/// `NAT_ENTRY_PER_BLOCK`.
fn entries_per_block(size: BlockSize) -> u32 {
    size.bytes() / ENTRY_SIZE
}

/// A node that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NatEntry {
    pub nid: Nid,
    pub ino: Ino,
    pub blkaddr: BlkAddr,
}

/// All nodes in use, by nid.
#[derive(Debug, Default)]
pub struct Nat {
    entries: Vec<NatEntry>,
}

impl Nat {
    /// Reads the table and applies the newer entries in the journal.
    pub fn read(
        blocks: Blocks<'_>,
        sb: &SuperBlock,
        cp: &Checkpoint,
        journals: &Journals,
        notices: &mut Notices,
        mut part: PartProgress,
    ) -> Result<Nat> {
        let mut nat = Nat::default();
        let zeros = blocks.buffer();
        let (count, per_block) = (sb.nat_blocks(), entries_per_block(blocks.size));
        let mut first = 0;
        while first < count {
            let run = run_of(cp, first, count);
            let at = address(sb, cp, first);
            let is_hole = blocks.is_hole(at, run);
            let there = if is_hole { 0 } else { run };
            let buf = blocks.read(at, there, "NAT")?;
            for nth in 0..there {
                let before = first.saturating_add(nth);
                let nid = Nid(before.saturating_mul(per_block));
                let block = blocks.nth(&buf, nth);
                // If few files were ever made, most blocks of the table are all zeros.
                if block != zeros {
                    nat.push_block(sb, nid, block, notices);
                }
            }
            first = first.saturating_add(run);
            part.add(block::index(run));
        }
        for (number, entry) in &journals.nat {
            if *number >= count.saturating_mul(per_block) {
                notices.push(format!(
                    "NAT journal: nid {number} is beyond the end of the NAT"
                ));
                continue;
            }
            let nid = Nid(*number);
            nat.replace(nid, parse(sb, nid, entry, notices));
        }
        Ok(nat)
    }

    fn push_block(&mut self, sb: &SuperBlock, nid: Nid, block: &[u8], notices: &mut Notices) {
        let nids = nid.until(nid.plus(entries_per_block(sb.block_size)));
        for (nid, entry) in nids.zip(block.chunks_exact(block::index(ENTRY_SIZE))) {
            self.entries.extend(parse(sb, nid, entry, notices));
        }
    }

    fn replace(&mut self, nid: Nid, entry: Option<NatEntry>) {
        let at = self.entries.partition_point(|entry| entry.nid < nid);
        let here = self.entries.get(at).is_some_and(|entry| entry.nid == nid);
        let range = at..at.saturating_add(usize::from(here));
        self.entries.splice(range, entry);
    }

    /// Returns the entry of a nid; None if it is not in use.
    pub fn get(&self, nid: Nid) -> Option<NatEntry> {
        let at = self.entries.binary_search_by_key(&nid, |entry| entry.nid);
        at.ok().and_then(|at| self.entries.get(at).copied())
    }

    /// Returns true if an inode of this number is in use.
    pub fn is_inode(&self, ino: Ino) -> bool {
        self.get(ino.nid()).is_some_and(|entry| entry.ino == ino)
    }

    /// Returns all entries in the order of their blocks on the disk.
    pub fn into_disk_order(mut self) -> Vec<NatEntry> {
        self.entries
            .sort_unstable_by_key(|entry| (entry.blkaddr, entry.nid));
        self.entries
    }
}

/// Parses an entry. None for a nid without a block, and for the inodes that are not files (node_ino, meta_ino).
fn parse(sb: &SuperBlock, nid: Nid, entry: &[u8], notices: &mut Notices) -> Option<NatEntry> {
    let (ino, blkaddr) = (Ino(u32_of(entry, 1)), BlkAddr(u32_of(entry, 5)));
    if nid < sb.root_ino.nid() || [BlkAddr::NULL, BlkAddr::NEW].contains(&blkaddr) {
        return None;
    }
    if sb.in_main(blkaddr).is_none() {
        notices.push(format!(
            "NAT: node {nid} of inode {ino} is at block {blkaddr}, outside the main area"
        ));
        return None;
    }
    Some(NatEntry { nid, ino, blkaddr })
}

/// Returns the number of NAT blocks from `first` on that are consecutive on the disk.
fn run_of(cp: &Checkpoint, first: u32, blocks: u32) -> u32 {
    let bit = |n| cp.nat_bitmap.contains(block::index(n));
    let segment_end = (first >> SEG_BITS).saturating_add(1) << SEG_BITS;
    let end = (first..blocks.min(segment_end)).find(|&n| bit(n) != bit(first));
    end.unwrap_or(segment_end.min(blocks)).saturating_sub(first)
}

/// Returns the address of a NAT block's valid copy: `current_nat_addr`.
fn address(sb: &SuperBlock, cp: &Checkpoint, block: u32) -> BlkAddr {
    let pair = (block >> SEG_BITS << SEG_BITS).saturating_mul(2);
    let second = if cp.nat_bitmap.contains(block::index(block)) {
        BLOCKS_PER_SEG
    } else {
        0
    };
    sb.nat_blkaddr
        .plus(pair)
        .plus(block & BLOCKS_PER_SEG.saturating_sub(1))
        .plus(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_entry_replaces_adds_and_removes() {
        let entry = |nid, blkaddr| NatEntry {
            nid: Nid(nid),
            ino: Ino(9),
            blkaddr: BlkAddr(blkaddr),
        };
        let mut nat = Nat {
            entries: vec![entry(4, 1), entry(7, 2)],
        };
        nat.replace(Nid(4), Some(entry(4, 3)));
        nat.replace(Nid(5), Some(entry(5, 4)));
        nat.replace(Nid(9), Some(entry(9, 5)));
        nat.replace(Nid(7), None);
        nat.replace(Nid(6), None);
        assert_eq!(nat.entries, [entry(4, 3), entry(5, 4), entry(9, 5)]);
        assert_eq!(nat.get(Nid(5)), Some(entry(5, 4)));
        assert_eq!(
            (nat.get(Nid(7)), nat.is_inode(Ino(9)), nat.is_inode(Ino(5))),
            (None, true, false)
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The node address table: nid → block.
//!
//! Its segments come in pairs; a bit of the checkpoint says in which of the two a block counts.

use super::block::{self, BLOCK_SIZE, BLOCKS_PER_SEG, NEW_ADDR, NULL_ADDR, SEG_BITS, u32_of};
use super::checkpoint::Checkpoint;
use super::journal::Journals;
use super::superblock::SuperBlock;
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::notices::Notices;

const NAT_ENTRY_PER_BLOCK: u32 = 455;
const ENTRY_SIZE: usize = 9;

/// A node that is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NatEntry {
    pub nid: u32,
    pub ino: u32,
    pub blkaddr: u32,
}

/// All nodes in use, by nid.
#[derive(Debug, Default)]
pub struct Nat {
    entries: Vec<NatEntry>,
}

impl Nat {
    /// Reads the table, and what the journal has newer.
    pub fn read(
        image: &Image,
        sb: &SuperBlock,
        cp: &Checkpoint,
        journals: &Journals,
        notices: &mut Notices,
    ) -> Result<Nat> {
        let mut nat = Nat::default();
        let blocks = sb.nat_blocks();
        let mut first = 0;
        while first < blocks {
            let run = run_of(cp, first, blocks);
            let buf = block::read(image, address(sb, cp, first), run, "NAT")?;
            for nth in 0..run {
                let nid = first
                    .saturating_add(nth)
                    .saturating_mul(NAT_ENTRY_PER_BLOCK);
                nat.push_block(sb, nid, block::nth(&buf, nth), notices);
            }
            first = first.saturating_add(run);
        }
        for (nid, entry) in &journals.nat {
            if *nid >= blocks.saturating_mul(NAT_ENTRY_PER_BLOCK) {
                notices.push(format!("NAT journal: nid {nid} is behind the NAT"));
                continue;
            }
            nat.replace(*nid, parse(sb, *nid, entry, notices));
        }
        Ok(nat)
    }

    fn push_block(&mut self, sb: &SuperBlock, nid: u32, block: &[u8], notices: &mut Notices) {
        // Most of the table of a young filesystem.
        if block == [0; BLOCK_SIZE] {
            return;
        }
        let nids = nid..nid.saturating_add(NAT_ENTRY_PER_BLOCK);
        for (nid, entry) in nids.zip(block.chunks_exact(ENTRY_SIZE)) {
            self.entries.extend(parse(sb, nid, entry, notices));
        }
    }

    fn replace(&mut self, nid: u32, entry: Option<NatEntry>) {
        let at = self.entries.partition_point(|entry| entry.nid < nid);
        let here = self.entries.get(at).is_some_and(|entry| entry.nid == nid);
        let range = at..at.saturating_add(usize::from(here));
        self.entries.splice(range, entry);
    }

    /// The entry of a nid in use.
    pub fn get(&self, nid: u32) -> Option<NatEntry> {
        let at = self.entries.binary_search_by_key(&nid, |entry| entry.nid);
        at.ok().and_then(|at| self.entries.get(at).copied())
    }

    /// Whether a nid is an inode's.
    pub fn is_inode(&self, nid: u32) -> bool {
        self.get(nid).is_some_and(|entry| entry.ino == nid)
    }

    /// All entries, in the order of their blocks on the disk.
    pub fn into_disk_order(mut self) -> Vec<NatEntry> {
        self.entries
            .sort_unstable_by_key(|entry| (entry.blkaddr, entry.nid));
        self.entries
    }
}

/// None for a nid without a block, and for the inodes that are no files (node_ino, meta_ino).
fn parse(sb: &SuperBlock, nid: u32, entry: &[u8], notices: &mut Notices) -> Option<NatEntry> {
    let (ino, blkaddr) = (u32_of(entry, 1), u32_of(entry, 5));
    if nid < sb.root_ino || blkaddr == NULL_ADDR || blkaddr == NEW_ADDR {
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

/// How many blocks from `first` on lie one behind the other.
fn run_of(cp: &Checkpoint, first: u32, blocks: u32) -> u32 {
    let bit = |n| cp.nat_bitmap.contains(block::index(n));
    let segment_end = (first >> SEG_BITS).saturating_add(1) << SEG_BITS;
    let end = (first..blocks.min(segment_end)).find(|&n| bit(n) != bit(first));
    end.unwrap_or(segment_end.min(blocks)).saturating_sub(first)
}

/// `current_nat_addr`.
fn address(sb: &SuperBlock, cp: &Checkpoint, block: u32) -> u32 {
    let pair = (block >> SEG_BITS << SEG_BITS).saturating_mul(2);
    let second = if cp.nat_bitmap.contains(block::index(block)) {
        BLOCKS_PER_SEG
    } else {
        0
    };
    sb.nat_blkaddr
        .saturating_add(pair)
        .saturating_add(block & BLOCKS_PER_SEG.saturating_sub(1))
        .saturating_add(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_entry_replaces_adds_and_removes() {
        let entry = |nid, blkaddr| NatEntry {
            nid,
            ino: 9,
            blkaddr,
        };
        let mut nat = Nat {
            entries: vec![entry(4, 1), entry(7, 2)],
        };
        nat.replace(4, Some(entry(4, 3)));
        nat.replace(5, Some(entry(5, 4)));
        nat.replace(9, Some(entry(9, 5)));
        nat.replace(7, None);
        nat.replace(6, None);
        assert_eq!(nat.entries, [entry(4, 3), entry(5, 4), entry(9, 5)]);
        assert_eq!(nat.get(5), Some(entry(5, 4)));
        assert_eq!(
            (nat.get(7), nat.is_inode(9), nat.is_inode(5)),
            (None, true, false)
        );
    }
}

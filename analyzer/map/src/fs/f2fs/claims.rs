// SPDX-License-Identifier: MIT OR Apache-2.0
//! The owners of blocks. A block of the main area has at most one owner.

use super::numbers::{BlkAddr, Ino};
use super::superblock::SuperBlock;
use crate::class::Kind;
use crate::extent::Extent;
use crate::fs::bits;
use crate::fs::notices::Notices;
use crate::fs::volume::Volume;
use fixedbitset::FixedBitSet;
use std::ops::Range;

/// The claims collected so far.
pub struct Claims<'a> {
    sb: &'a SuperBlock,
    volume: Volume,
    extents: Vec<Extent>,
    owned: FixedBitSet,
    twice: FixedBitSet,
    /// Blocks claimed by nodes written after the checkpoint; these claims take precedence over others.
    recovered: FixedBitSet,
}

/// A run of consecutive blocks and its owner.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    pub blkaddr: BlkAddr,
    pub blocks: u32,
    pub kind: Kind,
    pub ino: Ino,
    /// Position of the first block in the file, in blocks; None for nodes and the like.
    pub bidx: Option<u64>,
    pub is_recovered: bool,
}

impl<'a> Claims<'a> {
    /// Starts with claims on the areas ahead of the main area.
    pub fn new(sb: &'a SuperBlock, volume: Volume) -> Claims<'a> {
        let mut claims = Claims {
            sb,
            volume,
            extents: Vec::new(),
            owned: sb.no_main_blocks(),
            twice: sb.no_main_blocks(),
            recovered: sb.no_main_blocks(),
        };
        for (from, to, kind) in [
            (BlkAddr(0), BlkAddr(2), Kind::Superblock),
            (sb.cp_blkaddr, sb.sit_blkaddr, Kind::Checkpoint),
            (sb.sit_blkaddr, sb.nat_blkaddr, Kind::Sit),
            (sb.nat_blkaddr, sb.ssa_blkaddr, Kind::Nat),
            (sb.ssa_blkaddr, sb.main_blkaddr, Kind::Ssa),
        ] {
            let extent = volume.extent(from, from.up_to(to), kind);
            claims.extents.push(extent);
        }
        claims
    }

    /// Claims blocks of the main area. Blocks that were claimed before are noted.
    pub fn claim(&mut self, claim: Claim, notices: &mut Notices) {
        let mut free: Option<Claim> = None;
        for nth in 0..claim.blocks {
            let one = Claim {
                blkaddr: claim.blkaddr.plus(nth),
                blocks: 1,
                bidx: claim.bidx.map(|bidx| bidx.saturating_add(nth.into())),
                ..claim
            };
            if self.take(&one, notices) {
                let run = free.get_or_insert(Claim { blocks: 0, ..one });
                run.blocks = run.blocks.saturating_add(1);
            } else {
                self.push(free.take());
            }
        }
        self.push(free);
    }

    /// Takes one block of the main area. Returns true if it was free.
    fn take(&mut self, claim: &Claim, notices: &mut Notices) -> bool {
        let Some(n) = self.sb.in_main(claim.blkaddr) else {
            return false;
        };
        let is_first = bits::insert(&mut self.owned, n);
        if claim.is_recovered {
            bits::insert(&mut self.recovered, n);
        } else if !is_first && self.recovered.contains(n) {
            return false;
        }
        if !is_first && bits::insert(&mut self.twice, n) {
            let (blkaddr, ino) = (claim.blkaddr, claim.ino);
            notices.push(format!(
                "block {blkaddr}: has two owners, one is inode {ino}"
            ));
        }
        is_first
    }

    fn push(&mut self, claim: Option<Claim>) {
        self.extents.extend(claim.map(|claim| Extent {
            inode: claim.ino.into(),
            file_offset: claim.bidx.map(|bidx| self.sb.block_size.bytes_of(bidx)),
            ..self.volume.extent(claim.blkaddr, claim.blocks, claim.kind)
        }));
    }

    /// Returns all claims in order of precedence. Blocks that the SIT marks as in use but that have no owner, or two,
    /// become `unmapped`.
    pub fn into_extents(self, valid: FixedBitSet, notices: &mut Notices) -> Vec<Extent> {
        let unmapped = |run: Range<usize>| {
            let (at, end) = (self.sb.main_block(run.start), self.sb.main_block(run.end));
            self.volume.extent(at, at.up_to(end), Kind::Unmapped)
        };
        let mut say = |blocks: &mut dyn Iterator<Item = usize>, what: &str| {
            if let Some(first) = blocks.next() {
                let (blocks, first) = (blocks.count().saturating_add(1), self.sb.main_block(first));
                notices.push(format!("{blocks} blocks, the first is {first}, {what}"));
            }
        };
        // These are iterators and not sets: each set would take one bit for every block of the filesystem, however
        // empty it is.
        let nobodys = || valid.difference(&self.owned);
        let mut unused = self
            .owned
            .difference(&valid)
            .filter(|&block| !self.recovered.contains(block));
        say(&mut nobodys(), "are in use, but nobody's");
        say(&mut unused, "have an owner, but are not in use");
        let nobodys: Vec<Extent> = bits::runs_of(nobodys()).map(unmapped).collect();
        let mut twice: Vec<Extent> = bits::runs(&self.twice).map(unmapped).collect();
        let mut extents = self.extents;
        if !twice.is_empty() {
            twice.append(&mut extents);
            extents = twice;
        }
        extents.extend(nobodys);
        extents
    }
}

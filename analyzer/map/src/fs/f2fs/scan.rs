// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads every node once, in disk order, and keeps a few bytes of each.

use std::collections::HashMap;

use super::block::{self, Blocks, SEG_BITS, u32s};
use super::dentry::{self, Dentry};
use super::inode::{Inode, InodeRecord};
use super::nat::NatEntry;
use super::node::{Footer, Level, NodeTree, XATTR_NODE_OFFSET};
use super::numbers::{BlkAddr, Ino, Nid};
use super::recovery::Recovery;
use super::superblock::SuperBlock;
use crate::fs::notices::Notices;
use crate::fs::progress::PartProgress;
use fixedbitset::FixedBitSet;

/// The largest distance in blocks between two nodes that are read together.
const NEAR: u32 = 32;

/// A node, and the part of [`Scan::runs`] that it holds.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    pub ino: Ino,
    pub ofs: u32,
    pub nid: Nid,
    pub blkaddr: BlkAddr,
    pub is_fsync: bool,
    /// True if the node was written after the checkpoint.
    pub is_recovered: bool,
    runs: u16,
    first_run: usize,
}

/// Consecutive addresses in an inode or a direct node. A compressed cluster begins with a run of no blocks at
/// `BlkAddr::COMPRESS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Index of the first address in the node.
    pub index: u16,
    pub blocks: u16,
    pub blkaddr: BlkAddr,
}

/// A pointer from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ref {
    pub ino: Ino,
    pub ofs: u32,
    pub nid: Nid,
    /// The node that holds the pointer.
    pub from: Nid,
}

/// The result of a scan.
#[derive(Default)]
pub struct Scan {
    pub nodes: Vec<Node>,
    pub inodes: Vec<InodeRecord>,
    pub refs: Vec<Ref>,
    /// Directory entries inside inodes.
    pub inline: HashMap<Ino, Vec<Dentry>>,
    runs: Vec<Run>,
}

impl Scan {
    /// Returns the runs of addresses that a node of this scan holds.
    pub fn runs(&self, node: &Node) -> &[Run] {
        let end = node.first_run.saturating_add(node.runs.into());
        self.runs.get(node.first_run..end).unwrap_or_default()
    }

    /// Returns an inode by number; the inodes must be sorted.
    pub fn inode(&self, ino: Ino) -> Option<&InodeRecord> {
        let at = self.inodes.binary_search_by_key(&ino, |inode| inode.ino);
        at.ok().and_then(|at| self.inodes.get(at))
    }
}

/// Builds a [`Scan`].
pub struct Scanner<'a> {
    pub blocks: Blocks<'a>,
    pub sb: &'a SuperBlock,
    pub recovery: &'a Recovery,
    /// The blocks in use. Blocks that the recovery replaces are removed from it.
    pub valid: &'a mut FixedBitSet,
    pub notices: &'a mut Notices,
    pub scan: Scan,
}

impl Scanner<'_> {
    fn tree(&self) -> NodeTree {
        NodeTree::of(self.blocks.size)
    }

    /// Reads the nodes written after the checkpoint, then those in the NAT.
    pub fn read(mut self, entries: &[NatEntry], mut part: PartProgress) -> Scan {
        let mut buf = self.blocks.buffer();
        for &NatEntry { nid, ino, blkaddr } in &self.recovery.nodes {
            if self.read_block(&mut buf, blkaddr) {
                self.node(NatEntry { nid, ino, blkaddr }, &buf, true);
            }
        }
        // A segment holds either nodes or data, so unused blocks between two nodes of a segment are read along with
        // them.
        let sb = self.sb;
        let segment = |entry: &NatEntry| sb.in_main(entry.blkaddr).unwrap_or(0) >> SEG_BITS;
        let near = |a: &NatEntry, b: &NatEntry| a.blkaddr.up_to(b.blkaddr) <= NEAR;
        for entries in entries.chunk_by(|a, b| segment(a) == segment(b) && near(a, b)) {
            self.segment(entries, &mut buf);
            part.add(entries.len());
        }
        self.scan
    }

    /// Reads all blocks from the first of these nodes to the last.
    fn segment(&mut self, entries: &[NatEntry], buf: &mut Vec<u8>) {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            return;
        };
        let count = first.blkaddr.up_to(last.blkaddr).saturating_add(1);
        let bytes = block::index(count).saturating_mul(self.blocks.size.len());
        buf.resize(bytes, 0);
        let whole = self.blocks.read_into(buf, first.blkaddr, "nodes").is_ok();
        let mut single = self.blocks.buffer();
        for &entry in entries {
            let nth = first.blkaddr.up_to(entry.blkaddr);
            if whole {
                self.node(entry, self.blocks.nth(buf, nth), false);
            } else if self.read_block(&mut single, entry.blkaddr) {
                self.node(entry, &single, false);
            }
        }
    }

    fn read_block(&mut self, buf: &mut [u8], blkaddr: BlkAddr) -> bool {
        let read = self
            .blocks
            .read_into(buf, blkaddr, format_args!("node at block {blkaddr}"));
        read.map_err(|error| self.notices.push(error.to_string()))
            .is_ok()
    }

    fn node(&mut self, entry: NatEntry, block: &[u8], is_recovered: bool) {
        let NatEntry { nid, ino, blkaddr } = entry;
        let footer = Footer::of(block);
        let level = self.tree().level(footer.ofs);
        let is_sound = level.is_some_and(|level| (level == Level::Inode) == footer.is_inode());
        if (footer.nid, footer.ino) != (nid, ino) || !is_sound {
            self.notices.push(format!(
                "node {nid} of inode {ino}: block {blkaddr} holds node {} of inode {}, offset {}",
                footer.nid, footer.ino, footer.ofs
            ));
            return;
        }
        let is_replaced = !is_recovered && self.recovery.replaces(ino, footer.ofs);
        let first_run = self.scan.runs.len();
        let bad = match level {
            Some(Level::Inode) => match self.inode(ino, block, is_recovered, is_replaced) {
                Ok(bad) => bad,
                Err(what) => return self.notices.push(format!("inode {ino}: {what}")),
            },
            Some(Level::Direct) => {
                self.addresses(block::addrs(block).take(block::index(self.tree().n)))
            }
            Some(Level::Indirect | Level::Double) => {
                self.children(footer.ofs, ino, nid, block);
                0
            }
            _ => 0,
        };
        if is_replaced {
            return self.release(blkaddr, first_run);
        }
        if bad > 0 {
            self.notices.push(format!(
                "inode {ino}: node {nid} has {bad} addresses outside the main area"
            ));
        }
        let runs = self.scan.runs.len().saturating_sub(first_run);
        self.scan.nodes.push(Node {
            ino,
            ofs: footer.ofs,
            nid,
            blkaddr,
            is_fsync: footer.is_fsync,
            is_recovered,
            runs: u16::try_from(runs).unwrap_or(u16::MAX),
            first_run,
        });
    }

    fn inode(
        &mut self,
        ino: Ino,
        block: &[u8],
        is_recovered: bool,
        is_replaced: bool,
    ) -> Result<usize, String> {
        let inode = Inode::parse(self.sb, ino, block)?;
        let bad = self.addresses(inode.addrs());
        // The recovery brings addresses and keeps the tree, which is the checkpoint's inode's.
        if !is_recovered {
            let xattr =
                Some((XATTR_NODE_OFFSET, inode.i_xattr_nid())).filter(|(_, nid)| *nid != Nid(0));
            let children = inode
                .children(self.tree())
                .filter(|_| !self.recovery.truncates(ino));
            let refs = children.chain(xattr).map(|(ofs, nid)| Ref {
                ino,
                ofs,
                nid,
                from: ino.nid(),
            });
            self.scan.refs.extend(refs);
        }
        if !is_replaced {
            self.scan.inodes.push(inode.record);
            if let Some(area) = inode.inline_dentry() {
                let mut entries = Vec::new();
                if let Err(slot) = dentry::parse(area, &mut entries) {
                    self.notices.push(format!(
                        "inode {ino}: inline directory: bad entry in slot {slot}"
                    ));
                }
                self.scan.inline.insert(ino, entries);
            }
        }
        Ok(bad)
    }

    fn children(&mut self, ofs: u32, ino: Ino, nid: Nid, block: &[u8]) {
        let tree = self.tree();
        let nids = (0..tree.n).zip(u32s(block).map(Nid));
        let nids = nids.filter(|(_, nid)| *nid != Nid(0));
        let refs = nids.filter_map(|(slot, child)| {
            let ofs = tree.child(ofs, slot)?;
            Some(Ref {
                ino,
                ofs,
                nid: child,
                from: nid,
            })
        });
        self.scan.refs.extend(refs);
    }

    /// Stores addresses as runs. Returns the number of addresses outside the main area.
    fn addresses(&mut self, addrs: impl Iterator<Item = BlkAddr>) -> usize {
        let first = self.scan.runs.len();
        let runs = &mut self.scan.runs;
        let mut bad = 0usize;
        for (index, blkaddr) in (0u16..).zip(addrs) {
            if blkaddr == BlkAddr::NULL || blkaddr == BlkAddr::NEW {
                continue;
            }
            if blkaddr != BlkAddr::COMPRESS && self.sb.in_main(blkaddr).is_none() {
                bad = bad.saturating_add(1);
                continue;
            }
            let is_first = runs.len() == first;
            match runs.last_mut().filter(|_| !is_first) {
                Some(last) if last.goes_on(index, blkaddr) => {
                    last.blocks = last.blocks.saturating_add(1);
                }
                _ => {
                    let blocks = u16::from(blkaddr != BlkAddr::COMPRESS);
                    runs.push(Run {
                        index,
                        blocks,
                        blkaddr,
                    });
                }
            }
        }
        bad
    }

    /// Removes a replaced node of the checkpoint, and the blocks to which it points, from those in use.
    fn release(&mut self, blkaddr: BlkAddr, first_run: usize) {
        let node = Run {
            index: 0,
            blocks: 1,
            blkaddr,
        };
        for run in self.scan.runs.drain(first_run..).chain([node]) {
            if let Some(n) = self.sb.in_main(run.blkaddr) {
                let end = n.saturating_add(run.blocks.into()).min(self.valid.len());
                self.valid.remove_range(n..end);
            }
        }
    }
}

impl Run {
    fn goes_on(&self, index: u16, blkaddr: BlkAddr) -> bool {
        self.blocks > 0
            && self.index.saturating_add(self.blocks) == index
            && self.blkaddr.plus(self.blocks.into()) == blkaddr
    }
}

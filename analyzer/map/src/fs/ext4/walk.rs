// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists the blocks of an inode by walking its tree.

use std::collections::HashSet;

use super::block_list::{BlockList, Run};
use super::checksum::{Seed, is_extent_node_sound, is_inode_sound};
use super::inode::{BlockMap, InodeRecord};
use super::node::Node;
use super::numbers::{FileBlock, FsBlock};
use super::superblock::SuperBlock;
use super::tree::{below, root};
use crate::fs::image::Image;

/// A position behind every block of a file.
const NOWHERE: FileBlock = FileBlock(u64::MAX);

/// Walks the trees of one filesystem's inodes. Each block is followed as a node only once, because a few blocks that lead to one
/// another would make a tree of billions of nodes.
pub struct Walker<'a> {
    image: &'a Image,
    sb: &'a SuperBlock,
    nodes: HashSet<FsBlock>,
    checks_sums: bool,
}

/// The inode whose tree is walked.
struct Of {
    block_map: BlockMap,
    /// The seed of its checksums; None if they are not checked.
    seed: Option<Seed>,
    /// The end of what was listed of the file; the extents of all nodes must be in order.
    end: FileBlock,
    /// The block from which on the file is cut.
    cut: FileBlock,
}

impl<'a> Walker<'a> {
    /// Makes a walker that rejects every inode and every node whose checksum is wrong.
    pub fn new(image: &'a Image, sb: &'a SuperBlock) -> Walker<'a> {
        Walker {
            image,
            sb,
            nodes: HashSet::new(),
            checks_sums: true,
        }
    }

    /// Makes a walker for metadata in use, whose checksums are not checked: a checksum may be written later than the bytes that it
    /// covers.
    pub fn without_checksums(image: &'a Image, sb: &'a SuperBlock) -> Walker<'a> {
        Walker {
            checks_sums: false,
            ..Walker::new(image, sb)
        }
    }

    /// Lists the blocks of an inode, given its raw bytes. A fault in a part of its tree becomes a complaint, and that part is left
    /// out.
    pub fn list(&mut self, record: &InodeRecord, raw: &[u8]) -> BlockList {
        self.list_until(NOWHERE, record, raw)
    }

    /// Lists the blocks as [`Walker::list`] does; those from `cut` on, and nodes that lead to no others, are listed as freed.
    pub fn list_until(&mut self, cut: FileBlock, record: &InodeRecord, raw: &[u8]) -> BlockList {
        let mut list = BlockList::default();
        if record.block_map == BlockMap::None {
            return list;
        }
        if self.checks_sums && !is_inode_sound(self.sb, record.number, raw) {
            list.complain("its checksum is wrong".into());
            return list;
        }
        let seed = Seed::of_inode(self.sb, record.number, record.i_generation);
        let mut of = Of {
            block_map: record.block_map,
            seed: seed.filter(|_| self.checks_sums),
            end: FileBlock(0),
            cut,
        };
        let i_block = raw.get(0x28..0x64).unwrap_or_default();
        match root(record.block_map, i_block, self.sb.block_size) {
            Ok(nodes) => self.walk(nodes, &mut of, &mut list),
            Err(what) => list.complain(format!("its extent tree {what}")),
        }
        list
    }

    /// Walks the tree in file order. The nodes that wait are kept in a list instead of on the call stack.
    fn walk(&mut self, mut nodes: Vec<Node>, of: &mut Of, list: &mut BlockList) {
        nodes.reverse();
        while let Some(node) = nodes.pop() {
            if node.height == 0 {
                self.contents(&node, of, list);
                continue;
            }
            match self.node(&node, of, list) {
                Ok(mut below) => {
                    below.reverse();
                    nodes.append(&mut below);
                }
                Err(Wrong::Twice) => {
                    let block = node.block;
                    *list = BlockList::default();
                    list.complain(format!(
                        "block {block} has a place in a tree already, its blocks are unmapped"
                    ));
                    return;
                }
                Err(Wrong::Because(what)) => {
                    list.complain(format!("its tree block {} {what}", node.block));
                }
            }
        }
    }

    fn contents(&self, node: &Node, of: &mut Of, list: &mut BlockList) {
        let Node {
            logical,
            block,
            blocks,
            ..
        } = *node;
        if blocks > block.up_to(self.sb.end()) {
            list.complain(format!("block {block} is outside the filesystem"));
        } else if logical < of.end {
            list.complain(format!("block {block} is out of order"));
        } else {
            of.end = logical.plus(blocks);
            let kept = logical.up_to(of.cut).min(blocks);
            if kept > 0 {
                list.push(Run {
                    logical,
                    block,
                    blocks: kept,
                });
            }
            if kept < blocks {
                let freed = blocks.saturating_sub(kept);
                list.freed.push((block.plus(kept), freed));
            }
        }
    }

    /// Returns the entries of a node.
    fn node(&mut self, node: &Node, of: &Of, list: &mut BlockList) -> Result<Vec<Node>, Wrong> {
        let block = node.block;
        if block >= self.sb.end() {
            return Err(Wrong::Because("is outside the filesystem".into()));
        }
        if !self.nodes.insert(block) {
            return Err(Wrong::Twice);
        }
        list.entries = list.entries.saturating_add(1);
        let buf = self.sb.read_block(self.image, block, "");
        let buf = buf.map_err(|_| Wrong::Because("cannot be read".into()));
        let below = buf.and_then(|buf| entries(node, &buf, of));
        let leads_to_cut =
            |below: &Vec<Node>| of.cut < NOWHERE && below.iter().all(|node| node.logical >= of.cut);
        match (of.block_map, node.height) {
            _ if below.as_ref().is_ok_and(leads_to_cut) => list.freed.push((block, 1)),
            (BlockMap::Indirect, 2..) => list.upper_tree.push(block),
            _ => list.tree.push(block),
        }
        below
    }
}

/// Parses a node.
fn entries(node: &Node, buf: &[u8], of: &Of) -> Result<Vec<Node>, Wrong> {
    if let (BlockMap::Extents, Some(seed)) = (of.block_map, of.seed)
        && !is_extent_node_sound(seed, buf)
    {
        return Err(Wrong::Because("has a wrong checksum".into()));
    }
    below(of.block_map, node, buf).map_err(|what| Wrong::Because(what.into()))
}

/// The reason why a node is not followed.
enum Wrong {
    /// Its block was met before, in this tree or in another.
    Twice,
    /// The fault, as the end of a sentence that begins with the block.
    Because(String),
}

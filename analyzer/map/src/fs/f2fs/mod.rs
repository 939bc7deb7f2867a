// SPDX-License-Identifier: MIT OR Apache-2.0
//! The map of an f2fs filesystem.
//!
//! ```text
//! superblock ──→ checkpoint ──→ journals ──→ NAT ──→ nodes, in the order of the disk ─┐
//!                    │                ├─────→ SIT ──→ what is in use                  ├─→ claims ─→ Map
//!                    └─→ node chain ──┴─→ roll-forward ─→ newer nodes, newer names ───┘
//!                                                 directory blocks ──→ names
//! ```
//! Every needed block is read once, in runs as long as possible, and always in the same order. The contents of regular
//! files are not read, nor is the SSA: the owners that it records are also known from the nodes.

use std::collections::HashMap;

use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::names::link;
use crate::fs::notices::Notices;
use crate::fs::progress::{PartProgress, Watcher};
use crate::fs::state::State;
use crate::fs::volume::Volume;
use crate::map::{Inode, Map};

mod block;
mod checkpoint;
mod claims;
mod crc;
mod dentry;
mod files;
mod inode;
mod journal;
mod names;
mod nat;
mod node;
mod numbers;
mod orphans;
mod parts;
mod recovery;
mod scan;
mod sit;
mod superblock;
mod tree;

use block::Blocks;
use checkpoint::Checkpoint;
use claims::Claims;
use inode::InodeRecord;
use journal::Journals;
use names::Tree;
use nat::Nat;
use node::NodeTree;
pub use parts::parts;
use recovery::Recovery;
use scan::{Scan, Scanner};
use superblock::SuperBlock;

/// Builds the map of a filesystem as the next mount will find it, including what fsync wrote after the last checkpoint.
/// `start_sector` is the filesystem's first sector on its disk, 512 bytes each; all sectors of the map count from the
/// start of the disk. What could not be resolved is listed in [`Map::notices`], and those of its blocks that the SIT
/// marks as in use are `unmapped`.
///
/// Source: the kernel's `include/linux/f2fs_fs.h` and `fs/f2fs`.
///
/// # Errors
/// Returns an error if no superblock or no checkpoint is sound, if the image is shorter than the filesystem, or if the
/// layout is not supported, such as an image of one of several devices alone.
pub fn build(image: &Image, start_sector: u64) -> Result<Map> {
    build_with(State::NextMount, image, start_sector, &|_| {})
}

/// Builds the map as [`build`] does, or as it was at the last checkpoint, and reports progress to `watcher`.
pub(super) fn build_with(
    state: State,
    image: &Image,
    start_sector: u64,
    watcher: &Watcher,
) -> Result<Map> {
    let notices = &mut Notices::default();
    let sb = &SuperBlock::read(image, notices)?;
    let blocks = Blocks {
        image,
        size: sb.block_size,
    };
    let volume = Volume::new(image, start_sector, sb.block_count, sb.block_size.bytes())?;
    let cp = &Checkpoint::read(blocks, sb, notices)?;
    let journals = &Journals::read(blocks, sb, cp, notices)?;
    let mut valid = sit::read(blocks, sb, cp, journals, notices)?;
    let part = PartProgress::new(watcher, "node address table", block::index(sb.nat_blocks()));
    let nat = Nat::read(blocks, sb, cp, journals, notices, part)?;
    let recovery = &match state {
        State::NextMount | State::Mounted => Recovery::read(blocks, sb, cp, &nat, notices),
        State::AsIs => Recovery::default(),
    };
    let scan = Scan::default();
    let scanner = Scanner {
        blocks,
        sb,
        recovery,
        valid: &mut valid,
        notices,
        scan,
    };
    let nodes = nat.into_disk_order();
    let mut scan = scanner.read(&nodes, PartProgress::new(watcher, "nodes", nodes.len()));
    drop(nodes);
    tree::prune(NodeTree::of(sb.block_size), &mut scan, notices);
    let mut claims = Claims::new(sb, volume);
    let directories = files::claim(sb, &mut scan, &mut claims, notices);
    let mut inodes = inodes(&scan);
    drop(scan);
    let part = PartProgress::new(watcher, "directories", directories.len());
    let tree = Tree::new(blocks, sb, directories, &recovery.names, notices);
    link(tree, sb.root_ino, &mut inodes, part);
    orphans::note_nameless(blocks, sb, cp, &inodes, notices)?;
    let extents = claims.into_extents(valid, notices);
    let map = volume.map(extents, inodes);
    Ok(map.with_notices(std::mem::take(notices).into_lines()))
}

fn inodes(scan: &Scan) -> HashMap<u64, Inode> {
    let numbered = |record: &InodeRecord| {
        let inode = Inode {
            generation: Some(record.i_generation),
            ..Inode::default()
        };
        (record.ino.into(), inode)
    };
    scan.inodes.iter().map(numbered).collect()
}

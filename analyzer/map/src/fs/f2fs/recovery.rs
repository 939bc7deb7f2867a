// SPDX-License-Identifier: MIT OR Apache-2.0
//! Roll-forward recovery: what fsync wrote after the checkpoint, as the next mount will find it.
//!
//! ```text
//! checkpoint │ inode 7 │ node 7/1 F │ inode 9 DF │ node 7/2 │ …      F fsync, D new name
//!              next_blkaddr ──────→ ──────────→ ─────────→
//! ```
//! For each inode, the nodes up to its last F are recovered (kernel: `find_fsync_dnodes`, `recover_data`). They bring
//! new addresses; the tree above them stays the checkpoint's. If the kernel fails with an error it mounts without
//! recovering anything, and so does this code.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::block::{self, Blocks};
use super::checkpoint::{Checkpoint, flag};
use super::inode::Inode;
use super::nat::{Nat, NatEntry};
use super::node::{Footer, Level, NodeTree, XATTR_NODE_OFFSET};
use super::numbers::{BlkAddr, Ino};
use super::superblock::{SuperBlock, feature};
use crate::fs::bits;
use crate::fs::notices::Notices;

/// Everything that is newer than the checkpoint.
#[derive(Debug, Default)]
pub struct Recovery {
    /// The recovered nodes, by inode and offset.
    pub nodes: Vec<NatEntry>,
    /// The new names.
    pub names: Vec<NewName>,
    places: HashSet<(Ino, u32)>,
    truncated: HashSet<Ino>,
}

/// A directory entry that the next mount will make.
#[derive(Clone, Debug)]
pub struct NewName {
    pub parent: Ino,
    pub name: Box<[u8]>,
    pub ino: Ino,
}

impl Recovery {
    /// Follows the chain of nodes from the next free block of the log of warm nodes.
    pub fn read(
        blocks: Blocks<'_>,
        sb: &SuperBlock,
        cp: &Checkpoint,
        nat: &Nat,
        notices: &mut Notices,
    ) -> Recovery {
        if cp.has(flag::DISABLED) || sb.has(feature::RO) {
            return Recovery::default();
        }
        let (segno, blkoff) = cp.warm_node;
        let Some(start) = sb.blkaddr(segno, blkoff) else {
            notices.push(format!(
                "checkpoint: its log of warm nodes is at block {blkoff} of segment {segno}"
            ));
            return Recovery::default();
        };
        let recovered = chain(blocks, sb, cp, start).and_then(|chain| recover(&chain, nat));
        let recovery = match recovered {
            Ok(recovery) => recovery,
            Err(what) => {
                notices.push(format!(
                    "what was written after the checkpoint is left out: {what}"
                ));
                return Recovery::default();
            }
        };
        if !recovery.nodes.is_empty() {
            let files: HashSet<Ino> = recovery.nodes.iter().map(|node| node.ino).collect();
            let (nodes, files) = (recovery.nodes.len(), files.len());
            notices.push(format!(
                "{nodes} nodes of {files} files, written after the checkpoint, were found through \
                 the node chain"
            ));
        }
        recovery
    }

    /// Returns true if a node of the checkpoint is replaced or truncated.
    pub fn replaces(&self, ino: Ino, ofs: u32) -> bool {
        let is_child = ofs != 0 && ofs != XATTR_NODE_OFFSET;
        self.places.contains(&(ino, ofs)) || is_child && self.truncates(ino)
    }

    /// Returns true if all nodes below an inode of the checkpoint are truncated.
    pub fn truncates(&self, ino: Ino) -> bool {
        self.truncated.contains(&ino)
    }
}

/// A node of the chain.
struct Step {
    blkaddr: BlkAddr,
    footer: Footer,
    /// For an inode: true if the inode holds its contents itself.
    is_inline: bool,
    /// For an inode with a new name: its directory and name.
    born: Option<(Ino, Box<[u8]>)>,
}

/// Returns all nodes written since the checkpoint, in order.
fn chain(
    blocks: Blocks<'_>,
    sb: &SuperBlock,
    cp: &Checkpoint,
    start: BlkAddr,
) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut seen = sb.no_main_blocks();
    let mut blkaddr = start;
    let mut buf = blocks.buffer();
    while let Some(n) = sb.in_main(blkaddr) {
        let at = format_args!("node chain, block {blkaddr}");
        blocks
            .read_into(&mut buf, blkaddr, at)
            .map_err(|error| error.to_string())?;
        let footer = Footer::of(&buf);
        if !cp.is_followed_by(footer.cp_ver) {
            break;
        }
        if !bits::insert(&mut seen, n) {
            return Err(format!(
                "the chain of nodes bites its tail at block {blkaddr}"
            ));
        }
        steps.push(step(sb, blkaddr, footer, &buf)?);
        blkaddr = footer.next_blkaddr;
    }
    Ok(steps)
}

fn step(sb: &SuperBlock, blkaddr: BlkAddr, footer: Footer, block: &[u8]) -> Result<Step, String> {
    let bad = |what: String| format!("block {blkaddr}, inode {}: {what}", footer.ino);
    let mut step = Step {
        blkaddr,
        footer,
        is_inline: false,
        born: None,
    };
    let is_inside = |addr: BlkAddr| {
        [BlkAddr::NULL, BlkAddr::NEW, BlkAddr::COMPRESS].contains(&addr)
            || sb.in_main(addr).is_some()
    };
    let tree = NodeTree::of(sb.block_size);
    let inside = match tree.level(footer.ofs) {
        Some(Level::Inode) if footer.is_inode() => {
            let inode = Inode::parse(sb, footer.ino, block).map_err(bad)?;
            step.is_inline = inode.has_inline_data();
            step.born = footer.is_dent.then(|| {
                let (parent, name) = inode.born();
                (parent, name.into())
            });
            inode.addrs().all(is_inside)
        }
        Some(Level::Direct) if !footer.is_inode() => block::addrs(block)
            .take(block::index(tree.n))
            .all(is_inside),
        Some(Level::Xattr) if !footer.is_inode() => true,
        _ => return Err(bad(format!("not a direct node: offset {}", footer.ofs))),
    };
    if !inside {
        return Err(bad("an address outside the main area".into()));
    }
    Ok(step)
}

/// The steps up to which an inode is recovered.
struct Fsynced {
    /// Index of its last step with an fsync mark.
    last: usize,
    /// Index of its last step with a new name.
    last_dentry: Option<usize>,
}

/// Finds the inodes to recover, and the steps up to which each is: `find_fsync_dnodes`.
fn fsynced(chain: &[Step], nat: &Nat) -> Result<HashMap<Ino, Fsynced>, String> {
    let mut files: HashMap<Ino, Fsynced> = HashMap::new();
    for (nth, step) in chain
        .iter()
        .enumerate()
        .filter(|(_, step)| step.footer.is_fsync)
    {
        let ino = step.footer.ino;
        let makes_it = step.born.is_some();
        if !files.contains_key(&ino) {
            if makes_it && nat.get(ino.nid()).is_some() {
                return Err(format!(
                    "inode {ino} is marked as new, but the checkpoint has it"
                ));
            }
            // A later step may bring the inode itself, with a name.
            if !makes_it && !nat.is_inode(ino) {
                continue;
            }
        }
        let file = files.entry(ino).or_insert(Fsynced {
            last: nth,
            last_dentry: None,
        });
        file.last = nth;
        if makes_it {
            file.last_dentry = Some(nth);
        }
    }
    Ok(files)
}

/// Recovers the nodes one after the other: `recover_data`.
fn recover(chain: &[Step], nat: &Nat) -> Result<Recovery, String> {
    let files = fsynced(chain, nat)?;
    let mut recovery = Recovery::default();
    let mut current: BTreeMap<(Ino, u32), NatEntry> = BTreeMap::new();
    for (nth, step) in chain.iter().enumerate() {
        let Footer { nid, ino, ofs, .. } = step.footer;
        let Some(file) = files.get(&ino).filter(|file| nth <= file.last) else {
            continue;
        };
        if file.last_dentry == Some(nth) {
            recovery.names.extend(new_name(step, nat)?);
        }
        if step.is_inline {
            // The contents were moved into the inode, so its nodes are gone.
            let children = (ino, 1)..(ino, XATTR_NODE_OFFSET);
            let gone: Vec<_> = current.range(children).map(|(place, _)| *place).collect();
            gone.iter().for_each(|place| {
                current.remove(place);
            });
            recovery.truncated.insert(ino);
        }
        let blkaddr = step.blkaddr;
        current.insert((ino, ofs), NatEntry { nid, ino, blkaddr });
    }
    recovery.places = current.keys().copied().collect();
    recovery.nodes = current.into_values().collect();
    Ok(recovery)
}

/// Returns the directory entry to make for an inode: `recover_dentry`.
fn new_name(step: &Step, nat: &Nat) -> Result<Option<NewName>, String> {
    let Some((parent, name)) = step.born.clone() else {
        return Ok(None);
    };
    let ino = step.footer.ino;
    if !nat.is_inode(parent) {
        return Err(format!(
            "inode {ino}: its directory {parent} does not exist"
        ));
    }
    Ok(Some(NewName { parent, name, ino }))
}

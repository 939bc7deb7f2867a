// SPDX-License-Identifier: MIT OR Apache-2.0
//! The blocks of every file: its nodes, and the blocks to which they point.

use std::collections::HashMap;
use std::ops::Range;

use super::claims::{Claim, Claims};
use super::inode::{InodeRecord, mode, whole_clusters};
use super::names::Directory;
use super::node::{Level, NodeTree};
use super::numbers::{BlkAddr, Ino};
use super::scan::{Node, Run, Scan};
use super::superblock::{SuperBlock, feature};
use crate::class::Kind;
use crate::fs::notices::Notices;

/// Claims the blocks of all files. Returns the directories.
pub fn claim(
    sb: &SuperBlock,
    scan: &mut Scan,
    claims: &mut Claims,
    notices: &mut Notices,
) -> HashMap<Ino, Directory> {
    let tree = NodeTree::of(sb.block_size);
    let mut inline = std::mem::take(&mut scan.inline);
    let mut directories = HashMap::new();
    for inode in scan.inodes.iter().filter(|inode| inode.is(mode::S_IFDIR)) {
        let directory = Directory {
            runs: Vec::new(),
            inline: inline.remove(&inode.ino).unwrap_or_default(),
            is_encrypted: inode.is_encrypted,
        };
        directories.insert(inode.ino, directory);
    }
    for is_recovered in [true, false] {
        let nodes = scan
            .nodes
            .iter()
            .filter(|node| node.is_recovered == is_recovered);
        for node in nodes {
            if let Some(inode) = scan.inode(node.ino) {
                let mut file = File {
                    sb,
                    tree,
                    inode,
                    node,
                    claims,
                    notices,
                };
                file.claim_node();
                let runs = file.claim_contents(scan.runs(node));
                if let Some(directory) = directories.get_mut(&node.ino) {
                    directory.runs.extend(runs);
                }
            }
        }
    }
    directories
}

/// One node of a file, and what is needed to claim its blocks.
struct File<'a, 'b> {
    sb: &'a SuperBlock,
    tree: NodeTree,
    inode: &'a InodeRecord,
    node: &'a Node,
    claims: &'a mut Claims<'b>,
    notices: &'a mut Notices,
}

impl File<'_, '_> {
    fn claim_node(&mut self) {
        let kind = match self.tree.level(self.node.ofs) {
            Some(Level::Indirect | Level::Double) => Kind::ColdNode,
            _ if self.inode.is(mode::S_IFDIR) => Kind::HotNode,
            _ if self.node.is_fsync => Kind::FsyncNode,
            _ => Kind::WarmNode,
        };
        self.claim(self.node.blkaddr, 1, kind, None);
    }

    /// Claims the blocks to which the node's addresses point. Returns the claimed runs in file order.
    fn claim_contents(&mut self, runs: &[Run]) -> Vec<Range<BlkAddr>> {
        let log = self.inode.i_log_cluster_size;
        let in_node = u16::try_from(self.tree.n).unwrap_or(u16::MAX);
        let (in_inode, in_node) = (self.inode.addrs, whole_clusters(in_node, log));
        let limit = if self.node.ofs == 0 {
            in_inode
        } else {
            in_node
        };
        let start = self
            .tree
            .start_bidx(self.node.ofs, in_inode.into(), in_node.into());
        let bidx = |index: u16| start.map(|start| start.saturating_add(index.into()));
        let kind = self.kind();
        let mut cluster = 0..0;
        let mut claimed = Vec::new();
        for run in runs.iter().filter(|run| run.index < limit) {
            if run.blkaddr == BlkAddr::COMPRESS {
                cluster = self.cluster(run.index);
                continue;
            }
            // The blocks of a compressed cluster have no offsets of their own: each gets the cluster's start.
            let first = run.index;
            let end = first.saturating_add(run.blocks).min(limit);
            let compressed = cluster.end.clamp(first, end).saturating_sub(first);
            for nth in 0..compressed {
                let blkaddr = run.blkaddr.plus(nth.into());
                self.claim(blkaddr, 1, kind, bidx(cluster.start));
            }
            let blkaddr = run.blkaddr.plus(compressed.into());
            let plain = first.saturating_add(compressed);
            let blocks = u32::from(end.saturating_sub(plain));
            self.claim(blkaddr, blocks, kind, bidx(plain));
            claimed.push(run.blkaddr..blkaddr.plus(blocks));
        }
        claimed
    }

    /// Returns the address slots of the compressed cluster that begins at `index`; empty if none can begin there.
    fn cluster(&mut self, index: u16) -> Range<u16> {
        let log = self.inode.i_log_cluster_size;
        if log.is_none() || whole_clusters(index, log) != index {
            let (ino, nid) = (self.inode.ino, self.node.nid);
            self.notices.push(format!(
                "inode {ino}: node {nid}: no compressed cluster begins at {index}"
            ));
            return 0..0;
        }
        let blocks = 1u16.wrapping_shl(log.unwrap_or(0).into());
        index..index.saturating_add(blocks)
    }

    /// Returns the kind of the file's contents.
    fn kind(&self) -> Kind {
        let inode = self.inode;
        if self.sb.has(feature::QUOTA_INO) && self.sb.qf_ino.contains(&inode.ino) {
            Kind::Quota
        } else if inode.is(mode::S_IFDIR) {
            Kind::Directory
        } else if inode.is(mode::S_IFLNK) {
            Kind::Symlink
        } else {
            Kind::Regular
        }
    }

    fn claim(&mut self, blkaddr: BlkAddr, blocks: u32, kind: Kind, bidx: Option<u64>) {
        let claim = Claim {
            blkaddr,
            blocks,
            kind,
            ino: self.inode.ino,
            bidx,
            is_recovered: self.node.is_recovered,
        };
        self.claims.claim(claim, self.notices);
    }
}

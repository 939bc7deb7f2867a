// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the nodes to which an inode really leads: only those hold parts of the file.

use std::collections::HashMap;

use super::node::{Level, NodeTree};
use super::numbers::{Ino, Nid};
use super::scan::{Node, Ref, Scan};
use crate::fs::notices::Notices;

/// Sorts the nodes by inode and offset and the inodes by number, and drops nodes that cannot be reached from their
/// inode.
pub fn prune(tree: NodeTree, scan: &mut Scan, notices: &mut Notices) {
    scan.inodes.sort_unstable_by_key(|inode| inode.ino);
    scan.refs.sort_unstable();
    scan.nodes
        .sort_unstable_by_key(|node| (node.ino, node.ofs, node.nid));
    let refs = &scan.refs;
    let mut file = File::default();
    scan.nodes.retain(|node| {
        if file.ino != node.ino {
            file = File {
                ino: node.ino,
                ..File::default()
            };
        }
        let kept = file.take(tree, node, refs);
        if !kept {
            let Node { ino, nid, ofs, .. } = node;
            notices.push(format!(
                "inode {ino}: nothing leads to its node {nid}, offset {ofs}"
            ));
        }
        kept
    });
    for Ref { ino, ofs, nid, .. } in refs {
        let at = scan
            .nodes
            .binary_search_by_key(&(*ino, *ofs), |node| (node.ino, node.ofs));
        let node = at.ok().and_then(|at| scan.nodes.get(at));
        if !node.is_some_and(|node| node.nid == *nid || node.is_recovered) {
            notices.push(format!(
                "inode {ino}: its node {nid}, offset {ofs}, was not found"
            ));
        }
    }
}

/// The reachable nodes of one inode. Nodes come by offset, so a parent comes before its children.
#[derive(Default)]
struct File {
    ino: Ino,
    /// The inode and its indirect nodes, by offset.
    leads: HashMap<u32, Nid>,
}

impl File {
    fn take(&mut self, tree: NodeTree, node: &Node, refs: &[Ref]) -> bool {
        let reached = match tree.parent(node.ofs) {
            None => true,
            // The recovery makes the missing nodes between the inode and this one itself.
            Some(_) if node.is_recovered => self.leads.contains_key(&0),
            Some(parent) => self.leads.get(&parent).is_some_and(|&from| {
                let &Node { ino, ofs, nid, .. } = node;
                refs.binary_search(&Ref {
                    ino,
                    ofs,
                    nid,
                    from,
                })
                .is_ok()
            }),
        };
        let leads = !matches!(tree.level(node.ofs), Some(Level::Direct | Level::Xattr));
        if reached && leads {
            self.leads.insert(node.ofs, node.nid);
        }
        reached
    }
}

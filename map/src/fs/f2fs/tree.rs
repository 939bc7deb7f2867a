// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which nodes an inode really leads to: only those hold parts of the file.

use std::collections::HashMap;

use super::node::{self, Level};
use super::numbers::{Ino, Nid};
use super::scan::{Node, Ref, Scan};
use crate::fs::notices::Notices;

/// Sorts the nodes by inode and offset, the inodes by number, and drops the nodes that cannot be
/// reached.
pub fn prune(scan: &mut Scan, notices: &mut Notices) {
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
        let kept = file.take(node, refs);
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

/// The nodes of one inode, as they come by offset: what leads to a node is before it.
#[derive(Default)]
struct File {
    ino: Ino,
    /// The inode and its indirect nodes, by offset.
    leads: HashMap<u32, Nid>,
}

impl File {
    fn take(&mut self, node: &Node, refs: &[Ref]) -> bool {
        let reached = match node::parent(node.ofs) {
            None => true,
            // The recovery makes the nodes in between itself.
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
        let leads = !matches!(Level::of(node.ofs), Some(Level::Direct | Level::Xattr));
        if reached && leads {
            self.leads.insert(node.ofs, node.nid);
        }
        reached
    }
}

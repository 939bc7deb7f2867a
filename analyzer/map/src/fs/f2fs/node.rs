// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct f2fs_node`: the footer, which names a node's owner, and the tree of nodes below an inode.
//!
//! ```text
//! inode (0) ─┬─ direct (1), direct (2)
//!            ├─ indirect (3) ── direct (4 …)               N each, 1018 for blocks of 4 KiB
//!            ├─ indirect (4 + N) ── direct (5 + N …)
//!            ├─ double indirect (5 + 2N) ── indirect (6 + 2N + x(N + 1)) ── direct (+ 1 …)
//!            └─ xattr (XATTR_NODE_OFFSET)
//! ```

use super::block::{BlockSize, index, u32_of, u64_of};
use super::numbers::{BlkAddr, Ino, Nid};

/// The length in bytes of the footer, which is at the end of the block.
pub const FOOTER: u32 = 24;
/// The offset of the node with extended attributes.
pub const XATTR_NODE_OFFSET: u32 = u32::MAX >> 3;

/// `struct node_footer`, with its `flag` split into fields.
#[derive(Clone, Copy, Debug)]
pub struct Footer {
    pub nid: Nid,
    pub ino: Ino,
    /// Offset in the inode's tree of nodes.
    pub ofs: u32,
    /// True if an fsync wrote the node.
    pub is_fsync: bool,
    /// True if an fsync wrote the node and the inode's name is new.
    pub is_dent: bool,
    pub cp_ver: u64,
    pub next_blkaddr: BlkAddr,
}

impl Footer {
    /// Parses the footer of a node's block.
    pub fn of(block: &[u8]) -> Footer {
        let from = block.len().saturating_sub(index(FOOTER));
        let footer = block.get(from..).unwrap_or_default();
        let flag = u32_of(footer, 8);
        Footer {
            nid: Nid(u32_of(footer, 0)),
            ino: Ino(u32_of(footer, 4)),
            ofs: flag >> 3,
            is_fsync: flag & 2 != 0,
            is_dent: flag & 4 != 0,
            cp_ver: u64_of(footer, 12),
            next_blkaddr: BlkAddr(u32_of(footer, 20)),
        }
    }

    /// Returns true if this node is an inode: its nid equals its inode's number.
    pub fn is_inode(&self) -> bool {
        self.nid == self.ino.nid()
    }
}

/// The contents of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Inode,
    /// Addresses of data blocks.
    Direct,
    /// The nids of direct nodes.
    Indirect,
    /// The nids of indirect nodes.
    Double,
    /// Extended attributes.
    Xattr,
}

/// The tree of nodes below an inode, for blocks of one size.
#[derive(Clone, Copy, Debug)]
pub struct NodeTree {
    /// The number of addresses in a direct node, and of nids in an indirect one: `NIDS_PER_BLOCK`, `DEF_ADDRS_PER_BLOCK`.
    pub n: u32,
    /// The offset of the second indirect node.
    second: u32,
    /// The offset of the double indirect node.
    double: u32,
}

/// The offset of the first indirect node.
const FIRST: u32 = 3;

impl NodeTree {
    /// Returns the tree for blocks of this size.
    pub fn of(size: BlockSize) -> NodeTree {
        let n = size.bytes().saturating_sub(FOOTER) / 4;
        let second = n.saturating_add(FIRST).saturating_add(1);
        let double = second.saturating_add(n).saturating_add(1);
        NodeTree { n, second, double }
    }

    /// Returns the offsets of the five nodes to which an inode points.
    pub fn below_inode(self) -> [u32; 5] {
        [1, 2, FIRST, self.second, self.double]
    }

    /// Returns the contents of the node at an offset in the tree; None beyond the last one.
    pub fn level(self, ofs: u32) -> Option<Level> {
        Some(match ofs {
            0 => Level::Inode,
            XATTR_NODE_OFFSET => Level::Xattr,
            _ if ofs == self.double => Level::Double,
            _ => match self.place(ofs)? {
                Place { slot: None, .. } => Level::Indirect,
                _ => Level::Direct,
            },
        })
    }

    /// Returns the offset of the parent of the node at `ofs`; None for the inode.
    pub fn parent(self, ofs: u32) -> Option<u32> {
        match ofs {
            0 => None,
            XATTR_NODE_OFFSET => Some(0),
            _ if ofs == self.double => Some(0),
            _ => self.place(ofs).map(|place| place.parent),
        }
    }

    /// Returns the offset of child number `slot` of an indirect or double indirect node.
    pub fn child(self, ofs: u32, slot: u32) -> Option<u32> {
        let step = if ofs == self.double {
            self.n.checked_add(1)?
        } else {
            1
        };
        slot.checked_mul(step)?.checked_add(ofs)?.checked_add(1)
    }

    /// `f2fs_start_bidx_of_node`: returns the position in the file, in blocks, of a direct node's first address, given the number of
    /// addresses in the inode and in each direct node. None if the node holds no addresses.
    pub fn start_bidx(self, ofs: u32, in_inode: u32, in_node: u32) -> Option<u64> {
        if ofs == 0 {
            return Some(0);
        }
        let before = self.place(ofs).filter(|place| place.slot.is_some())?.before;
        u64::from(before)
            .checked_mul(in_node.into())?
            .checked_add(in_inode.into())
    }

    fn place(self, ofs: u32) -> Option<Place> {
        let NodeTree { n, second, double } = self;
        let place = |parent, before, slot| {
            Some(Place {
                parent,
                before,
                slot,
            })
        };
        // Covers an indirect node and its children, which have the offsets behind it.
        let below = |indirect: u32, before: u32, of: u32| {
            let nth = ofs.checked_sub(indirect)?;
            match nth.checked_sub(1) {
                None => place(of, before, None),
                Some(slot) => place(indirect, before.checked_add(slot)?, Some(slot)),
            }
        };
        if ofs < FIRST {
            place(0, ofs.checked_sub(1)?, Some(0))
        } else if ofs < second {
            below(FIRST, 2, 0)
        } else if ofs < double {
            below(second, n.checked_add(2)?, 0)
        } else {
            let first = double.checked_add(1)?;
            let step = n.checked_add(1)?;
            let which = ofs.checked_sub(first)?.checked_div(step)?;
            let which = Some(which).filter(|&which| which < n)?;
            let indirect = which.checked_mul(step)?.checked_add(first)?;
            let before = which.checked_add(2)?.checked_mul(n)?.checked_add(2)?;
            below(indirect, before, double)
        }
    }
}

/// The position of an indirect or direct node in the tree.
struct Place {
    /// Offset of the parent node.
    parent: u32,
    /// Number of the file's direct nodes ahead of this one, or ahead of its first child.
    before: u32,
    /// For a direct node: its index in the parent.
    slot: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's arithmetic, following the code and the comment of `f2fs_start_bidx_of_node`.
    fn kernel_bidx(ofs: i64, n: i64, in_inode: i64) -> i64 {
        let indirect_blks = 2 * n + 4;
        let bidx = match ofs {
            1 | 2 => ofs - 1,
            _ if ofs <= indirect_blks => ofs - 2 - (ofs - 4) / (n + 1),
            _ => ofs - 5 - (ofs - indirect_blks - 3) / (n + 1),
        };
        bidx * n + in_inode
    }

    /// Walks down the tree and counts direct nodes on the way.
    fn walk(size: BlockSize, n: u32, in_inode: u32) {
        let tree = NodeTree::of(size);
        assert_eq!(tree.n, n);
        let mut ofs = 0;
        let mut direct = 0u64;
        let mut expect = |level, up: u32, slot: Option<u32>| {
            ofs += 1;
            assert_eq!(
                (tree.level(ofs), tree.parent(ofs)),
                (Some(level), Some(up)),
                "{ofs}"
            );
            if let Some(slot) = slot {
                assert_eq!(tree.child(up, slot), Some(ofs));
            }
            let bidx = tree.start_bidx(ofs, in_inode, n);
            if level == Level::Direct {
                let expected = u64::from(in_inode) + u64::from(n) * direct;
                assert_eq!(bidx, Some(expected), "{ofs}");
                let kernels = kernel_bidx(ofs.into(), n.into(), in_inode.into());
                assert_eq!(kernels as u64, expected, "{ofs}");
                direct += 1;
            } else {
                assert_eq!(bidx, None);
            }
            ofs
        };
        let mut top = vec![];
        top.push(expect(Level::Direct, 0, None));
        top.push(expect(Level::Direct, 0, None));
        for _ in 0..2 {
            let indirect = expect(Level::Indirect, 0, None);
            top.push(indirect);
            for slot in 0..n {
                expect(Level::Direct, indirect, Some(slot));
            }
        }
        let double = expect(Level::Double, 0, None);
        top.push(double);
        for slot in 0..n {
            let indirect = expect(Level::Indirect, double, Some(slot));
            for slot in 0..n {
                expect(Level::Direct, indirect, Some(slot));
            }
        }
        assert_eq!(top, tree.below_inode());
        for behind in [ofs + 1, ofs + 1000, XATTR_NODE_OFFSET - 1, u32::MAX] {
            assert_eq!((tree.level(behind), tree.parent(behind)), (None, None));
        }
        assert_eq!(tree.level(XATTR_NODE_OFFSET), Some(Level::Xattr));
        assert_eq!(tree.start_bidx(0, in_inode, n), Some(0));
    }

    #[test]
    fn every_node_has_its_place() {
        walk(BlockSize::ALL[0], 1018, 923);
        walk(BlockSize::ALL[2], 4090, 3995);
    }
}

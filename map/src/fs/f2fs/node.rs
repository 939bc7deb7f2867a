// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct f2fs_node`: the footer, which names a node's owner, and the tree of nodes below an inode.
//!
//! ```text
//! inode (0) ─┬─ direct (1), direct (2)
//!            ├─ indirect (3) ── direct (4 …)               N = 1018 each
//!            ├─ indirect (4 + N) ── direct (5 + N …)
//!            ├─ double indirect (5 + 2N) ── indirect (6 + 2N + x(N + 1)) ── direct (+ 1 …)
//!            └─ xattr (XATTR_NODE_OFFSET)
//! ```

use super::block::{u32_of, u64_of};
use super::numbers::{BlkAddr, Ino, Nid};

/// Number of addresses in a direct node, and of nids in an indirect one: `NIDS_PER_BLOCK`.
pub const N: u32 = 1018;
const FOOTER: usize = 4072;
const DOUBLE: u32 = 5 + 2 * N;
const BELOW_DOUBLE: u32 = DOUBLE + 1;
/// The offset of the node with extended attributes.
pub const XATTR_NODE_OFFSET: u32 = u32::MAX >> 3;
/// The offsets of the five nodes to which an inode points.
pub const INODE_CHILDREN: [u32; 5] = [1, 2, 3, 4 + N, DOUBLE];

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
        let flag = u32_of(block, FOOTER.saturating_add(8));
        Footer {
            nid: Nid(u32_of(block, FOOTER)),
            ino: Ino(u32_of(block, FOOTER.saturating_add(4))),
            ofs: flag >> 3,
            is_fsync: flag & 2 != 0,
            is_dent: flag & 4 != 0,
            cp_ver: u64_of(block, FOOTER.saturating_add(12)),
            next_blkaddr: BlkAddr(u32_of(block, FOOTER.saturating_add(20))),
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

impl Level {
    /// Returns the contents of the node at an offset in the tree; None beyond the last one.
    pub fn of(ofs: u32) -> Option<Level> {
        Some(match ofs {
            0 => Level::Inode,
            XATTR_NODE_OFFSET => Level::Xattr,
            DOUBLE => Level::Double,
            _ => match Place::of(ofs)? {
                Place { slot: None, .. } => Level::Indirect,
                _ => Level::Direct,
            },
        })
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

impl Place {
    fn of(ofs: u32) -> Option<Place> {
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
        match ofs {
            1 | 2 => place(0, ofs.checked_sub(1)?, Some(0)),
            3..=1021 => below(3, 2, 0),
            1022..=2040 => below(4 + N, 2 + N, 0),
            BELOW_DOUBLE.. => {
                let which = ofs.checked_sub(BELOW_DOUBLE)?.checked_div(N + 1)?;
                let which = Some(which).filter(|&which| which < N)?;
                let indirect = which.checked_mul(N + 1)?.checked_add(BELOW_DOUBLE)?;
                below(
                    indirect,
                    which.checked_mul(N)?.checked_add(2 + 2 * N)?,
                    DOUBLE,
                )
            }
            _ => None,
        }
    }
}

/// Returns the offset of the parent of the node at `ofs`; None for the inode.
pub fn parent(ofs: u32) -> Option<u32> {
    match ofs {
        0 => None,
        DOUBLE | XATTR_NODE_OFFSET => Some(0),
        _ => Place::of(ofs).map(|place| place.parent),
    }
}

/// Returns the offset of child number `slot` of an indirect or double indirect node.
pub fn child(ofs: u32, slot: u32) -> Option<u32> {
    let step = if ofs == DOUBLE { N + 1 } else { 1 };
    slot.checked_mul(step)?.checked_add(ofs)?.checked_add(1)
}

/// `f2fs_start_bidx_of_node`: returns the position in the file, in blocks, of a direct node's first address, given the
/// number of addresses in the inode and in each direct node. None if the node holds no addresses.
pub fn start_bidx(ofs: u32, in_inode: u32, in_node: u32) -> Option<u64> {
    if ofs == 0 {
        return Some(0);
    }
    let before = Place::of(ofs).filter(|place| place.slot.is_some())?.before;
    u64::from(before)
        .checked_mul(in_node.into())?
        .checked_add(in_inode.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's arithmetic, following the code and the comment of `f2fs_start_bidx_of_node`.
    fn kernel_bidx(ofs: i64) -> i64 {
        let (n, indirect_blks) = (i64::from(N), 2 * i64::from(N) + 4);
        let bidx = match ofs {
            1 | 2 => ofs - 1,
            _ if ofs <= indirect_blks => ofs - 2 - (ofs - 4) / (n + 1),
            _ => ofs - 5 - (ofs - indirect_blks - 3) / (n + 1),
        };
        bidx * 1018 + 923
    }

    #[test]
    fn every_node_has_its_place() {
        // Walks down the tree and counts direct nodes on the way.
        let mut ofs = 0;
        let mut direct = 0u64;
        let mut expect = |level, up: u32, slot: Option<u32>| {
            ofs += 1;
            assert_eq!(
                (Level::of(ofs), parent(ofs)),
                (Some(level), Some(up)),
                "{ofs}"
            );
            if let Some(slot) = slot {
                assert_eq!(child(up, slot), Some(ofs));
            }
            if level == Level::Direct {
                assert_eq!(
                    start_bidx(ofs, 923, 1018),
                    Some(923 + 1018 * direct),
                    "{ofs}"
                );
                assert_eq!(kernel_bidx(ofs.into()) as u64, 923 + 1018 * direct, "{ofs}");
                direct += 1;
            } else {
                assert_eq!(start_bidx(ofs, 923, 1018), None);
            }
            ofs
        };
        let mut top = vec![];
        top.push(expect(Level::Direct, 0, None));
        top.push(expect(Level::Direct, 0, None));
        for _ in 0..2 {
            let indirect = expect(Level::Indirect, 0, None);
            top.push(indirect);
            for slot in 0..N {
                expect(Level::Direct, indirect, Some(slot));
            }
        }
        let double = expect(Level::Double, 0, None);
        top.push(double);
        for slot in 0..N {
            let indirect = expect(Level::Indirect, double, Some(slot));
            for slot in 0..N {
                expect(Level::Direct, indirect, Some(slot));
            }
        }
        assert_eq!(top, INODE_CHILDREN);
        for behind in [ofs + 1, ofs + 1000, XATTR_NODE_OFFSET - 1, u32::MAX] {
            assert_eq!((Level::of(behind), parent(behind)), (None, None));
        }
        assert_eq!(Level::of(XATTR_NODE_OFFSET), Some(Level::Xattr));
        assert_eq!(start_bidx(0, 923, 1018), Some(0));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct f2fs_inode`: the file's attributes, and its first addresses or its contents.
//!
//! ```text
//! i_addr: │ extra attributes │ addresses, or (after one word) inline contents │ inline xattr │
//! ```

use super::block::{self, index, part, u16_of, u32_of, u32s};
use super::crc;
use super::node::{FOOTER, NodeTree};
use super::numbers::{BlkAddr, Ino, Nid};
use super::superblock::{SuperBlock, feature};

/// File types in `i_mode`.
pub mod mode {
    pub const S_IFMT: u16 = 0xf000;
    pub const S_IFDIR: u16 = 0x4000;
    pub const S_IFREG: u16 = 0x8000;
    pub const S_IFLNK: u16 = 0xa000;
}

/// Bits of `i_inline`.
mod inline {
    pub const XATTR: u8 = 0x1;
    pub const DATA: u8 = 0x2;
    pub const DENTRY: u8 = 0x4;
    pub const EXTRA_ATTR: u8 = 0x20;
}

const FADVISE_ENCRYPT_BIT: u8 = 0x4;
const F2FS_COMPR_FL: u32 = 0x4;
const F2FS_NAME_LEN: usize = 255;
/// Byte offsets in the block; `i_nid` lies between `i_addr` and the footer.
const I_ADDR: usize = 360;
const I_INODE_CHECKSUM: usize = 368;
const I_NID_LEN: usize = 20;
/// The words that inline xattr takes if the inode does not say.
const DEFAULT_INLINE_XATTR_ADDRS: usize = 50;
/// Length in bytes of the extra attributes up to and including the checksum, and the compression's fields.
const WITH_CHECKSUM: usize = 12;
const WITH_COMPRESSION: usize = 36;

/// The fields of an inode that are kept after its block is released.
#[derive(Clone, Copy, Debug)]
pub struct InodeRecord {
    pub ino: Ino,
    pub i_generation: u32,
    pub i_mode: u16,
    /// `ADDRS_PER_INODE`: the number of addresses in the inode.
    pub addrs: u16,
    /// log2 of the number of blocks in a cluster, if the file is compressed.
    pub i_log_cluster_size: Option<u8>,
    pub is_encrypted: bool,
}

/// Returns the offset of `i_nid` in an inode's block.
fn i_nid_at(block: &[u8]) -> usize {
    let behind = index(FOOTER).saturating_add(I_NID_LEN);
    block.len().saturating_sub(behind)
}

/// `DEF_ADDRS_PER_INODE`: returns the number of words in `i_addr`.
fn i_addr_words(block: &[u8]) -> usize {
    i_nid_at(block).saturating_sub(I_ADDR) / 4
}

impl InodeRecord {
    /// Returns true if the inode has this file type.
    pub fn is(&self, kind: u16) -> bool {
        self.i_mode & mode::S_IFMT == kind
    }
}

/// An inode's block and the record made from it.
pub struct Inode<'a> {
    block: &'a [u8],
    /// The number of words of `i_addr` ahead of the addresses, and behind them.
    extra: usize,
    xattr: usize,
    pub record: InodeRecord,
}

impl<'a> Inode<'a> {
    /// Parses an inode's block. The error says what is wrong with its fields.
    pub fn parse(sb: &SuperBlock, ino: Ino, block: &'a [u8]) -> Result<Inode<'a>, String> {
        let byte = |offset| block.get(offset).copied().unwrap_or(0);
        let i_inline = byte(3);
        let extra_isize = match i_inline & inline::EXTRA_ATTR {
            0 => 0,
            _ => usize::from(u16_of(block, I_ADDR)),
        };
        let xattr = if sb.has(feature::FLEXIBLE_INLINE_XATTR) {
            usize::from(u16_of(block, I_ADDR.saturating_add(2)))
        } else if i_inline & (inline::XATTR | inline::DENTRY) != 0 {
            DEFAULT_INLINE_XATTR_ADDRS
        } else {
            0
        };
        let extra = extra_isize / 4;
        let words = extra.checked_add(xattr);
        let addrs = words.and_then(|words| i_addr_words(block).checked_sub(words));
        let addrs = addrs.filter(|&addrs| addrs > 1 && extra_isize % 4 == 0);
        let Some(addrs) = addrs.and_then(|addrs| u16::try_from(addrs).ok()) else {
            return Err(format!(
                "{extra_isize} bytes of extra attributes, {xattr} words of xattr"
            ));
        };
        let has_checksum = sb.has(feature::INODE_CHKSUM) && extra_isize >= WITH_CHECKSUM;
        if has_checksum && checksum(sb, ino, block) != u32_of(block, I_INODE_CHECKSUM) {
            return Err("wrong checksum".into());
        }
        let i_mode = u16_of(block, 0);
        let is_compressed = i_mode & mode::S_IFMT == mode::S_IFREG
            && sb.has(feature::COMPRESSION)
            && extra_isize >= WITH_COMPRESSION
            && u32_of(block, 80) & F2FS_COMPR_FL != 0;
        let i_log_cluster_size = is_compressed.then(|| byte(393));
        if let Some(log) = i_log_cluster_size.filter(|log| !(2..=8).contains(log)) {
            return Err(format!("compressed clusters of 2^{log} blocks"));
        }
        let record = InodeRecord {
            ino,
            i_generation: u32_of(block, 68),
            i_mode,
            addrs: whole_clusters(addrs, i_log_cluster_size),
            i_log_cluster_size,
            is_encrypted: byte(2) & FADVISE_ENCRYPT_BIT != 0,
        };
        let inode = Inode {
            block,
            extra,
            xattr,
            record,
        };
        Ok(inode)
    }

    fn has_inline(&self, bit: u8) -> bool {
        self.block
            .get(3)
            .is_some_and(|i_inline| i_inline & bit != 0)
    }

    /// Returns true if the inode holds the file's contents (not directory entries).
    pub fn has_inline_data(&self) -> bool {
        self.has_inline(inline::DATA)
    }

    /// Returns the addresses of the first blocks of the file's contents; none for device nodes, which store their
    /// number there.
    pub fn addrs(&self) -> impl Iterator<Item = BlkAddr> + 'a {
        let has = [mode::S_IFDIR, mode::S_IFREG, mode::S_IFLNK].map(|kind| self.record.is(kind));
        let inline = self.has_inline(inline::DATA | inline::DENTRY);
        let len = if has.contains(&true) && !inline {
            self.record.addrs
        } else {
            0
        };
        let from = self.extra.saturating_mul(4).saturating_add(I_ADDR);
        block::addrs(part(self.block, from, usize::from(len).saturating_mul(4)))
    }

    /// Returns the area with the directory entries inside the inode, if it has them.
    pub fn inline_dentry(&self) -> Option<&'a [u8]> {
        let inline = self.record.is(mode::S_IFDIR) && self.has_inline(inline::DENTRY);
        // The first word is reserved.
        let before = self.extra.saturating_add(1);
        let words = i_addr_words(self.block)
            .checked_sub(before)?
            .checked_sub(self.xattr)?;
        let from = before.saturating_mul(4).saturating_add(I_ADDR);
        inline.then(|| part(self.block, from, words.saturating_mul(4)))
    }

    /// Returns the nodes to which the inode points, each with its offset in the tree of nodes.
    pub fn children(&self, tree: NodeTree) -> impl Iterator<Item = (u32, Nid)> + 'a {
        let nids = u32s(part(self.block, i_nid_at(self.block), I_NID_LEN)).map(Nid);
        tree.below_inode()
            .into_iter()
            .zip(nids)
            .filter(|(_, nid)| *nid != Nid(0))
    }

    /// Returns the nid of the node with extended attributes; 0 if there is none.
    pub fn i_xattr_nid(&self) -> Nid {
        Nid(u32_of(self.block, 76))
    }

    /// Returns the directory and the name with which the inode was created.
    pub fn born(&self) -> (Ino, &'a [u8]) {
        let len = index(u32_of(self.block, 88)).min(F2FS_NAME_LEN);
        (Ino(u32_of(self.block, 84)), part(self.block, 92, len))
    }
}

/// Rounds `addrs` addresses down to whole clusters.
pub fn whole_clusters(addrs: u16, i_log_cluster_size: Option<u8>) -> u16 {
    let log = u32::from(i_log_cluster_size.unwrap_or(0));
    addrs.wrapping_shr(log).wrapping_shl(log)
}

/// `f2fs_inode_chksum`: covers the inode number, the generation, and the block with the checksum field as zeros.
fn checksum(sb: &SuperBlock, ino: Ino, block: &[u8]) -> u32 {
    let behind = I_INODE_CHECKSUM.saturating_add(4);
    let parts = [
        &ino.0.to_le_bytes(),
        part(block, 68, 4),
        part(block, 0, I_INODE_CHECKSUM),
        &[0; 4],
        block.get(behind..).unwrap_or_default(),
    ];
    parts.into_iter().fold(sb.chksum_seed, crc::crc32)
}

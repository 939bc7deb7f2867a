// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes an image in memory in ways that f2fs-tools cannot: nodes, journals, checkpoints.

use std::path::Path;

use mostrace_map::Map;

use super::images::{BLOCK, Sparse, fill_little, filled};
use super::oracles::Dump;

pub const FSYNC: u32 = 2;
pub const DENT: u32 = 4;
pub const COLD: u32 = 1;

pub fn get32(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(block[at..at + 4].try_into().expect("four bytes"))
}

pub fn put32(block: &mut [u8], at: usize, value: u32) {
    block[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Computes the kernel's `f2fs_crc32` bit by bit.
pub fn crc32(seed: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(seed, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    })
}

const MAGIC: u32 = 0xf2f5_2010;

/// Sets the checksum of a checkpoint block, if its offset is possible.
pub fn mend_checkpoint(block: &mut [u8]) {
    let at = get32(block, 164) as usize;
    if (192..=4092).contains(&at) {
        let sum = crc32(crc32(MAGIC, &block[..at]), &block[at + 4..]);
        put32(block, at, sum);
    }
}

/// Sets the checksum of an inode's block; `uuid` is the superblock's.
pub fn mend_inode(block: &mut [u8], uuid: &[u8]) {
    put32(block, 368, 0);
    let ino = block[4076..4080].to_vec();
    let generation = block[68..72].to_vec();
    let seed = crc32(crc32(crc32(u32::MAX, uuid), &ino), &generation);
    put32(block, 368, crc32(seed, block));
}

/// A node to be written after the checkpoint.
#[derive(Clone)]
pub struct New {
    pub nid: u32,
    pub ino: u32,
    pub ofs: u32,
    pub marks: u32,
    pub block: Vec<u8>,
}

/// An image, and what dump.f2fs reported of it before any changes.
pub struct Editor {
    pub image: Sparse,
    pub dump: Dump,
}

impl Editor {
    pub fn of(image: &Path) -> Editor {
        Editor {
            image: Sparse::load(image),
            dump: Dump::of(image),
        }
    }

    /// Returns the first block of the valid checkpoint pack.
    pub fn pack(&self) -> u64 {
        let start = u64::from(get32(&self.image.block(0), 1024 + 76));
        let version = |pack| {
            let block = self.image.block(pack);
            u64::from_le_bytes(block[..8].try_into().expect("version"))
        };
        let second = start + 512;
        if version(second) > version(start) {
            second
        } else {
            start
        }
    }

    /// Changes both blocks of a checkpoint and corrects their checksums.
    pub fn change_checkpoint(&mut self, change: impl Fn(&mut [u8])) {
        let pack = self.pack();
        let last = pack + u64::from(get32(&self.image.block(pack), 136)) - 1;
        for block in [pack, last] {
            self.image.change(block, |block| {
                change(block);
                mend_checkpoint(block);
            });
        }
    }

    pub fn node(&self, nid: u64) -> Vec<u8> {
        self.image.block(self.dump.nat[&nid].blkaddr)
    }

    /// Returns free blocks of the main area, far from the logs.
    pub fn free_blocks(&self, count: usize) -> Vec<u32> {
        let segments = self.dump.sit.iter().enumerate().rev();
        let free = segments.filter(|(_, (vblocks, _))| *vblocks == 0);
        let blocks = free.flat_map(|(segno, _)| (0..512).map(move |nth| segno as u64 * 512 + nth));
        let blocks = blocks.map(|n| (self.dump.main_blkaddr + n) as u32);
        blocks.take(count).collect()
    }

    /// Returns the next free block in the log of warm nodes.
    pub fn chain_start(&self) -> u32 {
        let cp = self.image.block(self.pack());
        let blkoff = u32::from(u16::from_le_bytes([cp[70], cp[71]]));
        self.dump.main_blkaddr as u32 + get32(&cp, 40) * 512 + blkoff
    }

    /// Returns the `cp_ver` of nodes written after the checkpoint.
    pub fn cp_ver(&self) -> u64 {
        let cp = self.image.block(self.pack());
        let version = u64::from_le_bytes(cp[..8].try_into().expect("version"));
        let flags = get32(&cp, 132);
        if flags & 0x40 != 0 {
            version | u64::from(get32(&cp, get32(&cp, 164) as usize)) << 32
        } else {
            version
        }
    }

    /// Writes a chain of nodes after the checkpoint, every second one in another segment. Returns their blocks.
    pub fn write_chain(&mut self, nodes: &[New]) -> Vec<u32> {
        let other = self.free_blocks(3000)[2048];
        let start = self.chain_start();
        let place = |nth: u32| {
            if nth.is_multiple_of(2) {
                start + nth / 2
            } else {
                other + nth / 2
            }
        };
        let cp_ver = self.cp_ver();
        let mut places = vec![];
        for (nth, node) in (0..).zip(nodes) {
            let mut block = node.block.clone();
            block.resize(BLOCK, 0);
            put32(&mut block, 4072, node.nid);
            put32(&mut block, 4076, node.ino);
            put32(&mut block, 4080, node.ofs << 3 | node.marks | COLD);
            block[4084..4092].copy_from_slice(&cp_ver.to_le_bytes());
            put32(&mut block, 4092, place(nth + 1));
            self.image
                .change(place(nth).into(), |to| to.copy_from_slice(&block));
            places.push(place(nth));
        }
        places
    }

    /// Sets an entry of the NAT in both copies; the journal must not have one.
    pub fn set_nat(&mut self, nid: u32, ino: u32, blkaddr: u32) {
        let nat = get32(&self.image.block(0), 1024 + 84);
        let block = nid / 455;
        let first = u64::from(nat + block / 512 * 1024 + block % 512);
        for copy in [first, first + 512] {
            self.image.change(copy, |block| {
                let at = nid as usize % 455 * 9;
                put32(block, at + 1, ino);
                put32(block, at + 5, blkaddr);
            });
        }
    }
}

/// Makes an image with a few files, and its map before any changes.
pub fn editor(options: &str) -> (Editor, Map) {
    let dir = tempfile::tempdir().expect("scratch folder");
    let editor = Editor::of(&filled(dir.path(), 100, options, fill_little));
    let before = editor.image.build().expect("map");
    assert_eq!(before.notices(), [""; 0]);
    (editor, before)
}

/// Builds a regular file's inode with these first addresses.
pub fn regular_inode(pino: u32, name: &[u8], addrs: &[u32]) -> Vec<u8> {
    let mut block = vec![0; BLOCK];
    block[..2].copy_from_slice(&0x81a4u16.to_le_bytes());
    put32(&mut block, 12, 1);
    put32(&mut block, 68, 0x5eed);
    put32(&mut block, 84, pino);
    put32(&mut block, 88, name.len() as u32);
    block[92..92 + name.len()].copy_from_slice(name);
    for (nth, addr) in addrs.iter().enumerate() {
        put32(&mut block, 360 + nth * 4, *addr);
    }
    block
}

/// Builds a direct or indirect node.
pub fn node_of(words: &[(usize, u32)]) -> Vec<u8> {
    let mut block = vec![0; BLOCK];
    words
        .iter()
        .for_each(|(nth, word)| put32(&mut block, nth * 4, *word));
    block
}

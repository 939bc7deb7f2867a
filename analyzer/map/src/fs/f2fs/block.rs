// SPDX-License-Identifier: MIT OR Apache-2.0
//! Blocks, their addresses, and the fields inside them.

use std::fmt::Display;

use super::numbers::BlkAddr;
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::le;

/// Number of blocks in a segment.
pub const BLOCKS_PER_SEG: u32 = 512;
/// log2 of `BLOCKS_PER_SEG`.
pub const SEG_BITS: u32 = 9;

/// The size of a block: `F2FS_BLKSIZE`, the size of a page of the kernels that can mount the filesystem. How many entries a block
/// of each structure has follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSize {
    log: u32,
}

impl BlockSize {
    /// The sizes that kernels have, from 4 to 64 KiB.
    pub const ALL: [BlockSize; 5] = [
        BlockSize { log: 12 },
        BlockSize { log: 13 },
        BlockSize { log: 14 },
        BlockSize { log: 15 },
        BlockSize { log: 16 },
    ];

    /// Returns the size of 2^`log` bytes; None if no kernel has it.
    pub fn of_log(log: u32) -> Option<BlockSize> {
        Self::ALL.into_iter().find(|size| size.log == log)
    }

    /// Returns the size in bytes.
    pub fn bytes(self) -> u32 {
        1u32.wrapping_shl(self.log)
    }

    /// Returns the size as a length in memory.
    pub fn len(self) -> usize {
        index(self.bytes())
    }

    /// Returns the length in bytes of this number of blocks.
    pub fn bytes_of(self, blocks: u64) -> u64 {
        blocks.saturating_mul(self.bytes().into())
    }
}

/// An image as a row of blocks.
#[derive(Clone, Copy)]
pub struct Blocks<'a> {
    pub image: &'a Image,
    pub size: BlockSize,
}

impl Blocks<'_> {
    /// Reads `blocks` blocks starting at `blkaddr`; `at` names the structure in errors.
    pub fn read(&self, blkaddr: BlkAddr, blocks: u32, at: impl Display) -> Result<Vec<u8>> {
        let bytes = index(blocks).saturating_mul(self.size.len());
        self.image.read(self.byte_of(blkaddr), bytes, at)
    }

    /// Reads as [`Blocks::read`] does, into a buffer whose length says how many bytes.
    pub fn read_into(&self, buf: &mut [u8], blkaddr: BlkAddr, at: impl Display) -> Result<()> {
        self.image.read_into(buf, self.byte_of(blkaddr), at)
    }

    /// Returns true if all of these blocks lie in a hole of the image and so are zeros.
    pub fn is_hole(&self, blkaddr: BlkAddr, blocks: u32) -> bool {
        let end = self.byte_of(blkaddr.plus(blocks));
        self.image.next_data(self.byte_of(blkaddr)) >= end
    }

    /// Returns a buffer for one block.
    pub fn buffer(&self) -> Vec<u8> {
        vec![0; self.size.len()]
    }

    /// Returns the `nth` block (from 0) in a buffer of blocks; empty beyond its end.
    pub fn nth<'b>(&self, buf: &'b [u8], nth: u32) -> &'b [u8] {
        let from = index(nth).saturating_mul(self.size.len());
        part(buf, from, self.size.len())
    }

    fn byte_of(&self, blkaddr: BlkAddr) -> u64 {
        self.size.bytes_of(blkaddr.into())
    }
}

/// Returns `len` bytes of `buf` starting at `from`; empty if they are not all there.
pub fn part(buf: &[u8], from: usize, len: usize) -> &[u8] {
    let end = from.saturating_add(len);
    buf.get(from..end).unwrap_or_default()
}

/// Converts a number to an index into memory.
pub fn index(n: u32) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// Returns the little-endian `u16` at `offset`, or 0 beyond the end of the block.
pub fn u16_of(block: &[u8], offset: usize) -> u16 {
    le::u16_at(block, offset).unwrap_or(0)
}

/// Returns the little-endian `u32` at `offset`, or 0 beyond the end of the block.
pub fn u32_of(block: &[u8], offset: usize) -> u32 {
    le::u32_at(block, offset).unwrap_or(0)
}

/// Returns the little-endian `u64` at `offset`, or 0 beyond the end of the block.
pub fn u64_of(block: &[u8], offset: usize) -> u64 {
    le::u64_at(block, offset).unwrap_or(0)
}

/// Returns all addresses in an on-disk array.
pub fn addrs(bytes: &[u8]) -> impl Iterator<Item = BlkAddr> + '_ {
    u32s(bytes).map(BlkAddr)
}

/// Returns all `u32` in an on-disk array.
pub fn u32s(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let (words, _) = bytes.as_chunks::<4>();
    words.iter().map(|word| u32::from_le_bytes(*word))
}

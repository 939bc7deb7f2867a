// SPDX-License-Identifier: MIT OR Apache-2.0
//! Blocks, their addresses, and the fields inside them.

use std::fmt::Display;

use super::numbers::BlkAddr;
use crate::fs::error::Result;
use crate::fs::image::Image;
use crate::fs::le;

/// Size of a block in bytes: `F2FS_BLKSIZE` of kernels with pages of 4 KiB.
pub const BLOCK_SIZE: usize = 4096;
/// log2 of `BLOCK_SIZE`.
pub const BLOCK_BITS: u32 = 12;
/// Number of blocks in a segment.
pub const BLOCKS_PER_SEG: u32 = 512;
/// log2 of `BLOCKS_PER_SEG`.
pub const SEG_BITS: u32 = 9;

/// Reads `blocks` blocks starting at `blkaddr`; `at` names the structure in errors.
pub fn read(image: &Image, blkaddr: BlkAddr, blocks: u32, at: impl Display) -> Result<Vec<u8>> {
    let bytes = index(blocks).saturating_mul(BLOCK_SIZE);
    image.read(byte_of(blkaddr), bytes, at)
}

/// Returns true if all of these blocks lie in a hole of the image and so are zeros.
pub fn is_hole(image: &Image, blkaddr: BlkAddr, blocks: u32) -> bool {
    image.next_data(byte_of(blkaddr)) >= byte_of(blkaddr.plus(blocks))
}

/// Reads as [`read`] does, into a buffer whose length says how many bytes.
pub fn read_into(image: &Image, buf: &mut [u8], blkaddr: BlkAddr, at: impl Display) -> Result<()> {
    image.read_into(buf, byte_of(blkaddr), at)
}

fn byte_of(blkaddr: BlkAddr) -> u64 {
    u64::from(blkaddr) << BLOCK_BITS
}

/// Returns the `nth` block (from 0) in a buffer of blocks; empty beyond its end.
pub fn nth(buf: &[u8], nth: u32) -> &[u8] {
    let from = index(nth).saturating_mul(BLOCK_SIZE);
    part(buf, from, BLOCK_SIZE)
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

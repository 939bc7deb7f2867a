// SPDX-License-Identifier: MIT OR Apache-2.0
//! Little-endian fields of sparse on-disk structures, by offset. The result is None if the buffer is too short.

/// Returns the `u16` at `offset`.
pub fn u16_at(buf: &[u8], offset: usize) -> Option<u16> {
    buf.get(offset..)?
        .first_chunk()
        .map(|bytes| u16::from_le_bytes(*bytes))
}

/// Returns the `u32` at `offset`.
pub fn u32_at(buf: &[u8], offset: usize) -> Option<u32> {
    buf.get(offset..)?
        .first_chunk()
        .map(|bytes| u32::from_le_bytes(*bytes))
}

/// Returns the `u64` at `offset`.
pub fn u64_at(buf: &[u8], offset: usize) -> Option<u64> {
    buf.get(offset..)?
        .first_chunk()
        .map(|bytes| u64::from_le_bytes(*bytes))
}

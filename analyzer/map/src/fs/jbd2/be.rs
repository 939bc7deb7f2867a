// SPDX-License-Identifier: MIT OR Apache-2.0
//! Big-endian fields, by offset. The result is None if the buffer is too short.

/// Returns the `u16` at `offset`.
pub fn u16_at(buf: &[u8], offset: usize) -> Option<u16> {
    let bytes = buf.get(offset..)?.first_chunk()?;
    Some(u16::from_be_bytes(*bytes))
}

/// Returns the `u32` at `offset`.
pub fn u32_at(buf: &[u8], offset: usize) -> Option<u32> {
    let bytes = buf.get(offset..)?.first_chunk()?;
    Some(u32::from_be_bytes(*bytes))
}

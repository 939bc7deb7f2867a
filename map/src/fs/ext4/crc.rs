// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checksum of metadata_csum: the kernel's `crc32c_le`, neither its start nor its end inverted.

/// The checksum of what `crc` is the checksum of, followed by `bytes`.
pub fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
    // The common CRC-32C is the same with both ends inverted.
    !crc32c::crc32c_append(!crc, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_crc32c() {
        // CRC-32/ISCSI inverts both ends; its check value is published.
        assert_eq!(!crc32c(u32::MAX, b"123456789"), 0xe306_9283);
    }
}

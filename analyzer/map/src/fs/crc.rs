// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checksum of metadata_csum: the kernel's `crc32c_le`, which inverts neither the initial value nor the result.

/// Continues the checksum `crc` over `bytes`.
pub fn crc32c(crc: u32, bytes: &[u8]) -> u32 {
    // The common CRC-32C inverts both the initial value and the result.
    !crc32c::crc32c_append(!crc, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_crc32c() {
        // CRC-32/ISCSI inverts both; its check value is published.
        assert_eq!(!crc32c(u32::MAX, b"123456789"), 0xe306_9283);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `f2fs_crc32`: the kernel's `crc32_le`, which inverts neither the initial value nor the result.

use crc32fast::Hasher;

/// The initial value of the checksums in the superblock and the checkpoint: `F2FS_SUPER_MAGIC`.
pub const SEED: u32 = 0xf2f5_2010;

/// Continues the checksum `crc` over `bytes`.
pub fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    // The common CRC-32 inverts both the initial value and the result.
    let mut hasher = Hasher::new_with_initial(!crc);
    hasher.update(bytes);
    !hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Computes the checksum bit by bit, as `crc32_le_generic` in lib/crc32.c does.
    fn bitwise(crc: u32, bytes: &[u8]) -> u32 {
        bytes.iter().fold(crc, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
                crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 }
            })
        })
    }

    proptest! {
        #[test]
        fn it_is_crc32_le(seed: u32, bytes in prop::collection::vec(any::<u8>(), 0..300), at: usize) {
            let sum = bitwise(seed, &bytes);
            prop_assert_eq!(crc32(seed, &bytes), sum);
            let (head, tail) = bytes.split_at(at % (bytes.len() + 1));
            prop_assert_eq!(crc32(crc32(seed, head), tail), sum);
        }
    }
}

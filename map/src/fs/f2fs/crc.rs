// SPDX-License-Identifier: MIT OR Apache-2.0
//! `f2fs_crc32`: the kernel's `crc32_le`, neither its start nor its end inverted.

/// What the superblock's and the checkpoint's checksums start from: `F2FS_SUPER_MAGIC`.
pub const SEED: u32 = 0xf2f5_2010;

const POLYNOMIAL: u32 = 0xedb8_8320;

/// Eight bytes at a time: `TABLES[n][b]` is byte `b` with `n` zero bytes behind it.
static TABLES: [[u32; 256]; 8] = tables();

/// The checksum of what `crc` is the checksum of, followed by `bytes`.
pub fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    let (eights, rest) = bytes.as_chunks::<8>();
    let mut crc = crc;
    for eight in eights {
        let [a, b, c, d, e, f, g, h] = *eight;
        let [i, j, k, l] = (crc ^ u32::from_le_bytes([a, b, c, d])).to_le_bytes();
        let bytes = [h, g, f, e, l, k, j, i];
        crc = TABLES
            .iter()
            .zip(bytes)
            .fold(0, |crc, (table, byte)| crc ^ entry(table, byte));
    }
    let [table, ..] = &TABLES;
    rest.iter().fold(crc, |crc, byte| {
        let [low, ..] = crc.to_le_bytes();
        crc >> 8 ^ entry(table, low ^ byte)
    })
}

fn entry(table: &[u32; 256], byte: u8) -> u32 {
    table.get(usize::from(byte)).copied().unwrap_or(0)
}

#[allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::indexing_slicing,
    reason = "runs while compiling only"
)]
const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut n = 0;
    while n < 256 {
        let mut crc = n as u32;
        let mut table = 0;
        while table < 8 {
            let mut bit = 0;
            while bit < 8 {
                crc = crc >> 1 ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 };
                bit += 1;
            }
            tables[table][n] = crc;
            table += 1;
        }
        n += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_value_of_crc32() {
        // CRC-32/ISO-HDLC is the same with both ends inverted; its check value is published.
        assert_eq!(!crc32(u32::MAX, b"123456789"), 0xcbf4_3926);
        // The same in any pieces.
        let bytes: Vec<u8> = (0..100).collect();
        for cut in 0..bytes.len() {
            let (a, b) = bytes.split_at(cut);
            assert_eq!(crc32(crc32(SEED, a), b), crc32(SEED, &bytes), "cut {cut}");
        }
    }
}

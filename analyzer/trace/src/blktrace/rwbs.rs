// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `rwbs` string of an action, as `blkparse -f %d` prints it.

use mostrace_bundle::blk_io_trace::action::{
    BLK_TC_AHEAD, BLK_TC_DISCARD, BLK_TC_FLUSH, BLK_TC_FUA, BLK_TC_META, BLK_TC_SYNC, BLK_TC_WRITE,
};

/// `F` (flush), then one of `D` discard, `W` write, `R` read, `N` none of them, then `F` (FUA),
/// `A` readahead, `S` sync, `M` metadata.
///
/// The bytes matter: an event of 0 bytes that is no write is `N`, not `R`.
#[must_use]
pub fn rwbs(action: u64, bytes: u32) -> &'static str {
    let kind = match action {
        a if a & BLK_TC_DISCARD != 0 => 0,
        a if a & BLK_TC_WRITE != 0 => 1,
        _ if bytes != 0 => 2,
        _ => 3,
    };
    let mut index = kind;
    for (i, flag) in FLAGS.iter().enumerate() {
        if action & flag != 0 {
            index |= 4 << i;
        }
    }
    // Trailing NULs pad an entry; the table is ASCII, so neither fallback is ever taken.
    let entry = TABLE.get(index).map_or(&[][..], |e| e.as_slice());
    let len = entry.iter().position(|&b| b == 0).unwrap_or(entry.len());
    entry
        .get(..len)
        .and_then(|e| std::str::from_utf8(e).ok())
        .unwrap_or("")
}

const FLAGS: [u64; 5] = [
    BLK_TC_FLUSH,
    BLK_TC_FUA,
    BLK_TC_AHEAD,
    BLK_TC_SYNC,
    BLK_TC_META,
];

/// All 128 strings, indexed by kind and flags.
static TABLE: [[u8; 6]; 128] = table();

// At compile time a wrong index or an overflow is an error.
#[allow(clippy::arithmetic_side_effects, clippy::indexing_slicing)]
const fn table() -> [[u8; 6]; 128] {
    let mut table = [[0; 6]; 128];
    let mut index = 0;
    while index < 128 {
        let mut at = 0;
        if index & 4 != 0 {
            table[index][at] = b'F';
            at += 1;
        }
        table[index][at] = b"DWRN"[index & 3];
        at += 1;
        let mut flag = 0;
        while flag < 4 {
            if index & (8 << flag) != 0 {
                table[index][at] = b"FASM"[flag];
                at += 1;
            }
            flag += 1;
        }
        index += 1;
    }
    table
}

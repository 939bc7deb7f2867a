// SPDX-License-Identifier: MIT OR Apache-2.0
//! The operation of a block event, in its tracepoint's spelling (`blk_fill_rwbs`): `FWFS` is a write with a flush ahead and FUA.

use super::action::{
    BLK_TC_AHEAD, BLK_TC_DISCARD, BLK_TC_FLUSH, BLK_TC_FS, BLK_TC_FUA, BLK_TC_META, BLK_TC_PC,
    BLK_TC_READ, BLK_TC_SYNC, BLK_TC_WRITE,
};

/// Returns the categories that blktrace gives to a request. `sectors` distinguishes operations that have no letter from commands that do not come from a
/// filesystem.
#[must_use]
pub fn categories(rwbs: &[u8], sectors: u64) -> u64 {
    let (flush_ahead, rest) = match rwbs {
        [b'F', rest @ ..] if matches!(rest.first(), Some(b'A'..=b'Z')) && !is_flag(rest) => {
            (BLK_TC_FLUSH, rest)
        }
        _ => (0, rwbs),
    };
    let (op, flags) = rest.split_at(rest.len().min(1));
    let op = match op.first() {
        Some(b'W') => BLK_TC_WRITE | BLK_TC_FS,
        Some(b'D') => BLK_TC_WRITE | BLK_TC_DISCARD | BLK_TC_FS,
        Some(b'R') => BLK_TC_READ | BLK_TC_FS,
        Some(b'F') => BLK_TC_READ | BLK_TC_FLUSH | BLK_TC_FS,
        _ if sectors > 0 => BLK_TC_WRITE | BLK_TC_FS,
        _ => BLK_TC_READ | BLK_TC_PC,
    };
    let flag = |letter: &u8| match letter {
        b'F' => BLK_TC_FUA,
        b'A' => BLK_TC_AHEAD,
        b'S' => BLK_TC_SYNC,
        b'M' => BLK_TC_META,
        _ => 0,
    };
    flags
        .iter()
        .map(flag)
        .fold(flush_ahead | op, |all, bit| all | bit)
}

/// Returns those that it gives to a bio: only a request comes from a filesystem or is another command (blk_add_trace_rq,
/// blk_add_trace_bio in kernel/trace/blktrace.c).
#[must_use]
pub fn categories_of_bio(rwbs: &[u8], sectors: u64) -> u64 {
    categories(rwbs, sectors) & !(BLK_TC_FS | BLK_TC_PC)
}

/// Returns true if `rest`, which follows an F, begins with a flag. The F is then the operation itself, not a flush ahead of
/// another one.
fn is_flag(rest: &[u8]) -> bool {
    matches!(rest.first(), Some(b'A' | b'S' | b'M'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_the_kernels() {
        for (rwbs, sectors, categories_of) in [
            (&b"WS"[..], 8, BLK_TC_WRITE | BLK_TC_SYNC | BLK_TC_FS),
            (
                b"RAM",
                8,
                BLK_TC_READ | BLK_TC_AHEAD | BLK_TC_META | BLK_TC_FS,
            ),
            (
                b"FWFS",
                8,
                BLK_TC_FLUSH | BLK_TC_WRITE | BLK_TC_FUA | BLK_TC_SYNC | BLK_TC_FS,
            ),
            (
                b"WFSM",
                8,
                BLK_TC_WRITE | BLK_TC_FUA | BLK_TC_SYNC | BLK_TC_META | BLK_TC_FS,
            ),
            (b"FF", 0, BLK_TC_FLUSH | BLK_TC_READ | BLK_TC_FS),
            (
                b"FS",
                0,
                BLK_TC_FLUSH | BLK_TC_READ | BLK_TC_SYNC | BLK_TC_FS,
            ),
            (b"F", 0, BLK_TC_FLUSH | BLK_TC_READ | BLK_TC_FS),
            (
                b"DS",
                8,
                BLK_TC_WRITE | BLK_TC_DISCARD | BLK_TC_SYNC | BLK_TC_FS,
            ),
            (b"DE", 8, BLK_TC_WRITE | BLK_TC_DISCARD | BLK_TC_FS),
            (b"N", 8, BLK_TC_WRITE | BLK_TC_FS),
            (b"N", 0, BLK_TC_READ | BLK_TC_PC),
            (b"", 0, BLK_TC_READ | BLK_TC_PC),
        ] {
            assert_eq!(categories(rwbs, sectors), categories_of, "{rwbs:?}");
        }
    }
}

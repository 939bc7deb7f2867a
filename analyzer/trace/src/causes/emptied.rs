// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a truncation or a fallocate does to the contents of a file.

use mostrace_bundle::entry::{CallKind, NONE, RawCall, call_flags};

/// `FALLOC_FL_…` (uapi/linux/falloc.h): the one mode beside 0 that changes no contents, and the modes that move everything behind
/// the range.
const KEEP_SIZE: u32 = 0x01;
const COLLAPSE_RANGE: u32 = 0x08;
const INSERT_RANGE: u32 = 0x20;

/// The bytes of a file that a call changed or dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Emptied {
    /// It may have changed these: it zeroes the parts of blocks at the ends of its range.
    pub changed: Option<(u64, u64)>,
    /// It dropped everything from here on.
    pub dropped_from: Option<u64>,
    /// True if more may have changed, or at another time.
    pub is_vague: bool,
}

impl Emptied {
    /// Returns what a truncation or a fallocate did on a filesystem with blocks of `block` bytes.
    pub fn by(raw: &RawCall, block: u64) -> Emptied {
        match CallKind::of(raw.kind.get()) {
            CallKind::Truncate => Emptied::by_truncate(raw, block),
            CallKind::Fallocate if changes_contents(raw) => Emptied::by_fallocate(raw),
            _ => Emptied::default(),
        }
    }

    /// The rest of the last block is zeroed, unless the file grows.
    fn by_truncate(raw: &RawCall, block: u64) -> Emptied {
        let from = raw.offset.get();
        let behind = from.checked_next_multiple_of(block).unwrap_or(u64::MAX);
        let is_over = !raw.head.flags.has(call_flags::OPEN_END);
        // A call that failed may have come to anything.
        match raw.result.get() == 0 && is_over && from != NONE {
            true => Emptied {
                changed: Some((from, behind)).filter(|_| from < behind),
                dropped_from: Some(behind),
                is_vague: from < behind && is_timeless(raw),
            },
            false => Emptied {
                changed: Some((from, u64::MAX)).filter(|_| from != NONE),
                dropped_from: None,
                is_vague: !is_over || from == NONE,
            },
        }
    }

    fn by_fallocate(raw: &RawCall) -> Emptied {
        let from = raw.offset.get();
        if from == NONE {
            // The filesystem refused it, or it did not tell what it did.
            return Emptied {
                is_vague: raw.result.get() >= 0,
                ..Emptied::default()
            };
        }
        let moves = mode(raw).is_none_or(|mode| mode & (COLLAPSE_RANGE | INSERT_RANGE) != 0);
        let to = match moves {
            true => u64::MAX,
            false => from.saturating_add(raw.bytes.get()),
        };
        Emptied {
            changed: Some((from, to)),
            dropped_from: None,
            is_vague: is_timeless(raw),
        }
    }
}

/// Returns true if the beginning and the end of the call in which the filesystem did this are unknown.
fn is_timeless(raw: &RawCall) -> bool {
    let flags = raw.head.flags;
    flags.has(call_flags::PART) || flags.has(call_flags::OPEN_END)
}

/// Returns the mode of a fallocate, if the recorder stored it.
fn mode(raw: &RawCall) -> Option<u32> {
    let first = raw.first_bytes.first_chunk();
    first
        .filter(|_| raw.head.flags.has(call_flags::MODE))
        .map(|bytes| u32::from_le_bytes(*bytes))
}

/// Returns true if a fallocate zeroes, removes or moves contents, or may do so.
fn changes_contents(raw: &RawCall) -> bool {
    mode(raw).is_none_or(|mode| mode & !KEEP_SIZE != 0)
}

#[cfg(test)]
mod tests {
    use mostrace_bundle::entry::{Flags, RawHead};

    use super::*;

    const BLOCK: u64 = 4096;

    fn call(kind: CallKind, from: u64, bytes: u64, flags: &[Flags]) -> RawCall {
        let all = flags.iter().fold(0, |all, flag| all | flag.0);
        RawCall {
            head: RawHead {
                flags: Flags(all),
                ..RawHead::default()
            },
            kind: (kind as u16).into(),
            offset: from.into(),
            bytes: bytes.into(),
            ..RawCall::default()
        }
    }

    fn fallocate(mode: u8, flags: &[Flags]) -> RawCall {
        let flags = [flags, &[call_flags::MODE]].concat();
        RawCall {
            first_bytes: [mode, 0, 0, 0, 0, 0, 0, 0],
            ..call(CallKind::Fallocate, 100, 200, &flags)
        }
    }

    #[test]
    fn a_truncation_changes_the_last_block_and_drops_the_rest() {
        let of =
            |from, flags: &[Flags]| Emptied::by(&call(CallKind::Truncate, from, 0, flags), BLOCK);
        let cut = Emptied {
            changed: Some((5000, 8192)),
            dropped_from: Some(8192),
            is_vague: false,
        };
        assert_eq!(of(5000, &[]), cut);
        let all = Emptied {
            dropped_from: Some(0),
            ..Emptied::default()
        };
        assert_eq!(of(0, &[]), all);
        // O_TRUNC, of which no call tells the time; nothing is left that it could have changed.
        assert_eq!(of(0, &[call_flags::PART]), all);
        assert!(of(5000, &[call_flags::PART]).is_vague);
    }

    #[test]
    fn a_request_that_is_not_over_drops_nothing_for_certain() {
        let open = call(CallKind::Truncate, 0, 0, &[call_flags::OPEN_END]);
        let open = Emptied::by(&open, BLOCK);
        assert_eq!((open.dropped_from, open.is_vague), (None, true));
        let failed = RawCall {
            result: (-5).into(),
            ..call(CallKind::Truncate, 0, 0, &[])
        };
        let failed = Emptied::by(&failed, BLOCK);
        assert_eq!(
            (failed.changed, failed.dropped_from),
            (Some((0, u64::MAX)), None)
        );
    }

    #[test]
    fn a_fallocate_changes_its_range_or_all_behind_it() {
        let of = |raw: &RawCall| Emptied::by(raw, BLOCK).changed;
        for allocates in [0, 1] {
            assert_eq!(of(&fallocate(allocates, &[])), None);
        }
        // Punches, zeroes, unshares, writes zeroes.
        for zeroes in [0x03, 0x10, 0x11, 0x40, 0x80] {
            assert_eq!(of(&fallocate(zeroes, &[])), Some((100, 300)));
        }
        for moves in [COLLAPSE_RANGE, INSERT_RANGE] {
            let mode = u8::try_from(moves).unwrap();
            assert_eq!(of(&fallocate(mode, &[])), Some((100, u64::MAX)));
        }
        // The kernel's own recorder does not tell the mode.
        let silent = call(CallKind::Fallocate, 100, 200, &[]);
        assert_eq!(of(&silent), Some((100, u64::MAX)));
        assert!(Emptied::by(&fallocate(3, &[call_flags::PART]), BLOCK).is_vague);
    }

    /// An ioctl has its range from the filesystem.
    #[test]
    fn a_fallocate_without_a_range_may_have_changed_anything() {
        let done = call(CallKind::Fallocate, NONE, 0, &[]);
        assert!(Emptied::by(&done, BLOCK).is_vague);
        let refused = RawCall {
            result: (-95).into(),
            ..done
        };
        assert_eq!(Emptied::by(&refused, BLOCK), Emptied::default());
    }
}

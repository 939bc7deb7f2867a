// SPDX-License-Identifier: MIT OR Apache-2.0
//! A call, as far as it tells of a database's files.

use mostrace_bundle::entry::{CallKind, RawCall, call_flags};

/// `aJournalMagic`, with which a rollback journal's header begins.
const JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
/// Bytes of a journal's header that are zeroed.
const ZEROED: u64 = 28;
/// With which a WAL's header begins; the last bit says how its checksums are made.
const WAL: [u8; 4] = [0x37, 0x7f, 0x06, 0x82];

/// Who called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Who {
    pub tgid: u32,
    pub pid: u32,
}

/// What is told of the bytes that a call wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Nothing,
    /// The first ones.
    First([u8; 8]),
    /// They are a database's first page.
    FirstPage {
        /// Raised with every transaction, in the normal locking mode.
        counter: u32,
        /// Of a page, bytes.
        size: u64,
        /// The database says that it has a WAL.
        has_wal: bool,
    },
}

/// What a call did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Act {
    pub kind: CallKind,
    pub offset: u64,
    pub bytes: u64,
    pub told: Told,
    pub who: Who,
    /// Inode and generation.
    pub file: (u64, u32),
    pub start_ns: u64,
    pub end_ns: u64,
}

impl Told {
    pub fn of(raw: &RawCall) -> Told {
        let flags = raw.head.flags;
        if flags.has(call_flags::FIRST) {
            return Told::First(raw.first_bytes);
        }
        if !flags.has(call_flags::DATABASE) {
            return Told::Nothing;
        }
        let [a, b, c, d, high, low, write, read] = raw.first_bytes;
        Told::FirstPage {
            counter: u32::from_be_bytes([a, b, c, d]),
            // 65536 does not go into two bytes.
            size: match u16::from_be_bytes([high, low]) {
                1 => 65536,
                size => size.into(),
            },
            has_wal: write > 1 || read > 1,
        }
    }

    /// Whether it is a header of a rollback journal's.
    pub fn is_journal(self) -> bool {
        self == Told::First(JOURNAL)
    }

    /// Whether it is a WAL's header.
    pub fn is_wal(self) -> bool {
        let Told::First([a, b, c, d, ..]) = self else {
            return false;
        };
        [a, b, c, d & !1] == WAL
    }

    /// Whether it is nothing: a journal's header, before and after a transaction.
    pub fn is_zero(self) -> bool {
        self == Told::First([0; 8])
    }
}

impl Act {
    pub fn of(raw: &RawCall) -> Act {
        Act {
            kind: CallKind::of(raw.kind.get()),
            offset: raw.offset.get(),
            bytes: raw.bytes.get(),
            told: Told::of(raw),
            who: Who {
                tgid: raw.tgid.get(),
                pid: raw.pid.get(),
            },
            file: (raw.ino.get(), raw.generation.get()),
            start_ns: raw.start_ns.get(),
            end_ns: raw.head.time_ns.get(),
        }
    }

    /// Whether it zeroes a journal's header.
    pub fn is_zeroing(&self) -> bool {
        self.offset == 0 && self.bytes == ZEROED && self.told.is_zero()
    }

    /// Of a database's first page, as SQLite writes it: the page alone. A copy of a whole database is not.
    pub fn first_page(&self) -> Option<(u32, bool)> {
        match self.told {
            Told::FirstPage {
                counter,
                size,
                has_wal,
            } if size == self.bytes => Some((counter, has_wal)),
            _ => None,
        }
    }
}

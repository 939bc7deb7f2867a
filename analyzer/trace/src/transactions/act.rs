// SPDX-License-Identifier: MIT OR Apache-2.0
//! A system call, reduced to what it reveals of a database's files.

use mostrace_bundle::entry::{CallKind, RawCall, call_flags};

/// `aJournalMagic`, the first bytes of a rollback journal's header.
const JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
/// Bytes of a journal's header that are zeroed at a commit.
const ZEROED: u64 = 28;
/// The first bytes of a WAL's header; the lowest bit is the byte order of its checksums.
const WAL: [u8; 4] = [0x37, 0x7f, 0x06, 0x82];

/// The process and thread that called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Who {
    pub tgid: u32,
    pub pid: u32,
}

/// The trace's knowledge of the bytes that a call wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Nothing,
    /// The first eight bytes.
    First([u8; 8]),
    /// The bytes begin with a database's first page.
    FirstPage {
        /// The change counter; each transaction increments it in the normal locking mode.
        counter: u32,
        /// The page size, bytes.
        size: u64,
        /// True if the database is in WAL mode.
        has_wal: bool,
    },
}

/// A call and what it did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Act {
    pub kind: CallKind,
    pub offset: u64,
    pub bytes: u64,
    pub content: Content,
    pub who: Who,
    /// Inode and generation.
    pub file: (u64, u32),
    pub start_ns: u64,
    pub end_ns: u64,
}

impl Content {
    pub fn of(raw: &RawCall) -> Content {
        let flags = raw.head.flags;
        if flags.has(call_flags::FIRST) {
            return Content::First(raw.first_bytes);
        }
        if !flags.has(call_flags::DATABASE) {
            return Content::Nothing;
        }
        let [a, b, c, d, high, low, write, read] = raw.first_bytes;
        Content::FirstPage {
            counter: u32::from_be_bytes([a, b, c, d]),
            // Two bytes cannot hold 65536.
            size: match u16::from_be_bytes([high, low]) {
                1 => 65536,
                size => size.into(),
            },
            has_wal: write > 1 || read > 1,
        }
    }

    /// Returns true for a rollback journal's header.
    pub fn is_journal(self) -> bool {
        self == Content::First(JOURNAL)
    }

    /// Returns true for a WAL's header.
    pub fn is_wal(self) -> bool {
        let Content::First([a, b, c, d, ..]) = self else {
            return false;
        };
        [a, b, c, d & !1] == WAL
    }

    /// Returns true for zeros: a journal's header before and after a transaction.
    pub fn is_zero(self) -> bool {
        self == Content::First([0; 8])
    }
}

impl Act {
    pub fn of(raw: &RawCall) -> Act {
        Act {
            kind: CallKind::of(raw.kind.get()),
            offset: raw.offset.get(),
            bytes: raw.bytes.get(),
            content: Content::of(raw),
            who: Who {
                tgid: raw.tgid.get(),
                pid: raw.pid.get(),
            },
            file: (raw.ino.get(), raw.generation.get()),
            start_ns: raw.start_ns.get(),
            end_ns: raw.head.time_ns.get(),
        }
    }

    /// Returns true if the call zeroes a journal's header.
    pub fn is_zeroing(&self) -> bool {
        self.offset == 0 && self.bytes == ZEROED && self.content.is_zero()
    }

    /// Returns change counter and WAL mode if the call writes a database's first page as SQLite does, by itself. A copy of a
    /// whole database does not count.
    pub fn first_page(&self) -> Option<(u32, bool)> {
        match self.content {
            Content::FirstPage {
                counter,
                size,
                has_wal,
            } if size == self.bytes => Some((counter, has_wal)),
            _ => None,
        }
    }
}

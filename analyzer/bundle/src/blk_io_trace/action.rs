// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `action` word of a record: the low 16 bits say what happened, the bits above hold categories.
//! Source: `<linux/blktrace_api.h>`; v8 has the same layout in 64 bits.

/// Read.
pub const BLK_TC_READ: u64 = 1 << 16;
/// Write (also set for discards).
pub const BLK_TC_WRITE: u64 = 1 << 17;
/// Flush: a cache flush, or a write that asks for one before it (`REQ_PREFLUSH`).
pub const BLK_TC_FLUSH: u64 = 1 << 18;
/// Synchronous.
pub const BLK_TC_SYNC: u64 = 1 << 19;
/// The event belongs to a request that reads or writes sectors; events of bios have neither this nor [`BLK_TC_PC`].
pub const BLK_TC_FS: u64 = 1 << 24;
/// Passthrough request.
pub const BLK_TC_PC: u64 = 1 << 25;
/// Not a block event but a note: process name, wall clock, message.
pub const BLK_TC_NOTIFY: u64 = 1 << 26;
/// Readahead.
pub const BLK_TC_AHEAD: u64 = 1 << 27;
/// Metadata (`REQ_META`).
pub const BLK_TC_META: u64 = 1 << 28;
/// Discard or secure erase.
pub const BLK_TC_DISCARD: u64 = 1 << 29;
/// Forced unit access.
pub const BLK_TC_FUA: u64 = 1 << 31;

/// Zone management, from BLK_TC_ZONE_RESET to BLK_TC_ZONE_CLOSE; v8 only.
pub const BLK_TC_ZONE_MANAGEMENT: u64 = 0b11_1110 << 32;
/// Write zeroes; v8 only.
pub const BLK_TC_WRITE_ZEROES: u64 = 1 << 38;

/// Flag in the low 16 bits: the pdu begins with a cgroup id.
pub const BLK_TA_CGROUP: u64 = 1 << 8;

/// Low bits of a block event (`__BLK_TA_*`), without [`BLK_TA_CGROUP`].
pub mod ta {
    #![allow(missing_docs)] // the kernel's names
    pub const QUEUE: u64 = 1;
    pub const BACKMERGE: u64 = 2;
    pub const FRONTMERGE: u64 = 3;
    pub const GETRQ: u64 = 4;
    pub const SLEEPRQ: u64 = 5;
    pub const REQUEUE: u64 = 6;
    pub const ISSUE: u64 = 7;
    pub const COMPLETE: u64 = 8;
    pub const PLUG: u64 = 9;
    pub const UNPLUG_IO: u64 = 10;
    pub const UNPLUG_TIMER: u64 = 11;
    pub const INSERT: u64 = 12;
    pub const SPLIT: u64 = 13;
    pub const BOUNCE: u64 = 14;
    pub const REMAP: u64 = 15;
    pub const ABORT: u64 = 16;
    pub const DRV_DATA: u64 = 17;
}

/// Low bits of a note (`__BLK_TN_*`), without [`BLK_TA_CGROUP`].
pub mod tn {
    #![allow(missing_docs)] // the kernel's names
    pub const PROCESS: u64 = 0;
    pub const TIMESTAMP: u64 = 1;
    pub const MESSAGE: u64 = 2;
}

/// The low bits alone: a `ta` or, for a note, a `tn`.
#[inline]
#[must_use]
pub fn act(action: u64) -> u64 {
    action & 0xffff & !BLK_TA_CGROUP
}

/// Returns true if the record is a note.
#[inline]
#[must_use]
pub fn is_note(action: u64) -> bool {
    action & BLK_TC_NOTIFY != 0
}

/// Returns blkparse's letter for an action (its `%a`), `m` for a message; None for actions without a letter, such as
/// process names and timestamps.
#[must_use]
pub fn letter(action: u64) -> Option<&'static str> {
    if is_note(action) {
        return (act(action) == tn::MESSAGE).then_some("m");
    }
    Some(match act(action) {
        ta::QUEUE => "Q",
        ta::BACKMERGE => "M",
        ta::FRONTMERGE => "F",
        ta::GETRQ => "G",
        ta::SLEEPRQ => "S",
        ta::REQUEUE => "R",
        ta::ISSUE => "D",
        ta::COMPLETE => "C",
        ta::PLUG => "P",
        ta::UNPLUG_IO => "U",
        ta::UNPLUG_TIMER => "UT",
        ta::INSERT => "I",
        ta::SPLIT => "X",
        ta::BOUNCE => "B",
        ta::REMAP => "A",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's own header, which comes with the C library's.
    const HEADER: &str = "/usr/include/linux/blktrace_api.h";

    #[test]
    fn numbers_are_those_of_the_kernels_header() {
        let header = std::fs::read_to_string(HEADER).unwrap();
        let number = |name: &str| {
            let line = |line: &&str| line.split_whitespace().next() == Some(name);
            let line = header.lines().find(line).unwrap();
            let bit = line.split("1 <<").nth(1).unwrap();
            let digits = bit.trim().split(|c: char| !c.is_ascii_digit());
            1u64 << digits.into_iter().next().unwrap().parse::<u32>().unwrap()
        };
        for (name, ours) in [
            ("READ", BLK_TC_READ),
            ("WRITE", BLK_TC_WRITE),
            ("FLUSH", BLK_TC_FLUSH),
            ("SYNC", BLK_TC_SYNC),
            ("FS", BLK_TC_FS),
            ("PC", BLK_TC_PC),
            ("NOTIFY", BLK_TC_NOTIFY),
            ("AHEAD", BLK_TC_AHEAD),
            ("META", BLK_TC_META),
            ("DISCARD", BLK_TC_DISCARD),
            ("FUA", BLK_TC_FUA),
        ] {
            // BLK_TC_SHIFT there.
            assert_eq!(number(&format!("BLK_TC_{name}")) << 16, ours, "{name}");
        }
        assert_eq!(number("__BLK_TA_CGROUP"), BLK_TA_CGROUP);
        // The enum's names, in its order; the first is 1.
        let names = header.lines().map(str::trim);
        let names = names.filter_map(|line| line.strip_prefix("__BLK_TA_"));
        let names = names.filter_map(|line| {
            line.split(|c: char| c != '_' && !c.is_ascii_uppercase())
                .next()
        });
        let names: Vec<&str> = names.take_while(|name| *name != "CGROUP").collect();
        let place = |name| {
            let found = (1..).zip(&names).find(|(_, other)| **other == name);
            found.unwrap().0
        };
        for (name, act, its) in [
            ("QUEUE", ta::QUEUE, Some("Q")),
            ("BACKMERGE", ta::BACKMERGE, Some("M")),
            ("FRONTMERGE", ta::FRONTMERGE, Some("F")),
            ("GETRQ", ta::GETRQ, Some("G")),
            ("SLEEPRQ", ta::SLEEPRQ, Some("S")),
            ("REQUEUE", ta::REQUEUE, Some("R")),
            ("ISSUE", ta::ISSUE, Some("D")),
            ("COMPLETE", ta::COMPLETE, Some("C")),
            ("PLUG", ta::PLUG, Some("P")),
            ("UNPLUG_IO", ta::UNPLUG_IO, Some("U")),
            ("UNPLUG_TIMER", ta::UNPLUG_TIMER, Some("UT")),
            ("INSERT", ta::INSERT, Some("I")),
            ("SPLIT", ta::SPLIT, Some("X")),
            ("BOUNCE", ta::BOUNCE, Some("B")),
            ("REMAP", ta::REMAP, Some("A")),
            ("ABORT", ta::ABORT, None),
            ("DRV_DATA", ta::DRV_DATA, None),
        ] {
            assert_eq!(place(name), act, "{name}");
            // The letters are those of blkparse(1), "ACTION IDENTIFIERS".
            assert_eq!(letter(act | BLK_TC_FS | BLK_TA_CGROUP), its, "{name}");
        }
    }

    #[test]
    fn of_notes_a_message_has_a_letter() {
        assert_eq!(letter(tn::MESSAGE | BLK_TC_NOTIFY), Some("m"));
        assert_eq!(letter(tn::PROCESS | BLK_TC_NOTIFY), None);
    }
}

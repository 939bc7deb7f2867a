// SPDX-License-Identifier: MIT OR Apache-2.0
//! The operation of a request.

use strum::{IntoStaticStr, VariantArray};

use crate::blktrace::action::{
    BLK_TC_DISCARD, BLK_TC_FLUSH, BLK_TC_PC, BLK_TC_WRITE, BLK_TC_WRITE_ZEROES,
    BLK_TC_ZONE_MANAGEMENT,
};

// `enum req_op`, the low 8 bits of bi_opf.
const REQ_OP_DISCARD: u32 = 3;
const REQ_OP_SECURE_ERASE: u32 = 5;
const REQ_OP_WRITE_ZEROES: u32 = 9;
// `enum mostrace_zone_op`: the kernel's own numbers of these differ between versions.
const ZONE_OPEN: u32 = 0x81;
const ZONE_CLOSE: u32 = 0x82;
const ZONE_FINISH: u32 = 0x83;
const ZONE_RESET: u32 = 0x84;
const ZONE_RESET_ALL: u32 = 0x85;

/// The operation of a completed request.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, IntoStaticStr, VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum Op {
    /// Wrote bytes.
    Write,
    /// Read bytes.
    Read,
    /// Ended a flush sequence: an empty flush, or a write that asked for one (or for FUA on a device without it), after its
    /// own bytes were completed.
    Flush,
    /// A cache flush that the device executed. Several flush sequences may share one.
    DeviceFlush,
    /// Discarded a range.
    Discard,
    /// Zeroed a range without carrying zeros.
    WriteZeroes,
    /// Passthrough, zone management of which no entry tells more, or unknown.
    #[default]
    Other,
    /// Opened a zone.
    ZoneOpen,
    /// Closed a zone.
    ZoneClose,
    /// Filled a zone up: its write pointer went to its end.
    ZoneFinish,
    /// Emptied a zone: its write pointer went back to its start.
    ZoneReset,
    /// Emptied all zones.
    ZoneResetAll,
}

impl Op {
    /// Every value, in the order of their codes.
    pub const ALL: &[Op] = Op::VARIANTS;

    /// The word used in tables and files.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Decodes the operation from the action and the bytes of a C event.
    pub fn of(action: u64, bytes: u32) -> Op {
        let has = |bit: u64| action & bit != 0;
        match bytes {
            _ if has(BLK_TC_PC | BLK_TC_ZONE_MANAGEMENT) => Op::Other,
            _ if has(BLK_TC_DISCARD) => Op::Discard,
            _ if has(BLK_TC_WRITE_ZEROES) => Op::WriteZeroes,
            0 if has(BLK_TC_WRITE) => Op::Flush,
            0 if has(BLK_TC_FLUSH) => Op::DeviceFlush,
            0 => Op::Other,
            _ if has(BLK_TC_WRITE) => Op::Write,
            _ => Op::Read,
        }
    }

    /// Decodes from bi_opf those operations that an event may not distinguish from a write.
    pub(super) fn of_opf(opf: u32) -> Option<Op> {
        match opf & 0xff {
            REQ_OP_DISCARD | REQ_OP_SECURE_ERASE => Some(Op::Discard),
            REQ_OP_WRITE_ZEROES => Some(Op::WriteZeroes),
            ZONE_OPEN => Some(Op::ZoneOpen),
            ZONE_CLOSE => Some(Op::ZoneClose),
            ZONE_FINISH => Some(Op::ZoneFinish),
            ZONE_RESET => Some(Op::ZoneReset),
            ZONE_RESET_ALL => Some(Op::ZoneResetAll),
            _ => None,
        }
    }

    /// Returns true if it manages zones; it has no bytes.
    pub const fn is_of_zones(self) -> bool {
        matches!(
            self,
            Op::ZoneOpen | Op::ZoneClose | Op::ZoneFinish | Op::ZoneReset | Op::ZoneResetAll
        )
    }

    /// Returns true if the request's bytes went to or came from the storage.
    pub const fn carries_data(self) -> bool {
        matches!(self, Op::Write | Op::Read)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! One record, independent of its version and byte order.

use super::action;

/// One record of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Event<'a> {
    /// Nanoseconds of the trace's clock.
    pub time_ns: u64,
    /// First sector, counted in 512 bytes from the start of the whole disk.
    pub sector: u64,
    /// What happened and its categories (see [`action`]); v7's 32 bits are widened.
    pub action: u64,
    /// The cgroup id ahead of the payload; 0 if the record has none.
    pub cgroup: u64,
    /// Length in bytes.
    pub bytes: u32,
    /// The running thread: on Q the submitter, on C without meaning.
    pub pid: u32,
    /// major << 20 | minor.
    pub device: u32,
    /// The CPU the record names.
    pub cpu: u32,
    /// The CPU's event counter (0 from sources that have none).
    pub sequence: u32,
    /// errno of a completion, 0 for success.
    pub error: u16,
    /// True if the record, and with it the numbers in a timestamp's payload, are big-endian. Payloads of remaps and
    /// splits are always big-endian.
    pub big_endian: bool,
    /// The payload behind the record, without the cgroup id: a process name, a message, a remap and the like.
    pub pdu: &'a [u8],
}

/// The source of a remapped bio: the payload of an `A` event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remap {
    /// Device from which the bio was remapped, major << 20 | minor.
    pub device_from: u32,
    /// Device to which the bio was remapped.
    pub device_to: u32,
    /// Its first sector on `device_from`.
    pub sector_from: u64,
}

impl Event<'_> {
    /// The low bits of the action: [`action::ta`], or [`action::tn`] for a note.
    #[inline]
    #[must_use]
    pub fn act(&self) -> u64 {
        action::act(self.action)
    }

    /// Returns true if this is a note and not a block event.
    #[inline]
    #[must_use]
    pub fn is_note(&self) -> bool {
        action::is_note(self.action)
    }

    /// Returns the payload of an `A` event; None for any other event.
    #[must_use]
    pub fn remap(&self) -> Option<Remap> {
        if self.is_note() || self.act() != action::ta::REMAP {
            return None;
        }
        Some(Remap {
            device_from: u32::from_be_bytes(self.pdu_at(0)?),
            device_to: u32::from_be_bytes(self.pdu_at(4)?),
            sector_from: u64::from_be_bytes(self.pdu_at(8)?),
        })
    }

    /// Returns the sector at which an `X` event splits its bio; None for any other event.
    #[must_use]
    pub fn split_at(&self) -> Option<u64> {
        if self.is_note() || self.act() != action::ta::SPLIT {
            return None;
        }
        Some(u64::from_be_bytes(self.pdu_at(0)?))
    }

    /// Returns the number of the bio of a `Q`, of the front of an `X`, or of the first bio of a request (`I`, `D`, `R`, `C`),
    /// as the event's payload: it distinguishes bios for the same sectors. None for any other event, and from a source that
    /// does not have it: source `bpf` has it. A number belongs to one bio from its Q to its C, and may be another's afterwards.
    #[must_use]
    pub fn bio(&self) -> Option<u64> {
        use action::ta::{COMPLETE, INSERT, ISSUE, QUEUE, REQUEUE, SPLIT};
        // The payload of a passthrough command is the command.
        if self.is_note() || self.action & action::BLK_TC_PC != 0 {
            return None;
        }
        let at = match self.act() {
            QUEUE | INSERT | ISSUE | REQUEUE | COMPLETE if self.pdu.len() == 8 => 0,
            SPLIT => 8,
            _ => return None,
        };
        self.number_at(at)
    }

    /// Returns the number of the bio that an `X` event splits, as [`Event::bio`].
    #[must_use]
    pub fn split_bio(&self) -> Option<u64> {
        if self.is_note() || self.act() != action::ta::SPLIT {
            return None;
        }
        self.number_at(16)
    }

    fn number_at(&self, at: usize) -> Option<u64> {
        let number = match self.big_endian {
            false => u64::from_le_bytes(self.pdu_at(at)?),
            true => u64::from_be_bytes(self.pdu_at(at)?),
        };
        Some(number).filter(|&number| number != 0)
    }

    /// Returns the number of requests that a `U` or `UT` event releases; None for any other event.
    #[must_use]
    pub fn unplugged(&self) -> Option<u64> {
        let unplug = [action::ta::UNPLUG_IO, action::ta::UNPLUG_TIMER];
        if self.is_note() || !unplug.contains(&self.act()) {
            return None;
        }
        Some(u64::from_be_bytes(self.pdu_at(0)?))
    }

    /// Returns the wall clock of a TIMESTAMP note as seconds since 1970 and nanoseconds; None for any other event.
    #[must_use]
    pub fn timestamp(&self) -> Option<[u32; 2]> {
        if !self.is_note() || self.act() != action::tn::TIMESTAMP {
            return None;
        }
        let word = match self.big_endian {
            false => u32::from_le_bytes,
            true => u32::from_be_bytes,
        };
        Some([word(self.pdu_at(0)?), word(self.pdu_at(4)?)])
    }

    fn pdu_at<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.pdu.get(at..)?.first_chunk().copied()
    }
}

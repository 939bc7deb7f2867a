// SPDX-License-Identifier: MIT OR Apache-2.0
//! The records of block events as the probes make them, and blktrace's records that are made of them.

use mostrace_bundle::blk_io_trace::action::is_note;
use mostrace_bundle::blk_io_trace::{BlkIoTrace, Prefix, Version};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, LE};

use super::bio_number::BioNumbers;
use crate::error::{Error, Result};
use crate::sink::{EventFiles, Step};
use crate::source::ending::Ending;

/// `MOSTRACE_BLOCK`; it is in no table.
pub(super) const TYPE_BLOCK: u16 = 3;

/// `struct block_record` of blockevents.bpf.h; the pdu follows.
#[derive(Clone, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(super) struct BlockRecord {
    pub kind: u16,
    pub size: u16,
    pub pid: u32,
    pub time: u64,
    pub sector: u64,
    pub bytes: u32,
    pub action: u32,
    pub cpu: u16,
    pub error: u16,
    /// The number of the pattern that the record is from now on, or 0.
    pub pattern: u32,
}

const _: () = assert!(size_of::<BlockRecord>() == 40);

const PDU_MAX: usize = 24;

/// Writes events to the sink.
pub(super) struct Records {
    device: u32,
    numbers: BioNumbers,
    pub ending: Ending,
}

impl Records {
    /// Takes events of this device.
    pub fn of(device: u32) -> Records {
        Records {
            device,
            numbers: BioNumbers::new(),
            ending: Ending::not_yet(),
        }
    }

    /// Takes one event, which has exactly these bytes.
    ///
    /// # Errors
    /// Returns an error if it is malformed, or if the bundle cannot be written.
    #[inline]
    pub fn put(&mut self, bytes: &[u8], events: &mut EventFiles) -> Result<()> {
        let malformed = || Error::bpf("malformed block record");
        let (event, pdu) = BlockRecord::ref_from_prefix(bytes).map_err(|_| malformed())?;
        let (cpu, action) = (u32::from(event.cpu), u64::from(event.action));
        if is_note(action) {
            return events.name(cpu, event.pid, event.time, pdu);
        }
        let step = Step {
            action,
            sector: event.sector,
            bytes: event.bytes,
        };
        if !self.ending.takes(event.time, step, events) {
            return Ok(());
        }
        if pdu.len() > PDU_MAX {
            return Err(malformed());
        }
        events.push_made(cpu, event.pid, event.time, |sequence, record| {
            let head = head(event, self.device, sequence, pdu.len());
            record.extend_from_slice(head.as_bytes());
            self.numbers.encode(action, pdu, record);
        })
    }
}

/// Makes the head of a record.
#[inline]
fn head(event: &BlockRecord, device: u32, sequence: u32, pdu_len: usize) -> BlkIoTrace<LE> {
    BlkIoTrace {
        prefix: Prefix {
            magic: Version::V7.magic().into(),
            sequence: sequence.into(),
            time: event.time.into(),
        },
        sector: event.sector.into(),
        bytes: event.bytes.into(),
        action: event.action.into(),
        pid: event.pid.into(),
        device: device.into(),
        cpu: u32::from(event.cpu).into(),
        error: event.error.into(),
        pdu_len: (pdu_len as u16).into(),
    }
}

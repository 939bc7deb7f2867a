// SPDX-License-Identifier: MIT OR Apache-2.0
//! The records on disk, v7 and v8, in either byte order.
//!
//! ```text
//! v7, 48 bytes: magic sequence time... sector.. bytes action  pid    device  cpu error,pdu_len
//! v8, 64 bytes: magic sequence time... sector.. bytes pid     action.......  device cpu error,pdu_len pad[12]
//! then pdu_len bytes: a cgroup id if the action says so, and the payload
//! ```
//!
//! Source: `struct blk_io_trace` in `<linux/blktrace_api.h>`, `struct blk_io_trace2` in kernels
//! that have `BLKTRACESETUP2`. The magic of each record says which it is.

use super::action::{self, BLK_TA_CGROUP};
use super::event::Event;
use zerocopy::byteorder::{BE, ByteOrder, LE, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The magic without its lowest byte, the version.
pub const BLK_IO_TRACE_MAGIC: u32 = 0x6561_7400;

/// The longest record there can be: v8 and the longest pdu.
pub const MAX_RECORD: usize = 64 + u16::MAX as usize;

/// How a record is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Version 7 or 8.
    pub version: Version,
    /// Big-endian instead of little-endian.
    pub big_endian: bool,
}

/// The versions that exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// `struct blk_io_trace`.
    V7,
    /// `struct blk_io_trace2`.
    V8,
}

/// What stands at the start of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Decoded {
    /// A record, and its length with the pdu.
    Record(Event, usize),
    /// The beginning of a record of at least this length.
    Short(usize),
    /// No record: the four bytes, little-endian.
    Foreign(u32),
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct BlkIoTrace<O: ByteOrder> {
    magic: U32<O>,
    sequence: U32<O>,
    time: U64<O>,
    sector: U64<O>,
    bytes: U32<O>,
    action: U32<O>,
    pid: U32<O>,
    device: U32<O>,
    cpu: U32<O>,
    error: U16<O>,
    pdu_len: U16<O>,
}

#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct BlkIoTrace2<O: ByteOrder> {
    magic: U32<O>,
    sequence: U32<O>,
    time: U64<O>,
    sector: U64<O>,
    bytes: U32<O>,
    pid: U32<O>,
    action: U64<O>,
    device: U32<O>,
    cpu: U32<O>,
    error: U16<O>,
    pdu_len: U16<O>,
    pad: [u8; 12],
}

const _: () = assert!(size_of::<BlkIoTrace<LE>>() == 48 && size_of::<BlkIoTrace2<LE>>() == 64);

/// Reads the record at the start of `buf`.
#[must_use]
pub fn decode(buf: &[u8]) -> Decoded {
    let Some(magic) = buf.first_chunk() else {
        return Decoded::Short(size_of::<BlkIoTrace<LE>>());
    };
    const V7: u32 = BLK_IO_TRACE_MAGIC | 7;
    const V8: u32 = BLK_IO_TRACE_MAGIC | 8;
    match (u32::from_le_bytes(*magic), u32::from_be_bytes(*magic)) {
        (V7, _) => decode_v7::<LE>(buf),
        (_, V7) => decode_v7::<BE>(buf),
        (V8, _) => decode_v8::<LE>(buf),
        (_, V8) => decode_v8::<BE>(buf),
        (foreign, _) => Decoded::Foreign(foreign),
    }
}

fn decode_v7<O: ByteOrder>(buf: &[u8]) -> Decoded {
    let Ok((t, rest)) = BlkIoTrace::<O>::ref_from_prefix(buf) else {
        return Decoded::Short(size_of::<BlkIoTrace<O>>());
    };
    let event = Event {
        time_ns: t.time.get(),
        sector: t.sector.get(),
        action: u64::from(t.action.get()),
        cgroup: 0,
        bytes: t.bytes.get(),
        pid: t.pid.get(),
        device: t.device.get(),
        cpu: t.cpu.get(),
        sequence: t.sequence.get(),
        error: t.error.get(),
        pdu: Box::default(),
    };
    with_pdu::<O>(event, size_of_val(t), t.pdu_len, rest)
}

fn decode_v8<O: ByteOrder>(buf: &[u8]) -> Decoded {
    let Ok((t, rest)) = BlkIoTrace2::<O>::ref_from_prefix(buf) else {
        return Decoded::Short(size_of::<BlkIoTrace2<O>>());
    };
    let event = Event {
        time_ns: t.time.get(),
        sector: t.sector.get(),
        action: t.action.get(),
        cgroup: 0,
        bytes: t.bytes.get(),
        pid: t.pid.get(),
        device: t.device.get(),
        cpu: t.cpu.get(),
        sequence: t.sequence.get(),
        error: t.error.get(),
        pdu: Box::default(),
    };
    with_pdu::<O>(event, size_of_val(t), t.pdu_len, rest)
}

#[inline]
fn with_pdu<O: ByteOrder>(mut event: Event, head: usize, pdu_len: U16<O>, rest: &[u8]) -> Decoded {
    let pdu_len = usize::from(pdu_len.get());
    if pdu_len == 0 {
        return Decoded::Record(event, head);
    }
    let len = head + pdu_len;
    let Some(mut pdu) = rest.get(..pdu_len) else {
        return Decoded::Short(len);
    };
    if event.action & BLK_TA_CGROUP != 0
        && let Ok((cgroup, payload)) = U64::<O>::read_from_prefix(pdu)
    {
        event.cgroup = cgroup.get();
        pdu = payload;
    }
    event.pdu = pdu.into();
    if is_timestamp(&event) {
        swap_words::<O, LE>(&mut event.pdu);
    }
    Decoded::Record(event, len)
}

/// A timestamp's payload is two 32-bit words in the byte order of the trace.
fn is_timestamp(event: &Event) -> bool {
    event.is_note() && event.act() == action::tn::TIMESTAMP
}

fn swap_words<From: ByteOrder, To: ByteOrder>(pdu: &mut [u8]) {
    for word in pdu.chunks_exact_mut(4) {
        if let Ok(read) = U32::<From>::read_from_bytes(word) {
            word.copy_from_slice(U32::<To>::new(read.get()).as_bytes());
        }
    }
}

/// Why an event cannot be written in a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The action has bits that v7 has no room for.
    #[error("the action has more than 32 bits, which a v7 record cannot hold")]
    Action,
    /// cgroup id and payload are longer than 65,535 bytes.
    #[error("the payload is longer than 65,535 bytes")]
    Payload,
}

/// Appends the event to `out` as a record.
///
/// # Errors
/// If `layout` cannot hold it.
pub fn encode(event: &Event, layout: Layout, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    match layout.big_endian {
        false => encode_in::<LE>(event, layout.version, out),
        true => encode_in::<BE>(event, layout.version, out),
    }
}

fn encode_in<O: ByteOrder>(
    e: &Event,
    version: Version,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    let cgroup = (e.action & BLK_TA_CGROUP != 0).then(|| U64::<O>::new(e.cgroup));
    let pdu_len = e.pdu.len() + cgroup.map_or(0, |c| size_of_val(&c));
    let pdu_len = U16::new(u16::try_from(pdu_len).map_err(|_| EncodeError::Payload)?);
    match version {
        Version::V7 => out.extend_from_slice(
            BlkIoTrace::<O> {
                magic: U32::new(BLK_IO_TRACE_MAGIC | 7),
                sequence: U32::new(e.sequence),
                time: U64::new(e.time_ns),
                sector: U64::new(e.sector),
                bytes: U32::new(e.bytes),
                action: U32::new(u32::try_from(e.action).map_err(|_| EncodeError::Action)?),
                pid: U32::new(e.pid),
                device: U32::new(e.device),
                cpu: U32::new(e.cpu),
                error: U16::new(e.error),
                pdu_len,
            }
            .as_bytes(),
        ),
        Version::V8 => out.extend_from_slice(
            BlkIoTrace2::<O> {
                magic: U32::new(BLK_IO_TRACE_MAGIC | 8),
                sequence: U32::new(e.sequence),
                time: U64::new(e.time_ns),
                sector: U64::new(e.sector),
                bytes: U32::new(e.bytes),
                pid: U32::new(e.pid),
                action: U64::new(e.action),
                device: U32::new(e.device),
                cpu: U32::new(e.cpu),
                error: U16::new(e.error),
                pdu_len,
                pad: [0; 12],
            }
            .as_bytes(),
        ),
    }
    if let Some(cgroup) = cgroup {
        out.extend_from_slice(cgroup.as_bytes());
    }
    let payload = out.len();
    out.extend_from_slice(&e.pdu);
    if is_timestamp(e)
        && let Some(payload) = out.get_mut(payload..)
    {
        swap_words::<LE, O>(payload);
    }
    Ok(())
}

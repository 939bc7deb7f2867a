// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decodes bytes to an event.

use super::action::BLK_TA_CGROUP;
use super::event::Event;
use super::record::{BlkIoTrace, BlkIoTrace2, Head, Version};
use zerocopy::FromBytes;
use zerocopy::byteorder::{BE, ByteOrder, LE, U64};

/// The result of decoding the start of a byte slice.
#[derive(Debug, PartialEq, Eq)]
pub enum Decoded<'a> {
    /// A whole record, and its length in bytes including the pdu.
    Record(Event<'a>, usize),
    /// The beginning of a record; the whole record has at least this many bytes.
    Short(usize),
    /// Not a record; holds the first four bytes as a little-endian number.
    Foreign(u32),
}

/// Reads the record at the start of `buf`.
#[inline(always)] // lets the compiler drop the fields that a caller does not use
#[must_use]
pub fn decode(buf: &[u8]) -> Decoded<'_> {
    const V7: u32 = Version::V7.magic();
    const V8: u32 = Version::V8.magic();
    const V7_BE: u32 = V7.swap_bytes();
    const V8_BE: u32 = V8.swap_bytes();
    let Some(magic) = buf.first_chunk() else {
        return Decoded::Short(size_of::<BlkIoTrace<LE>>());
    };
    match u32::from_le_bytes(*magic) {
        V7 => decode_as::<BlkIoTrace<LE>, LE>(buf),
        V8 => decode_as::<BlkIoTrace2<LE>, LE>(buf),
        V7_BE => decode_as::<BlkIoTrace<BE>, BE>(buf),
        V8_BE => decode_as::<BlkIoTrace2<BE>, BE>(buf),
        foreign => Decoded::Foreign(foreign),
    }
}

#[inline]
fn decode_as<H: Head, O: ByteOrder>(buf: &[u8]) -> Decoded<'_> {
    let Ok((head, rest)) = H::ref_from_prefix(buf) else {
        return Decoded::Short(size_of::<H>());
    };
    let mut event: Event<'_> = head.event();
    let pdu_len = usize::from(head.pdu_len());
    // At most MAX_RECORD.
    let len = size_of::<H>().saturating_add(pdu_len);
    let Some(pdu) = rest.get(..pdu_len) else {
        return Decoded::Short(len);
    };
    event.pdu = pdu;
    if event.action & BLK_TA_CGROUP != 0
        && let Ok((cgroup, payload)) = U64::<O>::read_from_prefix(pdu)
    {
        event.cgroup = cgroup.get();
        event.pdu = payload;
    }
    Decoded::Record(event, len)
}

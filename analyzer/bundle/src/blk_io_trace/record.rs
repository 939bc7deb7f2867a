// SPDX-License-Identifier: MIT OR Apache-2.0
//! A record's head, field by field.

use super::BLK_IO_TRACE_MAGIC;
use super::event::Event;
use zerocopy::byteorder::{ByteOrder, LE, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The layout of a record: version and byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Version 7 or 8.
    pub version: Version,
    /// True if big-endian.
    pub big_endian: bool,
}

/// The versions of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// `struct blk_io_trace`.
    V7,
    /// `struct blk_io_trace2`.
    V8,
}

impl Version {
    /// Returns the magic number of this version's records.
    #[must_use]
    pub const fn magic(self) -> u32 {
        match self {
            Self::V7 => BLK_IO_TRACE_MAGIC | 7,
            Self::V8 => BLK_IO_TRACE_MAGIC | 8,
        }
    }
}

/// The fields with which records of all versions begin.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Prefix<O: ByteOrder> {
    /// The magic number, see [`Version::magic`].
    pub magic: U32<O>,
    /// The CPU's event counter (0 from sources that have none).
    pub sequence: U32<O>,
    /// Nanoseconds of the trace's clock.
    pub time: U64<O>,
}

/// `struct blk_io_trace` (v7); the fields are those of [`Event`].
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
#[allow(missing_docs)] // the kernel's names
pub struct BlkIoTrace<O: ByteOrder> {
    pub prefix: Prefix<O>,
    pub sector: U64<O>,
    pub bytes: U32<O>,
    pub action: U32<O>,
    pub pid: U32<O>,
    pub device: U32<O>,
    pub cpu: U32<O>,
    pub error: U16<O>,
    /// Length in bytes of the pdu that follows the head.
    pub pdu_len: U16<O>,
}

/// `struct blk_io_trace2` (v8); the fields are those of [`Event`].
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
#[allow(missing_docs)] // the kernel's names
pub struct BlkIoTrace2<O: ByteOrder> {
    pub prefix: Prefix<O>,
    pub sector: U64<O>,
    pub bytes: U32<O>,
    pub pid: U32<O>,
    pub action: U64<O>,
    pub device: U32<O>,
    pub cpu: U32<O>,
    pub error: U16<O>,
    /// Length in bytes of the pdu that follows the head.
    pub pdu_len: U16<O>,
    pub pad: [u8; 12],
}

const _: () = assert!(
    size_of::<Prefix<LE>>() == 16
        && size_of::<BlkIoTrace<LE>>() == 48
        && size_of::<BlkIoTrace2<LE>>() == 64
);

/// Access to the fields that both versions have.
pub(super) trait Head: FromBytes + KnownLayout + Immutable + Unaligned + 'static {
    /// Returns the event without its payload.
    fn event(&self) -> Event<'static>;
    fn pdu_len(&self) -> u16;
}

macro_rules! head {
    ($record:ident) => {
        impl<O: ByteOrder + 'static> Head for $record<O> {
            #[inline]
            fn event(&self) -> Event<'static> {
                Event {
                    time_ns: self.prefix.time.get(),
                    sector: self.sector.get(),
                    action: u64::from(self.action.get()),
                    cgroup: 0,
                    bytes: self.bytes.get(),
                    pid: self.pid.get(),
                    device: self.device.get(),
                    cpu: self.cpu.get(),
                    sequence: self.prefix.sequence.get(),
                    error: self.error.get(),
                    big_endian: is_big_endian::<O>(),
                    pdu: &[],
                }
            }

            #[inline]
            fn pdu_len(&self) -> u16 {
                self.pdu_len.get()
            }
        }
    };
}

head!(BlkIoTrace);
head!(BlkIoTrace2);

#[inline]
fn is_big_endian<O: ByteOrder>() -> bool {
    U16::<O>::new(1).to_bytes() == [0, 1]
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The compact form of the records of one CPU, as stored in `events.N`: the same records, in a seventh of the bytes.
//!
//! ```text
//! HEADER   what follows refers to nothing before it
//! whole    a record as it is; its first byte, of the magic number, is below 0x80
//! short    0x80 + back, [bio], time, sector, bytes
//! ```
//!
//! A short record is like the whole one that `back` other whole ones follow; of these only records of version 7 in little-endian
//! order count that are no notes and have a payload of 0 or 8 bytes. It differs in what is told, and its sequence number is that of
//! the record before, plus one. `time` is the difference to the record before. `bio` is told if the payload has 8 bytes: a byte below
//! 0x80 is the slot of a payload that was told before; otherwise the payload follows, and the slot is the byte less 0x80. `sector`
//! and `bytes`, which counts 512 bytes, are differences to what was last told with this slot, and otherwise to the short record before.
//!
//! Numbers are LEB128; differences are wrapped and written zigzag, so that small negative ones are short too.

use super::action::is_note;
use super::decode::{Decoded, decode};
use super::record::{BlkIoTrace, Version};
use zerocopy::byteorder::LE;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// A file of this form begins with these bytes. They may stand again where a record could begin.
pub const HEADER: [u8; 8] = *b"MOSTEVT\n";

/// The length of the shortest record, bytes.
pub const SHORTEST: usize = 4;

/// The flag of a short record, and of a payload that follows.
const FLAG: u8 = 0x80;
/// The number of whole records that can be referred to, and of slots.
const REACH: u64 = 128;
const SLOTS: usize = 128;
const SECTOR: u32 = 512;
/// More than a short record has: two bytes, a payload, and three numbers of at most 10.
const LONGEST: usize = 48;

type Head = BlkIoTrace<LE>;
type Payload = [u8; 8];

/// A place on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    sector: u64,
    /// In units of 512 bytes.
    length: u32,
}

/// A slot has the payload that was told with it last, and the place of that record.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    payload: Payload,
    place: Place,
}

/// The writer and the reader remember this alike.
#[derive(Clone, Debug)]
struct Memory {
    time_ns: u64,
    sequence: u32,
    /// The place of the last short record.
    last: Place,
    slots: [Slot; SLOTS],
    /// The number of whole records that can be referred to.
    wholes: u64,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory {
            time_ns: 0,
            sequence: 0,
            last: Place::default(),
            slots: [Slot::default(); SLOTS],
            wholes: 0,
        }
    }
}

impl Memory {
    /// Takes a whole record. Returns its number if it can be referred to.
    fn whole(&mut self, head: &Head) -> Option<u64> {
        self.time_ns = head.prefix.time.get();
        self.sequence = head.prefix.sequence.get();
        let is_model = head.prefix.magic.get() == Version::V7.magic()
            && !is_note(u64::from(head.action.get()))
            && matches!(head.pdu_len.get(), 0 | 8);
        is_model.then(|| {
            self.wholes = self.wholes.wrapping_add(1);
            self.wholes
        })
    }

    /// Takes a short record, of which `slot` has the payload if it has any.
    #[inline]
    fn short(&mut self, time_ns: u64, place: Place, slot: Option<(usize, Payload)>) {
        self.time_ns = time_ns;
        self.sequence = self.sequence.wrapping_add(1);
        self.last = place;
        if let Some((slot, payload)) = slot
            && let Some(slot) = self.slots.get_mut(slot)
        {
            *slot = Slot { payload, place };
        }
    }
}

/// The fields in which whole records that are referred to differ.
type Key = (u32, [u8; 16]);

/// Returns the action, and what stands behind it: task, device, CPU, error and length of the payload.
#[inline]
fn key(head: &Head) -> Key {
    let rest = head.as_bytes().last_chunk().copied();
    (head.action.get(), rest.unwrap_or_default())
}

/// Writes records in the compact form.
#[derive(Clone, Debug)]
pub struct Compactor {
    memory: Memory,
    /// For each hash of a key, the whole record that had it last, and its number.
    known: [(Key, u64); SLOTS],
    has_header: bool,
}

impl Default for Compactor {
    fn default() -> Compactor {
        Compactor {
            memory: Memory::default(),
            known: [((0, [0; 16]), 0); SLOTS],
            has_header: false,
        }
    }
}

impl Compactor {
    /// Appends a record to `out`, the first one behind a header. The bytes are those of one whole record.
    #[inline]
    pub fn put(&mut self, record: &[u8], out: &mut Vec<u8>) {
        if !self.has_header {
            self.has_header = true;
            out.extend_from_slice(&HEADER);
        }
        let Ok((head, pdu)) = Head::ref_from_prefix(record) else {
            return out.extend_from_slice(record);
        };
        let key = key(head);
        match self.short(head, key, pdu) {
            Some(short) => out.extend_from_slice(short.written()),
            None => {
                out.extend_from_slice(record);
                self.keep(head, key);
            }
        }
    }

    /// Remembers a whole record.
    #[cold]
    fn keep(&mut self, head: &Head, key: Key) {
        if let Some(number) = self.memory.whole(head)
            && let Some(known) = self.known.get_mut(hash(key))
        {
            *known = (key, number);
        }
    }

    /// Returns the short form of a record, if it has one.
    #[inline]
    fn short(&mut self, head: &Head, key: Key, pdu: &[u8]) -> Option<Short> {
        let (known, number) = self.known.get(hash(key))?;
        let back = self.memory.wholes.wrapping_sub(*number);
        let is_next = head.prefix.sequence.get() == self.memory.sequence.wrapping_add(1);
        let bytes = head.bytes.get();
        if *known != key
            || *number == 0
            || back >= REACH
            || !is_next
            || !bytes.is_multiple_of(SECTOR)
            || head.prefix.magic.get() != Version::V7.magic()
        {
            return None;
        }
        let mut short = Short::default();
        short.byte(u8::try_from(back).ok()? | FLAG);
        let mut from = self.memory.last;
        let mut slot = None;
        if !pdu.is_empty() {
            let payload: Payload = pdu.try_into().ok()?;
            let at = slot_of(payload);
            let told = self.memory.slots.get(at)?;
            slot = Some((at, payload));
            let at = u8::try_from(at).ok()?;
            if told.payload == payload {
                from = told.place;
                short.byte(at);
            } else {
                short.byte(at | FLAG);
                short.bytes(&payload);
            }
        }
        let place = Place {
            sector: head.sector.get(),
            length: bytes / SECTOR,
        };
        let time_ns = head.prefix.time.get();
        short.number(time_ns.wrapping_sub(self.memory.time_ns));
        short.number(place.sector.wrapping_sub(from.sector));
        short.number(u64::from(place.length).wrapping_sub(u64::from(from.length)));
        self.memory.short(time_ns, place, slot);
        Some(short)
    }
}

#[inline]
fn hash((action, rest): Key) -> usize {
    let words = u128::from_le_bytes(rest);
    #[allow(clippy::as_conversions)] // halves of it
    let rest = (words as u64) ^ ((words >> 64) as u64).rotate_left(17);
    top_bits((rest ^ u64::from(action)).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[inline]
fn slot_of(payload: Payload) -> usize {
    top_bits(u64::from_le_bytes(payload).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Returns as many bits as slots need.
#[inline]
fn top_bits(number: u64) -> usize {
    usize::try_from(number >> 57).unwrap_or(0)
}

/// A short record that is being written.
struct Short {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Default for Short {
    #[inline]
    fn default() -> Short {
        Short {
            bytes: [0; LONGEST],
            len: 0,
        }
    }
}

impl Short {
    #[inline]
    fn byte(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.len) {
            *place = byte;
            self.len = self.len.wrapping_add(1);
        }
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.byte(*byte));
    }

    /// Writes a difference.
    #[inline]
    fn number(&mut self, difference: u64) {
        let mut rest = difference << 1 ^ (difference.cast_signed() >> 63).cast_unsigned();
        while let Some(low) = rest.to_le_bytes().first()
            && rest >= u64::from(FLAG)
        {
            self.byte(low | FLAG);
            rest >>= 7;
        }
        self.bytes(rest.to_le_bytes().get(..1).unwrap_or_default());
    }

    #[inline]
    fn written(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

/// A record with its payload, to be copied at once.
#[derive(Immutable, IntoBytes)]
#[repr(C)]
struct WithPayload {
    head: Head,
    payload: Payload,
}

/// This says what a byte slice in the compact form begins with.
#[derive(Debug, PartialEq, Eq)]
pub enum Expanded {
    /// A record or a header of this length, bytes.
    Taken(usize),
    /// The beginning of one; the whole has at least this many bytes.
    Short(usize),
    /// Neither; holds the first four bytes as a little-endian number.
    Foreign(u32),
}

/// Reads the compact form.
#[derive(Clone, Debug, Default)]
pub struct Expander {
    memory: Memory,
    /// The latest whole records that can be referred to: a ring, once it is full.
    models: Vec<Head>,
}

impl Expander {
    /// Reads what stands at the beginning of `compact`, and appends the record to `out` as blktrace writes it.
    #[inline]
    pub fn expand(&mut self, compact: &[u8], out: &mut Vec<u8>) -> Expanded {
        match compact.first() {
            Some(first) if first & FLAG != 0 => self.expand_short(compact, out),
            Some(first) if Some(first) == HEADER.first() => self.header(compact),
            _ => self.expand_whole(compact, out),
        }
    }

    fn header(&mut self, compact: &[u8]) -> Expanded {
        let len = compact.len().min(HEADER.len());
        if compact.get(..len) != HEADER.get(..len) {
            return foreign(compact);
        }
        if len < HEADER.len() {
            return Expanded::Short(HEADER.len());
        }
        *self = Expander::default();
        Expanded::Taken(len)
    }

    fn expand_whole(&mut self, compact: &[u8], out: &mut Vec<u8>) -> Expanded {
        let len = match decode(compact) {
            Decoded::Record(_, len) => len,
            Decoded::Short(needed) => return Expanded::Short(needed),
            Decoded::Foreign(magic) => return Expanded::Foreign(magic),
        };
        out.extend_from_slice(compact.get(..len).unwrap_or_default());
        // A record of another version begins with these fields, too, and cannot be referred to.
        if let Ok((head, _)) = Head::ref_from_prefix(compact)
            && let Some(number) = self.memory.whole(head)
        {
            match place_of(number).and_then(|at| self.models.get_mut(at)) {
                Some(model) => *model = *head,
                None => self.models.push(*head),
            }
        }
        Expanded::Taken(len)
    }

    #[inline]
    fn expand_short(&mut self, compact: &[u8], out: &mut Vec<u8>) -> Expanded {
        let mut rest = Rest(compact);
        match self.short(&mut rest, out) {
            Ok(()) => Expanded::Taken(compact.len().wrapping_sub(rest.0.len())),
            Err(Bad::Cut) => Expanded::Short(compact.len().wrapping_add(1)),
            Err(Bad::Foreign) => foreign(compact),
        }
    }

    #[inline]
    fn short(&mut self, rest: &mut Rest<'_>, out: &mut Vec<u8>) -> Result<(), Bad> {
        let back = u64::from(rest.byte()? & !FLAG);
        let number = self.memory.wholes.checked_sub(back);
        let at = number.filter(|&number| number > 0).and_then(place_of);
        let mut head = *at.and_then(|at| self.models.get(at)).ok_or(Bad::Foreign)?;
        let mut from = self.memory.last;
        let mut slot = None;
        if head.pdu_len.get() != 0 {
            let told = rest.byte()?;
            let at = usize::from(told & !FLAG);
            let before = self.memory.slots.get(at).ok_or(Bad::Foreign)?;
            let mut payload = before.payload;
            if told & FLAG != 0 {
                payload = rest.payload()?;
            } else {
                from = before.place;
            }
            slot = Some((at, payload));
        }
        let time_ns = self.memory.time_ns.wrapping_add(rest.number()?);
        let sector = from.sector.wrapping_add(rest.number()?);
        let length = u64::from(from.length).wrapping_add(rest.number()?);
        let length = u32::try_from(length).map_err(|_| Bad::Foreign)?;
        head.prefix.time = time_ns.into();
        head.prefix.sequence = self.memory.sequence.wrapping_add(1).into();
        head.sector = sector.into();
        head.bytes = length.checked_mul(SECTOR).ok_or(Bad::Foreign)?.into();
        self.memory.short(time_ns, Place { sector, length }, slot);
        match slot {
            Some((_, payload)) => out.extend_from_slice(WithPayload { head, payload }.as_bytes()),
            None => out.extend_from_slice(head.as_bytes()),
        }
        Ok(())
    }
}

/// Returns the place of a whole record among those that can be referred to, by its number, which counts from 1.
#[inline]
fn place_of(number: u64) -> Option<usize> {
    usize::try_from(number.wrapping_sub(1) % REACH).ok()
}

fn foreign(bytes: &[u8]) -> Expanded {
    let mut first = [0; 4];
    for (to, from) in first.iter_mut().zip(bytes) {
        *to = *from;
    }
    Expanded::Foreign(u32::from_le_bytes(first))
}

/// The reason why there is no short record.
enum Bad {
    /// The bytes end within it.
    Cut,
    /// It is none.
    Foreign,
}

/// The bytes of a short record that were not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    #[inline]
    fn byte(&mut self) -> Result<u8, Bad> {
        let (byte, rest) = self.0.split_first().ok_or(Bad::Cut)?;
        self.0 = rest;
        Ok(*byte)
    }

    #[inline]
    fn payload(&mut self) -> Result<Payload, Bad> {
        let (payload, rest) = self.0.split_first_chunk().ok_or(Bad::Cut)?;
        self.0 = rest;
        Ok(*payload)
    }

    /// Reads a difference.
    #[inline]
    fn number(&mut self) -> Result<u64, Bad> {
        let mut number = 0;
        let mut shift: u32 = 0;
        while shift < u64::BITS {
            let byte = self.byte()?;
            number |= u64::from(byte & !FLAG).wrapping_shl(shift);
            if byte & FLAG == 0 {
                let sign = (number & 1).wrapping_neg();
                return Ok(number >> 1 ^ sign);
            }
            shift = shift.wrapping_add(7);
        }
        Err(Bad::Foreign)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct msdos_dir_slot`: long names, stored in directory entries of their own ahead of the short one.

use crate::fs::le::u16_at;

/// Number of UTF-16 units in one slot.
const UNITS: usize = 13;
/// The most slots that a name takes (255 units).
const SLOTS: u8 = 20;
/// Marks the slot that comes first on the disk and holds the end of the name.
const LAST: u8 = 0x40;

/// The bytes of one directory entry.
pub type Raw = [u8; 32];

/// Collects the slots of one name in disk order, the name's end first, as `fat_parse_long` does.
pub struct LongName {
    units: Vec<u16>,
    /// The number of the slot that must come next; 0 once the name is complete.
    next: u8,
    checksum: u8,
}

impl LongName {
    /// Starts without a name.
    pub fn new() -> LongName {
        LongName {
            units: Vec::new(),
            next: 0,
            checksum: 0,
        }
    }

    /// Takes a slot. One that does not continue the name starts a new one or discards it.
    pub fn slot(&mut self, raw: &Raw) {
        let [id, checksum] = [raw[0], raw[13]];
        let continues = self.next > 0 && id & !LAST == self.next && checksum == self.checksum;
        if !continues {
            self.clear();
            let slots = id & !LAST;
            if id & LAST == 0 || !(1..=SLOTS).contains(&slots) {
                return;
            }
            self.units = vec![0; UNITS.saturating_mul(slots.into())];
            self.checksum = checksum;
            self.next = slots;
        }
        if id & LAST != 0 {
            // A second end mark: Linux cuts the name there.
            self.units.truncate(UNITS.saturating_mul(self.next.into()));
        }
        self.next = self.next.saturating_sub(1);
        let from = UNITS.saturating_mul(self.next.into());
        let places = self.units.iter_mut().skip(from);
        places
            .zip(units(raw))
            .for_each(|(place, unit)| *place = unit);
    }

    /// Discards the slots, because the next entry is not a slot or is a deleted one.
    pub fn clear(&mut self) {
        self.units.clear();
        self.next = 0;
    }

    /// Returns the name that belongs to a short name if it is complete and its checksum is right.
    pub fn take(&mut self, short: &[u8; 11]) -> Option<String> {
        let fits = self.next == 0 && !self.units.is_empty() && checksum(short) == self.checksum;
        let name = fits
            .then(|| text(&self.units))
            .filter(|name| !name.is_empty());
        self.clear();
        name
    }
}

/// Collects the slots of a deleted name. Deletion overwrites the numbers of the slots, but not their order.
pub struct GoneName {
    /// The slots, the nearest to the short entry last.
    slots: Vec<([u16; UNITS], u8)>,
}

/// The recoverable parts of a deleted name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Gone {
    /// The first byte of the short name.
    pub first: Option<u8>,
    /// The long name, if it is certainly whole.
    pub long: Option<String>,
}

impl GoneName {
    /// Starts without slots.
    pub fn new() -> GoneName {
        GoneName { slots: Vec::new() }
    }

    /// Takes a deleted slot.
    pub fn slot(&mut self, raw: &Raw) {
        if self.slots.len() >= usize::from(SLOTS) {
            self.slots.remove(0);
        }
        self.slots.push((units(raw), raw[13]));
    }

    /// Discards the slots, because the next entry is not a deleted one.
    pub fn clear(&mut self) {
        self.slots.clear();
    }

    /// Returns what the slots tell about the deleted short entry that follows them. Their checksum yields its first
    /// byte; if the long name cannot begin with that byte, the slots belong to another entry. The long name is whole if
    /// it is padded at its end and nowhere else; a name that fills its slots has no mark at its end and may have lost
    /// some.
    pub fn take(&mut self, short: &[u8; 11]) -> Gone {
        let gone = self.read(short);
        self.clear();
        gone.unwrap_or_default()
    }

    fn read(&self, short: &[u8; 11]) -> Option<Gone> {
        let (nearest, sum) = self.slots.last()?;
        let first = first_byte(short, *sum).filter(|&first| begins(nearest, first))?;
        let own = self.slots.iter().rev().take_while(|slot| slot.1 == *sum);
        let units: Vec<u16> = own.flat_map(|slot| slot.0).collect();
        let len = units.iter().position(|&unit| unit == 0);
        let last = units.len().saturating_sub(UNITS);
        let whole = len.filter(|&len| {
            let padded = units.iter().skip(len).skip(1).all(|&unit| unit == 0xffff);
            len >= last && len > 0 && padded
        });
        Some(Gone {
            first: Some(first),
            long: whole.map(|_| text(&units)),
        })
    }
}

/// Returns the 13 UTF-16 units of a slot, which lie in three places.
fn units(raw: &Raw) -> [u16; UNITS] {
    let places = (1..11).chain(14..26).chain(28..32).step_by(2);
    let mut units = [0; UNITS];
    for (unit, at) in units.iter_mut().zip(places) {
        *unit = u16_at(raw, at).unwrap_or(0);
    }
    units
}

/// Returns the checksum of a short name: `fat_checksum`.
fn checksum(short: &[u8; 11]) -> u8 {
    let add = |sum: u8, byte: &u8| sum.rotate_right(1).wrapping_add(*byte);
    short.iter().fold(0, add)
}

/// Returns the first byte with which the checksum is right; there is exactly one.
fn first_byte(short: &[u8; 11], sum: u8) -> Option<u8> {
    (0..=u8::MAX).find(|&byte| {
        let mut whole = *short;
        whole[0] = byte;
        checksum(&whole) == sum
    })
}

/// Returns true if a short name with this first byte can belong to a long name that begins so. All systems keep a
/// letter or digit, as a capital; for other characters their rules differ.
fn begins(long: &[u16; UNITS], first: u8) -> bool {
    let legal =
        first > b' ' && !first.is_ascii_lowercase() && !b"\"*+,./:;<=>?[\\]|\x7f".contains(&first);
    let plain = u8::try_from(long[0]).ok().filter(u8::is_ascii_alphanumeric);
    legal && plain.is_none_or(|plain| plain.to_ascii_uppercase() == first)
}

/// Decodes UTF-16 up to a NUL. A `/` and half surrogates become `:` and four hexadecimal digits, as Linux shows unknown
/// characters under `uni_xlate`. No name has a `:` of its own.
fn text(units: &[u16]) -> String {
    let len = units.iter().position(|&unit| unit == 0);
    let units = units.iter().take(len.unwrap_or(units.len())).copied();
    let mut text = String::new();
    for unit in char::decode_utf16(units) {
        match unit {
            Ok('/') => text.push_str(":002f"),
            Ok(letter) => text.push(letter),
            Err(half) => text.push_str(&format!(":{:04x}", half.unpaired_surrogate())),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: &[u8; 11] = b"SHORTN~1TXT";

    /// Builds the slots of a name, in disk order.
    fn slots(units: &[u16], sum: u8) -> Vec<Raw> {
        let mut padded = units.to_vec();
        if !units.len().is_multiple_of(UNITS) {
            padded.push(0);
        }
        padded.resize(padded.len().next_multiple_of(UNITS), 0xffff);
        let count = padded.len() / UNITS;
        let slot = |(nth, part): (usize, &[u16])| {
            let mut raw = [0; 32];
            raw[0] = u8::try_from(nth + 1).expect("few") | if nth + 1 == count { LAST } else { 0 };
            raw[11] = 0x0f;
            raw[13] = sum;
            let places = (1..11).chain(14..26).chain(28..32).step_by(2);
            for (at, unit) in places.zip(part) {
                raw[at..at + 2].copy_from_slice(&unit.to_le_bytes());
            }
            raw
        };
        padded.chunks(UNITS).enumerate().map(slot).rev().collect()
    }

    fn utf16(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    fn read(slots: &[Raw]) -> Option<String> {
        let mut name = LongName::new();
        slots.iter().for_each(|slot| name.slot(slot));
        name.take(SHORT)
    }

    #[test]
    fn names_of_every_length() {
        for length in [1, 12, 13, 14, 26, 100, 254, 255] {
            let name: String = ('a'..='z').cycle().take(length).collect();
            assert_eq!(read(&slots(&utf16(&name), checksum(SHORT))), Some(name));
        }
        let name = "日本語 \u{1f600} größe";
        assert_eq!(
            read(&slots(&utf16(name), checksum(SHORT))),
            Some(name.into())
        );
        let halves = [0xd83d, 0x61, 0xde00, 0x2f, 0xd83d];
        let shown = ":d83da:de00:002f:d83d";
        assert_eq!(read(&slots(&halves, checksum(SHORT))), Some(shown.into()));
    }

    #[test]
    fn what_does_not_fit_is_no_name() {
        let sum = checksum(SHORT);
        let sound = slots(&utf16("a name of three slots, to be damaged"), sum);
        assert!(read(&sound).is_some());
        assert_eq!(read(&slots(&utf16("other sum"), sum ^ 1)), None);
        assert_eq!(read(&sound[..2]), None);
        assert_eq!(read(&sound[1..]), None);
        assert_eq!(read(&[sound[0], sound[2]]), None);
        assert_eq!(read(&[sound[0], sound[2], sound[1]]), None);
        assert_eq!(read(&[]), None);
        for (at, byte) in [(0, 0x40), (0, 0x55), (0, 0x03), (13, sum ^ 1)] {
            let mut damaged = sound.clone();
            damaged[0][at] = byte;
            assert_eq!(read(&damaged), None, "{at} {byte:#x}");
        }
        // A second end mark cuts the name.
        let mut twice = sound.clone();
        twice[1][0] |= LAST;
        assert_eq!(read(&twice).as_deref(), Some("a name of three slots, to "));
        // Half a name ahead of a whole one does no harm.
        let after = [&sound[..2], &sound[..]].concat();
        assert_eq!(read(&after), read(&sound));
        let mut name = LongName::new();
        sound.iter().for_each(|slot| name.slot(slot));
        name.clear();
        assert_eq!(name.take(SHORT), None);
    }

    fn gone(slots: &[Raw]) -> Gone {
        let mut name = GoneName::new();
        for slot in slots {
            let mut slot = *slot;
            slot[0] = 0xe5;
            name.slot(&slot);
        }
        let mut short = *SHORT;
        short[0] = 0xe5;
        name.take(&short)
    }

    #[test]
    fn deleted_names_come_back_if_they_are_whole() {
        let sum = checksum(SHORT);
        let whole = |text: &str| Gone {
            first: Some(b'S'),
            long: Some(text.into()),
        };
        let letter = || Gone {
            first: Some(b'S'),
            long: None,
        };
        for text in ["short name", "Short name, but a long one", "s", "- x"] {
            let read = gone(&slots(&utf16(text), sum));
            let full = text.len().is_multiple_of(UNITS);
            assert_eq!(read, if full { letter() } else { whole(text) });
        }
        let three = slots(&utf16("s is a name of three slots"), sum);
        assert_eq!(three.len(), 2);
        let padded = slots(&utf16("s is a name of two slots."), sum);
        // The end of the name is overwritten, or belongs to another name.
        assert_eq!(gone(&padded[1..]), letter());
        let before = slots(&utf16("other"), sum ^ 1);
        let both = [&before[..], &padded[..]].concat();
        assert_eq!(gone(&both), whole("s is a name of two slots."));
        // Two names have the same checksum, so the end of one cannot be told.
        let both = [&padded[..], &padded[..]].concat();
        assert_eq!(gone(&both), letter());
        // The slots belong to another short name: its first letter does not fit the long name.
        assert_eq!(gone(&slots(&utf16("xyz"), sum)), Gone::default());
        assert_eq!(
            gone(&slots(&utf16("short name"), sum ^ 0x30)),
            Gone::default()
        );
        assert_eq!(gone(&[]), Gone::default());
    }
}

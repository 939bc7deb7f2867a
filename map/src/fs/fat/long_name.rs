// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct msdos_dir_slot`: long names, in entries of their own before the short one.

use crate::fs::le::u16_at;

/// UTF-16 units in one slot.
const UNITS: usize = 13;
/// The longest name takes 20 slots (255 units).
const SLOTS: u8 = 20;
/// Marks the slot that comes first and holds the end of the name.
const LAST: u8 = 0x40;

/// The bytes of one directory entry.
pub type Raw = [u8; 32];

/// The slots of one name, in the order of `fat_parse_long`: the name's end first.
pub struct LongName {
    units: Vec<u16>,
    /// The slot to come next, 0 when the name is complete.
    next: u8,
    checksum: u8,
}

impl LongName {
    /// No name so far.
    pub fn new() -> LongName {
        LongName {
            units: Vec::new(),
            next: 0,
            checksum: 0,
        }
    }

    /// Takes a slot. One that does not fit begins anew, or ends what there was.
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
            // Once more the end, further on: Linux cuts the name there.
            self.units.truncate(UNITS.saturating_mul(self.next.into()));
        }
        self.next = self.next.saturating_sub(1);
        let from = UNITS.saturating_mul(self.next.into());
        let places = self.units.iter_mut().skip(from);
        places
            .zip(units(raw))
            .for_each(|(place, unit)| *place = unit);
    }

    /// Forgets the slots: what comes next is no slot, or a deleted one.
    pub fn clear(&mut self) {
        self.units.clear();
        self.next = 0;
    }

    /// The name that belongs to a short one, if it is complete and its checksum is right.
    pub fn take(&mut self, short: &[u8; 11]) -> Option<String> {
        let fits = self.next == 0 && !self.units.is_empty() && checksum(short) == self.checksum;
        let name = fits
            .then(|| text(&self.units))
            .filter(|name| !name.is_empty());
        self.clear();
        name
    }
}

/// The slots of a deleted name. The numbers of deleted slots are lost, but not their order.
pub struct GoneName {
    /// The nearest to the short entry last.
    slots: Vec<([u16; UNITS], u8)>,
}

/// What can be said of a deleted name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Gone {
    /// First byte of the short name.
    pub first: Option<u8>,
    /// The long name, where it is whole for sure.
    pub long: Option<String>,
}

impl GoneName {
    /// No slots so far.
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

    /// Forgets the slots: what comes next is not deleted.
    pub fn clear(&mut self) {
        self.slots.clear();
    }

    /// What the slots say of a deleted short entry that follows them. Its checksum gives back its
    /// first byte; one that cannot stand for the long name's beginning shows that the slots are
    /// another's. The name is whole if nothing but its end is padded; a name that fills its slots
    /// has no sign of its end, and might have lost some.
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

/// The 13 units of a slot, which stand in three places.
fn units(raw: &Raw) -> [u16; UNITS] {
    let places = (1..11).chain(14..26).chain(28..32).step_by(2);
    let mut units = [0; UNITS];
    for (unit, at) in units.iter_mut().zip(places) {
        *unit = u16_at(raw, at).unwrap_or(0);
    }
    units
}

/// `fat_checksum` of a short name.
fn checksum(short: &[u8; 11]) -> u8 {
    let add = |sum: u8, byte: &u8| sum.rotate_right(1).wrapping_add(*byte);
    short.iter().fold(0, add)
}

/// The first byte with which the checksum is right: there is always one, and only one.
fn first_byte(short: &[u8; 11], sum: u8) -> Option<u8> {
    (0..=u8::MAX).find(|&byte| {
        let mut whole = *short;
        whole[0] = byte;
        checksum(&whole) == sum
    })
}

/// Whether a short name that begins with this byte can belong to a long one that begins so. All
/// systems take a letter or a figure over, as a capital; of the rest each makes what it likes.
fn begins(long: &[u16; UNITS], first: u8) -> bool {
    let legal =
        first > b' ' && !first.is_ascii_lowercase() && !b"\"*+,./:;<=>?[\\]|\x7f".contains(&first);
    let plain = u8::try_from(long[0]).ok().filter(u8::is_ascii_alphanumeric);
    legal && plain.is_none_or(|plain| plain.to_ascii_uppercase() == first)
}

/// Up to a NUL. What no name can have, and half surrogates, are given as Linux gives unknown
/// letters under `uni_xlate`: `:` and four figures. No name has a `:` of its own.
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

    /// The slots of a name, in their order on the disk.
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
        // A second end cuts the name.
        let mut twice = sound.clone();
        twice[1][0] |= LAST;
        assert_eq!(read(&twice).as_deref(), Some("a name of three slots, to "));
        // Half a name before a whole one does no harm.
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
        // Its end is overwritten, or is another's.
        assert_eq!(gone(&padded[1..]), letter());
        let before = slots(&utf16("other"), sum ^ 1);
        let both = [&before[..], &padded[..]].concat();
        assert_eq!(gone(&both), whole("s is a name of two slots."));
        // Two names with the same checksum: where one ends is not to be told.
        let both = [&padded[..], &padded[..]].concat();
        assert_eq!(gone(&both), letter());
        // The slots of another short name: the letter does not fit the long name.
        assert_eq!(gone(&slots(&utf16("xyz"), sum)), Gone::default());
        assert_eq!(
            gone(&slots(&utf16("short name"), sum ^ 0x30)),
            Gone::default()
        );
        assert_eq!(gone(&[]), Gone::default());
    }
}

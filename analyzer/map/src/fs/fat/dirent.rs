// SPDX-License-Identifier: MIT OR Apache-2.0
//! `struct msdos_dir_entry`: a directory's entry for a file.

use super::boot_record::FatBits;
use super::cluster::Cluster;
use super::long_name::{Gone, GoneName, LongName, Raw};
use super::short_name;
use crate::fs::le::{u16_at, u32_at};

/// Bits of `attr`.
const ATTR_VOLUME: u8 = 0x08;
const ATTR_DIR: u8 = 0x10;
/// The value of `attr` in a slot of a long name.
const ATTR_EXT: u8 = 0x0f;
const DELETED_FLAG: u8 = 0xe5;

/// A file or directory, existing or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dirent {
    /// The name in UTF-8, without `/`. Empty for an entry whose name is all spaces, which Linux does not show.
    pub name: String,
    pub is_directory: bool,
    /// First cluster; 0 for an empty file.
    pub start: Cluster,
    /// Length in bytes; 0 for a directory.
    pub size: u32,
    pub deleted: bool,
}

/// Parses the entries of one directory in their order.
pub struct Entries {
    fat_bits: FatBits,
    long: LongName,
    gone: GoneName,
    ended: bool,
    /// True if there are entries behind the directory's end mark. Linux shows them, other systems do not.
    pub after_end: bool,
}

impl Entries {
    /// Starts with no entry read.
    pub fn new(fat_bits: FatBits) -> Entries {
        Entries {
            fat_bits,
            long: LongName::new(),
            gone: GoneName::new(),
            ended: false,
            after_end: false,
        }
    }

    /// Takes the next 32 bytes. Returns the file that they complete; `.`, `..` and the volume's label are not files.
    pub fn next(&mut self, raw: &Raw) -> Option<Dirent> {
        let (first, attr) = (raw[0], raw[11]);
        if first == DELETED_FLAG {
            self.long.clear();
            return self.deleted(raw);
        }
        if attr == ATTR_EXT {
            self.gone.clear();
            self.long.slot(raw);
            return None;
        }
        self.gone.clear();
        if first == 0 {
            self.ended = true;
        }
        if first == 0 || attr & ATTR_VOLUME != 0 {
            self.long.clear();
            return None;
        }
        let short = short(raw);
        let long = self.long.take(&short);
        if &short == b".          " || &short == b"..         " {
            return None;
        }
        self.after_end |= self.ended;
        let name = long.unwrap_or_else(|| tidy(&short_name::decode(&short, raw[12])));
        Some(self.entry(raw, name, false))
    }

    /// Returns a deleted file. The first letter of its short name survives only in the long name's slots. Behind the
    /// directory's end mark it is not known what was written and when, so nothing is returned.
    fn deleted(&mut self, raw: &Raw) -> Option<Dirent> {
        let attr = raw[11];
        if attr == ATTR_EXT {
            self.gone.slot(raw);
            return None;
        }
        let mut short = short(raw);
        let Gone { first, long } = self.gone.take(&short);
        if self.ended || attr & ATTR_VOLUME != 0 {
            return None;
        }
        short[0] = first.unwrap_or(b'?');
        let name = long.unwrap_or_else(|| tidy(&short_name::decode(&short, raw[12])));
        Some(self.entry(raw, name, true))
    }

    fn entry(&self, raw: &Raw, name: String, deleted: bool) -> Dirent {
        let low = u16_at(raw, 26).map_or(0, u32::from);
        let high = match self.fat_bits {
            FatBits::ThirtyTwo => u16_at(raw, 20).map_or(0, u32::from),
            _ => 0,
        };
        Dirent {
            name,
            is_directory: raw[11] & ATTR_DIR != 0,
            start: Cluster(high << 16 | low),
            size: u32_at(raw, 28).unwrap_or(0),
            deleted,
        }
    }
}

fn short(raw: &Raw) -> [u8; 11] {
    let mut short = [b' '; 11];
    short.copy_from_slice(&raw[..11]);
    short
}

/// Replaces `/`, which a short name has only if it is damaged.
fn tidy(name: &str) -> String {
    name.replace('/', ":002f")
}

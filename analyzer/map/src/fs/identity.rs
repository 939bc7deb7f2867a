// SPDX-License-Identifier: MIT OR Apache-2.0
//! What tells one filesystem from another.

use std::fmt::{self, Display};

use crate::fs::image::Image;
use crate::fs::recognise::{Filesystem, recognise};

/// The number with which a filesystem was made: its UUID, or FAT's serial number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    kind: &'static str,
    number: Vec<u8>,
}

impl Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        for (nth, byte) in self.number.iter().enumerate() {
            if matches!(nth, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// Byte offsets: `s_uuid` of ext4, `uuid` of f2fs, the serial numbers in the boot records of FAT32 and of the smaller ones.
const EXT: u64 = 1024 + 0x68;
const F2FS: u64 = 1024 + 108;
const FAT32: u64 = 67;
const FAT: u64 = 39;

/// Returns what tells the filesystem on an image from others; None if nothing is known that does.
pub fn identity(image: &Image) -> Option<Identity> {
    let (kind, at, len) = match recognise(image).ok()?? {
        Filesystem::Ext => ("ext4", EXT, 16),
        Filesystem::F2fs => ("f2fs", F2FS, 16),
        Filesystem::Fat => {
            let is_32 = image.read(82, 5, "boot record").ok()? == b"FAT32";
            ("FAT", if is_32 { FAT32 } else { FAT }, 4)
        }
        Filesystem::ExFat => return None,
    };
    let number = image.read(at, len, "first blocks").ok()?;
    Some(Identity { kind, number })
}

/// Returns the length in bytes that the filesystem on an image says it has; None if it is not known.
pub fn length(image: &Image) -> Option<u64> {
    let number = |at: u64, len: usize| -> Option<u64> {
        let bytes = image.read(at, len, "first blocks").ok()?;
        let whole = bytes.iter().rev();
        Some(whole.fold(0, |all, &byte| all << 8 | u64::from(byte)))
    };
    match recognise(image).ok()?? {
        Filesystem::Ext => {
            let has_64_bits = number(1024 + 0x60, 4)? & 0x80 != 0;
            let high = if has_64_bits {
                number(1024 + 0x150, 4)?
            } else {
                0
            };
            let blocks = high << 32 | number(1024 + 4, 4)?;
            let shift = u32::try_from(number(1024 + 0x18, 4)?).ok()?;
            blocks.checked_mul(1024_u64.checked_shl(shift)?)
        }
        Filesystem::F2fs => {
            let shift = u32::try_from(number(1024 + 16, 4)?).ok()?;
            number(1024 + 36, 8)?.checked_mul(1_u64.checked_shl(shift)?)
        }
        Filesystem::Fat => {
            let sectors = match number(19, 2)? {
                0 => number(32, 4)?,
                few => few,
            };
            sectors.checked_mul(number(11, 2)?)
        }
        Filesystem::ExFat => None,
    }
}

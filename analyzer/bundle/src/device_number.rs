// SPDX-License-Identifier: MIT OR Apache-2.0
//! The number of a device.

use std::fmt;

/// The bits of the minor number in the form in which the kernel and blktrace keep both (`MINORBITS` in <linux/kdev_t.h>).
const MINOR_BITS: u32 = 20;

/// The number of a device. As text it is `MAJ:MIN`, as in sysfs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceNumber {
    /// Its driver's number, below 2¹².
    pub major: u32,
    /// The device's own, below 2²⁰.
    pub minor: u32,
}

impl DeviceNumber {
    /// Takes `major << 20 | minor`.
    #[must_use]
    pub const fn of(dev: u32) -> DeviceNumber {
        DeviceNumber {
            major: dev >> MINOR_BITS,
            minor: dev & ((1 << MINOR_BITS) - 1),
        }
    }

    /// Parses `MAJ:MIN`; None if it is something else, or if a number is too large.
    #[must_use]
    pub fn parse(text: &str) -> Option<DeviceNumber> {
        let (major, minor) = text.split_once(':')?;
        let (major, minor) = (major.parse().ok()?, minor.parse().ok()?);
        let is_one = major < 1 << (32 - MINOR_BITS) && minor < 1 << MINOR_BITS;
        is_one.then_some(DeviceNumber { major, minor })
    }

    /// Returns `major << 20 | minor`.
    #[must_use]
    pub const fn dev(self) -> u32 {
        self.major << MINOR_BITS | self.minor
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_text_and_a_word() {
        let number = DeviceNumber {
            major: 259,
            minor: 7,
        };
        assert_eq!(number.dev(), 0x1030_0007);
        assert_eq!(DeviceNumber::of(0x1030_0007), number);
        assert_eq!(number.to_string(), "259:7");
        assert_eq!(DeviceNumber::parse("259:7"), Some(number));
        let largest = DeviceNumber::parse("4095:1048575").unwrap();
        assert_eq!(largest.dev(), u32::MAX);
        for other in [
            "259",
            "259:",
            "259:7:1",
            "4096:0",
            "0:1048576",
            "-1:0",
            "sda",
        ] {
            assert_eq!(DeviceNumber::parse(other), None, "{other}");
        }
    }
}

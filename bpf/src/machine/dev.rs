// SPDX-License-Identifier: MIT OR Apache-2.0
//! Device numbers in the form in which the kernel and blktrace keep them, major << 20 | minor.

use mostrace_bundle::DeviceNumber;

/// Parses sysfs' `major:minor`.
pub(crate) fn parse_dev(text: &str) -> Option<u32> {
    DeviceNumber::parse(text).map(DeviceNumber::dev)
}

/// Splits a device number from `stat`.
pub(crate) fn number_of_stat(dev: u64) -> DeviceNumber {
    DeviceNumber {
        major: rustix::fs::major(dev),
        minor: rustix::fs::minor(dev),
    }
}

/// Converts a device number from `stat`.
pub(crate) fn dev_of_stat(dev: u64) -> u32 {
    number_of_stat(dev).dev()
}

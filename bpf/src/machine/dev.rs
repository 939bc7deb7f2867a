// SPDX-License-Identifier: MIT OR Apache-2.0
//! The number of a device.

/// Returns major << 20 | minor, the form in which the kernel and blktrace keep a device number.
pub(super) fn kernel_dev(major: u32, minor: u32) -> u32 {
    major << 20 | minor
}

/// Parses sysfs' `major:minor`.
pub(super) fn parse_dev(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(':')?;
    Some(kernel_dev(major.parse().ok()?, minor.parse().ok()?))
}

/// Converts a device number from `stat` to the kernel's form.
pub(crate) fn dev_of_stat(dev: u64) -> u32 {
    kernel_dev(rustix::fs::major(dev), rustix::fs::minor(dev))
}

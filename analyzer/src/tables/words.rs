// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words of the tables that come from the bundle's and the kernel's numbers.

use mostrace_bundle::entry::Origin;

/// What a bio's pages belonged to.
pub(super) fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::FILE => "file",
        Origin::BDEV => "bdev",
        Origin::DIRECT => "direct",
        Origin::RAW => "raw",
        Origin::JOURNAL => "journal",
        Origin::EMPTY => "empty",
        Origin::NODE => "node",
        Origin::META => "meta",
        _ => "unknown",
    }
}

/// A device number as `major:minor`.
pub(super) fn device(device: u32) -> String {
    format!("{}:{}", device >> 20, device & 0xf_ffff)
}

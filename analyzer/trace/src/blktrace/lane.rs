// SPDX-License-Identifier: MIT OR Apache-2.0
//! The key, beside sectors, by which bios and requests are kept apart.

/// A device and a direction; items of different lanes are never matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lane(pub u64);

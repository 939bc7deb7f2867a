// SPDX-License-Identifier: MIT OR Apache-2.0
//! What keeps bios and requests apart beside their sectors.

/// A device and a direction: items of different lanes never meet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lane(pub u64);

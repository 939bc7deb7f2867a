// SPDX-License-Identifier: MIT OR Apache-2.0
//! A set of disks.

/// The most disks that are kept: a trace has few, a damaged one may name any number.
const CAPACITY: usize = 64;

/// Disks, by the trace's device number.
#[derive(Default)]
pub(super) struct Disks(Vec<u32>);

impl Disks {
    /// Adds a disk, unless there are too many.
    #[inline]
    pub fn add(&mut self, device: u32) {
        if !self.has(device) && self.0.len() < CAPACITY {
            self.0.push(device);
        }
    }

    #[inline]
    pub fn has(&self, device: u32) -> bool {
        self.0.contains(&device)
    }
}

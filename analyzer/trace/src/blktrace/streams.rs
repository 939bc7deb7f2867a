// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds requests that begin where the one before them ended.

use super::spans::end;
use mostrace_bundle::blk_io_trace::Event;
use mostrace_bundle::blk_io_trace::action::{
    BLK_TC_DISCARD, BLK_TC_PC, BLK_TC_WRITE, BLK_TC_WRITE_ZEROES, BLK_TC_ZONE_MANAGEMENT,
};

/// Returns true if an event's request reads or writes data, and so belongs to a stream.
pub(super) fn carries_data(event: &Event<'_>) -> bool {
    const NO_DATA: u64 = BLK_TC_PC | BLK_TC_DISCARD | BLK_TC_WRITE_ZEROES | BLK_TC_ZONE_MANAGEMENT;
    event.action & NO_DATA == 0 && event.bytes > 0
}

/// The end sector of the last request of each device and direction.
#[derive(Default)]
pub(super) struct Streams {
    /// A list is enough, because there are few.
    ends: Vec<((u32, bool), u64)>,
}

impl Streams {
    /// Takes the next request as it is issued; returns true if it begins where the one before it ended.
    pub fn follows(&mut self, event: &Event<'_>) -> bool {
        if !carries_data(event) {
            return false;
        }
        let stream = (event.device, event.action & BLK_TC_WRITE != 0);
        let end = end(event.sector, event.bytes);
        match self.ends.iter_mut().find(|(known, _)| *known == stream) {
            Some((_, at)) => std::mem::replace(at, end) == event.sector,
            None => {
                self.ends.push((stream, end));
                false
            }
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's events of requests and bios, in whatever form a trace has their fields: include/trace/events/block.h.

use mostrace_bundle::blk_io_trace::action::{BLK_TC_WRITE_ZEROES, ta};
use mostrace_bundle::blk_io_trace::rwbs::{categories, categories_of_bio};

use super::seen::{Seen, bytes_of_sectors, length};

/// What the fields of an event are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub stage: u64,
    /// True if they describe a bio, otherwise a request, whose command they have.
    pub is_of_bio: bool,
    /// True if they have the bytes of a command.
    pub has_bytes: bool,
}

/// Returns the shape of an event; None if it is none that is imported.
pub(super) fn shape(event: &[u8]) -> Option<Shape> {
    let shape = |stage, is_of_bio, has_bytes| Shape {
        stage,
        is_of_bio,
        has_bytes,
    };
    Some(match event {
        b"block_bio_queue" => shape(ta::QUEUE, true, false),
        b"block_split" => shape(ta::SPLIT, true, false),
        b"block_rq_insert" => shape(ta::INSERT, false, true),
        b"block_rq_issue" => shape(ta::ISSUE, false, true),
        b"block_rq_requeue" => shape(ta::REQUEUE, false, false),
        b"block_rq_complete" => shape(ta::COMPLETE, false, false),
        _ => return None,
    })
}

/// What is done, and where.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub rwbs: &'a [u8],
    /// -1 is none.
    pub sector: u64,
    /// The number of sectors, or of a split the sector at which it cuts.
    pub extent: u64,
    /// The bytes of a command without sectors.
    pub command: u64,
}

impl Shape {
    /// Returns true if the event has an error, otherwise the name of a thread.
    pub fn has_error(self) -> bool {
        matches!(self.stage, ta::COMPLETE | ta::REQUEUE)
    }

    /// Fills in what is done; None if the fields contradict each other.
    pub fn seen<'a>(self, seen: Seen<'a>, place: Place<'_>) -> Option<Result<Seen<'a>, String>> {
        let is_split = self.stage == ta::SPLIT;
        let sectors = match is_split {
            true => place.extent.checked_sub(place.sector)?,
            false => place.extent,
        };
        let bytes = match sectors {
            0 => length(place.command),
            _ => bytes_of_sectors(sectors),
        };
        let none = place.sector == u64::MAX;
        let categories = match self.is_of_bio {
            true => categories_of_bio(place.rwbs, sectors),
            false => categories(place.rwbs, sectors),
        };
        // Of what has no letter, only this has sectors; a zoned disk's appends do too, before 6.17.
        let zeroes = match place.rwbs.first() {
            Some(b'N') if sectors > 0 => BLK_TC_WRITE_ZEROES,
            _ => 0,
        };
        Some(bytes.map(|bytes| Seen {
            stage: self.stage,
            sector: if none { 0 } else { place.sector },
            bytes,
            cut_at: is_split.then_some(place.extent),
            categories: categories | zeroes,
            ..seen
        }))
    }
}

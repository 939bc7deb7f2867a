// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bio, as its tracepoint of queueing shows it.

use mostrace_bundle::blk_io_trace::action::{
    BLK_TC_AHEAD, BLK_TC_DISCARD, BLK_TC_FLUSH, BLK_TC_WRITE,
};
use mostrace_bundle::blk_io_trace::rwbs::categories;

use super::instance::Record;
use super::tracepoints::Event;

/// A bio at the time when it is queued.
#[derive(Debug)]
pub(super) struct Bio {
    pub dev: u32,
    pub pid: u32,
    pub sector: u64,
    pub sectors: u64,
    categories: u64,
    pub comm: Vec<u8>,
}

impl Bio {
    /// Parses a record of the tracepoint; None if a field is missing.
    pub fn of(event: &Event, record: &Record) -> Option<Bio> {
        let bytes = &record.bytes;
        let sectors = event.number("nr_sector", bytes)?;
        let sector = event.number("sector", bytes)?;
        Some(Bio {
            dev: event.number("dev", bytes)? as u32,
            pid: event.number("common_pid", bytes)? as u32,
            sector: if sector == u64::MAX { 0 } else { sector },
            sectors,
            categories: categories(event.field("rwbs")?.text(bytes)?, sectors),
            comm: event.field("comm")?.text(bytes)?.to_vec(),
        })
    }

    /// Returns true if the bio reads or writes blocks.
    pub fn is_data(&self) -> bool {
        self.sectors > 0 && self.categories & BLK_TC_DISCARD == 0
    }

    /// Returns REQ_OP of <linux/blk_types.h>, as far as the letters show it.
    pub fn opf(&self) -> u32 {
        let has = |category| self.categories & category != 0;
        match (has(BLK_TC_DISCARD), has(BLK_TC_WRITE), has(BLK_TC_FLUSH)) {
            (true, ..) => 3,
            (false, true, _) => 1,
            (false, false, true) if !has(BLK_TC_AHEAD) => 2,
            _ => 0,
        }
    }
}

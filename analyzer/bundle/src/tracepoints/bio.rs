// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bio, as its tracepoint of queueing shows it.

use crate::blk_io_trace::action::{BLK_TC_AHEAD, BLK_TC_DISCARD, BLK_TC_FLUSH, BLK_TC_WRITE};
use crate::blk_io_trace::rwbs::categories;

use super::tells::Fields;

/// When and where an event happened.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The time, ns.
    pub time_ns: u64,
    /// The CPU.
    pub cpu: u32,
}

/// A bio at the time when it is queued.
#[derive(Debug)]
pub struct Bio {
    /// The device, MAJ << 20 | MIN.
    pub dev: u32,
    /// The thread that queues it.
    pub pid: u32,
    /// The first sector.
    pub sector: u64,
    /// The number of sectors.
    pub sectors: u64,
    /// The categories of [`crate::blk_io_trace::action`].
    pub categories: u64,
    /// The thread's name.
    pub comm: Vec<u8>,
}

impl Bio {
    /// Returns the bio of an event; None if a field is missing.
    pub fn of(fields: &dyn Fields) -> Option<Bio> {
        let sectors = fields.number("nr_sector")?;
        let sector = fields.number("sector")?;
        Some(Bio {
            dev: u32::try_from(fields.number("dev")?).ok()?,
            pid: fields.thread()?,
            sector: if sector == u64::MAX { 0 } else { sector },
            sectors,
            categories: categories(fields.text("rwbs")?, sectors),
            comm: fields.text("comm")?.to_vec(),
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

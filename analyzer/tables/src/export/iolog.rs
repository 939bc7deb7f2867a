// SPDX-License-Identifier: MIT OR Apache-2.0
//! Writes fio's iolog, version 3: reads, writes, trims, and a sync for each cache flush that the device executed.
//!
//! Times are µs since the first request, plus one, because fio treats a time of 0 as missing and then ignores the delay
//! after it.
//!
//! A sync stands where the flush was asked for: before a write with a preflush, and after a write for whose FUA the kernel
//! flushed. Requests that shared one flush of the device yield one sync, at the place of the first of them, because fio
//! waits for each sync: so the device executes as many flushes as before. A flush that no known request asked for stands
//! where the device began it.

use std::collections::HashSet;
use std::io::{BufWriter, Write};

use super::error::Result;
use super::left_out::LeftOut;
use super::requests::{self, Request, SECTOR};
use crate::facts::Facts;
use mostrace_trace::attribute::Op;
use mostrace_trace::output::Output;
use mostrace_trace::tally::Tally;

/// Writes the log; `target` is the file or device that fio is to write to.
///
/// # Errors
/// Returns an error if the output cannot be written or the rows cannot be read.
pub(super) fn write(
    facts: &Facts,
    target: &str,
    out: &mut Output,
    left_out: &mut LeftOut,
) -> Result<()> {
    let mut log = Log {
        out: BufWriter::new(out),
        target,
        start_ns: None,
        last_us: 0,
        flushed: HashSet::default(),
    };
    writeln!(log.out, "fio version 3 iolog")?;
    writeln!(log.out, "0 {target} add")?;
    writeln!(log.out, "0 {target} open")?;
    left_out.late = requests::each(facts, |request| log.request(request, left_out))?;
    writeln!(log.out, "{} {target} close", log.last_us)?;
    Ok(log.out.flush()?)
}

struct Log<'o> {
    out: BufWriter<&'o mut Output>,
    target: &'o str,
    start_ns: Option<u64>,
    last_us: u64,
    /// The device's flushes that already have their sync, by the number of the completion.
    flushed: HashSet<u32, foldhash::fast::RandomState>,
}

impl Log<'_> {
    fn request(&mut self, request: &Request, left_out: &mut LeftOut) -> Result<()> {
        let start_ns = *self.start_ns.get_or_insert(request.arrived_ns);
        let since_us = request.arrived_ns.saturating_sub(start_ns) / 1000;
        self.last_us = since_us.saturating_add(1).max(self.last_us);
        if let Some(flush) = flush_of(request) {
            self.sync(flush)?;
        }
        let word = match request.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Discard => "trim",
            Op::Flush | Op::DeviceFlush => return Ok(()),
            _ => {
                left_out.moves(request);
                return Ok(());
            }
        };
        if request.op == Op::Write && request.fua {
            left_out.fua.tally(1);
        }
        let offset = request.sector.unwrap_or(0).saturating_mul(SECTOR);
        let (last_us, target, bytes) = (self.last_us, self.target, request.bytes);
        writeln!(self.out, "{last_us} {target} {word} {offset} {bytes}")?;
        Ok(())
    }

    fn sync(&mut self, flush: u32) -> Result<()> {
        if self.flushed.insert(flush) {
            writeln!(self.out, "{} {} sync 0 0", self.last_us, self.target)?;
        }
        Ok(())
    }
}

/// Returns the number of a flush of the device: the request itself if it is one, or the flush for which it waited.
fn flush_of(request: &Request) -> Option<u32> {
    match request.op {
        Op::DeviceFlush => Some(request.number),
        _ => request.device_flush,
    }
}

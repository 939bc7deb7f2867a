// SPDX-License-Identifier: MIT OR Apache-2.0
//! The output of MOST, and of `blkparse -f "%5T.9%t\t%a\t%d\t%8S\t%4n\t%4p\t%20C\n"`, which it is made of:
//!
//! ```text
//!     0.000107645⇥D⇥WAS⇥23901648⇥   8⇥103336⇥     GCMReader⇥D⇥/data/app/rmq.db-journal
//! seconds         action, rwbs, sector, sectors, pid, name, then M, J or D, and the path of a D
//! ```
//!
//! <https://github.com/ESOS-Lab/MOST>, "Example". Its kernel adds a tag to the pid of who writes a file of SQLite's: 100000 for a
//! rollback journal, up to 500000 for a database. It has no device.

use mostrace_bundle::blk_io_trace::action::ta;

use super::blkparse::{categories_at, stage};
use super::devices::Devices;
use super::seen::{LineReader, Seen, Taker, bytes_of_sectors, malformed};
use super::words::{number, scaled};

/// The least tag; no process of such kernels has as high a number.
const TAG: u64 = 100_000;

#[derive(Default)]
pub(super) struct Most(Devices);

/// Returns true if the line is an event's.
pub(super) fn is_event(line: &[u8]) -> bool {
    parse(line).is_some()
}

/// Parses an event; None within if it does not change what completes.
fn parse(line: &[u8]) -> Option<Option<Result<Seen<'_>, String>>> {
    let mut fields = line.split(|&byte| byte == b'\t').map(<[u8]>::trim_ascii);
    let mut next = || fields.next();
    let time = next()?;
    let time_ns = scaled(time, 1_000_000_000).filter(|_| time.contains(&b'.'))?;
    let (action, rwbs) = (next()?, next()?);
    let (sector, sectors, pid) = (number(next()?)?, number(next()?)?, number(next()?)?);
    let comm = next()?;
    // Only MOST has tags, and only in what it takes for a file's.
    let is_tagged = next() == Some(b"D");
    let pid = u32::try_from(if is_tagged { pid % TAG } else { pid }).ok()?;
    let is_action = matches!(action, [b'A'..=b'Z'] | [b'U', b'T'] | b"m");
    if !is_action || !rwbs.iter().all(u8::is_ascii_uppercase) {
        return None;
    }
    let Some(stage) = stage(action) else {
        return Some(None);
    };
    Some(Some(bytes_of_sectors(sectors).map(|bytes| Seen {
        time_ns,
        pid,
        comm: (stage != ta::COMPLETE && !comm.is_empty()).then_some(comm),
        stage,
        categories: categories_at(stage, rwbs, bytes),
        sector,
        bytes,
        ..Seen::default()
    })))
}

impl LineReader for Most {
    fn line(&mut self, line: &[u8], to: &mut dyn Taker) -> Result<bool, String> {
        if line.is_empty() {
            return Ok(true);
        }
        let parsed = parse(line).ok_or_else(|| malformed("an event as MOST prints it"))?;
        if let Some(seen) = parsed {
            let device = self.0.number(b"disk", to)?;
            to.event(&Seen { device, ..seen? })?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_no_part_of_the_pid() {
        let line = b"    0.095445001\tQ\tWS\t23901648\t   8\t103336\t     Web Content\tD\t/data/a b.db-journal";
        let seen = parse(line).unwrap().unwrap().unwrap();
        assert_eq!((seen.time_ns, seen.pid), (95_445_001, 3336));
        assert_eq!((seen.sector, seen.bytes), (23_901_648, 4096));
        assert_eq!(seen.comm, Some(&b"Web Content"[..]));
        let plain = b"    0.1\tC\tWAS\t4080008\t  88\t 137\t  jbd2/mmcblk0p28";
        let seen = parse(plain).unwrap().unwrap().unwrap();
        assert_eq!((seen.pid, seen.bytes, seen.comm), (137, 45056, None));
        let large = b"    0.1\tQ\tWS\t8\t8\t234567\tsh";
        assert_eq!(parse(large).unwrap().unwrap().unwrap().pid, 234_567);
        let remap = b"    0.1\tA\tWS\t8\t   8\t 137\t  jbd2/mmcblk0p28\tJ";
        assert!(parse(remap).unwrap().is_none());
        for other in [
            "1\tQ\tWS\t8\t8\t1\tx",
            "0.1\tQ\tWS\t8\t8\t1",
            "0.1\tq\tWS\t8\t8\t1\tx",
        ] {
            assert!(!is_event(other.as_bytes()), "{other}");
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! fio's iolog, versions 2 and 3:
//!
//! ```text
//! fio version 3 iolog
//! 1250 /dev/sda write 4096 8192       time, file, action, offset, length
//! ```
//!
//! <https://fio.readthedocs.io/en/latest/fio_doc.html>, "Trace file format". Version 2 has no times but lines of `wait`, in µs
//! since the wait before. fio writes and reads the times of version 3 in µs. Each file is taken for a device. A sync is taken
//! for a flush.

use mostrace_bundle::blk_io_trace::action::{
    BLK_TC_DISCARD, BLK_TC_FLUSH, BLK_TC_FS, BLK_TC_READ, BLK_TC_WRITE, ta,
};

use super::devices::Devices;
use super::seen::{LineReader, Seen, Taker, length, malformed, sector_at};
use super::words::{Words, number};

#[derive(Default)]
pub(super) struct Iolog {
    /// 2 or 3; 0 ahead of the first line.
    version: u8,
    now_us: u64,
    devices: Devices,
}

const NS: u64 = 1_000;

/// Returns the version that the line announces.
pub(super) fn version(line: &[u8]) -> Option<u8> {
    match line {
        b"fio version 2 iolog" => Some(2),
        b"fio version 3 iolog" => Some(3),
        _ => None,
    }
}

impl LineReader for Iolog {
    fn line(&mut self, line: &[u8], to: &mut dyn Taker) -> Result<bool, String> {
        if let Some(version) = version(line) {
            // Another log of several.
            *self = Iolog {
                version,
                devices: std::mem::take(&mut self.devices),
                ..Iolog::default()
            };
            return Ok(true);
        }
        if line.is_empty() {
            return Ok(true);
        }
        let what = match self.version {
            3 => "`time file action [offset length]`",
            _ => "`file action [offset length]`",
        };
        if let Some(seen) = self.entry(line, to).ok_or_else(|| malformed(what))?? {
            to.event(&seen)?;
        }
        Ok(true)
    }
}

impl Iolog {
    /// Parses a line; None within if it accesses nothing.
    fn entry(
        &mut self,
        line: &[u8],
        to: &mut dyn Taker,
    ) -> Option<Result<Option<Seen<'static>>, String>> {
        let mut words = Words::of(line);
        if self.version == 3 {
            self.now_us = words.number()?;
        }
        let file = words.word()?;
        let categories = match words.word()? {
            b"read" => BLK_TC_READ,
            b"write" => BLK_TC_WRITE,
            b"trim" => BLK_TC_WRITE | BLK_TC_DISCARD,
            b"sync" | b"datasync" | b"sync_file_range" => BLK_TC_WRITE | BLK_TC_FLUSH,
            b"wait" => {
                self.now_us = self.now_us.checked_add(words.number()?)?;
                return Some(Ok(None));
            }
            b"add" | b"open" | b"close" => return Some(Ok(None)),
            _ => return None,
        };
        let (offset, bytes) = match (categories & BLK_TC_FLUSH, words.word()) {
            (0, offset) => (number(offset?)?, words.number()?),
            _ => (0, 0),
        };
        let time_ns = self.now_us.checked_mul(NS)?;
        Some(self.devices.number(file, to).and_then(|device| {
            Ok(Some(Seen {
                time_ns,
                device,
                stage: ta::COMPLETE,
                categories: categories | BLK_TC_FS,
                sector: sector_at(offset).0,
                bytes: length(bytes)?,
                ..Seen::default()
            }))
        }))
    }
}

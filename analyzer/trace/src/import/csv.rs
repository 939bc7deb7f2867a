// SPDX-License-Identifier: MIT OR Apache-2.0
//! Block traces that are published as lines of fields with commas between them:
//!
//! | of | fields | units |
//! | --- | --- | --- |
//! | Alibaba | device, R or W, offset, length, time | bytes, µs |
//! | MSR Cambridge | time, host, disk, Read or Write, offset, length, response time | bytes, 100 ns since 1601 |
//! | Tencent | time, offset, length, 0 or 1 (write), volume | sectors, s since 1970 |
//!
//! <https://github.com/alibaba/block-traces>, <http://iotta.snia.org/traces/block-io/388> and
//! <http://iotta.snia.org/traces/parallel/27917>. Times are when requests arrived. The traces have no headers; one that was
//! added is skipped.

use mostrace_bundle::blk_io_trace::action::{BLK_TC_FS, BLK_TC_READ, BLK_TC_WRITE, ta};
use mostrace_bundle::entry::UNKNOWN_ID;

use super::devices::Devices;
use super::seen::{LineReader, Seen, Taker, bytes_of_sectors, length, malformed, sector_at};
use super::words::number;

/// Whose trace it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Alibaba,
    Msr,
    Tencent,
}

pub(super) struct Csv {
    of: Of,
    devices: Devices,
    is_begun: bool,
}

/// A request of one of these traces.
struct Request<'a> {
    device: &'a [u8],
    /// The disk of a host that several may be of.
    disk: &'a [u8],
    time_ns: u64,
    took_ns: Option<u64>,
    is_write: bool,
    sector: u64,
    bytes: Result<u32, String>,
}

impl Csv {
    pub fn new(of: Of) -> Csv {
        Csv {
            of,
            devices: Devices::default(),
            is_begun: false,
        }
    }
}

/// Returns whose trace has such a line.
pub(super) fn recognise(line: &[u8]) -> Option<Of> {
    let all = [Of::Msr, Of::Alibaba, Of::Tencent];
    all.into_iter().find(|of| parse(*of, line).is_some())
}

/// The time from 1601 to 1970, in units of 100 ns.
const FILETIME_OF_UNIX: u64 = 116_444_736_000_000_000;

fn parse(of: Of, line: &[u8]) -> Option<Request<'_>> {
    let mut fields = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    let mut next = || fields.next();
    let request = match of {
        Of::Alibaba => {
            let device = next()?;
            number(device)?;
            let is_write = direction(next()?, b"R", b"W")?;
            let (sector, bytes) = (sector_at(number(next()?)?).0, length(number(next()?)?));
            Request {
                device,
                disk: b"",
                time_ns: number(next()?)?.checked_mul(1_000)?,
                took_ns: None,
                is_write,
                sector,
                bytes,
            }
        }
        Of::Msr => {
            let since_1970 = number(next()?)?.checked_sub(FILETIME_OF_UNIX)?;
            let (device, disk) = (next()?, next()?);
            let is_write = direction(next()?, b"Read", b"Write")?;
            let (sector, bytes) = (sector_at(number(next()?)?).0, length(number(next()?)?));
            Request {
                device,
                disk,
                time_ns: since_1970.checked_mul(100)?,
                took_ns: Some(number(next()?)?.checked_mul(100)?),
                is_write,
                sector,
                bytes,
            }
        }
        Of::Tencent => {
            let time_ns = number(next()?)?.checked_mul(1_000_000_000)?;
            let (sector, bytes) = (number(next()?)?, bytes_of_sectors(number(next()?)?));
            let is_write = direction(next()?, b"0", b"1")?;
            let device = next()?;
            number(device)?;
            Request {
                device,
                disk: b"",
                time_ns,
                took_ns: None,
                is_write,
                sector,
                bytes,
            }
        }
    };
    next().is_none().then_some(request)
}

fn direction(word: &[u8], read: &[u8], write: &[u8]) -> Option<bool> {
    match word {
        word if word.eq_ignore_ascii_case(read) => Some(false),
        word if word.eq_ignore_ascii_case(write) => Some(true),
        _ => None,
    }
}

impl LineReader for Csv {
    fn line(&mut self, line: &[u8], to: &mut dyn Taker) -> Result<bool, String> {
        let is_first = !std::mem::replace(&mut self.is_begun, true);
        let Some(request) = parse(self.of, line) else {
            let is_header = is_first && line.first().is_some_and(u8::is_ascii_alphabetic);
            return match is_header || line.is_empty() {
                true => Ok(true),
                false => Err(malformed(&format!("a request as of {:?}", self.of))),
            };
        };
        let device = match request.disk {
            b"" => self.devices.number(request.device, to)?,
            disk => {
                let name = [request.device, b".", disk].concat();
                self.devices.number(&name, to)?
            }
        };
        let direction = match request.is_write {
            true => BLK_TC_WRITE,
            false => BLK_TC_READ,
        };
        let seen = Seen {
            time_ns: request.time_ns,
            device,
            stage: ta::COMPLETE,
            categories: direction | BLK_TC_FS,
            sector: request.sector,
            bytes: request.bytes?,
            ..Seen::default()
        };
        if self.of != Of::Alibaba {
            to.wall_clock(request.time_ns, request.time_ns);
        }
        let Some(took_ns) = request.took_ns else {
            to.event(&seen)?;
            return Ok(true);
        };
        let end_ns = request.time_ns.checked_add(took_ns);
        to.event(&Seen {
            stage: ta::QUEUE,
            categories: direction,
            pid: UNKNOWN_ID,
            ..seen
        })?;
        to.event(&Seen {
            time_ns: end_ns.ok_or("it ends after the year 2554")?,
            ..seen
        })?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_trace_is_recognised_by_its_fields() {
        for (line, of) in [
            (
                &b"419,W,8792731648,16384,1577808144360767"[..],
                Some(Of::Alibaba),
            ),
            (
                b"128166372003061629,hm,1,Read,383496192,32768,413",
                Some(Of::Msr),
            ),
            (b"1538323200,12910952,128,0,1063", Some(Of::Tencent)),
            (b"1538323200,12910952,128,2,1063", None),
            (b"1,hm,1,Read,383496192,32768,413", None),
            (b"419,W,8792731648,16384", None),
            (b"419,W,8792731648,16384,1,1", None),
        ] {
            assert_eq!(recognise(line), of, "{:?}", line.escape_ascii().to_string());
        }
    }
}

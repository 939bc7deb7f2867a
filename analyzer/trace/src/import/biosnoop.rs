// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text of bcc's biosnoop, with or without the column of `-Q`:
//!
//! ```text
//! TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  QUE(ms) LAT(ms)
//! 0.000004    supervise      1950    xvda1     W 13092560   4096      0.01    0.74
//! ```
//!
//! <https://github.com/iovisor/bcc/blob/master/tools/biosnoop_example.txt>. A time is that of the completion, since the first
//! one. LAT is the time from the issue to the completion, QUE from the queue to the issue. Names are cut to 14 characters.
//! bpftrace's biosnoop has other columns and neither sectors nor lengths: its text is refused.

use mostrace_bundle::blk_io_trace::action::ta;
use mostrace_bundle::blk_io_trace::rwbs::{categories, categories_of_bio};

use super::devices::Devices;
use super::seen::{LineReader, Seen, Submitter, Taker, length, malformed};
use super::words::{number, scaled};

#[derive(Default)]
pub(super) struct Biosnoop {
    /// The names of the columns ahead of COMM.
    ahead: Vec<Vec<u8>>,
    /// The names of those behind it.
    columns: Vec<Vec<u8>>,
    devices: Devices,
}

/// Returns true if the line is the header.
pub(super) fn is_header(line: &[u8]) -> bool {
    let has = |name: &[u8]| words(line).any(|word| word == name);
    line.starts_with(b"TIME(") && has(b"COMM") && has(b"PID") && has(b"LAT(ms)")
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let words = line.split(u8::is_ascii_whitespace);
    words.filter(|word| !word.is_empty())
}

impl LineReader for Biosnoop {
    fn line(&mut self, line: &[u8], to: &mut dyn Taker) -> Result<bool, String> {
        if is_header(line) {
            let mut names = words(line).map(<[u8]>::to_vec);
            self.ahead = names.by_ref().take_while(|name| name != b"COMM").collect();
            self.columns = names.collect();
            let has = |name: &&[u8]| self.columns.iter().any(|column| column == name);
            return match [&b"DISK"[..], b"T", b"SECTOR", b"BYTES"].iter().all(has) {
                true => Ok(true),
                false => {
                    Err("it prints no sectors or lengths: there are no requests to import".into())
                }
            };
        }
        if line.is_empty() || line.starts_with(b"Tracing block device I/O") {
            return Ok(true);
        }
        let row = self
            .row(line)
            .ok_or_else(|| malformed("a request as biosnoop prints it"))?;
        if row.disk.is_empty() {
            return Ok(false);
        }
        let device = self.devices.number(row.disk, to)?;
        let bytes = length(row.bytes)?;
        let end_ns = row.end_ns;
        let seen = Seen {
            device,
            sector: row.sector,
            bytes,
            ..Seen::default()
        };
        let sectors = u64::from(bytes);
        let issued_ns = end_ns.checked_sub(row.took_ns);
        if let (Some(issued_ns), Some(queued)) = (issued_ns, row.queued) {
            to.event(&Seen {
                time_ns: issued_ns.saturating_sub(queued),
                pid: row.pid,
                comm: Some(row.comm),
                stage: ta::QUEUE,
                categories: categories_of_bio(row.operation, sectors),
                ..seen
            })?;
        }
        // What began before time 0 has no place ahead of it.
        if let Some(time_ns) = issued_ns {
            to.event(&Seen {
                time_ns,
                stage: ta::ISSUE,
                categories: categories(row.operation, sectors),
                ..seen
            })?;
        }
        to.event(&Seen {
            time_ns: end_ns,
            stage: ta::COMPLETE,
            categories: categories(row.operation, sectors),
            by: (row.queued.is_none() || issued_ns.is_none()).then_some(Submitter {
                pid: row.pid,
                comm: row.comm,
            }),
            ..seen
        })?;
        Ok(true)
    }
}

#[derive(Default)]
struct Row<'a> {
    end_ns: u64,
    comm: &'a [u8],
    pid: u32,
    disk: &'a [u8],
    operation: &'a [u8],
    sector: u64,
    bytes: u64,
    took_ns: u64,
    /// The time from the queue to the issue, ns.
    queued: Option<u64>,
}

const NS_OF_MS: u64 = 1_000_000;

/// Parses a sector; -1 is none.
fn sector(word: &[u8]) -> Option<u64> {
    match word {
        b"-1" => Some(0),
        _ => number(word).map(|sector| if sector == u64::MAX { 0 } else { sector }),
    }
}

impl Biosnoop {
    /// Parses a row from its end, because a name may have blanks.
    fn row<'a>(&self, line: &'a [u8]) -> Option<Row<'a>> {
        let mut row = Row::default();
        let mut rest = line;
        for column in self.columns.iter().rev() {
            let text = rest.trim_ascii_end();
            let blank = text.iter().rposition(u8::is_ascii_whitespace)?;
            let (ahead, word) = text.split_at_checked(blank.checked_add(1)?)?;
            rest = ahead;
            match &column[..] {
                b"PID" => row.pid = u32::try_from(number(word)?).ok()?,
                // It prints none for a command that is no disk's; the word is then the PID.
                b"DISK" if number(word).is_some() => rest = text,
                b"DISK" => row.disk = word,
                b"T" => row.operation = word,
                b"SECTOR" => row.sector = sector(word)?,
                b"BYTES" => row.bytes = number(word)?,
                // -1.000 of what was never queued, as a flush.
                b"QUE(ms)" if word.starts_with(b"-") => {}
                b"QUE(ms)" => row.queued = Some(scaled(word, NS_OF_MS)?),
                b"LAT(ms)" => row.took_ns = scaled(word, NS_OF_MS)?,
                _ => {}
            }
        }
        let rest = rest.trim_ascii();
        let blank = rest.iter().position(u8::is_ascii_whitespace);
        let (time, comm) = rest.split_at_checked(blank.unwrap_or(rest.len()))?;
        row.end_ns = scaled(time, 1_000_000_000)?;
        row.comm = comm.trim_ascii();
        (self.ahead == [b"TIME(s)"]).then_some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct All(Vec<(u64, u64, u64, u32, Option<String>)>);

    impl Taker for All {
        fn event(&mut self, seen: &Seen<'_>) -> Result<(), String> {
            let comm = seen.comm.or(seen.by.map(|by| by.comm));
            let comm = comm.map(|comm| String::from_utf8_lossy(comm).into());
            self.0
                .push((seen.stage, seen.time_ns, seen.sector, seen.bytes, comm));
            Ok(())
        }
    }

    fn read(text: &str) -> Result<All, String> {
        let mut all = All::default();
        let mut reader = Biosnoop::default();
        for line in text.lines() {
            reader.line(line.as_bytes(), &mut all)?;
        }
        Ok(all)
    }

    #[test]
    fn a_text_without_lengths_is_refused() {
        let bpftrace =
            "TIME(ms)     DISK    COMM             PID    LAT(ms)\n611 nvme0n1 bash 4179 10";
        assert!(read(bpftrace).err().unwrap().contains("no requests"));
    }

    #[test]
    fn rows_have_the_columns_of_the_header() {
        let plain = "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  LAT(ms)
1.000004    Web Content 1  1950    xvda1     W 13092560   4096      0.74
0.000100    ?              0               R 18446744073709551615 8      0.34";
        let name = Some("Web Content 1".to_owned());
        assert_eq!(
            read(plain).unwrap().0,
            [
                (ta::ISSUE, 999_264_000, 13_092_560, 4096, None),
                (ta::COMPLETE, 1_000_004_000, 13_092_560, 4096, name.clone()),
            ]
        );
        let queued =
            "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  QUE(ms) LAT(ms)
1.000004    Web Content 1  1950    xvda1     W 13092560   4096      0.01    0.74";
        assert_eq!(
            read(queued).unwrap().0,
            [
                (ta::QUEUE, 999_254_000, 13_092_560, 4096, name),
                (ta::ISSUE, 999_264_000, 13_092_560, 4096, None),
                (ta::COMPLETE, 1_000_004_000, 13_092_560, 4096, None),
            ]
        );
        let flush =
            "TIME(s)     COMM           PID     DISK    T    SECTOR     BYTES   QUE(ms) LAT(ms)
0.013627    ?              0       vda     FF   -1         0        -1.000   0.023";
        let none = Some("?".to_owned());
        assert_eq!(
            read(flush).unwrap().0,
            [
                (ta::ISSUE, 13_604_000, 0, 0, None),
                (ta::COMPLETE, 13_627_000, 0, 0, none),
            ]
        );
    }
}

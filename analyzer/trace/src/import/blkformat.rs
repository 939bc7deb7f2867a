// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text of blkparse in a format that the user names, as its option `-f` was given it:
//!
//! ```text
//! %D device  %M major  %m minor  %c CPU  %s sequence  %T seconds  %t their ns  %p pid  %C name
//! %a action  %d rwbs  %S sector  %n sectors  %N bytes  %e error  %u time that it took, µs  %U payload
//! ```
//!
//! <https://man7.org/linux/man-pages/man1/blkparse.1.html>, "OUTPUT DESCRIPTION AND FORMATTING". `%8S` is as wide, `%-8S` begins at
//! the left.

use mostrace_bundle::blk_io_trace::action::ta;

use super::blkparse::{categories_at, error, is_of_summary, stage};
use super::devices::Devices;
use super::seen::{LineReader, Seen, Taker, bytes_of_sectors, length, malformed};
use super::words::{device_of, number};

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// A byte that is printed as it is. Blanks stand for any number of blanks.
    Literal(u8),
    Field(u8),
}

/// A format of blkparse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format(Vec<Part>);

/// The longest name that is looked for; the kernel's have 15 bytes. Each place at which one may end is tried.
const LONGEST_NAME: usize = 64;

/// The fields that are read.
const FIELDS: &[u8] = b"DMmcsTtpCadSnNeuU";

impl Format {
    /// Parses a format.
    ///
    /// # Errors
    /// Returns a line if a field is not known, or if one is missing without which there is no request.
    pub fn parse(text: &str) -> Result<Format, String> {
        let mut bytes = text.bytes();
        let mut parts = Vec::new();
        while let Some(byte) = bytes.next() {
            parts.push(match byte {
                b'%' => {
                    let is_width = |byte: &u8| byte.is_ascii_digit() || *byte == b'-';
                    let field = bytes.find(|byte| !is_width(byte)).unwrap_or(b' ');
                    if !FIELDS.contains(&field) {
                        return Err(format!("{text}: %{} is not read", char::from(field)));
                    }
                    Part::Field(field)
                }
                b'\\' => Part::Literal(match bytes.next() {
                    Some(b't' | b'n') | None => b' ',
                    Some(other) => other,
                }),
                byte if byte.is_ascii_whitespace() => Part::Literal(b' '),
                byte => Part::Literal(byte),
            });
        }
        let format = Format(parts);
        for (fields, what) in [
            (&b"a"[..], "an action, %a"),
            (b"d", "what is done, %d"),
            (b"S", "a sector, %S"),
            (b"nN", "a length, %n or %N"),
            (b"T", "a time, %T"),
        ] {
            if !fields.iter().any(|field| format.count(*field) > 0) {
                return Err(format!("{text}: without {what}, there are no requests"));
            }
        }
        match format.count(b'C') {
            0 | 1 => Ok(format),
            _ => Err(format!("{text}: %C is in it twice")),
        }
    }

    fn count(&self, field: u8) -> usize {
        let is_it = |part: &&Part| **part == Part::Field(field);
        self.0.iter().filter(is_it).count()
    }

    fn row<'a>(&self, line: &'a [u8]) -> Option<Row<'a>> {
        let mut row = Row::default();
        parse(&self.0, line, &mut row)?;
        Some(row)
    }
}

/// The fields of a line. Those that the format lacks are None.
#[derive(Clone, Debug, Default)]
struct Row<'a> {
    device: Option<u32>,
    major: Option<u64>,
    minor: Option<u64>,
    cpu: u64,
    seconds: u64,
    ns: u64,
    pid: u64,
    name: Option<&'a [u8]>,
    action: &'a [u8],
    rwbs: &'a [u8],
    sector: u64,
    sectors: Option<u64>,
    bytes: Option<u64>,
    error: Option<u16>,
}

/// Parses a line's rest by the parts that are left. A name may have anything in it, so what follows shows where it ends.
fn parse<'a>(parts: &[Part], text: &'a [u8], row: &mut Row<'a>) -> Option<()> {
    let Some((part, parts)) = parts.split_first() else {
        return text.trim_ascii().is_empty().then_some(());
    };
    match part {
        Part::Literal(b' ') => parse(parts, text.trim_ascii_start(), row),
        Part::Literal(byte) => parse(parts, text.strip_prefix(&[*byte])?, row),
        Part::Field(b'C') => {
            let text = text.trim_ascii_start();
            let ends = (0..=text.len().min(LONGEST_NAME)).rev();
            ends.filter_map(|end| text.split_at_checked(end))
                .find_map(|(name, rest)| {
                    let mut all = row.clone();
                    parse(parts, rest, &mut all)?;
                    *row = all;
                    let name = name.trim_ascii();
                    row.name = (name != b"(null)" && !name.is_empty()).then_some(name);
                    Some(())
                })
        }
        Part::Field(field) => {
            let text = text.trim_ascii_start();
            let rest = take(*field, text, row)?;
            parse(parts, rest, row)
        }
    }
}

/// Takes a field; returns what follows it.
fn take<'a>(field: u8, text: &'a [u8], row: &mut Row<'a>) -> Option<&'a [u8]> {
    let run = |text: &'a [u8], is_its: fn(&u8) -> bool| {
        let end = text.iter().position(|byte| !is_its(byte));
        text.split_at_checked(end.unwrap_or(text.len()))
    };
    if matches!(field, b'a' | b'd') {
        let (word, rest) = run(text, u8::is_ascii_alphabetic)?;
        *(if field == b'a' {
            &mut row.action
        } else {
            &mut row.rwbs
        }) = word;
        return Some(rest);
    }
    let is_negative = text.starts_with(b"-");
    let (digits, rest) = run(text.get(usize::from(is_negative)..)?, u8::is_ascii_digit)?;
    let value = number(digits)?;
    match field {
        b'D' => {
            let (minor, rest) = run(
                rest.strip_prefix(b",")?.trim_ascii_start(),
                u8::is_ascii_digit,
            )?;
            row.device = Some(device_of(value, number(minor)?)?);
            return Some(rest);
        }
        b'M' => row.major = Some(value),
        b'm' => row.minor = Some(value),
        b'c' => row.cpu = value,
        b'T' => row.seconds = value,
        b't' => row.ns = value,
        b'p' => row.pid = value,
        b'S' => row.sector = value,
        b'n' => row.sectors = Some(value),
        b'N' => row.bytes = Some(value),
        b'e' => row.error = Some(error(digits)?),
        _ => {}
    }
    Some(rest)
}

pub(super) struct Formatted {
    format: Format,
    devices: Devices,
    in_summary: bool,
}

impl Formatted {
    pub fn new(format: Format) -> Formatted {
        Formatted {
            format,
            devices: Devices::default(),
            in_summary: false,
        }
    }
}

impl LineReader for Formatted {
    fn line(&mut self, line: &[u8], to: &mut dyn Taker) -> Result<bool, String> {
        self.in_summary |= is_of_summary(line);
        if self.in_summary || line.is_empty() || line.starts_with(b"Input file ") {
            return Ok(true);
        }
        let wrong = || malformed("an event in the format that was named");
        let row = self.format.row(line).ok_or_else(wrong)?;
        let Some(stage) = stage(row.action) else {
            return Ok(true);
        };
        let device = match (row.device, row.major, row.minor) {
            (Some(device), ..) => device,
            (None, Some(major), Some(minor)) => device_of(major, minor).ok_or_else(wrong)?,
            _ => self.devices.number(b"disk", to)?,
        };
        let bytes = match (row.bytes, row.sectors) {
            (Some(bytes), _) => length(bytes)?,
            (None, sectors) => bytes_of_sectors(sectors.unwrap_or(0))?,
        };
        let time_ns = row.seconds.checked_mul(1_000_000_000);
        let small = |value| u32::try_from(value).map_err(|_| wrong());
        to.event(&Seen {
            time_ns: time_ns
                .and_then(|ns| ns.checked_add(row.ns))
                .ok_or_else(wrong)?,
            cpu: small(row.cpu)?,
            pid: small(row.pid)?,
            comm: row.name.filter(|_| stage != ta::COMPLETE),
            device,
            stage,
            categories: categories_at(stage, row.rwbs, bytes),
            sector: row.sector,
            bytes,
            error: row.error.filter(|_| stage == ta::COMPLETE).unwrap_or(0),
            ..Seen::default()
        })?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_read_back() {
        let format = Format::parse("%D %2c %8s %5T.%9t|%5p|%2a %3d %S+%n [%C] %e\\n").unwrap();
        let line = b"  8,16  3       11     1.009507758|  697| C WFS 223490+8 [a b] c]  0";
        let row = format.row(line).unwrap();
        assert_eq!(row.device, Some(8 << 20 | 16));
        assert_eq!(
            (row.cpu, row.seconds, row.ns, row.pid),
            (3, 1, 9_507_758, 697)
        );
        assert_eq!((row.action, row.rwbs), (&b"C"[..], &b"WFS"[..]));
        assert_eq!(
            (row.sector, row.sectors, row.error),
            (223_490, Some(8), Some(0))
        );
        assert_eq!(row.name, Some(&b"a b] c"[..]));
        let last = Format::parse("%T %a %d %S %N %C").unwrap();
        assert_eq!(
            last.row(b"1 Q W 8 512 Web Content").unwrap().name,
            Some(&b"Web Content"[..])
        );
        for line in [&b"1 Q W 8"[..], b"1 Q W x 512 a", b"x", b""] {
            assert!(last.row(line).is_none());
        }
        let named = |length| [&b"1 Q W 8 512 "[..], &vec![b'x'; length]].concat();
        let is_read = [LONGEST_NAME, LONGEST_NAME + 1].map(|n| last.row(&named(n)).is_some());
        assert_eq!(is_read, [true, false]);
        for (text, why) in [
            ("%T %a %d %S %N %P", "%P is not read"),
            ("%T %a %d %S", "without a length"),
            ("%a %d %S %n", "without a time"),
            ("%T %a %d %S %N %", "%  is not read"),
        ] {
            assert!(Format::parse(text).unwrap_err().contains(why), "{text}");
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The text of blkparse, in its default format, with or without the summary:
//!
//! ```text
//!   8,0    3       11     0.009507758   697  C   W 223490 + 8 [0]
//! device  cpu  sequence  seconds      pid action rwbs, the rest by action
//! ```
//!
//! <https://man7.org/linux/man-pages/man1/blkparse.1.html>, "OUTPUT DESCRIPTION AND FORMATTING". A time is relative to the
//! first event. A sector is one of the whole disk. Events of 0 bytes have a sector only at their C. A name that blkparse does
//! not know is `[(null)]`.

use mostrace_bundle::blk_io_trace::action::{BLK_TC_FLUSH, BLK_TC_FS, BLK_TC_PC, BLK_TC_READ, ta};
use mostrace_bundle::blk_io_trace::rwbs::{categories, categories_of_bio};

use super::seen::{LineReader, Seen, Taker, bytes_of_sectors, length, malformed};
use super::words::{Words, device, device_of, number, scaled};

#[derive(Default)]
pub(super) struct Blkparse {
    in_summary: bool,
}

/// Returns true if the line is an event's.
pub(super) fn is_event(line: &[u8]) -> bool {
    head(&mut Words::of(line)).is_some()
}

/// The part of a line that all events have.
struct Head<'a> {
    seen: Seen<'a>,
    action: &'a [u8],
    rwbs: &'a [u8],
}

fn head<'a>(words: &mut Words<'a>) -> Option<Head<'a>> {
    let device = device_words(words)?;
    let cpu = u32::try_from(words.number()?).ok()?;
    words.number()?;
    let time_ns = scaled(words.word()?, 1_000_000_000)?;
    let pid = u32::try_from(words.number()?).ok()?;
    let seen = Seen {
        device,
        cpu,
        time_ns,
        pid,
        ..Seen::default()
    };
    Some(Head {
        seen,
        action: words.word()?,
        rwbs: words.word()?,
    })
}

/// A short minor is filled up with blanks behind the comma's word, a major ahead of it; `8, 0` is of old versions.
fn device_words(words: &mut Words<'_>) -> Option<u32> {
    let word = words.word()?;
    match word.strip_suffix(b",") {
        Some(major) => device_of(number(major)?, words.number()?),
        None => device(word),
    }
}

impl LineReader for Blkparse {
    fn line(&mut self, line: &[u8], to: &mut dyn Taker) -> Result<bool, String> {
        let mut words = Words::of(line);
        let first = words.rest().first();
        if !first.is_some_and(u8::is_ascii_digit) || self.in_summary {
            self.in_summary |= is_of_summary(line);
            return Ok(self.in_summary || line.is_empty() || line.starts_with(b"Input file "));
        }
        let wrong = || malformed("an event as blkparse prints it by default");
        let head = head(&mut words).ok_or_else(wrong)?;
        let Some(stage) = stage(head.action) else {
            // Plugs, messages, remaps and the like do not change what completes.
            return Ok(true);
        };
        let mut seen = head.seen;
        let bytes = place(&mut seen, stage, &mut words).ok_or_else(wrong)??;
        seen.bytes = bytes;
        seen.stage = stage;
        seen.categories = categories_at(stage, head.rwbs, bytes);
        to.event(&seen)?;
        Ok(true)
    }
}

/// Returns true if the summary behind the events begins with the line.
pub(super) fn is_of_summary(line: &[u8]) -> bool {
    line.starts_with(b"CPU") || line.starts_with(b"Total ")
}

/// Returns the event that an action's letter stands for, if it matters.
pub(super) fn stage(action: &[u8]) -> Option<u64> {
    Some(match action {
        b"Q" => ta::QUEUE,
        b"M" => ta::BACKMERGE,
        b"F" => ta::FRONTMERGE,
        b"G" => ta::GETRQ,
        b"S" => ta::SLEEPRQ,
        b"R" => ta::REQUEUE,
        b"D" => ta::ISSUE,
        b"C" => ta::COMPLETE,
        b"I" => ta::INSERT,
        b"X" => ta::SPLIT,
        _ => return None,
    })
}

/// Reads where the event is, its name or its error; returns its length. A passthrough command has its bytes instead of a place.
fn place<'a>(
    seen: &mut Seen<'a>,
    stage: u64,
    words: &mut Words<'a>,
) -> Option<Result<u32, String>> {
    if words.rest().starts_with(b"[") {
        seen.comm = name(words);
        return Some(Ok(0));
    }
    let first = words.number()?;
    let is_passthrough = words.rest().starts_with(b"(");
    if !is_passthrough {
        seen.sector = first;
    }
    let bytes = match stage {
        _ if is_passthrough => length(first),
        ta::SPLIT => {
            words.eat(b"/")?;
            let cut_at = words.number()?;
            seen.cut_at = Some(cut_at);
            bytes_of_sectors(cut_at.checked_sub(first)?)
        }
        _ if words.eat(b"+").is_some() => bytes_of_sectors(words.number()?),
        _ => Ok(0),
    };
    // The command in hexadecimal or, with blkparse -t, the time that it took.
    if words.rest().starts_with(b"(") {
        while !words.word()?.ends_with(b")") {}
    }
    if stage == ta::COMPLETE {
        seen.error = error(words.in_brackets()?)?;
    } else {
        seen.comm = name(words);
    }
    Some(bytes)
}

pub(super) fn error(word: &[u8]) -> Option<u16> {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    // An errno, which old versions print as an unsigned number of 16 or 32 bits.
    let value = number(digits)?;
    let value = match u16::try_from(value) {
        Ok(value) => value,
        Err(_) => u16::try_from((1_u64 << 32).checked_sub(value)?).ok()?,
    };
    Some(match value {
        0x8000.. => value.wrapping_neg(),
        _ => value,
    })
}

fn name<'a>(words: &mut Words<'a>) -> Option<&'a [u8]> {
    words.in_brackets().filter(|name| *name != b"(null)")
}

/// blkparse's N is a request that neither reads nor writes: the device's own flush with an F ahead, or another command.
pub(super) fn categories_at(stage: u64, rwbs: &[u8], bytes: u32) -> u64 {
    let is_of_bio = matches!(
        stage,
        ta::QUEUE | ta::BACKMERGE | ta::FRONTMERGE | ta::GETRQ | ta::SLEEPRQ | ta::SPLIT
    );
    let sectors = u64::from(bytes);
    let categories = match is_of_bio {
        true => categories_of_bio(rwbs, sectors),
        false => categories(rwbs, sectors),
    };
    match categories & (BLK_TC_FLUSH | BLK_TC_PC) {
        flush_alone if flush_alone == BLK_TC_FLUSH | BLK_TC_PC => {
            categories & !BLK_TC_PC | BLK_TC_FS | BLK_TC_READ
        }
        _ => categories,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stage, sector, bytes, error and name.
    type Event = (u64, u64, u32, u16, Option<Vec<u8>>);

    #[derive(Default)]
    struct All(Vec<Event>);

    impl Taker for All {
        fn event(&mut self, seen: &Seen<'_>) -> Result<(), String> {
            self.0.push((
                seen.stage,
                seen.sector,
                seen.bytes,
                seen.error,
                seen.comm.map(<[u8]>::to_vec),
            ));
            Ok(())
        }
    }

    fn read(text: &str) -> Result<All, String> {
        let mut all = All::default();
        let mut reader = Blkparse::default();
        for line in text.lines() {
            reader.line(line.as_bytes(), &mut all)?;
        }
        Ok(all)
    }

    #[test]
    fn each_form_of_a_line_is_read() {
        let all = read(
            "  8,0    3        1     0.000000000   697  Q  WS 223490 + 8 [kjo urnald]
  8,0    3        2     0.000000001   697  A  WS 1 + 8 <- (8,1) 223490
  8,0    3        3     0.000000002   697  X  WS 223490 / 223494 [a]
  8,0    3        4     0.000000003   697  G FWS [(null)]
  8,0    3        5     0.000000004   697  C  FN 0 [0]
  8,0    3        6     0.000000005   697  C  WS 223490 + 8 (  12.5) [-5]
  8,0    3        7     0.000000006   697  D   R 36 (12 00 00 00 24 00 ..) [hald]
  8,0    3        0     0.000000007     0  m   N cfq schedule
CPU0 (8,0):
 Reads Queued:           0,        0KiB",
        )
        .unwrap();
        let name = |name: &str| Some(name.as_bytes().to_vec());
        assert_eq!(
            all.0,
            [
                (ta::QUEUE, 223_490, 4096, 0, name("kjo urnald")),
                (ta::SPLIT, 223_490, 2048, 0, name("a")),
                (ta::GETRQ, 0, 0, 0, None),
                (ta::COMPLETE, 0, 0, 0, None),
                (ta::COMPLETE, 223_490, 4096, 5, None),
                (ta::ISSUE, 0, 36, 0, name("hald")),
            ]
        );
    }

    #[test]
    fn a_broken_line_is_an_error() {
        for line in [
            "  8,0 3 1 0.0 697 Q WS 223490 + x [a]",
            "  8,0 3 1 0.0 697 C WS 223490 + 8",
            "  8,0 3 1 x 697 C WS 223490 + 8 [0]",
            "  8,0 3 1 0.0 697 C WS 223490 + 99999999999 [0]",
            "  8,0 3 1 0.0 697 X WS 223490 / 1 [a]",
        ] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! A page of ftrace's ring buffer, in the form of `trace_pipe_raw`.
//!
//! ```text
//!  0  u64 time stamp of the page
//!  8  u64 commit: bytes of data in the low bits; bits 30 and 31 say that events were missed,
//!     which the CPU's `stats` counts too
//! 16  data: events of a u32 head (type_len in the low 5 bits, time_delta above) and their payload
//! ```
//! Source: `include/linux/ring_buffer.h`, `enum ring_buffer_type`, and `events/header_page`. Only little-endian, 64-bit machines
//! are supported.

const HEADER: usize = 16;
const COMMIT_MASK: u64 = (1 << 30) - 1;

const TYPE_PADDING: u32 = 29;
const TYPE_TIME_EXTEND: u32 = 30;
const TYPE_TIME_STAMP: u32 = 31;
const DELTA_BITS: u32 = 27;
/// The 59 bits of an absolute time stamp; the upper bits come from the page.
const STAMP_MASK: u64 = (1 << 59) - 1;

/// The events of one page.
#[derive(Debug)]
pub struct RingPage<'a> {
    data: &'a [u8],
    at: usize,
    time: u64,
}

fn u32_at(buf: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(
        buf.get(at..at.checked_add(4)?)?.try_into().ok()?,
    ))
}

fn u64_at(buf: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(
        buf.get(at..at.checked_add(8)?)?.try_into().ok()?,
    ))
}

impl<'a> RingPage<'a> {
    /// Parses a page; None if it is shorter than it claims.
    pub fn new(page: &'a [u8]) -> Option<RingPage<'a>> {
        let time = u64_at(page, 0)?;
        let commit = u64_at(page, 8)?;
        let len = usize::try_from(commit & COMMIT_MASK).ok()?;
        let end = HEADER.checked_add(len)?;
        let data = page.get(HEADER..end)?;
        Some(RingPage { data, at: 0, time })
    }
}

impl<'a> Iterator for RingPage<'a> {
    /// The time in the trace clock, and the payload (padded to 4 bytes).
    type Item = (u64, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let head = u32_at(self.data, self.at)?;
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            let body = self.at + 4;
            let word = u32_at(self.data, body);
            match kind {
                TYPE_PADDING => {
                    // Without a delta, the rest of the page is empty.
                    if delta == 0 {
                        return None;
                    }
                    self.time = self.time.wrapping_add(delta);
                    self.at = body.checked_add(word? as usize)?;
                }
                TYPE_TIME_EXTEND => {
                    let high = u64::from(word?) << DELTA_BITS;
                    self.time = self.time.wrapping_add(high + delta);
                    self.at = body + 4;
                }
                TYPE_TIME_STAMP => {
                    let stamp = u64::from(word?) << DELTA_BITS | delta;
                    self.time = self.time & !STAMP_MASK | stamp & STAMP_MASK;
                    self.at = body + 4;
                }
                0 => {
                    // The length includes its own word.
                    let len = word? as usize;
                    let payload = self.data.get(body + 4..body.checked_add(len)?)?;
                    self.time = self.time.wrapping_add(delta);
                    self.at = body + len;
                    return Some((self.time, payload));
                }
                words => {
                    let end = body + 4 * words as usize;
                    let payload = self.data.get(body..end)?;
                    self.time = self.time.wrapping_add(delta);
                    self.at = end;
                    return Some((self.time, payload));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(time: u64, commit_flags: u64, data: &[u8]) -> Vec<u8> {
        let mut p = time.to_le_bytes().to_vec();
        p.extend((data.len() as u64 | commit_flags).to_le_bytes());
        p.extend(data);
        p
    }

    fn head(kind: u32, delta: u32) -> [u8; 4] {
        (delta << 5 | kind).to_le_bytes()
    }

    #[test]
    fn every_event_type() {
        let mut d = Vec::new();
        d.extend(head(2, 5)); // two words
        d.extend([1, 2, 3, 4, 5, 6, 7, 8]);
        d.extend(head(TYPE_TIME_EXTEND, 1));
        d.extend(2u32.to_le_bytes());
        d.extend(head(0, 3)); // length in a word of its own
        d.extend(8u32.to_le_bytes());
        d.extend([9, 9, 9, 9]);
        d.extend(head(TYPE_PADDING, 0));
        d.extend([0; 12]);
        let p = page(1000, 0, &d);
        let events: Vec<_> = RingPage::new(&p).unwrap().collect();
        let extend = (2u64 << DELTA_BITS) + 1;
        assert_eq!(
            events,
            [
                (1005, &[1, 2, 3, 4, 5, 6, 7, 8][..]),
                (1005 + extend + 3, &[9, 9, 9, 9][..])
            ]
        );
    }

    #[test]
    fn flags_of_missed_events_are_no_length() {
        let mut d = head(1, 0).to_vec();
        d.extend([1, 2, 3, 4]);
        assert_eq!(RingPage::new(&page(0, 3 << 30, &d)).unwrap().count(), 1);
    }

    #[test]
    fn a_damaged_page_ends_early() {
        let mut d = head(28, 1).to_vec();
        d.extend([0; 8]);
        assert_eq!(RingPage::new(&page(0, 0, &d)).unwrap().count(), 0);
        // A length of 0 must not cause an endless loop.
        let mut d = head(0, 1).to_vec();
        d.extend([0; 60]);
        assert!(RingPage::new(&page(0, 0, &d)).unwrap().take(100).count() < 100);
    }
}

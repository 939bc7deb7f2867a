// SPDX-License-Identifier: MIT OR Apache-2.0
//! The stream of /dev/mostrace (`stream.h` of the kernel module), split into its entries.

use mostrace_bundle::entry::{RawFile, RawHead, RawProcess};

const MAGIC: &[u8; 8] = b"MOSTDEV\n";
const BYTE_ORDER: u16 = 0x1234;
const VERSION: u16 = 1;
/// The length of version 1's header; a longer header has more fields at its end.
const HEADER_LEN: usize = 40;
const HEAD_LEN: usize = size_of::<RawHead>();

/// A stream that takes bytes in any portions and returns whole entries.
#[derive(Debug, Default)]
pub(super) struct Stream {
    bytes: Vec<u8>,
    /// The number of bytes in `bytes` that have been returned.
    at: usize,
    /// The number of the stream's bytes before `bytes`.
    before: u64,
    begun: bool,
}

impl Stream {
    /// Takes bytes that were read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.before += self.at as u64;
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next entry, if it is already whole.
    ///
    /// # Errors
    /// Returns an error that says why the bytes are not such a stream; all further calls return it too.
    pub fn next_entry(&mut self) -> Result<Option<&[u8]>, String> {
        if !self.begun {
            let Some(len) = header_len(&self.bytes)? else {
                return Ok(None);
            };
            self.at = len;
            self.begun = true;
        }
        let rest = &self.bytes[self.at..];
        let Some(size) = u16_at(rest, 2).map(usize::from) else {
            return Ok(None);
        };
        if size < HEAD_LEN || !size.is_multiple_of(8) {
            return Err(format!("entry at byte {}: bad size {size}", self.place()));
        }
        let entry = rest.get(..size);
        self.at += entry.map_or(0, <[u8]>::len);
        Ok(entry)
    }

    /// Checks that the stream ends where an entry does.
    ///
    /// # Errors
    /// Returns an error that names the place at which it is truncated.
    pub fn end(&self) -> Result<(), String> {
        match (self.begun, self.bytes.len() - self.at) {
            (true, 0) => Ok(()),
            (true, _) => Err(format!("cut short in the entry at byte {}", self.place())),
            (false, _) => Err("cut short in the header".into()),
        }
    }

    fn place(&self) -> u64 {
        self.before + self.at as u64
    }
}

/// Returns the length of the header; None while it is incomplete.
fn header_len(bytes: &[u8]) -> Result<Option<usize>, String> {
    if !bytes.starts_with(&MAGIC[..bytes.len().min(MAGIC.len())]) {
        return Err("not the stream of a recorder (bad magic)".into());
    }
    let Some(fields) = bytes.get(..HEADER_LEN) else {
        return Ok(None);
    };
    let field = |at| u16_at(fields, at).unwrap_or(0);
    let order = field(8);
    if order == BYTE_ORDER.swap_bytes() {
        return Err("a stream of the other byte order".into());
    }
    if order != BYTE_ORDER {
        return Err(format!("bad byte-order mark {order:#06x}"));
    }
    let (version, len) = (field(10), usize::from(field(12)));
    if version != VERSION {
        return Err(format!(
            "stream version {version}; this program reads version {VERSION}"
        ));
    }
    let sizes = [field(14), field(16), field(18)].map(usize::from);
    if len < HEADER_LEN || sizes != [HEAD_LEN, size_of::<RawProcess>(), size_of::<RawFile>()] {
        return Err(format!(
            "bad sizes in the header: {len}, and {sizes:?} of the entries"
        ));
    }
    Ok((bytes.len() >= len).then_some(len))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at + 2)?.try_into().ok()?;
    Some(u16::from_ne_bytes(bytes))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Builds a header of version 1 with `more` bytes behind it.
    pub fn header(more: u16) -> Vec<u8> {
        let mut h = MAGIC.to_vec();
        for field in [BYTE_ORDER, VERSION, 40 + more, 32, 88, 72] {
            h.extend(field.to_ne_bytes());
        }
        h.extend(4096u32.to_ne_bytes());
        h.extend(7u64.to_ne_bytes());
        h.extend([0; 8]);
        h.resize(h.len() + usize::from(more), 0xee);
        h
    }

    /// Builds an entry that is all zeros except for its type and size.
    pub fn entry(kind: u16, size: u16) -> Vec<u8> {
        let mut e = vec![0; usize::from(size)];
        e[..2].copy_from_slice(&kind.to_ne_bytes());
        e[2..4].copy_from_slice(&size.to_ne_bytes());
        e
    }

    fn entries() -> [Vec<u8>; 4] {
        [entry(1, 88), entry(2, 80), entry(99, 32), entry(4, 72)]
    }

    /// Reads a stream in portions of this many bytes. Returns its entries, and how it ends.
    fn read(bytes: &[u8], portion: usize) -> (Vec<Vec<u8>>, Result<(), String>) {
        let mut stream = Stream::default();
        let mut got = Vec::new();
        for bytes in bytes.chunks(portion) {
            stream.push(bytes);
            loop {
                match stream.next_entry() {
                    Ok(Some(entry)) => got.push(entry.to_vec()),
                    Ok(None) => break,
                    Err(what) => return (got, Err(what)),
                }
            }
        }
        let end = stream.end();
        (got, end)
    }

    #[test]
    fn entries_come_out_whole_whatever_the_reads() {
        for more in [0, 8, 1000] {
            let whole = [header(more), entries().concat()].concat();
            for portion in [1, 2, 3, 7, 31, 40, 41, 100, whole.len()] {
                assert_eq!(read(&whole, portion), (entries().to_vec(), Ok(())));
            }
        }
    }

    #[test]
    fn a_stream_cut_at_any_byte_gives_its_whole_entries() {
        let whole = [header(8), entries().concat()].concat();
        let ends: Vec<usize> = entries()
            .iter()
            .scan(48, |at, e| {
                *at += e.len();
                Some(*at)
            })
            .collect();
        for len in 0..whole.len() {
            let (got, end) = read(&whole[..len], 5);
            assert_eq!(got.len(), ends.iter().filter(|&&e| e <= len).count());
            assert_eq!(end.is_ok(), len == 48 || ends.contains(&len), "{len}");
        }
        let (_, end) = read(&whole[..150], 150);
        assert_eq!(end.unwrap_err(), "cut short in the entry at byte 136");
        let (_, end) = read(&whole[..47], 47);
        assert_eq!(end.unwrap_err(), "cut short in the header");
    }

    #[test]
    fn other_streams_are_refused_for_what_they_are() {
        let with = |at: usize, bytes: &[u8]| {
            let mut stream = [header(0), entries().concat()].concat();
            stream[at..at + bytes.len()].copy_from_slice(bytes);
            read(&stream, 64).1.unwrap_err()
        };
        let number = u16::to_ne_bytes;
        for (at, bytes, says) in [
            (0, &b"MOSTENT\n"[..], "not the stream of a recorder"),
            (8, &number(0x3412), "other byte order"),
            (8, &number(0), "byte-order mark 0x0000"),
            (
                10,
                &number(2),
                "stream version 2; this program reads version 1",
            ),
            (12, &number(39), "bad sizes in the header: 39"),
            (14, &number(24), "[24, 88, 72]"),
            (16, &number(96), "[32, 96, 72]"),
            (18, &number(64), "[32, 88, 64]"),
            (42, &number(0), "entry at byte 40: bad size 0"),
            (42, &number(24), "bad size 24"),
            (42, &number(90), "bad size 90"),
            (130, &number(84), "entry at byte 128: bad size 84"),
        ] {
            let what = with(at, bytes);
            assert!(what.contains(says), "`{what}` lacks `{says}`");
        }
    }

    #[test]
    fn a_wrong_magic_is_seen_at_once() {
        let mut stream = Stream::default();
        stream.push(b"ELF");
        assert!(stream.next_entry().is_err());
        assert!(stream.next_entry().is_err(), "and it stays wrong");
    }
}

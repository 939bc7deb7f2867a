// SPDX-License-Identifier: MIT OR Apache-2.0
//! The number of bytes that may come out of compressed input, bounded by its size: a few bytes can stand for terabytes.

use std::io::{self, Read};

use crate::length::as_u64;

/// An upper bound on unpacked bytes: `floor` bytes plus `times` times the packed size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    floor: u64,
    times: u64,
}

impl Allowance {
    /// The bound for an archive. Events and entries hold timestamps, and real archives shrink to a tenth.
    pub(crate) const ARCHIVE: Allowance = Allowance {
        floor: 64 << 20,
        times: 200,
    };
    /// The bound for a snapshot. It leaves zeros out, but the block bitmaps of a full disk are all ones and shrink to
    /// almost nothing. Group descriptors have checksums, which do not shrink, so a disk of 16 TiB comes to some hundred
    /// times its packed size.
    pub(crate) const SNAPSHOT: Allowance = Allowance {
        floor: 256 << 20,
        times: 1000,
    };

    /// Returns the number of bytes that may come out of `packed` bytes.
    pub(crate) fn of(self, packed: u64) -> u64 {
        packed.saturating_mul(self.times).saturating_add(self.floor)
    }
}

/// A stream whose reads fail once more than the allowed number of bytes has come out of it.
#[derive(Debug)]
pub(crate) struct Limited<R> {
    inner: R,
    limit: u64,
    left: u64,
}

impl<R: Read> Limited<R> {
    /// Wraps `inner` so that at most `limit` bytes can be read.
    pub(crate) fn new(inner: R, limit: u64) -> Limited<R> {
        Limited {
            inner,
            limit,
            left: limit,
        }
    }
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buf)?;
        let limit = self.limit;
        let too_much = || {
            let what = format!("it unpacks to more than {limit} bytes, too many for its size");
            io::Error::other(what)
        };
        self.left = self.left.checked_sub(as_u64(read)).ok_or_else(too_much)?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_little_that_is_packed_well_has_room() {
        for allowance in [Allowance::ARCHIVE, Allowance::SNAPSHOT] {
            let megabytes = vec![0; 8 << 20];
            let packed = zstd::encode_all(&megabytes[..], 3).unwrap();
            let limit = allowance.of(as_u64(packed.len()));
            let unpacked = zstd::Decoder::new(&packed[..]).unwrap();
            let read = io::copy(&mut Limited::new(unpacked, limit), &mut io::sink());
            assert_eq!(read.unwrap(), 8 << 20);
            assert!(limit < 1 << 30);
        }
    }

    #[test]
    fn what_is_beyond_the_limit_is_an_error() {
        for (limit, is_read) in [(9, false), (10, true)] {
            let read = io::copy(&mut Limited::new(&[1; 10][..], limit), &mut io::sink());
            assert_eq!(read.is_ok(), is_read);
        }
    }
}

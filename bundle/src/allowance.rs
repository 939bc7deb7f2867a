// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much may come out of something compressed, by its own size: a few bytes can stand for terabytes.

use std::io::{self, Read};

use crate::length::as_u64;

/// What small ones may unpack to, and by how many times larger ones may grow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    floor: u64,
    times: u64,
}

impl Allowance {
    /// Of an archive: events and entries hold times, which shrink to a tenth.
    pub(crate) const ARCHIVE: Allowance = Allowance {
        floor: 64 << 20,
        times: 200,
    };
    /// Of a snapshot: it leaves zeros out, but the block bitmaps of a full disk are ones alone. Descriptors have checksums,
    /// which do not shrink, so that a disk of 16 TiB comes to some hundred times.
    pub(crate) const SNAPSHOT: Allowance = Allowance {
        floor: 256 << 20,
        times: 1000,
    };

    /// Bytes that may come out of `packed` bytes.
    pub(crate) fn of(self, packed: u64) -> u64 {
        packed.saturating_mul(self.times).saturating_add(self.floor)
    }
}

/// A stream that fails where more than the allowed bytes come out of it.
#[derive(Debug)]
pub(crate) struct Limited<R> {
    inner: R,
    limit: u64,
    left: u64,
}

impl<R: Read> Limited<R> {
    /// Lets `limit` bytes through.
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

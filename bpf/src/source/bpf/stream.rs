// SPDX-License-Identifier: MIT OR Apache-2.0
//! The records of attached probes.

use std::os::fd::BorrowedFd;

use libbpf_rs::MapCore;

use super::programs::Programs;
use super::reader::Reader;
use super::ring::{self, Ring};
use crate::error::{At, Result};

/// The ring buffer that probes fill, and those of them that are attached as long as this lives.
pub(crate) struct Stream {
    pub programs: Programs,
    reader: Reader,
}

impl Stream {
    /// Starts emptying the ring of probes that are not yet attached.
    ///
    /// # Errors
    /// Returns an error if the map is not a ring, or if no thread is left.
    pub fn new(map: &dyn MapCore) -> Result<Stream> {
        let ring = Ring::of(map).at("BPF ring")?;
        Ok(Stream {
            programs: Programs::default(),
            reader: Reader::start(ring)?,
        })
    }

    /// Returns a descriptor that can be read when there is something to take.
    pub fn wakeup_fd(&self) -> BorrowedFd<'_> {
        self.reader.wakeup_fd()
    }

    /// Takes what the reader has passed on so far.
    ///
    /// # Errors
    /// Returns the first error of `take`, or an error if the kernel refuses.
    pub fn poll(&mut self, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        while let Some(batch) = self.reader.next()? {
            ring::records(&batch).try_for_each(&mut take)?;
        }
        Ok(())
    }

    /// Takes all that the probes have written so far.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Stream::poll`].
    pub fn drain(&mut self, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.reader
            .rest(|batch| ring::records(batch).try_for_each(&mut take))
    }

    /// Detaches the stream's own probes, and takes all that they have written.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Stream::poll`].
    pub fn detach(&mut self, take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.programs.detach_but(&[]);
        self.drain(take)
    }
}

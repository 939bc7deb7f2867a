// SPDX-License-Identifier: MIT OR Apache-2.0
//! The records of attached probes.

use std::os::fd::BorrowedFd;

use libbpf_rs::MapCore;

use super::programs::Programs;
use super::reader::Reader;
use super::ring::{self, Ring};
use super::spool::Spool;
use crate::error::{At, Result};

/// The ring buffer that probes fill, and those of them that are attached as long as this lives.
pub(crate) struct Stream {
    pub programs: Programs,
    reader: Reader,
    /// The records that have come, if they are not taken before the recording has ended.
    spool: Option<Spool>,
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
            spool: None,
        })
    }

    /// Lets records wait in the spool from now on, until [`Stream::take_deferred`].
    pub fn defer(&mut self, spool: Spool) {
        self.spool = Some(spool);
    }

    /// Returns true if records wait.
    pub fn is_deferred(&self) -> bool {
        self.spool.is_some()
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
            pass(&batch, self.spool.as_mut(), &mut take)?;
        }
        Ok(())
    }

    /// Takes all that the probes have written so far.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Stream::poll`].
    pub fn drain(&mut self, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut spool = self.spool.as_mut();
        self.reader
            .rest(|batch| pass(batch, spool.as_deref_mut(), &mut take))
    }

    /// Takes the records that wait; those that come later do not wait any more.
    ///
    /// # Errors
    /// Returns the first error of `take`, or an error if the spool cannot be read.
    pub fn take_deferred(&mut self, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let Some(mut spool) = self.spool.take() else {
            return Ok(());
        };
        while let Some(batch) = spool.take()? {
            ring::records(&batch).try_for_each(&mut take)?;
        }
        Ok(())
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

/// Passes a batch's records to `take`, or puts the batch into the spool.
fn pass(
    batch: &[u8],
    spool: Option<&mut Spool>,
    take: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    match spool {
        Some(spool) => spool.put(batch),
        None => ring::records(batch).try_for_each(take),
    }
}

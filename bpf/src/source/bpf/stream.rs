// SPDX-License-Identifier: MIT OR Apache-2.0
//! The records of attached probes.

use std::os::fd::BorrowedFd;

use libbpf_rs::MapCore;
use mostrace_bundle::Folder;

use super::programs::Programs;
use super::reader::{IN_FILE, Reader};
use super::ring::{self, Ring};
use crate::error::{At, Result};
use crate::machine::spare_time;

/// How long records wait for spare time.
#[derive(Clone)]
pub(crate) enum Patience {
    /// Not at all: what they name may be gone soon, or a segment would be longer than it was asked to be.
    None,
    /// While there is room, in memory or in a file in this folder.
    Much(Folder),
}

impl Patience {
    /// Returns the number of batches that may wait.
    fn batches(&self) -> usize {
        match self {
            Patience::None => 0,
            Patience::Much(_) => IN_FILE / 2,
        }
    }
}

/// The ring buffer that probes fill, and those of them that are attached as long as this lives.
pub(crate) struct Stream {
    pub programs: Programs,
    reader: Reader,
    patience: Patience,
}

impl Stream {
    /// Starts emptying the ring of probes that are not yet attached.
    ///
    /// # Errors
    /// Returns an error if the map is not a ring, or if no thread is left.
    pub fn new(map: &dyn MapCore, patience: &Patience) -> Result<Stream> {
        let ring = Ring::of(map).at("BPF ring")?;
        let folder = match patience {
            Patience::Much(folder) => Some(folder),
            Patience::None => None,
        };
        Ok(Stream {
            programs: Programs::default(),
            reader: Reader::start(ring, folder)?,
            patience: patience.clone(),
        })
    }

    /// Returns a descriptor that can be read when there is something to take.
    pub fn wakeup_fd(&self) -> BorrowedFd<'_> {
        self.reader.wakeup_fd()
    }

    /// Takes a batch of what the reader has passed on so far. Returns false if there is none.
    ///
    /// # Errors
    /// Returns the first error of `take`, or an error if the kernel refuses.
    pub fn poll(&mut self, take: impl FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        let Some(batch) = self.reader.next()? else {
            return Ok(false);
        };
        let convert = || ring::records(&batch).try_for_each(take);
        match self.reader.waiting() < self.patience.batches() {
            true => spare_time::run(convert),
            false => convert(),
        }?;
        Ok(true)
    }

    /// Takes what waits now.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Stream::poll`].
    pub fn catch_up(&mut self, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        for _ in 0..self.reader.waiting() {
            let Some(batch) = self.reader.next()? else {
                break;
            };
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

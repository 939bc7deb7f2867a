// SPDX-License-Identifier: MIT OR Apache-2.0
//! The records of attached probes.

use std::ffi::{OsStr, OsString};
use std::os::fd::BorrowedFd;

use libbpf_rs::{Link, MapCore};

use super::reader::Reader;
use super::ring::{self, Ring};
use crate::error::{At, Result};
use crate::machine::kernel;

/// The ring buffer that probes fill, and their links.
pub(crate) struct Stream {
    /// The links, by the programs' names.
    links: Vec<(OsString, Link)>,
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
            links: Vec::new(),
            reader: Reader::start(ring)?,
        })
    }

    /// Keeps a probe attached as long as the stream lives.
    pub fn keep(&mut self, program: &OsStr, link: Link) {
        self.links.push((program.to_owned(), link));
    }

    /// Returns true if a program whose name begins like this is attached.
    pub fn has(&self, prefix: &[u8]) -> bool {
        let mut names = self.links.iter().map(|(name, _)| name.as_encoded_bytes());
        names.any(|name| name.starts_with(prefix))
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

    /// Detaches the probes that are not `kept`, and takes all that they have written. Detaching a program does not wait for runs
    /// that have begun, and a run that has reserved a record may not yet have submitted it.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Stream::poll`].
    pub fn detach_but(
        &mut self,
        kept: &[&str],
        take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let is_kept = |name: &OsStr| kept.iter().any(|kept| name == *kept);
        self.links.retain(|(name, _)| is_kept(name));
        kernel::wait_for_programs();
        self.drain(take)
    }

    /// Detaches all probes, and takes all that they have written.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Stream::poll`].
    pub fn detach(&mut self, take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.detach_but(&[], take)
    }
}

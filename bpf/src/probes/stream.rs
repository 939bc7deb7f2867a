// SPDX-License-Identifier: MIT OR Apache-2.0
//! What attached probes say.

use std::ffi::{OsStr, OsString};
use std::os::fd::BorrowedFd;

use libbpf_rs::{Link, MapCore};

use super::reader::Reader;
use super::ring::{self, Ring};
use crate::error::{At, Result};
use crate::machine::kernel;

/// Puts one record of the ring buffer into a `T`.
pub(crate) type Take<T> = fn(&mut T, &[u8]) -> Result<()>;

/// The ring buffer that probes fill, and the `T` that it is emptied into.
pub(crate) struct Stream<T> {
    /// By the programs' names.
    links: Vec<(OsString, Link)>,
    reader: Reader,
    to: T,
    take: Take<T>,
}

impl<T> Stream<T> {
    /// Of probes that are not attached yet.
    pub(super) fn new(map: &dyn MapCore, to: T, take: Take<T>) -> Result<Stream<T>> {
        let ring = Ring::of(map).at("BPF ring")?;
        Ok(Stream {
            links: Vec::new(),
            reader: Reader::start(ring)?,
            to,
            take,
        })
    }

    /// Keeps a probe attached as long as the stream lives.
    pub(super) fn keep(&mut self, program: &OsStr, link: Link) {
        self.links.push((program.to_owned(), link));
    }

    /// Can be read when there is something to drain.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.reader.bell()
    }

    /// Takes what the reader has handed over so far.
    ///
    /// # Errors
    /// A record was not taken, or the kernel refuses.
    pub fn drain(&mut self) -> Result<()> {
        while let Some(stretch) = self.reader.next()? {
            for record in ring::records(&stretch) {
                (self.take)(&mut self.to, record)?;
            }
        }
        Ok(())
    }

    /// Detaches the probes that are not `kept`, and takes all that they have said: to detach one does not wait for
    /// those of its runs that have begun, and a run that has reserved a record may not have submitted it.
    ///
    /// # Errors
    /// As [`Stream::drain`].
    pub fn finish_but(&mut self, kept: &[&str]) -> Result<()> {
        let is_kept = |name: &OsStr| kept.iter().any(|kept| name == *kept);
        self.links.retain(|(name, _)| is_kept(name));
        kernel::wait_for_programs();
        self.take_rest()
    }

    /// Takes all that the probes have said by now.
    ///
    /// # Errors
    /// As [`Stream::drain`].
    pub fn take_rest(&mut self) -> Result<()> {
        let Stream {
            reader, to, take, ..
        } = self;
        reader.rest(|stretch| ring::records(stretch).try_for_each(|record| take(to, record)))
    }

    /// Detaches all, and takes all that they have said.
    ///
    /// # Errors
    /// As [`Stream::drain`].
    pub fn finish(&mut self) -> Result<()> {
        self.finish_but(&[])
    }

    /// What the records have been put into.
    pub fn sink(&self) -> &T {
        &self.to
    }

    /// The same.
    pub fn sink_mut(&mut self) -> &mut T {
        &mut self.to
    }
}

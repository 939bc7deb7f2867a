// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lets the probes of entries write block events: they see queued bios and completed requests anyway, and write both to the ring of
//! block events too.

use std::os::fd::AsRawFd;

use libbpf_rs::{Map, MapCore, MapFlags, MapHandle};

use crate::error::{Error, Result};

/// The map `told_to` of mostrace.bpf.c, in which the probes of entries find the ring of block events, by the kind of event.
#[derive(Debug)]
pub(crate) struct EventForwarder(MapHandle);

/// The kinds of events that are forwarded (`enum told` of mostrace.bpf.c).
#[derive(Clone, Copy)]
pub(crate) enum Forwarded {
    /// block_bio_queue.
    Queued,
    /// block_rq_complete.
    Completed,
}

impl EventForwarder {
    /// Makes a forwarder that uses this map.
    ///
    /// # Errors
    /// Returns an error if there is no descriptor left.
    pub(super) fn of(told_to: &Map<'_>) -> Result<EventForwarder> {
        Ok(EventForwarder(
            MapHandle::try_from(told_to).map_err(Error::bpf)?,
        ))
    }

    /// From now on, lets all kinds be written to `ring`.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses.
    pub fn begin(&self, ring: &impl MapCore) -> Result<()> {
        let fd = ring.as_fd().as_raw_fd().to_ne_bytes();
        [Forwarded::Queued, Forwarded::Completed]
            .into_iter()
            .try_for_each(|kind| {
                let put = self.0.update(&kind.key(), &fd, MapFlags::ANY);
                put.map_err(Error::bpf)
            })
    }

    /// Stops the forwarding of `kind`; a program that is running may still write one event.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses.
    pub fn end(&self, kind: Forwarded) -> Result<()> {
        self.0.delete(&kind.key()).map_err(Error::bpf)
    }
}

/// Ends all kinds, because nobody reads the ring any more.
impl Drop for EventForwarder {
    fn drop(&mut self) {
        // A kind that has ended already, or never began, is not in the map.
        let _ = self.end(Forwarded::Queued);
        let _ = self.end(Forwarded::Completed);
    }
}

impl Forwarded {
    fn key(self) -> [u8; 4] {
        (self as u32).to_ne_bytes()
    }
}

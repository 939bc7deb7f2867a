// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probes of entries as a source of block events: they see a queued bio and a completed request anyway, and write both into
//! the ring of block events too.

use std::os::fd::AsRawFd;

use libbpf_rs::{Map, MapCore, MapFlags, MapHandle};

use crate::error::{Error, Result};

/// The map `told_to` of mostrace.bpf.c, in which the probes of entries look for the ring of block events, by the kind of event.
#[derive(Debug)]
pub(crate) struct EventForwarder(MapHandle);

/// The kinds of events that are forwarded: `enum told` of mostrace.bpf.c.
#[derive(Clone, Copy)]
pub(crate) enum Forwarded {
    /// block_bio_queue.
    Queued,
    /// block_rq_complete.
    Completed,
}

impl EventForwarder {
    /// Makes the forwarder of a map.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub(super) fn of(told_to: &Map<'_>) -> Result<EventForwarder> {
        Ok(EventForwarder(
            MapHandle::try_from(told_to).map_err(Error::bpf)?,
        ))
    }

    /// Has all kinds written into `ring` from now on.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn begin(&self, ring: &impl MapCore) -> Result<()> {
        let fd = ring.as_fd().as_raw_fd().to_ne_bytes();
        [Forwarded::Queued, Forwarded::Completed]
            .into_iter()
            .try_for_each(|kind| {
                let put = self.0.update(&kind.key(), &fd, MapFlags::ANY);
                put.map_err(Error::bpf)
            })
    }

    /// Has `kind` written no more; a program that is running may still write one.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn end(&self, kind: Forwarded) -> Result<()> {
        self.0.delete(&kind.key()).map_err(Error::bpf)
    }
}

/// Ends all kinds: nobody reads the ring any more.
impl Drop for EventForwarder {
    fn drop(&mut self) {
        // A kind that was ended already, or never begun, is not there.
        let _ = self.end(Forwarded::Queued);
        let _ = self.end(Forwarded::Completed);
    }
}

impl Forwarded {
    fn key(self) -> [u8; 4] {
        (self as u32).to_ne_bytes()
    }
}

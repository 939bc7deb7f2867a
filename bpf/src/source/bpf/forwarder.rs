// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lets the probes of entries write block events: they see queued bios and completed requests anyway. The probes of block events
//! write the others to the same ring.

use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd};

use libbpf_rs::{Map, MapCore, MapFlags, MapHandle};
use zerocopy::IntoBytes;

use crate::error::{Error, Result};

/// The map of the variable `told_events` of mostrace.bpf.c, which says for each kind of event whether the probes of entries write it,
/// and their ring.
#[derive(Debug)]
pub(crate) struct EventForwarder {
    told: MapHandle,
    ring: MapHandle,
    /// The value of the variable.
    on: Cell<[u32; 2]>,
}

/// The kinds of events that are forwarded (`enum told` of mostrace.bpf.c).
#[derive(Clone, Copy)]
pub(crate) enum Forwarded {
    /// block_bio_queue.
    Queued,
    /// block_rq_complete.
    Completed,
}

impl EventForwarder {
    /// Makes a forwarder that uses these maps.
    ///
    /// # Errors
    /// Returns an error if there is no descriptor left.
    pub(super) fn of(told: &Map<'_>, ring: &Map<'_>) -> Result<EventForwarder> {
        Ok(EventForwarder {
            told: MapHandle::try_from(told).map_err(Error::bpf)?,
            ring: MapHandle::try_from(ring).map_err(Error::bpf)?,
            on: Cell::default(),
        })
    }

    /// Returns the ring.
    pub fn ring(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }

    /// From now on, lets all kinds be written.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses.
    pub fn begin(&self) -> Result<()> {
        self.set([1; 2])
    }

    /// Stops the forwarding of `kind`; a program that is running may still write one event.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses.
    pub fn end(&self, kind: Forwarded) -> Result<()> {
        let mut on = self.on.get();
        on[kind as usize] = 0;
        self.set(on)
    }

    fn set(&self, on: [u32; 2]) -> Result<()> {
        self.on.set(on);
        let put = self
            .told
            .update(&0u32.to_ne_bytes(), on.as_bytes(), MapFlags::ANY);
        put.map_err(Error::bpf)
    }
}

/// Ends all kinds, because nobody takes them any more.
impl Drop for EventForwarder {
    fn drop(&mut self) {
        // The probes may be gone by now.
        let _ = self.set([0; 2]);
    }
}

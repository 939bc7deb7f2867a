// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probes of entries as tellers of block events.

use std::os::fd::AsRawFd;

use libbpf_rs::{Map, MapCore, MapFlags, MapHandle};

use crate::error::{Error, Result};

/// Where the probes of entries look for the ring of block events, `told_to` of mostrace.bpf.c: by what they are to tell.
#[derive(Debug)]
pub(crate) struct Teller(MapHandle);

/// `enum told` of mostrace.bpf.c.
#[derive(Clone, Copy)]
pub(crate) enum Told {
    /// block_bio_queue.
    Queued,
    /// block_rq_complete.
    Completed,
}

impl Teller {
    /// By the map.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub(super) fn of(told_to: &Map<'_>) -> Result<Teller> {
        Ok(Teller(MapHandle::try_from(told_to).map_err(Error::bpf)?))
    }

    /// From now on they tell all into `ring`.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn begin(&self, ring: &impl MapCore) -> Result<()> {
        let fd = ring.as_fd().as_raw_fd().to_ne_bytes();
        [Told::Queued, Told::Completed]
            .into_iter()
            .try_for_each(|told| {
                let put = self.0.update(&told.key(), &fd, MapFlags::ANY);
                put.map_err(Error::bpf)
            })
    }

    /// From now on they do not tell of this; one that is running may still.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn end(&self, told: Told) -> Result<()> {
        self.0.delete(&told.key()).map_err(Error::bpf)
    }
}

/// Nobody reads the ring any more.
impl Drop for Teller {
    fn drop(&mut self) {
        // What was ended already, or never begun, is not there.
        let _ = self.end(Told::Queued);
        let _ = self.end(Told::Completed);
    }
}

impl Told {
    fn key(self) -> [u8; 4] {
        (self as u32).to_ne_bytes()
    }
}

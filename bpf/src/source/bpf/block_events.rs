// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records block events with the project's own probes, for kernels without a block tracer.

use super::block_records::Records;
use super::event_probes::{ENDS, EventProbes};
use super::forwarder::{EventForwarder, Forwarded};
use super::patterns::Patterns;
use super::programs::Programs;
use super::shared_ring;
use super::stream::Stream;
use crate::error::Result;
use crate::sink::Sink;
use crate::source::ending::wait_for_completions;

/// The attached probes of block events.
pub(super) struct BlockEvents {
    programs: Programs,
    /// The probes of entries, if they forward queued bios and completed requests.
    forwarder: Option<EventForwarder>,
    records: Records,
}

impl BlockEvents {
    /// Attaches the probes. If they were loaded without the forwarded events, they need a forwarder.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses them.
    pub fn start(
        probes: &EventProbes<'_>,
        forwarder: Option<EventForwarder>,
        device: u32,
        sink: &mut Sink,
    ) -> Result<BlockEvents> {
        if let Some(forwarder) = &forwarder {
            forwarder.begin()?;
        }
        let programs = probes.attach()?;
        sink.events.count_in_flight();
        Ok(BlockEvents {
            programs,
            forwarder,
            records: Records::of(device),
        })
    }

    /// Returns what takes the events of the ring.
    pub fn records(&mut self) -> &mut Records {
        &mut self.records
    }

    /// Stops the recording of new requests, and then gives those that were issued before time to complete. `ring` is the ring that
    /// the probes fill, `patterns` those that it has told.
    ///
    /// # Errors
    /// Returns an error if a record is malformed, or if the bundle cannot be written.
    pub fn stop(
        &mut self,
        ring: &mut Stream,
        patterns: &mut Patterns,
        sink: &mut Sink,
    ) -> Result<()> {
        self.records.ending.begin();
        self.end(Forwarded::Queued)?;
        self.programs.detach_but(&ENDS);
        wait_for_completions(sink, |sink| self.drain(ring, patterns, sink))?;
        self.end(Forwarded::Completed)?;
        self.programs.detach_but(&[]);
        self.drain(ring, patterns, sink)
    }

    fn end(&self, kind: Forwarded) -> Result<()> {
        let forwarder = self.forwarder.as_ref();
        forwarder.map_or(Ok(()), |forwarder| forwarder.end(kind))
    }

    fn drain(&mut self, ring: &mut Stream, patterns: &mut Patterns, sink: &mut Sink) -> Result<()> {
        ring.drain(|record| shared_ring::put(record, Some(&mut self.records), patterns, sink))
    }
}

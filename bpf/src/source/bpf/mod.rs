// SPDX-License-Identifier: MIT OR Apache-2.0
//! The project's own BPF probes for entries, block events, causes and operations; each kind is loaded without the others.
//!
//! [`ProbeLoader`] loads the probes of a kind when they are requested. Once attached, they fill a ring, which a thread empties
//! ([`stream`]); [`BpfSource`] puts the records into the sink. If entries and block events both come from probes, the probes of
//! entries also write some of the events ([`forwarder`]).

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use super::{Losses, Provides, Remark, Source, remarks};
use crate::choice::{self, Events};
use crate::error::{At, Error, Result};
use crate::machine::device::Device;
use crate::machine::filesystem;
use crate::machine::wait::Wait;
use crate::sink::{Sink, split_entry};

mod bio_number;
mod block_events;
mod call_shapes;
mod calls;
mod cause_probes;
mod configure;
mod entry_probes;
mod event_probes;
mod forgotten;
mod form;
mod forwarder;
mod loader;
mod object;
mod operation_probes;
mod operations;
pub(crate) mod process1;
mod raw_call;
mod reader;
mod ring;
mod ring_size;
mod stream;
mod told;

use block_events::BlockEvents;
pub(crate) use cause_probes::has_fentry;
use event_probes::Wanted;
use forwarder::EventForwarder;
pub(crate) use loader::ObjectStorage;
use loader::ProbeLoader;
use operations::Operations;
pub use ring_size::RingSize;
use stream::Stream;
pub(crate) use told::Told;

/// The attached probes.
pub(crate) struct BpfSource<'o> {
    events: Option<BlockEvents>,
    entries: Option<Stream>,
    causes: Option<Stream>,
    operations: Option<(Stream, Operations)>,
    /// The forwarder for block events, until the probes of block events are started.
    forwarder: Option<EventForwarder>,
    /// What the probes of entries cannot tell on this kernel.
    limits: Vec<String>,
    /// All descriptors of the streams in one.
    wait: Wait,
    loader: ProbeLoader<'o>,
}

impl<'o> BpfSource<'o> {
    /// Makes a source that provides nothing yet. The probes are loaded with the kernel's own BTF, or with that of the file `btf`.
    ///
    /// # Errors
    /// Returns an error if no descriptor is left.
    pub fn new(
        storage: &'o mut ObjectStorage,
        btf: Option<&Path>,
        ring_size: RingSize,
    ) -> Result<BpfSource<'o>> {
        Ok(BpfSource {
            events: None,
            entries: None,
            causes: None,
            operations: None,
            forwarder: None,
            limits: Vec::new(),
            wait: Wait::new().at("epoll")?,
            loader: ProbeLoader::new(storage, btf, ring_size),
        })
    }

    /// Attaches the probes of entries, and makes the tables.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses the probes, or if the bundle cannot be written.
    pub fn start_entries(&mut self, device: &Device, sink: &mut Sink) -> Result<()> {
        let probes = self.loader.entries(device)?;
        let stream = probes.attach()?;
        let forwarder = probes.forwarder()?;
        self.limits = probes.limits().to_vec();
        self.wait.while_readable(stream.wakeup_fd()).at("epoll")?;
        sink.open_entries("BPF probes")?;
        self.forwarder = Some(forwarder);
        self.entries = Some(stream);
        Ok(())
    }

    /// Attaches the probes of causes, including those of the command's processes if there is a command, and makes the tables.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses the probes, or if the bundle cannot be written.
    pub fn start_causes(
        &mut self,
        device: &Device,
        has_command: bool,
        sink: &mut Sink,
    ) -> Result<()> {
        let stream = self.loader.causes(device, has_command)?.attach()?;
        self.wait.while_readable(stream.wakeup_fd()).at("epoll")?;
        if !stream.has(object::MODIFY) && is_ext(device) {
            self.limits.push(ONLY_FIRST.to_owned());
        }
        sink.open_causes()?;
        self.causes = Some(stream);
        Ok(())
    }

    /// Attaches the probes of operations, and makes their table.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses the probes, or if the bundle cannot be written.
    pub fn start_operations(
        &mut self,
        device: &Device,
        what: choice::Operations,
        sink: &mut Sink,
    ) -> Result<()> {
        let probes = self.loader.operations(device, what)?;
        let stream = probes.attach()?;
        self.limits.extend(probes.limits().iter().cloned());
        self.wait.while_readable(stream.wakeup_fd()).at("epoll")?;
        sink.open_operations()?;
        self.operations = Some((stream, Operations::new(device)));
        Ok(())
    }

    /// Attaches the probes of block events. If the probes of entries are attached, they write some of the events.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses the probes.
    pub fn start_events(&mut self, device: &Device, events: Events, sink: &mut Sink) -> Result<()> {
        let forwarder = self.forwarder.take();
        let wanted = Wanted {
            events,
            is_forwarded: forwarder.is_some(),
        };
        let probes = self.loader.events(device, wanted)?;
        let events = BlockEvents::start(probes, forwarder, device, sink)?;
        self.wait.while_readable(events.wakeup_fd()).at("epoll")?;
        self.events = Some(events);
        Ok(())
    }
}

/// The remark for a recording in which later modifications of a journalled block are not seen.
const ONLY_FIRST: &str = "the kernel accepts no program at jbd2_journal_dirty_metadata, so a block in the journal has the cause of \
                          its first change in the transaction (`first`); later changes are not seen";

/// Returns true if the device's filesystem is ext4 or ext3.
fn is_ext(device: &Device) -> bool {
    let found = filesystem::find(device).ok().flatten();
    found.is_some_and(|filesystem| filesystem.kind.starts_with("ext"))
}

/// Takes a record of the ring of entries, which holds the entries of a bio, one after the other.
fn put(record: &[u8], sink: &mut Sink) -> Result<()> {
    let mut rest = record;
    while let Some((entry, after)) = split_entry(rest) {
        if !sink.push_entry(entry)? {
            return Err(Error::bpf("an entry of unknown type"));
        }
        rest = after;
    }
    match rest {
        [] => Ok(()),
        _ => Err(Error::bpf("an entry of no size")),
    }
}

impl Source for BpfSource<'_> {
    fn name(&self) -> &'static str {
        "bpf"
    }

    fn provides(&self) -> Provides {
        Provides::SEGMENTS
            | Provides::EVENTS.only_if(self.events.is_some())
            | Provides::ENTRIES.only_if(self.entries.is_some())
            | Provides::CAUSES.only_if(self.causes.is_some())
            | Provides::OPERATIONS.only_if(self.operations.is_some())
    }

    fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wait.as_fd())
    }

    /// Threads of their own empty the rings.
    fn poll_interval(&self, _others_wake: bool) -> Duration {
        Duration::MAX
    }

    fn poll(&mut self, sink: &mut Sink) -> Result<()> {
        if let Some(events) = &mut self.events {
            events.poll(sink)?;
        }
        if let Some(entries) = &mut self.entries {
            entries.poll(|record| put(record, sink))?;
        }
        if let Some(causes) = &mut self.causes {
            causes.poll(|record| sink.push_cause(record).map(drop))?;
        }
        if let Some((stream, operations)) = &mut self.operations {
            stream.poll(|call| operations.take(call, |record| sink.push_operation(record)))?;
        }
        Ok(())
    }

    fn drain(&mut self, sink: &mut Sink) -> Result<()> {
        if let Some(events) = &mut self.events {
            events.drain(sink)?;
        }
        if let Some(entries) = &mut self.entries {
            entries.drain(|record| put(record, sink))?;
        }
        if let Some(causes) = &mut self.causes {
            causes.drain(|record| sink.push_cause(record).map(drop))?;
        }
        if let Some((stream, operations)) = &mut self.operations {
            stream.drain(|call| operations.take(call, |record| sink.push_operation(record)))?;
        }
        Ok(())
    }

    fn stop(&mut self, what: Provides, sink: &mut Sink) -> Result<()> {
        if let (Provides::OPERATIONS, Some((stream, operations))) = (what, &mut self.operations) {
            stream.detach(|call| operations.take(call, |record| sink.push_operation(record)))?;
            return operations.finish(|record| sink.push_operation(record));
        }
        match (what, &mut self.events, &mut self.entries, &mut self.causes) {
            (Provides::EVENTS, Some(events), ..) => events.stop(sink),
            (Provides::ENTRIES, _, Some(entries), _) => entries.detach(|record| put(record, sink)),
            (Provides::CAUSES, .., Some(causes)) => {
                causes.detach(|record| sink.push_cause(record).map(drop))
            }
            _ => Ok(()),
        }
    }

    /// The probes count in maps of the kernel, independently of the streams.
    fn losses(&self) -> Result<Losses> {
        self.loader.losses()
    }

    fn remarks(&self) -> Vec<Remark> {
        remarks(&self.limits, Remark::Limit).collect()
    }
}

#[cfg(test)]
mod tests {
    use mostrace_bundle::Folder;

    use super::*;
    use crate::sink::{NameFilter, Retention};

    #[test]
    fn a_record_is_split_into_its_entries() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let names = NameFilter::parse("all").unwrap();
        let mut sink = Sink::new(&folder, names, Retention::of(false));
        sink.open_entries("here").unwrap();
        let entry = |kind: u16, size: u16| {
            let mut entry = vec![0; usize::from(size)];
            entry[..2].copy_from_slice(&kind.to_ne_bytes());
            entry[2..4].copy_from_slice(&size.to_ne_bytes());
            entry
        };
        let record = [entry(2, 72), entry(4, 72), entry(1, 88)].concat();
        put(&record, &mut sink).unwrap();
        let kept: Vec<u64> = sink.entry_counts().iter().map(|(_, kept)| *kept).collect();
        assert_eq!(kept, [1, 1, 1, 0, 0]);
        let longer = [&record[..], &[0; 4]].concat();
        for bad in [
            &record[..record.len() - 8],
            &longer,
            &entry(99, 32),
            &[0; 40],
        ] {
            assert!(put(bad, &mut sink).is_err(), "{}", bad.len());
        }
    }
}

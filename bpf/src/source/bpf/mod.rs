// SPDX-License-Identifier: MIT OR Apache-2.0
//! The project's own BPF probes for entries, block events, causes and operations; each kind is loaded without the others.
//!
//! [`ProbeLoader`] loads the probes of a kind when they are requested. Once attached, they fill a ring, which a thread empties
//! ([`stream`]); [`BpfSource`] puts the records into the sink. If entries and block events both come from probes, they share a ring
//! ([`shared_ring`]), and the probes of entries also write some of the events ([`forwarder`]).

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use super::process_names::open_entries;
use super::{Losses, Provides, Remark, Source, remarks};
use crate::choice::{self, Events};
use crate::error::{At, Result};
use crate::machine::device::Device;
use crate::machine::wait::Wait;
use crate::machine::{filesystem, kernel};
use crate::sink::Sink;

mod addresses;
mod backlog;
mod bio_number;
mod block_events;
mod block_records;
mod call_shapes;
mod calls;
mod cause_probes;
mod configure;
mod entry_probes;
mod event_probes;
mod forgotten;
mod form;
mod forwarder;
mod fuse_daemons;
mod in_progress;
mod loader;
mod object;
mod operation_probes;
mod operations;
mod patterns;
pub(crate) mod process1;
mod programs;
mod raw_call;
mod reader;
mod ring;
mod ring_size;
mod session;
mod shared_ring;
mod stacks;
mod stream;
mod told;

pub(crate) use addresses::{Known, are_known};
use block_events::BlockEvents;
pub(crate) use cause_probes::{Parts, has_fentry};
use event_probes::Wanted;
use forwarder::EventForwarder;
pub(crate) use loader::ObjectStorage;
use loader::ProbeLoader;
use operations::Operations;
use patterns::Patterns;
pub use ring_size::RingSize;
use stacks::{Recorded, Stacks};
pub(crate) use stream::Patience;
use stream::Stream;
pub(crate) use told::Told;

/// The time after which [`BpfSource::poll`] returns although more waits.
const TURN: Duration = Duration::from_millis(100);

/// Takes a record.
type Take<'t> = &'t mut dyn FnMut(&[u8]) -> Result<()>;

/// The attached probes.
pub(crate) struct BpfSource<'o> {
    events: Option<BlockEvents>,
    has_entries: bool,
    /// The ring of block events and entries.
    shared: Option<Stream>,
    /// Short records of that ring stand for these.
    patterns: Patterns,
    causes: Option<Stream>,
    /// What makes entries of the stacks that the probes of causes tell, if they do.
    stacks: Option<Stacks>,
    operations: Option<(Stream, Operations)>,
    /// The forwarder for block events, until the probes of block events are started.
    forwarder: Option<EventForwarder>,
    /// What the probes of entries cannot tell on this kernel.
    limits: Vec<String>,
    patience: Patience,
    /// All descriptors of the streams in one.
    wait: Wait,
    loader: ProbeLoader<'o>,
}

impl<'o> BpfSource<'o> {
    /// Makes a source that provides nothing yet. The probes are loaded with the kernel's own BTF, or with that of the file `btf`.
    ///
    /// # Errors
    /// Returns an error if no descriptor is left, or if the file has no BTF.
    pub fn new(
        storage: &'o mut ObjectStorage,
        btf: Option<&Path>,
        ring_size: RingSize,
        patience: Patience,
    ) -> Result<BpfSource<'o>> {
        let loader = ProbeLoader::new(storage, btf, ring_size);
        // Without type information, other ways to record would be tried in silence.
        btf.map(kernel::btf_of).transpose()?;
        Ok(BpfSource {
            events: None,
            has_entries: false,
            shared: None,
            patterns: Patterns::default(),
            causes: None,
            stacks: None,
            operations: None,
            forwarder: None,
            limits: Vec::new(),
            patience,
            wait: Wait::new().at("epoll")?,
            loader,
        })
    }

    /// Attaches the probes of entries, and makes the tables.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses the probes, or if the bundle cannot be written.
    pub fn start_entries(&mut self, device: &Device, sink: &mut Sink) -> Result<()> {
        let probes = self.loader.entries(device)?;
        let stream = probes.attach(&self.patience)?;
        let forwarder = probes.forwarder()?;
        self.limits.extend(probes.limits().iter().cloned());
        self.wait.while_readable(stream.wakeup_fd()).at("epoll")?;
        open_entries(sink, "BPF probes")?;
        self.forwarder = Some(forwarder);
        self.shared = Some(stream);
        self.has_entries = true;
        Ok(())
    }

    /// Attaches the probes of causes, with the parts that are wanted, and makes the tables.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses the probes, or if the bundle cannot be written.
    pub fn start_causes(&mut self, device: &Device, parts: Parts, sink: &mut Sink) -> Result<()> {
        let probes = self.loader.causes(device, parts)?;
        let stream = probes.attach(&self.patience)?;
        self.wait.while_readable(stream.wakeup_fd()).at("epoll")?;
        let sees_all = object::MODIFIES.iter().any(|of| stream.programs.has(of));
        if !sees_all && is_ext(device) {
            self.limits.push(ONLY_FIRST.to_owned());
        }
        sink.open_causes(parts.stacks)?;
        if parts.stacks {
            self.limits.push(SHORT_STACKS.to_owned());
            self.stacks = Some(Stacks::new());
        }
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
        let stream = probes.attach(&self.patience)?;
        self.limits.extend(probes.limits().iter().cloned());
        self.wait.while_readable(stream.wakeup_fd()).at("epoll")?;
        sink.open_operations()?;
        self.operations = Some((stream, Operations::new(device)));
        Ok(())
    }

    /// Attaches the probes of block events. If the probes of entries are attached, they write some of the events, and their ring is
    /// used.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses the probes.
    pub fn start_events(&mut self, device: &Device, events: Events, sink: &mut Sink) -> Result<()> {
        let forwarder = self.forwarder.take();
        let wanted = Wanted {
            events,
            shared_ring: forwarder.as_ref().map(EventForwarder::ring),
        };
        let probes = self.loader.events(device, wanted)?;
        if forwarder.is_none() {
            let own = Stream::new(&probes.ring()?, &self.patience)?;
            self.wait.while_readable(own.wakeup_fd()).at("epoll")?;
            self.shared = Some(own);
        }
        self.events = Some(BlockEvents::start(probes, forwarder, device.dev, sink)?);
        Ok(())
    }
}

impl BpfSource<'_> {
    /// Lets each stream pass records to the sink.
    fn each(
        &mut self,
        sink: &mut Sink,
        mut pass: impl FnMut(&mut Stream, Take<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut events = self.events.as_mut().map(BlockEvents::records);
        let patterns = &mut self.patterns;
        if let Some(shared) = &mut self.shared {
            pass(shared, &mut |record| {
                shared_ring::put(record, events.as_deref_mut(), patterns, sink)
            })?;
        }
        if let Some(causes) = &mut self.causes {
            pass(causes, &mut |record| {
                put_cause(record, self.stacks.as_mut(), sink)
            })?;
        }
        if let Some((stream, operations)) = &mut self.operations {
            pass(stream, &mut |call| {
                operations.take(call, |record| sink.push_operation(record))
            })?;
        }
        Ok(())
    }
}

/// The remark for a recording in which later modifications of a journalled block are not seen.
const ONLY_FIRST: &str = "the kernel accepts no program at jbd2_journal_dirty_metadata, so a block in the journal has the cause of \
                          its first change in the transaction (`first`); later changes are not seen";

/// The remark for a recording with stacks.
const SHORT_STACKS: &str = "a program's stack is followed by its frame pointers: of code that was compiled without them, frames \
                            are missing";

/// Takes a record of the ring of causes.
fn put_cause(record: &[u8], stacks: Option<&mut Stacks>, sink: &mut Sink) -> Result<()> {
    match stacks.zip(Recorded::read(record)) {
        None => sink.push_cause(record).map(drop),
        Some((_, recorded)) if sink.knows_stack(recorded.id()) => Ok(()),
        Some((stacks, recorded)) => sink.push_cause(&stacks.entry(&recorded)).map(drop),
    }
}

/// Returns true if the device's filesystem is ext4 or ext3.
fn is_ext(device: &Device) -> bool {
    let found = filesystem::find(device).ok().flatten();
    found.is_some_and(|filesystem| filesystem.kind.starts_with("ext"))
}

impl Source for BpfSource<'_> {
    fn name(&self) -> &'static str {
        "bpf"
    }

    fn provides(&self) -> Provides {
        Provides::SEGMENTS
            | Provides::EVENTS.only_if(self.events.is_some())
            | Provides::ENTRIES.only_if(self.has_entries)
            | Provides::CAUSES.only_if(self.causes.is_some())
            | Provides::OPERATIONS.only_if(self.operations.is_some())
    }

    fn wakeup_fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wait.as_fd())
    }

    /// Threads of their own empty the rings.
    fn poll_interval(&self) -> Duration {
        Duration::MAX
    }

    /// What a batch becomes is written at the usual priority: in spare time, a lock of the filesystem might be held for long.
    fn poll(&mut self, sink: &mut Sink) -> Result<()> {
        let since = Instant::now();
        loop {
            let mut goes_on = false;
            self.each(sink, |stream, take| {
                goes_on |= stream.poll(take)?;
                Ok(())
            })?;
            sink.flush()?;
            if !goes_on || since.elapsed() > TURN {
                return Ok(());
            }
        }
    }

    fn catch_up(&mut self, sink: &mut Sink) -> Result<()> {
        self.each(sink, |stream, take| stream.catch_up(take))
    }

    fn drain(&mut self, sink: &mut Sink) -> Result<()> {
        self.each(sink, |stream, take| stream.drain(take))
    }

    fn stop(&mut self, what: Provides, sink: &mut Sink) -> Result<()> {
        if let (Provides::OPERATIONS, Some((stream, operations))) = (what, &mut self.operations) {
            stream.detach(|call| operations.take(call, |record| sink.push_operation(record)))?;
            return operations.finish(|record| sink.push_operation(record));
        }
        let patterns = &mut self.patterns;
        match (what, &mut self.events, &mut self.shared, &mut self.causes) {
            (Provides::EVENTS, Some(events), Some(shared), _) => {
                events.stop(shared, patterns, sink)
            }
            (Provides::ENTRIES, events, Some(shared), _) => {
                let mut events = events.as_mut().map(BlockEvents::records);
                shared.detach(|record| {
                    shared_ring::put(record, events.as_deref_mut(), patterns, sink)
                })
            }
            (Provides::CAUSES, .., Some(causes)) => {
                causes.detach(|record| put_cause(record, self.stacks.as_mut(), sink))
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self, sink: &mut Sink) -> Result<()> {
        for call in self.loader.calls_in_progress()? {
            sink.push_cause(&call)?;
        }
        Ok(())
    }

    /// The probes count in maps of the kernel, independently of the streams.
    fn losses(&self) -> Result<Losses> {
        let mut losses = self.loader.losses()?;
        if let Some(causes) = &self.causes {
            *losses.entry("causes_misses".to_owned()).or_insert(0) += causes.programs.missed();
        }
        Ok(losses)
    }

    fn remarks(&self) -> Vec<Remark> {
        remarks(&self.limits, Remark::Limit).collect()
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loads probes when they are first requested. So a kernel that accepts no probes is not asked if none are wanted, and probes of
//! one kind load even if those of another do not.

use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libbpf_rs::OpenObject;

use super::cause_probes::{CauseProbes, Parts};
use super::entry_probes::EntryProbes;
use super::event_probes::{EventProbes, Wanted};
use super::object::log_libbpf;
use super::operation_probes::OperationProbes;
use super::ring_size::RingSize;
use crate::choice::Operations;
use crate::error::{Error, Result};
use crate::machine::device::Device;
use crate::source::Losses;

/// The memory for the loaded objects.
pub(crate) struct ObjectStorage {
    entries: MaybeUninit<OpenObject>,
    events: MaybeUninit<OpenObject>,
    causes: MaybeUninit<OpenObject>,
    operations: MaybeUninit<OpenObject>,
}

impl ObjectStorage {
    /// Makes memory for objects that are not yet loaded.
    pub fn new() -> ObjectStorage {
        ObjectStorage {
            entries: MaybeUninit::uninit(),
            events: MaybeUninit::uninit(),
            causes: MaybeUninit::uninit(),
            operations: MaybeUninit::uninit(),
        }
    }
}

/// The probes of one kind, or the reason why there are none.
enum Slot<'o, P> {
    Empty(&'o mut MaybeUninit<OpenObject>),
    Tried(std::result::Result<P, Arc<Error>>),
    /// The state while the probes are being loaded.
    Taken,
}

impl<'o, P> Slot<'o, P> {
    /// Loads the probes, unless this was already tried.
    fn get(
        &mut self,
        load: impl FnOnce(&'o mut MaybeUninit<OpenObject>) -> Result<P>,
    ) -> Result<&mut P> {
        if let Slot::Empty(storage) = std::mem::replace(self, Slot::Taken) {
            *self = Slot::Tried(load(storage).map_err(Arc::new));
        }
        match self {
            Slot::Tried(Ok(probes)) => Ok(probes),
            Slot::Tried(Err(e)) => Err(Error::ProbesRefused(Arc::clone(e))),
            _ => Err(Error::bpf("not loaded")),
        }
    }

    fn loaded(&self) -> Option<&P> {
        match self {
            Slot::Tried(Ok(probes)) => Some(probes),
            _ => None,
        }
    }
}

/// The probes of each kind.
pub(crate) struct ProbeLoader<'o> {
    /// A file with the kernel's BTF, for the probes of entries and events.
    btf: Option<PathBuf>,
    ring_size: RingSize,
    entries: Slot<'o, EntryProbes<'o>>,
    events: Slot<'o, EventProbes<'o>>,
    causes: Slot<'o, CauseProbes<'o>>,
    operations: Slot<'o, OperationProbes<'o>>,
}

impl<'o> ProbeLoader<'o> {
    /// Makes a loader that has not loaded anything.
    pub fn new(
        storage: &'o mut ObjectStorage,
        btf: Option<&Path>,
        ring_size: RingSize,
    ) -> ProbeLoader<'o> {
        libbpf_rs::set_print(Some((libbpf_rs::PrintLevel::Warn, log_libbpf)));
        ProbeLoader {
            btf: btf.map(Path::to_owned),
            ring_size,
            entries: Slot::Empty(&mut storage.entries),
            events: Slot::Empty(&mut storage.events),
            causes: Slot::Empty(&mut storage.causes),
            operations: Slot::Empty(&mut storage.operations),
        }
    }

    /// Returns the probes of entries.
    ///
    /// # Errors
    /// Returns an error if there is no BTF, or if the kernel refuses the probes.
    pub fn entries(&mut self, device: &Device) -> Result<&mut EntryProbes<'o>> {
        let (btf, ring) = (self.btf.as_deref(), self.ring_size);
        self.entries
            .get(|storage| EntryProbes::load(storage, device, btf, ring))
    }

    /// Returns the probes of block events.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`ProbeLoader::entries`].
    pub fn events(&mut self, device: &Device, wanted: Wanted<'_>) -> Result<&mut EventProbes<'o>> {
        let (btf, ring) = (self.btf.as_deref(), self.ring_size);
        self.events
            .get(|storage| EventProbes::load(storage, device, wanted, btf, ring))
    }

    /// Returns the probes of causes, with the parts that are wanted.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`ProbeLoader::entries`], or if the kernel has no bpf_loop and stacks are wanted.
    pub fn causes(&mut self, device: &Device, parts: Parts) -> Result<&mut CauseProbes<'o>> {
        let ring = self.ring_size;
        self.causes
            .get(|storage| CauseProbes::load(storage, device, parts, ring))
    }

    /// Returns the probes of operations, for the requested calls.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`ProbeLoader::entries`].
    pub fn operations(
        &mut self,
        device: &Device,
        what: Operations,
    ) -> Result<&mut OperationProbes<'o>> {
        let ring = self.ring_size;
        self.operations
            .get(|storage| OperationProbes::load(storage, device, what, ring))
    }

    /// Returns the entries of the calls that had not returned when the probes of causes were detached.
    ///
    /// # Errors
    /// Returns an error if the kernel does not give the calls.
    pub fn calls_in_progress(&self) -> Result<Vec<Vec<u8>>> {
        let causes = self.causes.loaded();
        causes.map_or(Ok(Vec::new()), CauseProbes::calls_in_progress)
    }

    /// Returns the number of records that the loaded probes lost.
    ///
    /// # Errors
    /// Returns an error if the kernel does not give the counters.
    pub fn losses(&self) -> Result<Losses> {
        let mut losses = Losses::new();
        let entries = self.entries.loaded().map(EntryProbes::losses);
        let events = self.events.loaded().map(EventProbes::losses);
        let causes = self.causes.loaded().map(CauseProbes::losses);
        let operations = self.operations.loaded().map(OperationProbes::losses);
        let all = [entries, events, causes, operations];
        for of_one in all.into_iter().flatten() {
            for (name, lost) in of_one? {
                *losses.entry(name).or_insert(0) += lost;
            }
        }
        Ok(losses)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probes, loaded when they are first asked for: a kernel that cannot have them need not, if
//! nothing asks for them, and those of one kind are not kept from loading by the other's.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libbpf_rs::OpenObject;

use super::causes::CauseProbes;
use super::events::{EventProbes, Wanted};
use super::{Probes, log_libbpf};
use crate::error::{Error, Result};
use crate::machine::device::Device;
use crate::ring_size::RingSize;

/// Where the probes will live.
pub(crate) struct Rooms {
    entries: MaybeUninit<OpenObject>,
    events: MaybeUninit<OpenObject>,
    causes: MaybeUninit<OpenObject>,
}

impl Rooms {
    /// Nothing is in them yet.
    pub fn new() -> Rooms {
        Rooms {
            entries: MaybeUninit::uninit(),
            events: MaybeUninit::uninit(),
            causes: MaybeUninit::uninit(),
        }
    }
}

/// Probes, or why there are none.
enum Slot<'o, P> {
    Empty(&'o mut MaybeUninit<OpenObject>),
    Tried(std::result::Result<P, Arc<Error>>),
    /// Only while they are being loaded.
    Taken,
}

impl<'o, P> Slot<'o, P> {
    /// Loads them, unless that was tried before.
    fn get(
        &mut self,
        load: impl FnOnce(&'o mut MaybeUninit<OpenObject>) -> Result<P>,
    ) -> Result<&P> {
        if let Slot::Empty(room) = std::mem::replace(self, Slot::Taken) {
            *self = Slot::Tried(load(room).map_err(Arc::new));
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
pub(crate) struct Loader<'o> {
    /// A file with the kernel's BTF, for those of entries and events.
    btf: Option<PathBuf>,
    ring_size: RingSize,
    entries: Slot<'o, Probes<'o>>,
    events: Slot<'o, EventProbes<'o>>,
    causes: Slot<'o, CauseProbes<'o>>,
}

impl<'o> Loader<'o> {
    pub fn new(rooms: &'o mut Rooms, btf: Option<&Path>, ring_size: RingSize) -> Loader<'o> {
        libbpf_rs::set_print(Some((libbpf_rs::PrintLevel::Warn, log_libbpf)));
        Loader {
            btf: btf.map(Path::to_owned),
            ring_size,
            entries: Slot::Empty(&mut rooms.entries),
            events: Slot::Empty(&mut rooms.events),
            causes: Slot::Empty(&mut rooms.causes),
        }
    }

    /// Those of entries.
    ///
    /// # Errors
    /// No BTF, or the kernel refuses the probes.
    pub fn entries(&mut self, device: &Device) -> Result<&Probes<'o>> {
        let (btf, ring) = (self.btf.as_deref(), self.ring_size);
        self.entries
            .get(|room| Probes::load(room, device, btf, ring))
    }

    /// Those of block events.
    ///
    /// # Errors
    /// As of entries.
    pub fn events(&mut self, device: &Device, wanted: Wanted) -> Result<&EventProbes<'o>> {
        let (btf, ring) = (self.btf.as_deref(), self.ring_size);
        self.events
            .get(|room| EventProbes::load(room, device, wanted, btf, ring))
    }

    /// Those of causes, and of the command's processes if there is one.
    ///
    /// # Errors
    /// As of entries; or it has no bpf_loop.
    pub fn causes(&mut self, device: &Device, has_command: bool) -> Result<&CauseProbes<'o>> {
        let ring = self.ring_size;
        self.causes
            .get(|room| CauseProbes::load(room, device, has_command, ring))
    }

    /// What the probes lost, by the manifest's names; nothing if there are none.
    ///
    /// # Errors
    /// The kernel does not give the counters.
    pub fn losses(&self) -> Result<BTreeMap<String, u64>> {
        let mut losses = BTreeMap::new();
        let entries = self.entries.loaded().map(Probes::losses);
        let events = self.events.loaded().map(EventProbes::losses);
        let causes = self.causes.loaded().map(CauseProbes::losses);
        for of_one in entries.into_iter().chain(events).chain(causes) {
            for (name, lost) in of_one? {
                *losses.entry(name).or_insert(0) += lost;
            }
        }
        Ok(losses)
    }
}

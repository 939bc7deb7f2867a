// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probes, loaded when they are first asked for: a kernel that cannot have them need not, if
//! nothing asks for them.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::sync::Arc;

use libbpf_rs::OpenObject;

use super::Probes;
use crate::device::Device;
use crate::error::{Error, Result};

/// The probes, or why there are none.
pub(crate) struct Loader<'o> {
    /// Where they will live, until that was tried.
    room: Option<&'o mut MaybeUninit<OpenObject>>,
    probes: std::result::Result<Probes<'o>, Arc<Error>>,
}

impl<'o> Loader<'o> {
    pub fn new(room: &'o mut MaybeUninit<OpenObject>) -> Loader<'o> {
        Loader {
            room: Some(room),
            probes: Err(Arc::new(Error::bpf("not asked for yet"))),
        }
    }

    /// Loads them, unless that was tried before.
    ///
    /// # Errors
    /// No BTF, or the kernel refuses the probes.
    pub fn load(&mut self, device: &Device) -> Result<&Probes<'o>> {
        if let Some(room) = self.room.take() {
            self.probes = Probes::load(room, device).map_err(Arc::new);
        }
        let refused = |e: &Arc<Error>| Error::ProbesRefused(Arc::clone(e));
        self.probes.as_ref().map_err(refused)
    }

    /// What the probes lost, by the manifest's names; nothing if there are none.
    ///
    /// # Errors
    /// The kernel does not give the counters.
    pub fn losses(&self) -> Result<BTreeMap<String, u64>> {
        self.probes
            .as_ref()
            .map_or(Ok(BTreeMap::new()), Probes::losses)
    }
}

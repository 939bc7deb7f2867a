// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probes, loaded when they are first asked for.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;

use libbpf_rs::OpenObject;

use super::Probes;
use crate::device::Device;
use crate::error::{Error, Result};

/// The probes, or why there are none: a kernel that cannot have them need not, if nothing asks for them.
pub(crate) struct Loader<'o> {
    storage: Option<&'o mut MaybeUninit<OpenObject>>,
    probes: Option<Probes<'o>>,
    refused: String,
}

impl<'o> Loader<'o> {
    pub fn new(storage: &'o mut MaybeUninit<OpenObject>) -> Loader<'o> {
        Loader {
            storage: Some(storage),
            probes: None,
            refused: String::new(),
        }
    }

    /// Loads them, unless that was tried before.
    ///
    /// # Errors
    /// No BTF, or the kernel refuses the probes.
    pub fn load(&mut self, device: &Device) -> Result<&mut Probes<'o>> {
        if let Some(storage) = self.storage.take() {
            match Probes::load(storage, device) {
                Ok(probes) => self.probes = Some(probes),
                Err(e) => self.refused = e.to_string(),
            }
        }
        match &mut self.probes {
            Some(probes) => Ok(probes),
            None => Err(Error::unfit(&*self.refused)),
        }
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

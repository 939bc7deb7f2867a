// SPDX-License-Identifier: MIT OR Apache-2.0
//! The project's own probes.

use std::collections::BTreeMap;

use mostrace_bundle::Folder;

use super::{Counts, EntrySource, Tables};
use crate::error::{Error, Result};
use crate::names::NameFilter;
use crate::probes::{Probes, Stream};

/// The attached probes' entries.
pub(crate) struct BpfEntries {
    stream: Stream<Tables>,
}

impl BpfEntries {
    /// Attaches the probes, into tables in `folder`.
    ///
    /// # Errors
    /// The kernel refuses them, or the bundle cannot be written.
    pub fn start(probes: &Probes<'_>, folder: &Folder, names: NameFilter) -> Result<BpfEntries> {
        let tables = Tables::create(folder, names, "BPF probes")?;
        let stream = probes.entries(tables, take)?;
        Ok(BpfEntries { stream })
    }
}

fn take(tables: &mut Tables, entry: &[u8]) -> Result<()> {
    match tables.take(entry)? {
        true => Ok(()),
        false => Err(Error::bpf("an entry of unknown type")),
    }
}

impl EntrySource for BpfEntries {
    fn name(&self) -> &'static str {
        "bpf"
    }

    fn poll(&mut self) -> Result<()> {
        self.stream.drain()?;
        self.stream.sink_mut().flush()
    }

    fn counts(&self) -> Counts {
        self.stream.sink().counts()
    }

    fn stop(&mut self) -> Result<()> {
        self.stream.detach();
        self.poll()
    }

    /// Counted with the probes' own.
    fn losses(&self) -> Result<BTreeMap<String, u64>> {
        Ok(BTreeMap::new())
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probes of entries (`mostrace.bpf.c`).

use std::mem::MaybeUninit;
use std::path::Path;

use libbpf_rs::OpenObject;
use libbpf_rs::btf::Btf;
use libbpf_rs::skel::Skel;

use super::configure;
use super::forgotten::Forgotten;
use super::form::entries;
use super::forwarder::EventForwarder;
use super::object::{attach, events_lost, map_of, map_to_open, per_cpu_sum, recursion_misses};
use super::ring_size::{RingSize, table_entries};
use super::stream::{Patience, Stream};
use crate::error::{Error, Result};
use crate::machine::device::Device;
use crate::machine::kernel;
use crate::machine::memory;
use crate::source::Losses;

/// `enum loss` of loss.bpf.h, in its order, with the manifest's names.
const LOSSES: [&str; 4] = ["entries_ring", "submitters", "pages_cut", "dirtiers"];
/// `LOSS_NESTED`, which is behind them: runs that the probes skipped themselves.
const NESTED: u32 = LOSSES.len() as u32;

/// The map that is the ring.
const RING: &str = "shared_ring";
/// The map with the variable `told_events`.
const TOLD: &str = ".data.told";

/// The tables whose size depends on the machine's memory, with the most and the fewest entries of each: the pages that are dirty at
/// a time, and the empty flushes that have not ended.
const TABLES: [(&str, u32, u32); 2] = [
    ("dirty_pages", 1 << 17, 1 << 16),
    ("flushes", 1 << 12, 1 << 11),
];

/// The loaded probes of entries.
pub(crate) struct EntryProbes<'o> {
    skel: Box<dyn Skel<'o> + 'o>,
    /// What the probes cannot tell on this kernel, and why.
    limits: Vec<String>,
    forgotten: Forgotten,
}

impl<'o> EntryProbes<'o> {
    /// Loads the probes with the kernel's own BTF, or with that of a file.
    ///
    /// # Errors
    /// Returns an error if there is no BTF, or if the kernel refuses the probes.
    pub fn load(
        storage: &'o mut MaybeUninit<OpenObject>,
        device: &Device,
        btf: Option<&Path>,
        ring: RingSize,
    ) -> Result<EntryProbes<'o>> {
        match btf {
            None => EntryProbes::configured(entries::typed(storage)?, device, kernel::btf()?, ring),
            Some(file) => {
                let btf = kernel::btf_of(file)?;
                EntryProbes::configured(entries::untyped(storage, Some(file))?, device, btf, ring)
            }
        }
    }

    fn configured(
        mut open: impl entries::Form<'o, Output: 'o>,
        device: &Device,
        btf: Btf<'_>,
        ring: RingSize,
    ) -> Result<EntryProbes<'o>> {
        let limits = configure::configure(&mut open, device, &btf)?;
        // libbpf reads the BTF once more, so this copy is dropped first.
        drop(btf);
        memory::give_back();
        map_to_open(&mut open, RING)?
            .set_max_entries(ring.bytes())
            .map_err(Error::bpf)?;
        for (table, most, least) in TABLES {
            map_to_open(&mut open, table)?
                .set_max_entries(table_entries(most, least))
                .map_err(Error::bpf)?;
        }
        let skel = open.load().map_err(Error::bpf)?;
        memory::give_back();
        let skel = Box::new(skel);
        let forgotten = Forgotten::default();
        Ok(EntryProbes {
            skel,
            limits,
            forgotten,
        })
    }

    /// Returns what the probes cannot tell on this kernel, and why.
    pub fn limits(&self) -> &[String] {
        &self.limits
    }

    /// Attaches the probes.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses them.
    pub fn attach(&self, patience: &Patience) -> Result<Stream> {
        let mut stream = Stream::new(&map_of(&*self.skel, RING)?, patience)?;
        attach(self.skel.object(), &mut stream.programs)?;
        Ok(stream)
    }

    /// Returns the number of records that the probes lost.
    ///
    /// # Errors
    /// Returns an error if the kernel does not give the counters.
    pub fn losses(&self) -> Result<Losses> {
        let mut losses = Losses::new();
        for (index, name) in (0u32..).zip(LOSSES) {
            let lost = per_cpu_sum(&map_of(&*self.skel, "losses")?, index)?;
            losses.insert(name.to_owned(), lost);
        }
        let counts = map_of(&*self.skel, "dirt_counts")?;
        let pages = map_of(&*self.skel, "dirty_pages")?;
        *losses.entry("dirtiers".to_owned()).or_insert(0) +=
            self.forgotten.count(&counts, &pages)?;
        losses.insert("events_ring".to_owned(), events_lost(&*self.skel)?);
        let nested = per_cpu_sum(&map_of(&*self.skel, "losses")?, NESTED)?;
        let misses = recursion_misses(self.skel.object()).saturating_add(nested);
        losses.insert("probe_misses".to_owned(), misses);
        Ok(losses)
    }

    /// Returns a forwarder, with which the probes also write block events.
    ///
    /// # Errors
    /// Returns an error if there is no descriptor left.
    pub fn forwarder(&self) -> Result<EventForwarder> {
        let told = map_of(&*self.skel, TOLD)?;
        EventForwarder::of(&told, &map_of(&*self.skel, RING)?)
    }
}

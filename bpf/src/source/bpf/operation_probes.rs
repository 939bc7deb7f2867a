// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probes of operations (`operations.bpf.c`).

use std::mem::MaybeUninit;

use libbpf_rs::OpenObject;
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};

use super::call_shapes;
use super::object::{attach, per_cpu_sum, recursion_misses};
use super::ring_size::RingSize;
use super::stream::Stream;
use crate::error::{Error, Result};
use crate::machine::device::Device;
use crate::machine::kernel;
use crate::source::Losses;

mod skel {
    #![allow(missing_docs, unsafe_code, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/operations.skel.rs"));
}

use skel::{OperationsSkel, OperationsSkelBuilder};

/// `enum operations_loss` of operation.bpf.h, in its order; the manifest's names.
const LOSSES: [&str; 3] = ["operations_ring", "operations_tasks", "operations_stores"];

/// The loaded probes of operations.
pub(crate) struct OperationProbes<'o> {
    skel: OperationsSkel<'o>,
}

impl<'o> OperationProbes<'o> {
    /// Loads the probes.
    ///
    /// # Errors
    /// There is no BTF, or the kernel refuses the probes.
    pub(super) fn load(
        storage: &'o mut MaybeUninit<OpenObject>,
        device: &Device,
        ring: RingSize,
    ) -> Result<OperationProbes<'o>> {
        let btf = kernel::btf()?;
        if !kernel::has_bpf_loop(&btf) {
            return Err(Error::bpf("this kernel has no bpf_loop (5.17)"));
        }
        let builder = OperationsSkelBuilder::default();
        let mut open = builder.open(storage).map_err(Error::bpf)?;
        let rodata = open.maps.rodata_data.as_deref_mut();
        let rodata = rodata.ok_or_else(|| Error::bpf("skeleton without rodata"))?;
        rodata.page_shift = rustix::param::page_size().trailing_zeros();
        let filesystems = device.filesystems();
        let room = &mut rodata.filesystems;
        let kept = filesystems.len().min(room.devs.len());
        room.devs[..kept].copy_from_slice(&filesystems[..kept]);
        room.count = u32::try_from(kept).unwrap_or(0);
        rodata.call_shapes = call_shapes::shapes();
        rodata.close_number = u32::try_from(libc::SYS_close).unwrap_or_default();
        let folios = kernel::has_tracepoint(&btf, "writeback_dirty_folio");
        open.progs.operation_dirty_folio.set_autoload(folios);
        open.progs.operation_dirty_page.set_autoload(!folios);
        let map = &mut open.maps.operations;
        map.set_max_entries(ring.bytes()).map_err(Error::bpf)?;
        let skel = open.load().map_err(Error::bpf)?;
        Ok(OperationProbes { skel })
    }

    /// Attaches the probes.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub fn attach(&self) -> Result<Stream> {
        let stream = Stream::new(&self.skel.maps.operations)?;
        attach(self.skel.object(), stream)
    }

    /// The records that the probes lost.
    ///
    /// # Errors
    /// The kernel does not give the counters.
    pub(super) fn losses(&self) -> Result<Losses> {
        let mut losses = Losses::new();
        for (index, name) in (0u32..).zip(LOSSES) {
            let lost = per_cpu_sum(&self.skel.maps.operations_lost, index)?;
            losses.insert(name.to_owned(), lost);
        }
        let misses = recursion_misses(self.skel.object());
        losses.insert("probe_misses".to_owned(), misses);
        Ok(losses)
    }
}

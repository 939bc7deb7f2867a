// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probes of block events (`events.bpf.c`).

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::path::Path;

use libbpf_rs::btf::Btf;
use libbpf_rs::skel::Skel;
use libbpf_rs::{Map, OpenObject};

use super::form::events as form;
use super::object::{attach, events_lost, map_of, map_to_open, recursion_misses};
use super::programs::Programs;
use super::ring_size::RingSize;
use crate::choice::Events;
use crate::error::{Error, Result};
use crate::machine::device::Device;
use crate::machine::kernel;
use crate::machine::memory;
use crate::source::Losses;

/// The programs that follow an issued request to its end.
pub(crate) const ENDS: [&str; 2] = ["event_rq_complete", "event_rq_requeue"];

/// The programs that are left out if the probes of entries forward the same events.
const FORWARDED: [&str; 2] = ["event_bio_queue", "event_rq_complete"];

/// The program for bios that complete without a request. NVMe multipath also reports the bios of completed requests there
/// (nvme_trace_bio_complete).
const BIO_COMPLETE: &str = "event_bio_complete";

/// The programs for the events that the analyser needs for life cycles and for entries: Q, X, I, D, R and C.
const LIFE_CYCLE: [&str; 7] = [
    "event_bio_queue",
    "event_split",
    "event_rq_insert",
    "event_rq_issue",
    "event_rq_requeue",
    "event_rq_complete",
    BIO_COMPLETE,
];

/// The loaded probes of block events.
pub(crate) struct EventProbes<'o> {
    skel: Box<dyn Skel<'o> + 'o>,
}

/// The block events that the probes should record.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'r> {
    /// All events that blktrace knows, or only those of life cycles.
    pub events: Events,
    /// The ring of the probes of entries, if these forward queued bios and completed requests.
    pub shared_ring: Option<BorrowedFd<'r>>,
}

impl Wanted<'_> {
    fn has(self, program: &OsStr) -> bool {
        let is_wanted = self.events == Events::All || LIFE_CYCLE.iter().any(|p| program == *p);
        is_wanted && !(self.shared_ring.is_some() && FORWARDED.iter().any(|p| program == *p))
    }
}

impl<'o> EventProbes<'o> {
    /// Loads the probes with the kernel's own BTF, or with that of a file.
    ///
    /// # Errors
    /// Returns an error if there is no BTF, or if the kernel refuses the probes.
    pub(super) fn load(
        storage: &'o mut MaybeUninit<OpenObject>,
        device: &Device,
        wanted: Wanted<'_>,
        btf: Option<&Path>,
        ring: RingSize,
    ) -> Result<EventProbes<'o>> {
        match btf {
            None => EventProbes::of(form::typed(storage)?, device, wanted, kernel::btf()?, ring),
            Some(file) => {
                let btf = kernel::btf_of(file)?;
                EventProbes::of(
                    form::untyped(storage, Some(file))?,
                    device,
                    wanted,
                    btf,
                    ring,
                )
            }
        }
    }

    fn of(
        mut open: impl form::Form<'o, Output: 'o>,
        device: &Device,
        wanted: Wanted<'_>,
        btf: Btf<'_>,
        ring: RingSize,
    ) -> Result<EventProbes<'o>> {
        fill_constants(open.constants()?, device, &btf)?;
        drop(btf);
        memory::give_back();
        let mut own = map_to_open(&mut open, "shared_ring")?;
        own.set_max_entries(ring.bytes()).map_err(Error::bpf)?;
        if let Some(shared) = wanted.shared_ring {
            own.reuse_fd(shared).map_err(Error::bpf)?;
        }
        for mut program in open.open_object_mut().progs_mut() {
            let is_twice = !device.paths.is_empty() && program.name() == BIO_COMPLETE;
            let is_wanted = wanted.has(program.name()) && !is_twice;
            program.set_autoload(is_wanted);
        }
        let skel = Box::new(open.load().map_err(Error::bpf)?);
        memory::give_back();
        Ok(EventProbes { skel })
    }

    /// Returns the ring of the probes.
    ///
    /// # Errors
    /// Returns an error if they have no ring.
    pub fn ring(&self) -> Result<Map<'_>> {
        map_of(&*self.skel, "shared_ring")
    }

    /// Attaches the probes.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses them.
    pub fn attach(&self) -> Result<Programs> {
        let mut attached = Programs::default();
        attach(self.skel.object(), &mut attached)?;
        Ok(attached)
    }

    /// Returns the number of records that the probes lost.
    ///
    /// # Errors
    /// Returns an error if the kernel does not give the counters.
    pub(super) fn losses(&self) -> Result<Losses> {
        let lost = events_lost(&*self.skel)?;
        let misses = recursion_misses(self.skel.object());
        let losses = [("events_ring", lost), ("probe_misses", misses)];
        Ok(losses.map(|(name, n)| (name.to_owned(), n)).into())
    }
}

fn fill_constants(rodata: &mut form::Constants, device: &Device, btf: &Btf<'_>) -> Result<()> {
    let bio = |tracepoint: &str| kernel::argument_index(btf, tracepoint, "bio");
    let request = |tracepoint: &str| kernel::argument_index(btf, tracepoint, "request");
    rodata.target.disk_dev = device.disk_dev;
    rodata.target.dev = device.dev;
    rodata.target.start = device.info.start_sector;
    rodata.target.end = device.end_sector();
    for (room, path) in rodata.target.paths.iter_mut().zip(&device.paths) {
        *room = path.dev;
        rodata.target.path_count += 1;
    }
    rodata.has_requests = device.has_requests();
    rodata.complete_has_errno = kernel::completes_with_errno(btf);
    rodata.args.bio_queue = bio("block_bio_queue")?;
    rodata.args.split = bio("block_split")?;
    rodata.args.getrq = bio("block_getrq")?;
    rodata.args.backmerge = bio("block_bio_backmerge")?;
    rodata.args.frontmerge = bio("block_bio_frontmerge")?;
    rodata.args.remap = bio("block_bio_remap")?;
    rodata.args.rq_insert = request("block_rq_insert")?;
    rodata.args.rq_issue = request("block_rq_issue")?;
    rodata.args.rq_merge = request("block_rq_merge")?;
    rodata.args.rq_requeue = request("block_rq_requeue")?;
    Ok(())
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probes of operations (`operations.bpf.c`).

use std::ffi::OsStr;
use std::mem::MaybeUninit;

use libbpf_rs::btf::Btf;
use libbpf_rs::skel::{OpenSkel, Skel};
use libbpf_rs::{MapCore, OpenObject};

use super::call_shapes;
use super::form::operations as form;
use super::object::{attach, map_of, map_to_open, per_cpu_sum, recursion_misses};
use super::ring_size::RingSize;
use super::stream::{Patience, Stream};
use crate::choice::Operations;
use crate::error::{Error, Result};
use crate::machine::device::Device;
use crate::machine::kernel;
use crate::machine::members;
use crate::source::Losses;

/// `enum operations_loss` of operation.bpf.h, in its order, with the manifest's names.
const LOSSES: [&str; 3] = ["operations_ring", "operations_tasks", "operations_stores"];

/// What should be loaded.
struct Wanted<'d> {
    device: &'d Device,
    what: Operations,
    ring: RingSize,
    /// True if the kernel's tracepoint of dirtied memory passes folios instead of pages.
    folios: bool,
    requests: Option<Requests>,
}

/// How the kernel reports requests to io_uring.
struct Requests {
    /// The program at the tracepoint of submissions, and the place of the request among its arguments.
    submit: &'static str,
    submit_at: u8,
    /// True if the tracepoint of completions passes a cqe.
    has_cqe: bool,
}

impl Requests {
    /// Returns None if the tracepoints do not pass the request; before 5.17, completions do not.
    fn of(btf: &Btf<'_>) -> Option<Requests> {
        const SUBMITS: [(&str, &str); 2] = [
            ("io_uring_submit_req", "operation_ring_submit_req"),
            ("io_uring_submit_sqe", "operation_ring_submit_sqe"),
        ];
        if !kernel::has_bpf_loop(btf) {
            return None;
        }
        let at = |tracepoint| kernel::argument_index(btf, tracepoint, "io_kiocb").ok();
        let mut submits = SUBMITS.iter();
        let (submit, submit_at) =
            submits.find_map(|(tracepoint, name)| Some((*name, at(tracepoint)?)))?;
        let has_cqe = kernel::passes(btf, "io_uring_complete", "io_uring_cqe");
        Some(Requests {
            submit,
            submit_at,
            has_cqe,
        })
    }
}

impl Wanted<'_> {
    /// Loads the programs that are wanted.
    fn load<'o>(
        &self,
        mut open: impl form::Form<'o, Output: 'o>,
    ) -> Result<Box<dyn Skel<'o> + 'o>> {
        self.fill(open.constants()?);
        self.choose(&mut open)?;
        Ok(Box::new(open.load().map_err(Error::bpf)?))
    }

    fn fill(&self, constants: &mut form::Constants) {
        constants.page_shift = rustix::param::page_size().trailing_zeros();
        let filesystems = members::filesystems(self.device);
        let room = &mut constants.filesystems;
        let kept = filesystems.len().min(room.devs.len());
        room.devs[..kept].copy_from_slice(&filesystems[..kept]);
        room.count = u32::try_from(kept).unwrap_or(0);
        let number = |call| u32::try_from(call).unwrap_or_default();
        constants.call_shapes = call_shapes::shapes(self.what == Operations::All);
        constants.close_number = number(libc::SYS_close);
        constants.fdatasync_number = number(libc::SYS_fdatasync);
        constants.ring_calls = call_shapes::requests();
        if let Some(requests) = &self.requests {
            constants.ring_submit_at = requests.submit_at.into();
            constants.ring_has_cqe = requests.has_cqe;
        }
    }

    /// Chooses the programs for which this kernel has tracepoints.
    fn choose<'o>(&self, open: &mut impl OpenSkel<'o>) -> Result<()> {
        for mut program in open.open_object_mut().progs_mut() {
            let wants = self.wants(program.name());
            program.set_autoload(wants);
        }
        let mut map = map_to_open(open, "operations")?;
        map.set_max_entries(self.ring.bytes()).map_err(Error::bpf)
    }

    fn wants(&self, program: &OsStr) -> bool {
        match program.to_str().unwrap_or_default() {
            "operation_dirty_folio" => self.folios,
            "operation_dirty_page" => !self.folios,
            "operation_ring_complete" => self.requests.is_some(),
            name if name.starts_with("operation_ring_") => self
                .requests
                .as_ref()
                .is_some_and(|requests| requests.submit == name),
            _ => true,
        }
    }
}

/// The loaded probes of operations.
pub(crate) struct OperationProbes<'o> {
    skel: Box<dyn Skel<'o> + 'o>,
    limits: Vec<String>,
}

impl<'o> OperationProbes<'o> {
    /// Loads the probes.
    ///
    /// # Errors
    /// Returns an error if there is no BTF, or if the kernel refuses the probes.
    pub(super) fn load(
        storage: &'o mut MaybeUninit<OpenObject>,
        device: &Device,
        what: Operations,
        ring: RingSize,
    ) -> Result<OperationProbes<'o>> {
        let btf = kernel::btf()?;
        let wanted = Wanted {
            device,
            what,
            ring,
            folios: kernel::has_tracepoint(&btf, "writeback_dirty_folio"),
            requests: Requests::of(&btf),
        };
        let mut limits = Vec::new();
        if wanted.requests.is_none() {
            limits.push(NO_REQUESTS.to_owned());
        }
        let skel = match kernel::has_bpf_loop(&btf) {
            true => wanted.load(form::looped(storage)?)?,
            false => wanted.load(form::loopless(storage, None)?)?,
        };
        Ok(OperationProbes { skel, limits })
    }

    /// Returns what the probes cannot tell on this kernel.
    pub fn limits(&self) -> &[String] {
        &self.limits
    }

    /// Attaches the probes.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses them.
    pub fn attach(&self, patience: &Patience) -> Result<Stream> {
        let mut stream = Stream::new(&map_of(&*self.skel, "operations")?, patience)?;
        attach(self.skel.object(), &mut stream.programs)?;
        Ok(stream)
    }

    /// Returns the number of records that the probes lost.
    ///
    /// # Errors
    /// Returns an error if the kernel does not give the counters.
    pub(super) fn losses(&self) -> Result<Losses> {
        let mut losses = Losses::new();
        let counters = map_of(&*self.skel, "operations_lost")?;
        for (index, name) in (0u32..).zip(LOSSES) {
            let lost = per_cpu_sum(&counters as &dyn MapCore, index)?;
            losses.insert(name.to_owned(), lost);
        }
        let misses = recursion_misses(self.skel.object());
        losses.insert("probe_misses".to_owned(), misses);
        Ok(losses)
    }
}

const NO_REQUESTS: &str = "the kernel's tracepoints do not pass requests to io_uring (before 5.17), so that they are not among \
                           the operations";

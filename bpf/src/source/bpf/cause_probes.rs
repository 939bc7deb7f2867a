// SPDX-License-Identifier: MIT OR Apache-2.0
//! The probes of causes (`causes.bpf.c`).

use std::ffi::OsString;
use std::iter;
use std::mem::MaybeUninit;

use libbpf_rs::btf::Btf;
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{Link, Object, OpenObject, PrintLevel};

use super::calls;
use super::form::causes as form;
use super::fuse_daemons;
use super::in_progress;
use super::object::{
    ATOMIC, FUNCTION, MODIFIES, SESSION, attach, log_libbpf, map_of, map_to_open, per_cpu_sum,
    recursion_misses, replaces_tracepoint,
};
use super::programs::Programs;
use super::ring_size::{RingSize, table_entries};
use super::session;
use super::stream::{Patience, Stream};
use super::told::Told;
use crate::error::{Error, Result};
use crate::machine::device::Device;
use crate::machine::filesystem;
use crate::machine::kernel;
use crate::machine::members;
use crate::machine::memory;
use crate::machine::mountinfo::{self, Mounted};
use crate::source::Losses;

mod fentry {
    #![allow(missing_docs, unsafe_code, clippy::all)]
    include!(concat!(env!("OUT_DIR"), "/fentry.skel.rs"));
}

use fentry::FentrySkelBuilder;

/// Loaded probes of either form.
trait Loaded<'o>: Skel<'o> {
    /// Tells the probes whether all programs are attached, and whether they are to look for the blocks of a handle that ends. Returns
    /// None if they have no variables.
    fn tell(&mut self, is_attached: bool, walks_lists: bool) -> Option<()>;
}

macro_rules! loaded {
    ($($form:ident),*) => {
        $(impl<'o> Loaded<'o> for form::$form::CausesSkel<'o> {
            fn tell(&mut self, is_attached: bool, walks_lists: bool) -> Option<()> {
                let variables = self.maps.bss_data.as_deref_mut()?;
                variables.is_attached = is_attached;
                variables.walks_lists = walks_lists;
                Some(())
            }
        })*
    };
}

loaded!(looped, loopless);

/// `enum causes_loss` of causes.bpf.h, in its order, with the manifest's names.
const LOSSES: [&str; 2] = ["causes_ring", "causes_tasks"];

/// The tables whose size depends on the machine's memory, with the most and the fewest entries of each. What `called` forgets is
/// recorded once more; the fewest `claims` are the blocks of two transactions of a journal of 128 MiB.
const TABLES: [(&str, u32, u32); 3] = [
    ("uring_calls", 1 << 14, 1 << 11),
    ("aio_calls", 1 << 12, 1 << 10),
    ("called", 1 << 14, 1 << 11),
];

/// The tables of threads. With bpf_loop each thread has a place of its own, and only those whose place is another's have entries.
const THREADS: [&str; 2] = ["calls", "handles"];

/// The table of those that only kernels with bpf_loop have.
const CLAIMS: (&str, u32, u32) = ("claims", 1 << 16, 1 << 14);

/// The tables of stacks: their most and least entries where stacks are recorded. Only kernels with bpf_loop have them.
const STACKS: [(&str, u32, u32); 2] = [
    ("stacks_told", 1 << 14, 1 << 12),
    ("code_pages", 1 << 14, 1 << 12),
];
/// The entries of these tables where they are not.
const NO_STACKS: u32 = 64;

/// The parts of the causes that are recorded only if they are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    /// The command's processes: there is a command.
    pub forks: bool,
    /// The stacks of calls and handles.
    pub stacks: bool,
}

/// The loaded probes of causes.
pub(crate) struct CauseProbes<'o> {
    skel: Box<dyn Loaded<'o> + 'o>,
    functions: Option<Functions>,
    /// True if the kernel has bpf_loop: blocks that no program reported are found when a handle ends.
    is_looped: bool,
    /// True if a filesystem of FUSE is mounted.
    has_fuse: bool,
}

/// The kernel's functions in which calls can be seen, if that is enough.
struct Functions {
    calls: Vec<String>,
    /// The filesystems' functions that write.
    writes: Vec<String>,
    /// True if the kernel has sessions: one program for both ends of a function.
    has_sessions: bool,
}

/// `FUNCTION_CALLS` and `FUNCTION_WRITES` of function.bpf.h.
const CALLS: u64 = 0;
const WRITES: u64 = 1;

impl Functions {
    /// Returns the functions for the filesystems on the device. None if all calls must be traced, because the functions are not
    /// known for this machine or for one of these filesystems.
    fn of(device: &Device, btf: &Btf<'_>) -> Option<Functions> {
        let kinds = filesystem::kinds(device);
        let writes: Option<Vec<String>> = kinds.iter().map(|kind| write_function(kind)).collect();
        let writes = writes.filter(|writes| !writes.is_empty())?;
        let calls = calls::functions()?;
        Some(Functions {
            calls,
            writes,
            has_sessions: kernel::has_sessions(btf),
        })
    }

    /// Returns true if a program, which is one of those at functions, is to be loaded.
    fn include(&self, program: &[u8]) -> bool {
        program.starts_with(SESSION) == self.has_sessions
    }

    /// Attaches the programs for the calls.
    ///
    /// # Errors
    /// Returns an error if the kernel has no such probes, or if it lacks one of the functions; none is attached then.
    fn attach(&self, object: &Object) -> Result<Vec<(OsString, Link)>> {
        let program = |name: &str| {
            let found = object.progs_mut().find(|program| program.name() == name);
            found.ok_or_else(|| Error::bpf(format!("probes without {name}")))
        };
        if self.has_sessions {
            let program = program("cause_session_function")?;
            let calls = self.calls.iter().map(|function| (&**function, CALLS));
            let writes = self.writes.iter().map(|function| (&**function, WRITES));
            let link = session::attach(&program, calls.chain(writes))?;
            return Ok(vec![(program.name().to_owned(), link)]);
        }
        let attach = |name, is_exit, functions: &[String]| {
            let program = program(name)?;
            let link = program.attach_kprobe_multi(is_exit, functions.to_vec());
            Ok::<_, Error>((program.name().to_owned(), link.map_err(Error::bpf)?))
        };
        // Before 6.14, the kernel follows four returns for each function and pair of CPUs: a single function that many tasks are in
        // at once would lose calls. The program does nothing when the other functions end.
        let all = [&self.writes[..], &self.calls].concat();
        Ok(vec![
            attach("cause_function_exit", true, &self.calls)?,
            attach("cause_function_written", true, &all)?,
            attach("cause_function_enter", false, &self.calls)?,
            attach("cause_function_write", false, &self.writes)?,
        ])
    }
}

/// Returns a filesystem's function that writes to a file.
fn write_function(kind: &str) -> Option<String> {
    match kind {
        "ext4" | "ext3" => Some("ext4_file_write_iter".to_owned()),
        "f2fs" => Some("f2fs_file_write_iter".to_owned()),
        _ => None,
    }
}

/// The number of tracepoint programs that cannot be preempted.
const ATOMIC_TRACEPOINTS: usize = 3;

/// The functions to which the programs that cannot be preempted are attached.
const ATOMIC_FUNCTIONS: [(&str, &str); 13] = [
    ("cause_atomic_fork", "wake_up_new_task"),
    ("cause_atomic_journal_start", "__ext4_journal_start_sb"),
    ("cause_atomic_aio_fsync", "aio_fsync"),
    ("cause_atomic_mark_inode_dirty", "__ext4_mark_inode_dirty"),
    ("cause_atomic_unlink", "ext4_unlink"),
    ("cause_atomic_forget", "__ext4_forget"),
    ("cause_atomic_modify", "jbd2_journal_dirty_metadata"),
    ("cause_atomic_restart", "jbd2__journal_restart"),
    ("cause_atomic_fuse_answer", "fuse_dev_write"),
    ("cause_atomic_fuse_pipe", "pipe_read"),
    ("cause_atomic_fuse_anon_pipe", "anon_pipe_read"),
    ("cause_atomic_fuse_splice", "fuse_dev_splice_read"),
    ("cause_atomic_fuse_read", "fuse_dev_read"),
];

/// Attaches the programs that cannot be preempted, in the order of the source. A program that the kernel refuses is not attached.
fn attach_atomic(object: &Object, attached: &mut Programs) {
    let mut handles = Vec::new();
    for program in object.progs_mut().filter(|p| p.autoload()) {
        let name = program.name().to_owned();
        if !name.as_encoded_bytes().starts_with(ATOMIC) {
            continue;
        }
        let function = ATOMIC_FUNCTIONS
            .iter()
            .find(|(program, _)| name == *program);
        let link = match function {
            Some((_, function)) => program.attach_kprobe_multi(false, vec![(*function).to_owned()]),
            None => program.attach(),
        };
        match (link, function) {
            (Ok(link), Some(_)) => attached.keep(&name, link),
            (Ok(link), None) => handles.push((name, link)),
            (Err(e), _) => log::debug!("{}: {e}", name.to_string_lossy()),
        }
    }
    // Handles are seen through all of these tracepoints, or through none.
    if handles.len() == ATOMIC_TRACEPOINTS {
        for (name, link) in handles {
            attached.keep(&name, link);
        }
    }
}

impl<'o> CauseProbes<'o> {
    /// Loads the probes, with the parts that are wanted.
    ///
    /// # Errors
    /// Returns an error if there is no BTF, or if the kernel refuses the probes.
    pub(super) fn load(
        storage: &'o mut MaybeUninit<OpenObject>,
        device: &Device,
        parts: Parts,
        ring: RingSize,
    ) -> Result<CauseProbes<'o>> {
        let btf = kernel::btf()?;
        match kernel::has_bpf_loop(&btf) {
            true => CauseProbes::of(form::looped(storage)?, device, parts, ring, btf, true),
            // Stacks take more than a loop that the verifier can follow.
            false if parts.stacks => Err(Error::bpf("this kernel has no bpf_loop (5.17)")),
            false => {
                let open = form::loopless(storage, None)?;
                CauseProbes::of(open, device, parts, ring, btf, false)
            }
        }
    }

    fn of(
        mut open: impl form::Form<'o, Output: Loaded<'o> + 'o>,
        device: &Device,
        parts: Parts,
        ring: RingSize,
        btf: Btf<'_>,
        is_looped: bool,
    ) -> Result<CauseProbes<'o>> {
        fill_constants(open.constants()?, device, parts);
        let stacks = STACKS.map(|(table, most, least)| match parts.stacks {
            true => (table, table_entries(most, least)),
            false => (table, NO_STACKS),
        });
        let sized = |&(table, most, least): &_| (table, table_entries(most, least));
        // What one of these tables forgets is missing: with the places, there is room for as many threads as without.
        let least = if is_looped { 1 << 11 } else { 1 << 12 };
        let threads = THREADS.map(|table| (table, table_entries(1 << 14, least)));
        let tables = TABLES.iter().map(sized).chain(threads);
        let looped = iter::once(sized(&CLAIMS)).chain(stacks);
        let looped = looped.filter(|_| is_looped);
        let ring = iter::once(("causes", ring.bytes()));
        for (table, entries) in ring.chain(tables).chain(looped) {
            map_to_open(&mut open, table)?
                .set_max_entries(entries)
                .map_err(Error::bpf)?;
        }
        let uring = fill_uring(open.constants()?, &btf);
        // Before 5.18 there are no such programs.
        let functions = is_looped.then(|| Functions::of(device, &btf)).flatten();
        let has_f2fs = filesystem::is_there("f2fs");
        // One that is mounted later is not followed.
        let has_fuse = mountinfo::all().iter().any(Mounted::is_fuse);
        drop(btf);
        memory::give_back();
        let told = Told::read();
        let has_atomic = functions.is_some() && told.started_inodes;
        // If a task may be preempted within a program at a tracepoint, the program at the function sees more.
        let preempts = kernel::preempts_probes();
        let is_told = told.modifications && !(has_atomic && preempts);
        for mut program in open.open_object_mut().progs_mut() {
            let name = program.name().as_encoded_bytes();
            let is_function = name.starts_with(FUNCTION) || name.starts_with(SESSION);
            let is_uring = name.starts_with(b"cause_uring_");
            let wanted = !is_uring || uring.iter().any(|name| program.name() == *name);
            let is_refused = match name {
                b"cause_modify_told" => !is_told,
                b"cause_modify_fentry" => !has_fentry(),
                b"cause_atomic_modify" => is_told,
                _ => false,
            };
            let is_fuses =
                name.starts_with(b"cause_fuse_") || name.starts_with(b"cause_atomic_fuse_");
            let is_idle = name.ends_with(b"_fork") && !parts.forks
                || is_fuses && !has_fuse
                || name.starts_with(b"cause_f2fs_") && !has_f2fs;
            let is_atomic = name.starts_with(ATOMIC);
            let has_functions = !is_function || functions.as_ref().is_some_and(|f| f.include(name));
            let has_what_it_takes =
                !is_atomic || has_atomic && (preempts || !replaces_tracepoint(name));
            let has_all = wanted && has_functions && has_what_it_takes;
            program.set_autoload(has_all && !is_refused && !is_idle);
        }
        let skel = open.load().map_err(Error::bpf)?;
        memory::give_back();
        Ok(CauseProbes {
            skel: Box::new(skel),
            functions,
            is_looped,
            has_fuse,
        })
    }

    /// Attaches the probes.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses them.
    pub fn attach(&mut self, patience: &Patience) -> Result<Stream> {
        self.tell(false, false)?;
        let mut stream = Stream::new(&map_of(&*self.skel, "causes")?, patience)?;
        let attached = &mut stream.programs;
        match self
            .functions
            .as_ref()
            .map(|f| f.attach(self.skel.object()))
        {
            Some(Ok(links)) => links
                .into_iter()
                .for_each(|(name, link)| attached.keep(&name, link)),
            Some(Err(e)) => log::debug!("calls by functions: {e}"),
            None => {}
        }
        attach_atomic(self.skel.object(), attached);
        attach(self.skel.object(), attached)?;
        let sees_all = MODIFIES.iter().any(|of| attached.has(of));
        if !self.is_looped && !sees_all && attached.has(b"cause_jbd2_") {
            return Err(Error::bpf(NOT_FOUND));
        }
        if self.has_fuse {
            fuse_daemons::tell_waiting(&map_of(&*self.skel, "served_threads")?);
        }
        self.tell(true, self.is_looped && !sees_all)?;
        Ok(stream)
    }

    fn tell(&mut self, is_attached: bool, walks_lists: bool) -> Result<()> {
        let told = self.skel.tell(is_attached, walks_lists);
        told.ok_or_else(|| Error::bpf("skeleton without bss"))
    }

    /// Returns the entries of the calls that have not returned.
    ///
    /// # Errors
    /// Returns an error if the kernel does not give the calls.
    pub(super) fn calls_in_progress(&self) -> Result<Vec<Vec<u8>>> {
        let places = self.is_looped.then_some("call_places");
        let tables = places.into_iter().chain(["calls", "uring_calls"]);
        let entries = tables.map(|table| in_progress::entries(&map_of(&*self.skel, table)?));
        Ok(entries.collect::<Result<Vec<_>>>()?.concat())
    }

    /// Returns the number of records that the probes lost.
    ///
    /// # Errors
    /// Returns an error if the kernel does not give the counters.
    pub(super) fn losses(&self) -> Result<Losses> {
        let mut losses = Losses::new();
        let counters = map_of(&*self.skel, "causes_lost")?;
        for (index, name) in (0u32..).zip(LOSSES) {
            let lost = per_cpu_sum(&counters, index)?;
            losses.insert(name.to_owned(), lost);
        }
        let misses = recursion_misses(self.skel.object());
        losses.insert("causes_misses".to_owned(), misses);
        Ok(losses)
    }
}

const NOT_FOUND: &str =
    "this kernel has no bpf_loop (5.17), and accepts no program at jbd2_journal_dirty_metadata";

/// Returns true if the kernel loads a program of this kind; it may not know the function's type, or be locked down.
pub(crate) fn has_fentry() -> bool {
    // A refusal is a valid answer here and not worth a message.
    libbpf_rs::set_print(Some((PrintLevel::Warn, log_libbpf)));
    let mut room = MaybeUninit::uninit();
    let open = FentrySkelBuilder::default().open(&mut room);
    open.and_then(OpenSkel::load).is_ok()
}

/// Tells the probes where this kernel's io_uring passes its request. Returns the programs that have something to do.
fn fill_uring(constants: &mut form::Constants, btf: &Btf<'_>) -> Vec<&'static str> {
    const SUBMITS: [(&str, &str); 2] = [
        ("io_uring_submit_req", "cause_uring_submit_req"),
        ("io_uring_submit_sqe", "cause_uring_submit_sqe"),
    ];
    let at = |tracepoint| kernel::argument_index(btf, tracepoint, "io_kiocb").ok();
    let mut submits = SUBMITS
        .iter()
        .filter_map(|(t, program)| Some((at(t)?, *program)));
    let Some((index, program)) = submits.next() else {
        return Vec::new();
    };
    constants.uring_submit_at = index;
    constants.uring_has_cqe = kernel::passes(btf, "io_uring_complete", "io_uring_cqe");
    vec![program, "cause_uring_complete"]
}

fn fill_constants(constants: &mut form::Constants, device: &Device, parts: Parts) {
    constants.target.disk_dev = device.disk_dev;
    constants.target.dev = device.dev;
    let filesystems = members::filesystems(device);
    let room = &mut constants.filesystems;
    let kept = filesystems.len().min(room.devs.len());
    room.devs[..kept].copy_from_slice(&filesystems[..kept]);
    room.count = u32::try_from(kept).unwrap_or(0);
    constants.call_kinds = calls::kinds();
    constants.read_number = calls::read_number();
    constants.tells_stacks = parts.stacks;
}

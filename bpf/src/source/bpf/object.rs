// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the probes of every kind have in common: attaching programs and reading maps.

use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd};

use flate2::read::ZlibDecoder;
use libbpf_rs::libbpf_sys::{bpf_prog_get_info_by_fd, bpf_prog_info};
use libbpf_rs::skel::{OpenSkel, Skel};
use libbpf_rs::{ErrorKind, Map, MapCore, MapFlags, Object, OpenMapMut, PrintLevel};

use super::programs::Programs;
use crate::error::{Error, Result};

/// The prefix of the names of alternative programs. One of them is enough, and none is required: a kernel may lack the functions,
/// or not allow probes in them.
pub(super) const MODIFY: &[u8] = b"cause_modify_";

/// The prefixes of the names of all programs that see each modification of a block in the journal.
pub(super) const MODIFIES: [&[u8]; 2] = [MODIFY, b"cause_atomic_modify"];

/// The prefix of the names of programs that are attached to functions chosen by user space, and not by [`attach`].
pub(super) const FUNCTION: &[u8] = b"cause_function_";

/// The prefix of the names of programs that are attached to both ends of such functions.
pub(super) const SESSION: &[u8] = b"cause_session_";

/// The prefix of the names of programs that cannot be preempted, and that replace others if they can be attached.
pub(super) const ATOMIC: &[u8] = b"cause_atomic_";

/// Programs that are left out if others, which cost the machine less, are attached: the prefixes of the names of both.
const INSTEAD: [(&[u8], &[u8]); 6] = [
    (MODIFY, b"cause_atomic_modify"),
    (MODIFY, MODIFY),
    (b"cause_fuse_", b"cause_atomic_fuse_read"),
    (b"cause_call_", FUNCTION),
    (b"cause_call_", SESSION),
    (b"mostrace_drop_folio", b"mostrace_ext4_invalidate"),
];

/// Programs at raw tracepoints that are left out if others, which cost more, are attached: where a task may be preempted within the
/// former.
const PREEMPTED: [(&[u8], &[u8]); 6] = [
    (b"cause_fork", b"cause_atomic_fork"),
    (b"cause_ext4_journal_start", b"cause_atomic_journal_start"),
    (
        b"cause_ext4_mark_inode_dirty",
        b"cause_atomic_mark_inode_dirty",
    ),
    (b"cause_ext4_unlink_enter", b"cause_atomic_unlink"),
    (b"cause_ext4_forget", b"cause_atomic_forget"),
    (b"cause_jbd2_handle_", b"cause_atomic_handle_"),
];

/// Returns true if a program replaces one at a raw tracepoint.
pub(super) fn replaces_tracepoint(program: &[u8]) -> bool {
    PREEMPTED
        .iter()
        .any(|(_, other)| program.starts_with(other))
}

/// Returns an object that `build.rs` compressed.
pub(super) fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut object = Vec::new();
    let read = ZlibDecoder::new(packed).read_to_end(&mut object);
    read.expect("build.rs compressed it");
    object
}

/// Returns the number of block events that found the ring full.
pub(super) fn events_lost(skel: &dyn Skel<'_>) -> Result<u64> {
    per_cpu_sum(&map_of(skel, "events_lost")?, 0)
}

/// Attaches the loaded programs, in the order of the source, and adds them to those that are attached.
///
/// # Errors
/// Returns an error if the kernel refuses one of them.
pub(super) fn attach(object: &Object, attached: &mut Programs) -> Result<()> {
    for program in object.progs_mut().filter(|p| p.autoload()) {
        let name = program.name().as_encoded_bytes();
        let is_modify = name.starts_with(MODIFY);
        let is_attached_apart = [FUNCTION, SESSION, ATOMIC]
            .iter()
            .any(|p| name.starts_with(p));
        if is_attached_apart || is_replaced(name, attached) {
            continue;
        }
        match program.attach() {
            Ok(link) => attached.keep(program.name(), link),
            Err(e) if is_of_a_filesystem(program.name()) && e.kind() == ErrorKind::NotFound => {
                log::debug!("{}: not there", program.name().to_string_lossy());
            }
            Err(e) if is_modify => {
                log::debug!("{}: {e}", program.name().to_string_lossy());
            }
            Err(e) => return Err(Error::bpf(e)),
        }
    }
    Ok(())
}

/// Returns true if programs that replace this one are attached.
fn is_replaced(program: &[u8], attached: &Programs) -> bool {
    let mut rules = INSTEAD.iter().chain(&PREEMPTED);
    rules.any(|(this, other)| program.starts_with(this) && attached.has(other))
}

/// Returns the map with this name.
///
/// # Errors
/// Returns an error if there is no such map.
pub(super) fn map_of<'s>(skel: &'s dyn Skel<'_>, name: &str) -> Result<Map<'s>> {
    let mut maps = skel.object().maps();
    let found = maps.find(|map| map.name() == name);
    found.ok_or_else(|| Error::bpf(format!("probes without {name}")))
}

/// Returns the map with this name, for probes that are not yet loaded.
///
/// # Errors
/// Returns an error if there is no such map.
pub(super) fn map_to_open<'a, 'o: 'a>(
    open: &'a mut impl OpenSkel<'o>,
    name: &str,
) -> Result<OpenMapMut<'a>> {
    let mut maps = open.open_object_mut().maps_mut();
    let found = maps.find(|map| map.name() == name);
    found.ok_or_else(|| Error::bpf(format!("probes without {name}")))
}

/// Returns the sum over all CPUs of an element of a per-CPU array of u64.
///
/// # Errors
/// Returns an error if the kernel does not return it.
pub(super) fn per_cpu_sum(map: &dyn MapCore, index: u32) -> Result<u64> {
    let per_cpu = map.lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY);
    let per_cpu = per_cpu.map_err(Error::bpf)?.unwrap_or_default();
    let count = |bytes: &Vec<u8>| {
        let bytes = bytes.get(..8).and_then(|b| b.try_into().ok());
        bytes.map_or(0, u64::from_ne_bytes)
    };
    Ok(per_cpu.iter().map(count).sum())
}

/// Returns the number of runs that the kernel skipped because a program was already running on the CPU (6.1 and later).
pub(super) fn recursion_misses(object: &Object) -> u64 {
    let loaded = object.progs().filter(|program| program.autoload());
    loaded.map(|program| skipped(&program).unwrap_or(0)).sum()
}

/// Returns the number of skipped runs of a loaded program; None if the kernel does not report it. libbpf-rs finds a program's
/// counters only among those of all the machine's programs, which takes two system calls for each of them.
#[allow(unsafe_code)]
fn skipped(program: &libbpf_rs::Program<'_>) -> Option<u64> {
    // A kernel that knows fewer fields fills in fewer.
    let mut info = bpf_prog_info::default();
    let mut len = u32::try_from(size_of_val(&info)).ok()?;
    let fd = program.as_fd().as_raw_fd();
    // SAFETY: both are writable, and `len` is the size of `info`, all of whose pointers are NULL.
    let failed = unsafe { bpf_prog_get_info_by_fd(fd, &raw mut info, &raw mut len) } != 0;
    if failed {
        return None;
    }
    if info.recursion_misses > 0 {
        let (name, misses) = (program.name().to_string_lossy(), info.recursion_misses);
        log::debug!("{name}: {misses} runs skipped");
    }
    Some(info.recursion_misses)
}

/// Passes a message of libbpf on to the log.
pub(super) fn log_libbpf(level: PrintLevel, text: String) {
    match level {
        PrintLevel::Warn => log::debug!("libbpf: {}", text.trim_end()),
        _ => log::trace!("libbpf: {}", text.trim_end()),
    }
}

/// Returns true for a filesystem's program, judged by its name in flush.bpf.h and causes.bpf.c: its tracepoint exists only if the
/// filesystem does.
fn is_of_a_filesystem(program: &OsStr) -> bool {
    let name = program.as_encoded_bytes();
    [
        "mostrace_ext4_",
        "mostrace_f2fs_",
        "cause_ext4_",
        "cause_f2fs_",
        "cause_jbd2_",
    ]
    .iter()
    .any(|of_one| name.starts_with(of_one.as_bytes()))
}

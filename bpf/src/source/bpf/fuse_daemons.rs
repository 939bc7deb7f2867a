// SPDX-License-Identifier: MIT OR Apache-2.0
//! The threads of FUSE's daemons that wait for a request when the recording begins: the probes did not see them begin to read.

use std::fs;
use std::path::Path;

use libbpf_rs::{MapCore, MapFlags};
use zerocopy::{Immutable, IntoBytes};

use super::calls;
use crate::machine::{clock, openers};

/// `IN_A_PIPE` of fuse.bpf.h.
const IN_A_PIPE: u64 = 1;

/// The first namespaces of processes and of users, as /proc names them (`PROC_PID_INIT_INO`, `PROC_USER_INIT_INO` of
/// <linux/proc_ns.h>).
const FIRST_NAMESPACES: [(&str, &str); 2] = [
    ("ns/pid", "pid:[4026531836]"),
    ("ns/user", "user:[4026531837]"),
];

/// `struct served_thread` of fuse.bpf.h.
#[derive(IntoBytes, Immutable)]
#[repr(C)]
struct ServedThread {
    start_ns: u64,
    answered: u64,
    request: u64,
    is_mixed: u8,
    is_told: u8,
    is_doubtful: u8,
    _padding: [u8; 5],
}

/// Tells the probes, which are attached, of the threads that wait for a request.
pub(super) fn tell_waiting(threads: &dyn MapCore) {
    let start_ns = clock::now().start_mono_ns;
    for daemon in openers::of(is_device) {
        let process = format!("/proc/{}", daemon.pid());
        let process = Path::new(&process);
        let is_in = |(of, first): &(&str, &str)| {
            fs::read_link(process.join(of)).is_ok_and(|own| own == Path::new(first))
        };
        // The numbers in a request's header are those of the first namespaces.
        if !FIRST_NAMESPACES.iter().all(is_in) {
            continue;
        }
        let tasks = fs::read_dir(process.join("task"));
        for task in tasks.into_iter().flatten().flatten() {
            let tid = task.file_name().to_str().and_then(|tid| tid.parse().ok());
            let Some((tid, request)) = Option::<u32>::zip(tid, awaited(&task.path())) else {
                continue;
            };
            let thread = ServedThread {
                start_ns,
                answered: 0,
                request,
                is_mixed: 0,
                is_told: 1,
                is_doubtful: 0,
                _padding: [0; 5],
            };
            // This fails for a thread that has begun another read, which the probes saw.
            let key = tid.to_ne_bytes();
            let _ = threads.update(&key, thread.as_bytes(), MapFlags::NO_EXIST);
        }
    }
}

fn is_device(path: &Path) -> bool {
    path == Path::new("/dev/fuse")
}

/// Returns where a blocked thread expects its request; None if it waits for something else.
fn awaited(task: &Path) -> Option<u64> {
    let call = fs::read_to_string(task.join("syscall")).ok()?;
    let (number, file, buffer) = begun(&call)?;
    let open = fs::read_link(task.join("fd").join(file.to_string())).ok()?;
    match number {
        _ if !is_device(&open) => None,
        number if number == calls::read_number() => Some(buffer),
        number if number == libc::SYS_splice as u32 => Some(IN_A_PIPE),
        _ => None,
    }
}

/// Parses `/proc/PID/task/TID/syscall`: the number of the call that a blocked thread is in, and its first two arguments.
fn begun(call: &str) -> Option<(u32, u64, u64)> {
    let mut words = call.split_ascii_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut arguments = words.map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    Some((number, arguments.next()??, arguments.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_threads_call_is_parsed() {
        let call = "0 0x3 0x7ffd10 0x21000 0x0 0x0 0x0 0x7ffd00 0x7f42\n";
        assert_eq!(begun(call), Some((0, 3, 0x7f_fd10)));
        for other in ["running\n", "-1 0x7ffd00 0x7f42\n", "0 0x3", ""] {
            assert_eq!(begun(other), None);
        }
    }

    /// This thread runs, so it waits for nothing.
    #[test]
    fn who_runs_waits_for_no_request() {
        assert_eq!(awaited(Path::new("/proc/thread-self")), None);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processes that run, and the names of their main threads.

use std::fs;

use super::clock;

/// A name that a process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub tgid: u32,
    pub comm: [u8; 16],
    /// The time just before it was read, CLOCK_MONOTONIC.
    pub time_ns: u64,
}

/// Returns the name of each process that runs. Kernel threads are left out.
pub(crate) fn named() -> Vec<Named> {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = folders.filter_map(|folder| folder.file_name().to_str()?.parse().ok());
    numbers.filter_map(name_of).collect()
}

/// Returns the name of a process; None for a kernel thread, or if there is no such process.
fn name_of(tgid: u32) -> Option<Named> {
    let time_ns = clock::now().start_mono_ns;
    let stat = fs::read(format!("/proc/{tgid}/stat")).ok()?;
    let comm = comm_in(&stat)?;
    Some(Named {
        tgid,
        comm,
        time_ns,
    })
}

const PF_KTHREAD: u32 = 0x0020_0000;

/// Parses `17 (name) S 1 17 17 0 -1 FLAGS …`, in which the name may hold any bytes.
fn comm_in(stat: &[u8]) -> Option<[u8; 16]> {
    let begin = stat.iter().position(|&byte| byte == b'(')?.checked_add(1)?;
    let end = stat.iter().rposition(|&byte| byte == b')')?;
    let (named, rest) = (stat.get(begin..end)?, stat.get(end..)?);
    let rest = std::str::from_utf8(rest).ok()?;
    let flags: u32 = rest.split_ascii_whitespace().nth(7)?.parse().ok()?;
    if flags & PF_KTHREAD != 0 {
        return None;
    }
    Some(comm_of(named))
}

/// Returns a name as the kernel keeps it in `task->comm`: its first 15 bytes, padded with NULs.
pub(crate) fn comm_of(name: &[u8]) -> [u8; 16] {
    let mut comm = [0; 16];
    for (byte, name) in comm.iter_mut().take(15).zip(name) {
        *byte = *name;
    }
    comm
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let mut comm = [0; 16];
        comm[..7].copy_from_slice(b"a) R (\n");
        let stat = b"17 (a) R (\n) S 1 17 17 0 -1 4194560 60 0";
        assert_eq!(comm_in(stat), Some(comm));
        let kernels = b"2 (kthreadd) S 0 0 0 0 -1 2129984 0 0";
        assert_eq!(comm_in(kernels), None);
        assert_eq!(comm_in(b"17 (a"), None);
    }

    #[test]
    fn this_process_runs() {
        let own = std::process::id();
        let comm = fs::read(format!("/proc/{own}/comm")).unwrap();
        let named = named();
        let found = named.iter().find(|named| named.tgid == own).unwrap();
        assert!(found.comm.starts_with(comm.trim_ascii_end()));
        // kthreadd, unless this is a namespace of its own.
        assert!(
            !named
                .iter()
                .any(|named| named.comm.starts_with(b"kthreadd\0"))
        );
    }
}

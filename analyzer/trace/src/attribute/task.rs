// SPDX-License-Identifier: MIT OR Apache-2.0
//! A thread, as entries describe it.

use mostrace_bundle::entry::{RawCall, RawDirtier, RawF2fs, RawHandle, RawProcess};

use crate::text::escape;

/// A thread as the entries of every table describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    /// Thread ID.
    pub pid: u32,
    /// Process ID (the thread group's).
    pub tgid: u32,
    /// User ID.
    pub uid: u32,
    /// `task->comm`, NUL-padded.
    pub comm: [u8; 16],
}

/// An entry of what a thread did.
pub trait Work {
    /// Returns the thread.
    fn task(&self) -> Task;
    /// Puts another thread in its place.
    fn set_task(&mut self, task: &Task);
}

macro_rules! work {
    ($($entry:ty),*) => {
        $(impl Work for $entry {
            fn task(&self) -> Task {
                self.into()
            }

            fn set_task(&mut self, task: &Task) {
                self.pid = task.pid.into();
                self.tgid = task.tgid.into();
                self.uid = task.uid.into();
                self.comm = task.comm;
            }
        })*
    };
}
work!(RawHandle, RawCall, RawF2fs);

/// Every kind of entry describes its thread by the same fields.
macro_rules! tell_of_a_task {
    ($($entry:ty),*) => {
        $(impl From<&$entry> for Task {
            fn from(entry: &$entry) -> Task {
                Task {
                    pid: entry.pid.get(),
                    tgid: entry.tgid.get(),
                    uid: entry.uid.get(),
                    comm: entry.comm,
                }
            }
        })*
    };
}
tell_of_a_task!(RawProcess, RawDirtier, RawHandle, RawCall, RawF2fs);

/// Returns the name of a process, escaped for a terminal; `?` if it is not known.
pub fn called(name: Option<&[u8]>) -> String {
    match name {
        None | Some([]) => "?".into(),
        Some(name) => escape(name),
    }
}

/// Returns the text up to its NUL.
pub(super) fn text(comm: &[u8]) -> &[u8] {
    comm.split(|&byte| byte == 0).next().unwrap_or_default()
}

impl Task {
    /// Returns its name without NULs.
    pub fn comm(&self) -> &[u8] {
        text(&self.comm)
    }

    /// Returns true for the main thread of its process.
    pub fn is_main(&self) -> bool {
        self.pid == self.tgid
    }

    /// Returns true if the thread looks like one of the kernel's threads that write for others: owned by root,
    /// single-threaded, and with such a name.
    pub(super) fn is_called_like_the_kernels(&self) -> bool {
        self.uid == 0 && self.is_main() && is_kernels_name(&self.comm)
    }
}

/// Returns true for the name of one of the kernel's threads.
pub(super) fn is_kernels_name(comm: &[u8]) -> bool {
    let begins = |name: &&str| comm.starts_with(name.as_bytes());
    let is_numbered =
        |name: &&str| begins(name) && comm.get(name.len()).is_some_and(u8::is_ascii_digit);
    KERNEL_THREADS.iter().any(begins) || NUMBERED_THREADS.iter().any(is_numbered)
}

/// Prefixes of the names of the kernel's threads.
const KERNEL_THREADS: [&str; 11] = [
    "kworker/",
    "jbd2/",
    "kswapd",
    "ksoftirqd/",
    "kthrotld",
    "f2fs_gc-",
    "f2fs_ckpt-",
    "f2fs_flush-",
    "f2fs_discard-",
    "dmcrypt_write",
    "kcompactd",
];
/// Prefixes that count only if a digit follows: a program's name may begin with them too.
const NUMBERED_THREADS: [&str; 2] = ["loop", "md"];

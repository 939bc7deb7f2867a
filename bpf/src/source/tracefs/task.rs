// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process and the user of a thread. A tracepoint shows only the thread's number and name; the rest is read from /proc when the
//! thread is first seen. If the thread has ended by then, its process and user stay unknown.

use std::collections::HashMap;
use std::fs;

use foldhash::fast::RandomState;
use mostrace_bundle::entry::UNKNOWN_ID;

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Task {
    /// The process, or [`UNKNOWN_ID`].
    pub tgid: u32,
    /// The user, or [`UNKNOWN_ID`].
    pub uid: u32,
    pub is_kernels: bool,
}

const GONE: Task = Task {
    tgid: UNKNOWN_ID,
    uid: UNKNOWN_ID,
    is_kernels: false,
};

/// The threads that were looked up, with the name that each had.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    known: HashMap<u32, (Vec<u8>, Task), RandomState>,
}

/// The most threads that are kept, more than run on a machine; after that, all are looked up again.
const MANY: usize = 1 << 14;

impl Tasks {
    /// Returns thread `pid`, which is looked up again if it is no longer called `comm`.
    pub fn get(&mut self, pid: u32, comm: &[u8]) -> Task {
        if self.known.len() > MANY {
            self.known.clear();
        }
        match self.known.get(&pid) {
            Some((named, task)) if named == comm => task.clone(),
            _ => {
                let text = fs::read_to_string(format!("/proc/{pid}/status"));
                let task = parse(&text.unwrap_or_default(), comm).unwrap_or(GONE);
                self.known.insert(pid, (comm.to_vec(), task.clone()));
                task
            }
        }
    }
}

/// Parses a status; None if it belongs to another thread, because the number was reused or the name changed meanwhile.
fn parse(status: &str, comm: &[u8]) -> Option<Task> {
    let word = |name: &str| {
        let of_name = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(":\t")?.to_owned());
        status.lines().find_map(of_name)
    };
    let number = |name: &str| -> Option<u32> {
        let line = word(name)?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    // The name of a worker may be longer than its comm.
    let named = word("Name")?;
    let is_same = named.as_bytes().starts_with(comm) || escaped(comm) == named;
    is_same.then_some(Task {
        tgid: number("Tgid")?,
        uid: number("Uid")?,
        // kthreadd and its children are kernel threads.
        is_kernels: number("PPid")? == 2 || number("Pid")? == 2,
    })
}

/// Returns the name as /proc writes it.
fn escaped(comm: &[u8]) -> String {
    let text = String::from_utf8_lossy(comm);
    text.replace('\\', "\\\\").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_what_its_status_says() {
        let status = "Name:\tkworker/0:1-events\nTgid:\t7\nPid:\t7\nPPid:\t2\nUid:\t10\t0\t0\t0\n";
        let task = Task {
            tgid: 7,
            uid: 10,
            is_kernels: true,
        };
        assert_eq!(parse(status, b"kworker/0:1"), Some(task));
        assert_eq!(parse(status, b"sh"), None);
        assert_eq!(parse("", b""), None);
    }

    #[test]
    fn this_thread_is_of_this_process_and_one_that_is_gone_of_none() {
        let mut tasks = Tasks::default();
        let pid = std::process::id();
        let comm = fs::read(format!("/proc/{pid}/comm")).unwrap();
        let task = tasks.get(pid, comm.trim_ascii_end());
        assert_eq!((task.tgid, task.is_kernels), (pid, false));
        assert_eq!(tasks.get(u32::MAX - 1, b"sh"), GONE);
    }
}

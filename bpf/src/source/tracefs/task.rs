// SPDX-License-Identifier: MIT OR Apache-2.0
//! The process and the user of a thread. A tracepoint tells only its number and its name; the rest is read from /proc when the thread
//! is first seen. A thread that has ended by then has no known process and user.

use std::collections::HashMap;
use std::fs;

use foldhash::fast::RandomState;
use mostrace_bundle::entry::UNKNOWN_ID;

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Task {
    /// Or [`UNKNOWN_ID`].
    pub tgid: u32,
    /// Or [`UNKNOWN_ID`].
    pub uid: u32,
    pub is_kernels: bool,
}

const GONE: Task = Task {
    tgid: UNKNOWN_ID,
    uid: UNKNOWN_ID,
    is_kernels: false,
};

/// The threads that were looked up, each with the name that it had.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    known: HashMap<u32, (Vec<u8>, Task), RandomState>,
}

/// The most threads that are kept, more than run on a machine: then all are looked up again.
const MANY: usize = 1 << 14;

impl Tasks {
    /// Thread `pid` as long as it is called `comm`.
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

/// Parses a status; None if it is another thread's, because the number was given again or the name changed meanwhile.
fn parse(status: &str, comm: &[u8]) -> Option<Task> {
    let word = |name: &str| {
        let of_name = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(":\t")?.to_owned());
        status.lines().find_map(of_name)
    };
    let number = |name: &str| -> Option<u32> {
        let line = word(name)?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    // A worker's name goes on behind what its comm has room for.
    let named = word("Name")?;
    let is_same = named.as_bytes().starts_with(comm) || escaped(comm) == named;
    is_same.then_some(Task {
        tgid: number("Tgid")?,
        uid: number("Uid")?,
        // kthreadd and its children.
        is_kernels: number("PPid")? == 2 || number("Pid")? == 2,
    })
}

/// The name as /proc writes it.
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the processes that a command leaves running when it ends: a daemon, or a job in the background.
//!
//! The recorder asks the kernel to make it the parent of processes whose own parent has ended (PR_SET_CHILD_SUBREAPER). They appear
//! in /proc as its children then.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, getpid, set_child_subreaper};

/// The interval at which the processes are looked up. Each lookup reads a file for every process of the machine.
pub(crate) const EVERY: Duration = Duration::from_millis(20);

/// The descendants of one command.
#[derive(Debug)]
pub(crate) struct Descendants {
    /// Children of the recorder that do not belong to the command.
    others: HashSet<Pid>,
    looked: Option<Instant>,
    left: Vec<Pid>,
}

impl Descendants {
    /// Begins to adopt processes. All present children count as somebody else's.
    pub fn adopt() -> Descendants {
        // If this fails, orphans go to init and are not waited for.
        let _ = set_child_subreaper(Some(getpid()));
        Descendants {
            others: children().collect(),
            looked: None,
            left: Vec::new(),
        }
    }

    /// Returns the processes that still run, as they were at most 20 ms ago. It is called once the command has ended.
    pub fn left(&mut self) -> &[Pid] {
        if self.looked.is_none_or(|at| at.elapsed() >= EVERY) {
            self.looked = Some(Instant::now());
            self.left = children()
                .filter(|pid| !self.others.contains(pid))
                .collect();
        }
        &self.left
    }
}

impl Drop for Descendants {
    fn drop(&mut self) {
        // If this fails, the kernel never adopted any.
        let _ = set_child_subreaper(None);
    }
}

/// Returns the children of this process that have not ended.
fn children() -> impl Iterator<Item = Pid> {
    let me = getpid();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(move |entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let (state, parent) = state_and_parent(&stat)?;
        let runs = parent == me.as_raw_nonzero().get() && !['Z', 'X'].contains(&state);
        Pid::from_raw(pid).filter(|_| runs)
    })
}

/// Parses the state and the parent in a line of proc_pid_stat(5): `pid (comm) state ppid …`, where comm can contain anything.
fn state_and_parent(stat: &str) -> Option<(char, i32)> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((state, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comm_may_hold_anything() {
        let stat = "42 (a) R 7 (b)) S 41 42 42 0 -1";
        assert_eq!(state_and_parent(stat), Some(('S', 41)));
        assert_eq!(state_and_parent(""), None);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What events of the scheduler and of tasks tell of processes: include/trace/events/sched.h and task.h.
//!
//! ```text
//! sched_process_exec: filename=/bin/sh pid=77 old_pid=77
//! sched_process_fork: comm=sh pid=77 child_comm=sh child_pid=78
//! task_newtask: pid=78 comm=sh clone_flags=1200000 oom_score_adj=0
//! task_rename: pid=78 oldcomm=sh newcomm=worker 1 oom_score_adj=0
//! ```

use mostrace_bundle::entry::{Flags, comm_flags};

use super::seen::{OfProcess, Taker};

/// An event of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sched {
    Exec,
    Fork,
    NewTask,
    Rename,
}

/// CLONE_THREAD of <linux/sched.h>.
const CLONE_THREAD: u64 = 0x10000;

pub(super) fn sched(event: &[u8]) -> Option<Sched> {
    Some(match event {
        b"sched_process_exec" => Sched::Exec,
        b"sched_process_fork" => Sched::Fork,
        b"task_newtask" => Sched::NewTask,
        b"task_rename" => Sched::Rename,
        _ => return None,
    })
}

/// The fields of such an event. Those of another event are 0 or empty.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Named<'a> {
    /// The thread that it is about.
    pub thread: u32,
    /// Its name, or the path that it executes.
    pub name: &'a [u8],
    pub clone_flags: u64,
}

impl Sched {
    /// Passes on what the event tells. `process` is the one in which it happened, if that is known.
    pub fn tell(self, time_ns: u64, process: Option<u32>, task: Named<'_>, to: &mut dyn Taker) {
        let thread = task.thread;
        let is_in = |process| OfProcess::Thread { thread, process };
        let (name, how) = match self {
            Sched::Exec => {
                // Who executes becomes the first thread of its process.
                to.process(is_in(thread));
                let path = task.name.rsplit(|&byte| byte == b'/').next();
                (path.unwrap_or_default(), comm_flags::CHANGED)
            }
            Sched::NewTask => {
                match (task.clone_flags & CLONE_THREAD, process) {
                    (0, _) => to.process(is_in(thread)),
                    (_, Some(process)) => to.process(is_in(process)),
                    _ => {}
                }
                (task.name, comm_flags::STARTED)
            }
            Sched::Fork => (task.name, comm_flags::STARTED),
            Sched::Rename => (task.name, comm_flags::CHANGED),
        };
        named(time_ns, thread, name, how, to);
    }
}

/// Passes on a name that a process has.
pub(super) fn named(time_ns: u64, thread: u32, name: &[u8], how: Flags, to: &mut dyn Taker) {
    if !name.is_empty() {
        to.process(OfProcess::Name {
            time_ns,
            thread,
            name,
            how,
        });
    }
}

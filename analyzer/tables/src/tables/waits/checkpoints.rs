// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checkpoints of f2fs: who asked for each, and when it was written.

use std::collections::HashMap;

use mostrace_bundle::entry::{RawF2fs, Step};

use super::ask::Ask;
use super::latest::{Ends, Latest};

/// The most checkpoints that are kept, and the most requests for one.
const KEPT: usize = 1 << 14;

/// A checkpoint that was written; times are in ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checkpoint {
    s_dev: u32,
    /// The thread that wrote it.
    pub pid: u32,
    pub begin: u64,
    pub end: u64,
}

/// A checkpoint and when a call began to wait for it, ns.
pub(super) struct Wanted {
    pub since: u64,
    pub checkpoint: Checkpoint,
}

/// A thread that asked for a checkpoint, and when, ns.
struct Request {
    pid: u32,
    at: u64,
}

impl Ends for Checkpoint {
    fn end_ns(&self) -> u64 {
        self.end
    }
}

impl Ends for Request {
    fn end_ns(&self) -> u64 {
        self.at
    }
}

/// The latest checkpoints.
pub(super) struct Checkpoints {
    done: Latest<Checkpoint>,
    running: HashMap<u32, (u32, u64)>,
    asked: Latest<Request>,
}

impl Default for Checkpoints {
    fn default() -> Self {
        Checkpoints {
            done: Latest::new(KEPT),
            running: HashMap::new(),
            asked: Latest::new(KEPT),
        }
    }
}

impl Checkpoints {
    pub fn step(&mut self, raw: &RawF2fs) {
        let (s_dev, pid, time_ns) = (raw.s_dev.get(), raw.pid.get(), raw.head.time_ns.get());
        match Step::from_repr(raw.step.get()) {
            Some(Step::Asked) => self.asked.push(Request { pid, at: time_ns }),
            Some(Step::Checkpoint) => {
                self.running.insert(s_dev, (pid, time_ns));
            }
            Some(Step::Written) => {
                if let Some((pid, begin)) = self.running.remove(&s_dev) {
                    self.done.push(Checkpoint {
                        s_dev,
                        pid,
                        begin,
                        end: time_ns,
                    });
                }
            }
            _ => {}
        }
    }

    /// Returns the number of checkpoints and requests during a call; None if there may be more.
    pub fn during(&self, ask: &Ask) -> Option<usize> {
        let (from, to) = (ask.start_ns, ask.end_ns);
        let is_whole = self.done.has_all_since(from) && self.asked.has_all_since(from);
        let asked = self.asked.during(from, to).len();
        let number = || self.done.during(from, to).len().saturating_add(asked);
        is_whole.then(number)
    }

    /// Returns the checkpoint that a call waited for: the first one that began after its thread asked for one, or the last one
    /// that its thread wrote itself.
    pub fn of(&self, ask: &Ask) -> Option<Wanted> {
        let during = |time_ns: u64| (ask.start_ns..=ask.end_ns).contains(&time_ns);
        let its = || {
            let done = self.done.during(ask.start_ns, ask.end_ns);
            done.filter(|one| one.s_dev == ask.s_dev)
        };
        let mut asked = self.asked.during(ask.start_ns, ask.end_ns).rev();
        if let Some(request) = asked.find(|request| request.pid == ask.pid) {
            let since = request.at;
            let checkpoint = *its().find(|one| one.begin >= since)?;
            return Some(Wanted { since, checkpoint });
        }
        let own = its()
            .rev()
            .find(|one| one.pid == ask.pid && during(one.begin));
        own.map(|&checkpoint| Wanted {
            since: checkpoint.begin,
            checkpoint,
        })
    }
}

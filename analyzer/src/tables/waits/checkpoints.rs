// SPDX-License-Identifier: MIT OR Apache-2.0
//! The checkpoints of f2fs: who asked for each, and when it was written.

use std::collections::{HashMap, VecDeque};

use mostrace_bundle::entry::{RawF2fs, Step};

use super::ask::Ask;

/// The most checkpoints that are kept; a call waits for one of the latest.
const KEPT: usize = 64;
/// The most requests that are kept.
const REQUESTS: usize = 1024;

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

/// The latest checkpoints.
#[derive(Default)]
pub(super) struct Checkpoints {
    done: VecDeque<Checkpoint>,
    running: HashMap<u32, (u32, u64)>,
    /// Threads that asked for one, and when, ns.
    asked: VecDeque<(u32, u64)>,
}

impl Checkpoints {
    pub fn step(&mut self, raw: &RawF2fs) {
        let (s_dev, pid, time_ns) = (raw.s_dev.get(), raw.pid.get(), raw.head.time_ns.get());
        match Step::from_repr(raw.step.get()) {
            Some(Step::Asked) => {
                self.asked.push_back((pid, time_ns));
                if self.asked.len() > REQUESTS {
                    self.asked.pop_front();
                }
            }
            Some(Step::Checkpoint) => {
                self.running.insert(s_dev, (pid, time_ns));
            }
            Some(Step::Written) => {
                if let Some((pid, begin)) = self.running.remove(&s_dev) {
                    self.done.push_back(Checkpoint {
                        s_dev,
                        pid,
                        begin,
                        end: time_ns,
                    });
                }
                if self.done.len() > KEPT {
                    self.done.pop_front();
                }
            }
            _ => {}
        }
    }

    /// Returns the checkpoint that a call waited for: the first one that began after its thread asked for one, or the last one
    /// that its thread wrote itself.
    pub fn of(&self, ask: &Ask) -> Option<Wanted> {
        let during = |time_ns: u64| (ask.start_ns..=ask.end_ns).contains(&time_ns);
        let its = || {
            let done = self.done.iter();
            done.filter(|one| one.s_dev == ask.s_dev && during(one.end))
        };
        let mut asked = self.asked.iter().rev();
        if let Some(&(_, since)) = asked.find(|(pid, at)| *pid == ask.pid && during(*at)) {
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

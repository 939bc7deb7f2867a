// SPDX-License-Identifier: MIT OR Apache-2.0
//! Progress of building a map.

/// One part of the work, and how much of it is done. The parts follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The structure that is being read.
    pub what: &'static str,
    /// The units that are done, at most `total`.
    pub done: u64,
    /// All units of this part: groups, blocks, inodes or directories.
    pub total: u64,
}

/// A function that is called for every step; a step takes some milliseconds or less.
pub type Watcher<'a> = dyn Fn(Progress) + 'a;

/// Counts the progress of one part of the work.
pub(super) struct PartProgress<'a> {
    watcher: &'a Watcher<'a>,
    progress: Progress,
}

impl<'a> PartProgress<'a> {
    /// Starts a part with `total` units, none of them done.
    pub fn new(watcher: &'a Watcher<'a>, what: &'static str, total: usize) -> PartProgress<'a> {
        let progress = Progress {
            what,
            done: 0,
            total: u64::try_from(total).unwrap_or(u64::MAX),
        };
        PartProgress { watcher, progress }
    }

    /// Counts `done` more units as done.
    pub fn add(&mut self, done: usize) {
        let Progress {
            done: before,
            total,
            ..
        } = self.progress;
        let done = u64::try_from(done).unwrap_or(u64::MAX);
        self.progress.done = before.saturating_add(done).min(total);
        (self.watcher)(self.progress);
    }
}

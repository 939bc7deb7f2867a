// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far the building of a map is.

/// A part of the work, and how much of it is done. The parts come one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is being read.
    pub what: &'static str,
    /// How much of it is done, at most `total`.
    pub done: u64,
    /// How much there is of it: groups, blocks, inodes or directories.
    pub total: u64,
}

/// Is told of every step: each takes some milliseconds, or less.
pub type Watcher<'a> = dyn Fn(Progress) + 'a;

/// One part of the work.
pub(super) struct Part<'a> {
    watcher: &'a Watcher<'a>,
    progress: Progress,
}

impl<'a> Part<'a> {
    /// None of it is done yet.
    pub fn new(watcher: &'a Watcher<'a>, what: &'static str, total: usize) -> Part<'a> {
        let progress = Progress {
            what,
            done: 0,
            total: u64::try_from(total).unwrap_or(u64::MAX),
        };
        Part { watcher, progress }
    }

    /// So much more is done.
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

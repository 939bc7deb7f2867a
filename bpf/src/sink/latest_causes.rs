// SPDX-License-Identifier: MIT OR Apache-2.0
//! The entries of causes that the next segment repeats, except for the command's processes.

use std::collections::{BTreeMap, VecDeque};

use mostrace_bundle::entry::RawFile;

use super::Retention;
use super::recent::Recent;
use super::tables::{entries, tid_of};

/// The room for the latest handles and dirtied blocks, bytes; at least half of it is kept.
const RECENT: usize = 8 << 20;
/// The number of f2fs's steps that are kept. They include an unfinished checkpoint or garbage collection, and who waits for it.
const STEPS: usize = 64;
/// The most names of files that are kept for the next segment; one more makes it forget all earlier ones.
const NAMES: usize = 1 << 14;

/// The latest entries of causes.
pub(super) struct LatestCauses {
    retention: Retention,
    /// The handles and dirtied blocks.
    recent: Recent,
    /// The latest file that had each name.
    named: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The steps of f2fs.
    steps: VecDeque<Vec<u8>>,
}

impl LatestCauses {
    /// Starts empty.
    pub fn new(retention: Retention) -> LatestCauses {
        LatestCauses {
            retention,
            recent: Recent::new(retention.room(RECENT)),
            named: BTreeMap::new(),
            steps: VecDeque::new(),
        }
    }

    /// Keeps a handle or a dirtied block.
    pub fn entry(&mut self, entry: &[u8]) {
        self.recent.push(0, entry);
    }

    /// Keeps only the handles and dirtied blocks of the running transaction `tid` and of the one before it, which may be
    /// committing. Returns them.
    pub fn take_open(&mut self, tid: u32) -> Vec<u8> {
        let (_, recent) = self.recent.take();
        let is_open = |entry: &&[u8]| tid_of(entry).is_some_and(|of| tid.wrapping_sub(of) <= 1);
        let mut open = Vec::new();
        for entry in entries(&recent).filter(is_open) {
            self.recent.push(0, entry);
            open.extend_from_slice(entry);
        }
        open
    }

    /// Returns the names of files and the steps of f2fs.
    pub fn names_and_steps(&self) -> impl Iterator<Item = &[u8]> {
        let names = self.named.values().map(Vec::as_slice);
        names.chain(self.steps.iter().map(Vec::as_slice))
    }

    /// Keeps the name of a file.
    pub fn name(&mut self, record: &[u8]) {
        let most = self.retention.room(NAMES);
        if most == 0 {
            return;
        }
        if self.named.len() >= most {
            self.named.clear();
        }
        let name = record.get(size_of::<RawFile>()..).unwrap_or_default();
        self.named.insert(name.to_vec(), record.to_vec());
    }

    /// Keeps a step of f2fs.
    pub fn step(&mut self, entry: &[u8]) {
        let most = self.retention.room(STEPS);
        if most == 0 {
            return;
        }
        if self.steps.len() >= most {
            self.steps.pop_front();
        }
        self.steps.push_back(entry.to_vec());
    }
}

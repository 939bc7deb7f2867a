// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tree of the command's processes: the command, the processes that it started, those that these started, and so on. A process
//! stays in the tree when its parent ends, because the tree follows calls of fork.

use std::collections::BTreeMap;
use std::mem::offset_of;

use mostrace_bundle::entry::{RawFork, RawHead, fork_flags};

/// The size of an entry in bytes.
pub(super) const FORK: usize = size_of::<RawFork>();

/// An entry as the table has it.
type Record = [u8; FORK];

/// The tree, built from the probes' entries for every new process of the machine.
#[derive(Default)]
pub(super) struct ProcessTree {
    command: Option<u32>,
    /// The command's own entry.
    first: Option<Record>,
    /// The latest entry of each process number that was ever in the tree. This also shows when a number goes to another process.
    numbers: BTreeMap<u32, Record>,
}

impl ProcessTree {
    /// Reports that the command has been started as this process.
    pub fn command_started(&mut self, command: u32) {
        self.command = Some(command);
    }

    /// Takes the next entry. Returns the entry for the table if one is needed: the tree has a new process, or a number of the tree
    /// belongs to another process from now on.
    pub fn push(&mut self, entry: &[u8]) -> Option<Record> {
        let mut record = Record::try_from(entry).ok()?;
        let (tgid, parent) = (number(&record, TGID)?, number(&record, PARENT)?);
        let is_command = self.first.is_none() && self.command == Some(tgid);
        if is_command || self.has(parent) {
            record[FLAGS] |= fork_flags::OF_COMMAND.0;
        } else if !self.numbers.contains_key(&tgid) {
            return None;
        }
        if is_command {
            self.first = Some(record);
        }
        self.numbers.insert(tgid, record);
        Some(record)
    }

    fn has(&self, tgid: u32) -> bool {
        let last = self.numbers.get(&tgid);
        last.is_some_and(|record| record[FLAGS] & fork_flags::OF_COMMAND.0 != 0)
    }

    /// Returns the entries that the next segment repeats: the command's, and the latest of each number. In the next segment, a
    /// number that went to another process seems to have been that process's from the start.
    pub fn known(&self) -> impl Iterator<Item = &Record> {
        let later = self.numbers.values();
        let others = later.filter(|&record| Some(record) != self.first.as_ref());
        self.first.iter().chain(others)
    }
}

const TGID: usize = offset_of!(RawFork, tgid);
const PARENT: usize = offset_of!(RawFork, parent);
const FLAGS: usize = offset_of!(RawHead, flags);

fn number(record: &Record, at: usize) -> Option<u32> {
    let bytes = record.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fork(parent: u32, tgid: u32) -> Record {
        let mut record = [0; FORK];
        record[TGID..TGID + 4].copy_from_slice(&tgid.to_ne_bytes());
        record[PARENT..PARENT + 4].copy_from_slice(&parent.to_ne_bytes());
        record
    }

    /// Returns the process of each entry that was kept, and whether it is in the tree.
    fn kept(tree: &mut ProcessTree, forks: &[(u32, u32)]) -> Vec<(u32, bool)> {
        let kept = forks.iter().map(|&(parent, tgid)| fork(parent, tgid));
        let kept: Vec<Record> = kept.filter_map(|entry| tree.push(&entry)).collect();
        kept.iter().map(told).collect()
    }

    fn told(record: &Record) -> (u32, bool) {
        (number(record, TGID).unwrap(), record[FLAGS] == 1)
    }

    #[test]
    fn descendants_are_kept_and_others_are_not() {
        let mut tree = ProcessTree::default();
        tree.command_started(10);
        let forks = [(2, 3), (3, 4), (1, 10), (10, 11), (4, 5), (11, 12)];
        assert_eq!(
            kept(&mut tree, &forks),
            [(10, true), (11, true), (12, true)]
        );
    }

    #[test]
    fn a_number_that_is_used_again_is_told() {
        let mut tree = ProcessTree::default();
        tree.command_started(10);
        let forks = [(1, 10), (10, 11), (1, 11), (11, 12), (10, 11), (11, 13)];
        let told_of = [(10, true), (11, true), (11, false), (11, true), (13, true)];
        assert_eq!(kept(&mut tree, &forks), told_of);
        // This holds for the command's own number, too.
        assert_eq!(kept(&mut tree, &[(1, 10), (10, 14)]), [(10, false)]);
        let known: Vec<_> = tree.known().map(told).collect();
        assert_eq!(known, [(10, true), (10, false), (11, true), (13, true)]);
    }

    #[test]
    fn without_a_command_nothing_is_kept() {
        assert_eq!(kept(&mut ProcessTree::default(), &[(1, 10), (10, 11)]), []);
    }
}

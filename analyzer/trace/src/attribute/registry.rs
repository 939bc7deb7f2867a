// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processes and files of a trace, by the numbers that rows and causes use.

use std::borrow::Cow;

use mostrace_bundle::entry::Home;
use mostrace_map::Map;

use super::files::Files;
use super::owners::Owners;
use super::process::Processes;
use super::served::Served;
use super::stacks::{StackId, Stacks};
use super::task::Work;
use super::{File, FileId, HashSet, Process, ProcessId, ProcessNames, Row};

/// Knows every process and file that a table or an event has named so far.
pub struct Registry<'a> {
    pub(super) map: Option<&'a Map>,
    pub(super) processes: Processes,
    pub(super) files: Files<'a>,
    pub(super) stacks: Stacks,
    pub(super) owners: Owners,
    pub(super) served: Served,
    /// Threads, each with one for which it worked.
    workers: HashSet<(ProcessId, ProcessId)>,
}

impl<'a> Registry<'a> {
    /// Makes a registry without processes, whose files are those of the map.
    pub(super) fn new(map: Option<&'a Map>) -> Registry<'a> {
        Registry {
            map,
            processes: Processes::default(),
            files: Files::new(map),
            stacks: Stacks::default(),
            owners: Owners::default(),
            served: Served::default(),
            workers: HashSet::default(),
        }
    }

    /// Returns the number of processes and files that are remembered.
    pub fn named(&self) -> usize {
        self.processes.len().saturating_add(self.files.len())
    }

    /// Returns the last time at which the block at `sector` was freed before it was queued at `time_ns`, ns. Earlier changes are
    /// not in it any more. None if it is not known to have been freed.
    pub fn freed_ns(&self, sector: u64, time_ns: u64) -> Option<u64> {
        self.owners.freed_ns(sector, time_ns)
    }

    /// Returns an entry of the thread for which the entry's own worked at `time_ns`, and that thread's number: itself, or one whose
    /// FUSE request it served.
    pub fn for_whom<R: Work>(&mut self, mut entry: R, time_ns: u64) -> (R, ProcessId) {
        let own = self.processes.task(entry.task(), time_ns);
        let Some(request) = self.served.at_mut(&entry.task(), time_ns) else {
            return (entry, own);
        };
        let whose = self.processes.task(request.whose, time_ns);
        request.id = Some(whose);
        self.workers.insert((own, whose));
        entry.set_task(&request.whose);
        (entry, whose)
    }

    /// Returns true if a thread worked for another one, whose requests it served.
    pub fn works_for(&self, worker: ProcessId, whose: ProcessId) -> bool {
        self.workers.contains(&(worker, whose))
    }

    /// Returns a row that the threads for which its own worked submitted and dirtied.
    pub fn row_for_whom<'r>(&self, row: &'r Row) -> Cow<'r, Row> {
        if self.served.is_empty() {
            return Cow::Borrowed(row);
        }
        let whose = |process: ProcessId, time_ns: Option<u64>| {
            let thread = self.process(process);
            let request = self.served.at(thread.pid?, thread.tgid?, time_ns?)?;
            request.id
        };
        Cow::Owned(Row {
            process: whose(row.process, row.q_ns).unwrap_or(row.process),
            dirtier: whose(row.dirtier, row.dirty_ns).unwrap_or(row.dirtier),
            ..*row
        })
    }

    /// Returns the number of an inode that a table names; `FileId::NONE` for inode 0.
    pub fn inode(&mut self, inode: u64, generation: u32) -> FileId {
        match inode {
            0 => FileId::NONE,
            _ => self.files.numbered(inode, generation),
        }
    }

    /// Returns the number of the stack that a call or a handle refers to; [`StackId::UNKNOWN`] if it has none.
    pub fn stack(&mut self, id: u64) -> StackId {
        self.stacks.find(id)
    }

    /// Returns what is known so far of a file.
    pub fn file(&self, file: FileId) -> &File {
        self.files.get(file)
    }

    /// Returns what is known so far of a thread.
    pub fn process(&self, process: ProcessId) -> &Process {
        self.processes.get(process)
    }

    /// Returns the names of processes over time.
    pub fn process_names(&self) -> &ProcessNames {
        self.processes.names()
    }

    /// Returns the path of the cgroup that a process was in at `time_ns`; None if it is not known.
    pub fn cgroup(&self, tgid: u32, time_ns: u64) -> Option<&[u8]> {
        self.processes.cgroup(tgid, time_ns)
    }

    /// Returns true if the thread is known to belong to a user's program and not to the kernel.
    pub fn is_user(&self, process: ProcessId) -> bool {
        self.processes.is_user(process)
    }

    /// Returns the size of the mapped filesystem's blocks, bytes; None if it is not known.
    pub fn block_size(&self) -> Option<u64> {
        self.map.and_then(Map::block_size)
    }

    /// Returns true if the filesystem's journal is on another disk, so that its commits are not seen.
    pub fn has_journal_elsewhere(&self) -> bool {
        self.map.is_some_and(Map::has_journal_elsewhere)
    }

    /// Returns true if files of the filesystem with this device number (major << 20 | minor) are numbered as the map's.
    pub fn is_mapped(&self, s_dev: u32) -> bool {
        self.files.is_mapped(s_dev)
    }

    /// Returns the disk sector of a home block, which is from [`mostrace_map::ELSEWHERE`] on if the block lies on another disk; None
    /// if it is unknown.
    pub fn home_on_disk(&self, home: Home, sector: u64) -> Option<u64> {
        match (home, self.map) {
            (Home::FILESYSTEM, Some(map)) => map.down(sector),
            // Without a map the device's place on the disk is unknown.
            (Home::FILESYSTEM, None) => None,
            _ => Some(sector),
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges contents of files.

use mostrace_bundle::entry::Origin;
use mostrace_map::class::Kind;

use super::{Causer, user};
use crate::attribute::{ProcessId, Registry, Row};
use crate::causes::Operation;

impl<R> Causer<'_, R> {
    /// Judges contents of a file: the causer is the task that dirtied the pages, or the submitter of direct IO.
    pub(super) fn contents(&mut self, row: &Row, registry: &Registry<'_>) {
        if let Some(collector) = self.collector(row, registry) {
            self.one(Some(collector), Operation::Gc, row);
            return;
        }
        let is_direct = matches!(row.origin, Some(Origin::DIRECT | Origin::RAW));
        let process = match row.dirtier {
            ProcessId::UNKNOWN if is_direct => user(row.process, registry),
            dirtier => user(dirtier, registry),
        };
        let file = registry.file(row.file);
        let inode = file.inode.map(|ino| (ino, file.generation.unwrap_or(0)));
        let is_atomic = inode
            .zip(row.q_ns)
            .is_some_and(|(inode, q_ns)| self.found.f2fs.commits(inode, q_ns));
        let operation = match row.kind {
            Some(Kind::Directory | Kind::Symlink) => Operation::Other,
            _ if is_atomic => Operation::AtomicWrite,
            _ => Operation::Write,
        };
        self.one(process, operation, row);
        // Only handles are traced back to these pages.
        if !self.tables.has_handles() {
            return;
        }
        if let (Some(process), Some(inode), Some(q_ns)) = (process, inode, row.q_ns) {
            self.found.pages.written(inode, process, q_ns);
        }
    }

    /// Returns the task that moved the blocks to collect garbage: it dirtied their pages meanwhile, or wrote blocks that it
    /// could not decode (encrypted, compressed) unchanged. f2fs's own thread is a causer only here.
    pub(super) fn collector(&self, row: &Row, registry: &Registry<'_>) -> Option<ProcessId> {
        if row.collects {
            return Some(row.dirtier);
        }
        if row.dirtier != ProcessId::UNKNOWN || row.origin != Some(Origin::META) {
            return None;
        }
        let (process, time_ns) = (row.process, row.q_ns?);
        let pid = registry.process(process).pid?;
        self.found.f2fs.collects(pid, time_ns).then_some(process)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges what a call for durability waits for.

use super::{Causer, user};
use crate::attribute::{FileId, ProcessId, Registry, Request, Row, StackId};
use crate::causes::calls::Call;
use crate::causes::handle::Handle;
use crate::causes::{Caller, Operation};

/// Who asked for a commit or a flush, for which file, and since when (ns).
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    caller: Caller,
    file: FileId,
    pub start_ns: u64,
}

impl From<&Call> for Asked {
    fn from(call: &Call) -> Asked {
        Asked {
            caller: call.caller,
            file: call.file,
            start_ns: call.start_ns,
        }
    }
}

impl From<&Handle> for Asked {
    fn from(handle: &Handle) -> Asked {
        Asked {
            caller: handle.caller,
            file: handle.file,
            start_ns: handle.start_ns,
        }
    }
}

impl<R> Causer<'_, R> {
    /// Judges a block of the fast-commit area, which the caller of fsync writes itself.
    pub(super) fn fast_commit(
        &mut self,
        request: &Request,
        row: &Row,
        registry: &Registry<'_>,
    ) -> Option<u64> {
        let process = user(row.process, registry);
        let call = process.and_then(|p| self.call(p, row.q_ns?, registry));
        let file = call
            .map(|call| call.file)
            .filter(|&file| file != FileId::NONE);
        let row = Row {
            file: file.unwrap_or(row.file),
            ..*row
        };
        // The area has changes of other tasks to other inodes too.
        self.first(caller(process, call.as_ref()), Operation::Fsync, &row);
        call.map(|call| request.time_ns.saturating_sub(call.start_ns))
    }

    /// Judges the end of a flush sequence or of an empty flush.
    pub(super) fn flush(
        &mut self,
        request: &Request,
        row: &Row,
        registry: &Registry<'_>,
    ) -> Option<u64> {
        if let Some(forced) = self.take_commit(row.sector) {
            return self.asked(request, row, forced);
        }
        let process = user(row.process, registry);
        if let Some(call) = self.call_of_flush(process, row, registry) {
            return self.asked(request, row, Some(Asked::from(&call)));
        }
        let operation = match row.mounting.map(Operation::of_mounting) {
            Some(mounting) => mounting,
            // Something else asks for it: a block device's fsync, an ioctl.
            None if self.tables.has_calls() => Operation::Other,
            None => Operation::Fsync,
        };
        self.one(process.map(Caller::from), operation, row);
        None
    }

    /// Removes the commit whose block has this sector; returns who forced it.
    fn take_commit(&mut self, sector: u64) -> Option<Option<Asked>> {
        let mut commits = self.commits.iter();
        let at = commits.rposition(|&(block, ..)| block == sector)?;
        let (_, asked, _) = self.commits.remove(at)?;
        Some(asked)
    }

    /// Judges a row that somebody waits for, as durability was asked for.
    fn asked(&mut self, request: &Request, row: &Row, asked: Option<Asked>) -> Option<u64> {
        let file = asked.map(|asked| asked.file);
        let file = file.filter(|&file| file != FileId::NONE);
        let row = Row {
            file: file.unwrap_or(row.file),
            ..*row
        };
        let caller = asked.map(|asked| asked.caller);
        self.one(caller, Operation::Fsync, &row);
        asked.map(|asked| request.time_ns.saturating_sub(asked.start_ns))
    }

    /// Returns the call that a flush is for: the call that its thread is in. If another thread works for the caller, it is the
    /// call of the only process that syncs the file meanwhile.
    pub(super) fn call_of_flush(
        &self,
        process: Option<ProcessId>,
        row: &Row,
        registry: &Registry<'_>,
    ) -> Option<Call> {
        let queued_ns = row.q_ns?;
        let own = process.and_then(|process| self.call(process, queued_ns, registry));
        if own.is_some() || row.mounting.is_some() {
            return own;
        }
        let file = registry.file(row.file);
        let inode = (file.inode?, file.generation?);
        let tgid = process.and_then(|process| registry.process(process).tgid);
        let is_its = |call: &Call| call.inode == inode && tgid.is_none_or(|tgid| call.tgid == tgid);
        let calls = &self.found.calls;
        let first = calls.first_sync(queued_ns, queued_ns, is_its)?;
        let others = |call: &Call| is_its(call) && call.tgid != first.tgid;
        let other = calls.first_sync(queued_ns, queued_ns, others);
        let is_users = user(first.caller.process, registry).is_some();
        (other.is_none() && is_users).then_some(first)
    }

    /// Returns the call for durability that a thread was in.
    pub(super) fn call(
        &self,
        process: ProcessId,
        time_ns: u64,
        registry: &Registry<'_>,
    ) -> Option<Call> {
        let pid = registry.process(process).pid?;
        let call = self.found.calls.at(pid, time_ns);
        call.filter(|call| call.asks).copied()
    }
}

/// Returns the thread, with the stack of its call.
fn caller(process: Option<ProcessId>, call: Option<&Call>) -> Option<Caller> {
    let stack = call.map_or(StackId::UNKNOWN, |call| call.caller.stack);
    process.map(|process| Caller { process, stack })
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges what a call for durability waits for.

use super::{Causer, user};
use crate::attribute::{FileId, ProcessId, Registry, Request, Row, StackId};
use crate::causes::calls::Call;
use crate::causes::operation::is_sync;
use crate::causes::{Caller, Operation};

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
            return self.fsync(request, row, forced.map(|call| call.caller.process), forced);
        }
        let process = user(row.process, registry);
        let call = process.and_then(|p| self.call(p, row.q_ns?, registry));
        if call.is_none() && self.tables.has_calls() {
            // Otherwise it is for a file that was opened with O_SYNC, or for something else that asks for it.
            let mounting = row.mounting.map(Operation::of_mounting);
            let operation = mounting.unwrap_or(Operation::Other);
            self.one(process.map(Caller::from), operation, row);
            return None;
        }
        self.fsync(request, row, process, call)
    }

    /// Removes the commit whose block has this sector; returns the call that forced it.
    fn take_commit(&mut self, sector: u64) -> Option<Option<Call>> {
        let mut commits = self.commits.iter();
        let at = commits.rposition(|&(block, _)| block == sector)?;
        let (_, forced) = self.commits.remove(at)?;
        Some(forced)
    }

    /// Judges a row that a call for durability waits for.
    fn fsync(
        &mut self,
        request: &Request,
        row: &Row,
        process: Option<ProcessId>,
        call: Option<Call>,
    ) -> Option<u64> {
        let called = call.map(|call| call.file);
        let file = called.filter(|&file| file != FileId::NONE);
        let row = Row {
            file: file.unwrap_or(row.file),
            ..*row
        };
        self.one(caller(process, call.as_ref()), Operation::Fsync, &row);
        call.map(|call| request.time_ns.saturating_sub(call.start_ns))
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
        call.filter(|call| is_sync(call.kind)).copied()
    }
}

/// Returns the thread, with the stack of its call.
fn caller(process: Option<ProcessId>, call: Option<&Call>) -> Option<Caller> {
    let stack = call.map_or(StackId::UNKNOWN, |call| call.caller.stack);
    process.map(|process| Caller { process, stack })
}

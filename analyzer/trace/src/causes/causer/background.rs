// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges writes of the filesystem for which no change was seen, by what their submitter was doing.

use super::{Causer, user};
use crate::attribute::{ProcessId, Registry, Row};
use crate::causes::blame::{Blame, Weights};
use crate::causes::handle::Handle;
use crate::causes::{Cause, Operation};

/// The name of the thread that prepares ext4's groups (`ext4_lazyinit_thread`).
const LAZY_INIT: &[u8] = b"ext4lazyinit";
/// The beginning of the name of a journal's thread, which commits (`kjournald2`).
const JOURNAL: &[u8] = b"jbd2/";

impl<R> Causer<'_, R> {
    /// Returns the cause of a row that was submitted for the filesystem's own work; unknown if nothing tells of such work.
    pub(super) fn background(&mut self, row: &Row, registry: &Registry<'_>) -> Blame {
        let Some(operation) = operation(row, registry) else {
            return Blame::Unknown;
        };
        let cause = Cause::of(row.process.into(), operation, row.file);
        Blame::Exact(self.found.list.intern(cause))
    }

    /// Judges jbd2's superblock. It is shared by the transactions that were committed since it was last written.
    pub(super) fn journal_superblock(&mut self, row: &Row, registry: &Registry<'_>) {
        let mut since = std::mem::take(&mut self.since_superblock);
        if since.is_empty() {
            match self.background(row, registry) {
                Blame::Unknown => since = self.begun(row, registry),
                blame => return self.blame(&blame, row.bytes),
            }
        }
        since.share(row.bytes, self.is_whole, &mut self.verdicts);
    }

    /// Returns who took part in the transaction that the journal's thread is about to commit. In an empty journal it writes the
    /// superblock ahead of the first commit, while the transaction is still running.
    fn begun(&mut self, row: &Row, registry: &Registry<'_>) -> Weights {
        let mut weights = Weights::default();
        let Causer {
            journals,
            found,
            sharing,
            ..
        } = self;
        if let Some(q_ns) = row.q_ns
            && is_kernels(row.process, registry, JOURNAL)
            && let Some(transaction) = journals.running(q_ns)
        {
            let mut causers = |handle: &Handle| found.causers(handle);
            weights.add_all(&transaction.weights_so_far(*sharing, &mut causers));
        }
        weights
    }
}

/// Returns the filesystem's own work that a row was submitted for.
fn operation(row: &Row, registry: &Registry<'_>) -> Option<Operation> {
    if is_kernels(row.process, registry, LAZY_INIT) {
        return Some(Operation::LazyInit);
    }
    user(row.process, registry)?;
    row.mounting.map(Operation::of_mounting)
}

/// Returns true if a process is known to be a kernel thread with a name that begins like this.
pub(super) fn is_kernels(process: ProcessId, registry: &Registry<'_>, name: &[u8]) -> bool {
    let comm = registry.process(process).comm.as_deref();
    comm.is_some_and(|comm| comm.starts_with(name)) && !registry.is_user(process)
}

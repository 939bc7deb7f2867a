// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges discarded and zeroed ranges, which carry no data and belong to no file.

use super::{Causer, user};
use crate::attribute::{ProcessId, Registry, Row};
use crate::causes::blame::{Blame, Weights};
use crate::causes::{Cause, CauseId, Operation};

use super::background::is_kernels;

/// The beginning of the name of the thread by which f2fs discards what was freed before (`issue_discard_thread`).
const F2FS_DISCARD: &[u8] = b"f2fs_discard";

/// The causers that freed blocks in the transactions since the last discard, with the number of metadata blocks that each changed
/// for it. ext4 discards the freed blocks when the transaction is committed, in jbd2's thread or a worker.
#[derive(Default)]
pub(super) struct Freed {
    weights: Weights,
    /// True if something was discarded since the last of these transactions.
    is_over: bool,
}

impl<R> Causer<'_, R> {
    /// Judges a discarded range: its causer is the task that discards it, f2fs's thread, or those who freed blocks.
    pub(super) fn discard(&mut self, row: &Row, registry: &Registry<'_>) {
        if let Some(process) = discarder(row, registry) {
            self.one(Some(process.into()), Operation::Discard, row);
            return;
        }
        self.freed.is_over = true;
        self.freed
            .weights
            .share(row.bytes, self.is_whole, &mut self.verdicts);
    }

    /// Judges a range that was zeroed without carrying zeros.
    pub(super) fn zero(&mut self, row: &Row, registry: &Registry<'_>) {
        match (self.background(row, registry), user(row.process, registry)) {
            (Blame::Unknown, Some(process)) => {
                self.one(Some(process.into()), Operation::Zero, row);
            }
            (blame, _) => self.blame(&blame, row.bytes),
        }
    }
}

impl Freed {
    /// Adds those of a committed transaction's causers that freed blocks.
    pub fn committed(&mut self, transaction: &Weights, cause: impl Fn(CauseId) -> Cause) {
        let frees = |causer| {
            let operation = cause(causer).operation;
            matches!(
                operation,
                Some(Operation::Unlink | Operation::Truncate | Operation::OrphanCleanup)
            )
        };
        let freed: Vec<(CauseId, u64)> = transaction
            .iter()
            .filter(|&(causer, _)| frees(causer))
            .collect();
        if !freed.is_empty() && std::mem::take(&mut self.is_over) {
            self.weights = Weights::default();
        }
        for (causer, blocks) in freed {
            self.weights.add(causer, blocks);
        }
    }
}

/// Returns the thread that discards for itself.
fn discarder(row: &Row, registry: &Registry<'_>) -> Option<ProcessId> {
    let is_f2fs = is_kernels(row.process, registry, F2FS_DISCARD);
    user(row.process, registry).or(is_f2fs.then_some(row.process))
}

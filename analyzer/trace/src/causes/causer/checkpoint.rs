// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges f2fs's nodes, quota files and checkpoints.

use mostrace_map::class::Kind;

use super::{Causer, Found, user};
use crate::attribute::{FileId, ProcessId, Registry, Row, StackId};
use crate::causes::blame::{Blame, Weights};
use crate::causes::f2fs::{Checkpoint, Requester};
use crate::causes::{Caller, Cause, CauseId, Operation};

/// Weights of the f2fs nodes written since the last checkpoint.
#[derive(Default)]
pub(super) struct Nodes {
    weights: Weights,
    /// The checkpoint that made these nodes valid, once one of its blocks was judged.
    over: Option<Over>,
}

/// A checkpoint of which a block was judged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    /// It was seen, and began at this time, ns.
    Seen(u64),
    Unseen,
}

impl<R> Causer<'_, R> {
    /// Judges a node of f2fs, which the next checkpoint makes valid.
    pub(super) fn node(
        &mut self,
        kind: Kind,
        dirtier: Option<ProcessId>,
        row: &Row,
        registry: &Registry<'_>,
    ) {
        let collector = self.collector(row, registry);
        let (process, operation, of_checkpoint) = match (collector, kind) {
            (Some(_), _) => (collector, Operation::Gc, Operation::Gc),
            (_, Kind::FsyncNode) => (dirtier, Operation::Fsync, Operation::Checkpoint),
            _ => (dirtier, Operation::Other, Operation::Checkpoint),
        };
        match collector {
            Some(_) => {
                self.one(process.map(Caller::from), operation, row);
            }
            None => self.first(process.map(Caller::from), operation, row),
        }
        let causer = match process {
            None => CauseId::UNKNOWN,
            Some(process) => {
                let cause = Cause::of(process.into(), of_checkpoint, row.file);
                self.found.list.intern(cause)
            }
        };
        let within = self.within(row);
        self.nodes.begin(within);
        self.nodes.weights.add(causer, row.bytes.into());
        if collector.is_none() {
            // Only who changed a node first is known.
            self.nodes.weights.add(CauseId::UNKNOWN, 0);
        }
    }

    /// Judges a block of f2fs's checkpoint: its causers are those who requested it, or else those whose nodes it makes
    /// valid.
    pub(super) fn checkpoint(&mut self, row: &Row, registry: &Registry<'_>) {
        let Found { list, f2fs, .. } = &mut self.found;
        let seen = row.q_ns.and_then(|q_ns| f2fs.checkpoint(q_ns));
        let blame = match seen {
            Some(checkpoint) => {
                self.verdicts.checkpoint(checkpoint.reason);
                let requesters = checkpoint.requesters.iter();
                Blame::of(requesters.map(|requester| list.intern(of_requester(requester))))
            }
            None => self.by_submitter(row, registry),
        };
        match blame {
            Blame::Unknown => {
                self.nodes
                    .weights
                    .share(row.bytes, self.is_whole, &mut self.verdicts)
            }
            blame => self.blame(&blame, row.bytes),
        }
        self.nodes.over = Some(self.within(row).map_or(Over::Unseen, Over::Seen));
    }

    /// Returns the beginning of the checkpoint in which the row was queued, if one was seen then.
    fn within(&self, row: &Row) -> Option<u64> {
        let checkpoint = row.q_ns.and_then(|q_ns| self.found.f2fs.checkpoint(q_ns));
        checkpoint.map(Checkpoint::begun_ns)
    }

    /// Judges a block of f2fs's quota files. A checkpoint writes into them what all tasks have allocated and freed since the last
    /// one, so the tasks whose nodes were written since then share the block. The nodes that the checkpoint itself writes come
    /// later.
    pub(super) fn account(&mut self, row: &Row) {
        let Found { f2fs, .. } = &self.found;
        let seen = row.q_ns.and_then(|q_ns| f2fs.checkpoint(q_ns));
        if let Some(checkpoint) = seen {
            self.verdicts.checkpoint(checkpoint.reason);
        }
        self.nodes.begin(seen.map(Checkpoint::begun_ns));
        self.nodes
            .weights
            .share(row.bytes, self.is_whole, &mut self.verdicts);
    }

    /// Blames a block of an unseen checkpoint on its submitter: a task that writes a checkpoint itself requested it.
    fn by_submitter(&mut self, row: &Row, registry: &Registry<'_>) -> Blame {
        let Some(process) = user(row.process, registry) else {
            return Blame::Unknown;
        };
        let call = row.q_ns.and_then(|q_ns| self.call(process, q_ns, registry));
        let caller = Caller {
            process,
            stack: call.map_or(StackId::UNKNOWN, |call| call.caller.stack),
        };
        let file = call.map_or(FileId::NONE, |call| call.file);
        let cause = Cause::of(caller, Operation::Checkpoint, file);
        Blame::Exact(self.found.list.intern(cause))
    }
}

impl Nodes {
    /// Returns true if a node was seen: only f2fs has nodes.
    pub(super) fn are_any(&self) -> bool {
        !self.weights.is_empty()
    }

    /// Forgets the nodes that an earlier checkpoint made valid. `within` is the beginning of the one in which the next row was queued.
    /// Rows come as they complete: a node that a checkpoint writes may come after a block of the checkpoint itself.
    fn begin(&mut self, within: Option<u64>) {
        let is_its = within.is_some() && self.over == within.map(Over::Seen);
        if self.over.is_some() && !is_its {
            *self = Nodes::default();
        }
    }
}

fn of_requester(requester: &Requester) -> Cause {
    let operation = match requester.collects {
        true => Operation::Gc,
        false => Operation::Checkpoint,
    };
    Cause::of(requester.caller, operation, requester.file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoints_own_nodes_may_come_after_its_first_block() {
        let write = |nodes: &mut Nodes, within, causer| {
            nodes.begin(within);
            nodes.weights.add(CauseId(causer), 1);
            nodes.weights.causers().map(|id| id.0).collect::<Vec<_>>()
        };
        let mut nodes = Nodes::default();
        assert_eq!(write(&mut nodes, None, 1), [1]);
        assert_eq!(write(&mut nodes, Some(50), 2), [1, 2]);
        nodes.over = Some(Over::Seen(50));
        assert_eq!(write(&mut nodes, Some(50), 3), [1, 2, 3]);
        assert_eq!(write(&mut nodes, None, 4), [4], "the next one's");
    }

    #[test]
    fn of_the_next_checkpoint_nothing_is_the_lasts() {
        for over in [Over::Seen(50), Over::Unseen] {
            for within in [Some(60), None] {
                let mut nodes = Nodes::default();
                nodes.weights.add(CauseId(1), 1);
                nodes.over = Some(over);
                nodes.begin(within);
                assert!(!nodes.are_any() && nodes.over.is_none());
            }
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges metadata that is written home.

use mostrace_map::class::Kind;

use super::{Causer, user};
use crate::attribute::{Registry, Request, Row};
use crate::causes::blame::{Blame, Others};
use crate::causes::handle::Handle;
use crate::causes::{Caller, Operation};

/// Returns true for a block of a quota file, or a node of one.
fn is_quotas(kind: Kind, row: &Row, registry: &Registry<'_>) -> bool {
    kind == Kind::Quota || kind.is_node() && registry.file(row.file).kind == Kind::Quota
}

impl<R> Causer<'_, R> {
    /// Judges metadata that is written home.
    pub(super) fn metadata(&mut self, request: &Request, row: &Row, registry: &Registry<'_>) {
        let dirtier = user(row.dirtier, registry);
        match row.kind {
            Some(kind)
                if dirtier.is_none() && self.nodes.are_any() && is_quotas(kind, row, registry) =>
            {
                self.account(row);
            }
            Some(kind) if kind.is_node() => self.node(kind, dirtier, row, registry),
            Some(Kind::Checkpoint | Kind::Sit | Kind::Nat | Kind::Ssa) => {
                self.checkpoint(row, registry);
            }
            _ if dirtier.is_none() => self.home(request, row, true, registry),
            _ => {
                let mounting = row.dirtied_in.map(Operation::of_mounting);
                let operation = mounting.unwrap_or(Operation::Other);
                self.first(dirtier.map(Caller::from), operation, row);
            }
        }
    }

    /// Judges blocks that have copies in the journal. `is_all_journalled` is false if they may have been changed without it.
    pub(super) fn home(
        &mut self,
        request: &Request,
        row: &Row,
        is_all_journalled: bool,
        registry: &Registry<'_>,
    ) {
        let time_ns = row.q_ns.or(request.d_ns).unwrap_or(request.time_ns);
        let mut left = row.bytes;
        let mut sector = row.sector;
        while left > 0 {
            let bytes = left.min(self.block);
            let freed_ns = registry.freed_ns(sector, time_ns);
            let mut changes = self.homes.written(sector, time_ns, freed_ns);
            if registry.has_journal_elsewhere() {
                let found = &mut self.found;
                let mut causers = |handle: &Handle| found.causers(handle);
                changes.extend(self.journals.written(sector, &mut causers));
            }
            let blame = match &changes[..] {
                // Others may have changed the block without the journal.
                [] => self.background(row, registry).first(&Others::Unknown),
                _ => Blame::joined(&changes),
            };
            let blame = match row.kind == Some(Kind::Regular) {
                true => self.found.as_written(&blame),
                false => blame,
            };
            let blame = match self.homes.cut_short() {
                0 if is_all_journalled => blame,
                _ => blame.first(&Others::Unknown),
            };
            self.blame(&blame, bytes);
            left = left.saturating_sub(bytes);
            sector = sector.saturating_add(u64::from(self.block / 512));
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges metadata that is written home.

use mostrace_map::class::Kind;

use super::{Causer, user};
use crate::attribute::{Registry, Request, Row};
use crate::causes::Operation;
use crate::causes::blame::Blame;

impl<R> Causer<'_, R> {
    /// Judges metadata that is written home.
    pub(super) fn metadata(&mut self, request: &Request, row: &Row, registry: &Registry<'_>) {
        let dirtier = user(row.dirtier, registry);
        match row.kind {
            Some(kind) if kind.is_node() => self.node(kind, dirtier, row, registry),
            Some(Kind::Checkpoint | Kind::Sit | Kind::Nat | Kind::Ssa) => {
                self.checkpoint(row, registry);
            }
            _ if self.tables.has_handles() && dirtier.is_none() => self.home(request, row),
            _ => self.first(dirtier, Operation::Other, row),
        }
    }

    /// Judges blocks that have copies in the journal.
    fn home(&mut self, request: &Request, row: &Row) {
        let time_ns = row.q_ns.or(request.d_ns).unwrap_or(request.time_ns);
        let mut left = row.bytes;
        let mut sector = row.sector;
        while left > 0 {
            let bytes = left.min(self.block);
            let changes = self.homes.written(sector, time_ns);
            self.blame(&Blame::joined(&changes), bytes);
            left = left.saturating_sub(bytes);
            sector = sector.saturating_add(u64::from(self.block / 512));
        }
    }
}

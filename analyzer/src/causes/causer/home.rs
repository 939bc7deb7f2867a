// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges metadata that is written home.

use mostrace_map::class::Kind;

use super::{Causer, user};
use crate::attribute::{ProcessId, Registry, Request, Row};
use crate::causes::share::{Sharing, in_proportion};
use crate::causes::{Cause, Known, Operation};

impl<R> Causer<'_, R> {
    /// Judges metadata that is written home.
    pub(super) fn metadata(&mut self, request: &Request, row: &Row, registry: &Registry<'_>) {
        let dirtier = user(row.dirtier, registry);
        match row.kind {
            Some(kind) if kind.is_node() => self.node(kind, dirtier, row, registry),
            Some(Kind::Checkpoint | Kind::Sit | Kind::Nat | Kind::Ssa) => {
                self.checkpoint(row, registry);
            }
            Some(Kind::Btree) => self.one_of_several(dirtier, row),
            _ if self.tables.has_handles() && dirtier.is_none() => self.home(request, row),
            _ => {
                self.one(dirtier, Operation::Other, row);
            }
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
            match (self.sharing, &changes[..]) {
                (_, []) => self.unknown(bytes),
                (Sharing::First, [first, later @ ..]) => {
                    self.blame(first, bytes);
                    later.iter().for_each(|blame| self.blame(blame, 0));
                }
                (Sharing::Equal, _) => {
                    let weights = vec![1; changes.len()];
                    let parts = in_proportion(bytes, &weights);
                    for (blame, part) in changes.iter().zip(parts) {
                        self.blame(blame, part);
                    }
                }
            }
            left = left.saturating_sub(bytes);
            sector = sector.saturating_add(u64::from(self.block / 512));
        }
    }

    /// Judges a block that other tasks may also have changed after the known one dirtied it.
    fn one_of_several(&mut self, dirtier: Option<ProcessId>, row: &Row) {
        let Some(process) = dirtier else {
            return self.unknown(row.bytes);
        };
        let cause = Cause {
            process,
            operation: Some(Operation::Other),
            file: row.file,
        };
        let causer = self.found.list.intern(cause);
        self.verdicts.add(causer, Known::Set, row.bytes);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! One database with its journal and its WAL, whoever writes them.

use mostrace_map::class::Role;

use super::Outcome;
use super::act::Act;
use super::proof::Proof;
use super::rollback::Rollback;
use super::wal::Wal;

/// A database, as far as the calls have come.
#[derive(Debug, Default)]
pub(super) struct Store {
    pub rollback: Rollback,
    pub wal: Wal,
    pub proof: Proof,
}

impl Store {
    /// A call on its file of this role.
    pub fn see(&mut self, role: Role, act: &Act, outcome: &mut Outcome) {
        let Store {
            rollback,
            wal,
            proof,
        } = self;
        match role {
            Role::RollbackJournal => rollback.journal(act, proof, outcome),
            Role::Wal => wal.see(act, proof, outcome),
            Role::Db => rollback.database(act, wal.is_seen, proof, outcome),
            _ => {}
        }
    }
}

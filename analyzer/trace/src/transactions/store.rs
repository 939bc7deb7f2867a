// SPDX-License-Identifier: MIT OR Apache-2.0
//! One database with its journal and its WAL, whichever process writes them.

use mostrace_map::class::Role;

use super::Outcome;
use super::act::Act;
use super::proof::Proof;
use super::rollback::Rollback;
use super::wal::Wal;

/// The state of a database.
#[derive(Debug, Default)]
pub(super) struct Store {
    pub rollback: Rollback,
    pub wal: Wal,
    pub proof: Proof,
}

impl Store {
    /// Takes a call on the database's file of this role.
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

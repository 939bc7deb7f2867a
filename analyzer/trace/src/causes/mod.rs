// SPDX-License-Identifier: MIT OR Apache-2.0
//! Causes: for every row the tasks, operations and files that it was written for.
//!
//! ```text
//! handle.entries ── Handle ─┐
//! dirtied.entries ──────────┼─ Transactions ─┬─ copies, descriptors, commits ─┐
//!                           │                └─ Homes ── blocks written home ─┤
//! call.entries ─┬─ Calls ───┴─ flushes, fast commits, forced commits ─────────┼─ Causer ─ Verdicts
//! f2fs.entries ─┼─ F2fs ────── checkpoints, garbage collection, atomic writes ┤
//!               └─ Unlinked                                                   │
//! rows ── dirtiers, submitters ── Pages ─────────────────────────────────────┘
//! ```
//!
//! A kernel thread is a cause only of work that it does for nobody's call: f2fs's garbage collection and discards, ext4's lazy initialisation
//! and quotas. What else it writes is traced back to a task, or its cause is unknown. The shares of a row's causers sum to its bytes. Handles are kept until their transaction is committed, the blocks that they dirtied until these
//! are written home, and calls for some seconds.
// A recording may come from anybody: no number in it may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod again;
mod ahead;
mod blame;
mod calls;
mod cause;
mod causer;
mod change;
mod changed;
mod durability;
mod emptied;
mod f2fs;
mod forced;
mod handle;
mod homes;
mod journals;
mod operation;
mod pages;
mod reason;
mod share;
mod spans;
mod tables;
mod transactions;
mod unlinked;
mod writes;

pub use cause::{Caller, Cause, CauseId, Known};
pub use causer::Causer;
pub use forced::{Force, Forced};
pub use operation::Operation;
pub use reason::Reason;
pub use share::{Share, Sharing, Verdict, Verdicts, in_proportion};
pub use tables::Tables;
pub use tables::are_whole;
pub use tables::commit_ns;
pub use tables::is_without_misses;

pub use durability::asks;
pub use operation::is_sync;

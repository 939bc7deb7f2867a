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
//! A kernel thread is never a cause: what it writes leads back to a task, or is of an unknown one. The shares of a row's
//! causers sum to its bytes. Handles are kept until their transaction is committed, what they dirtied until it is written home, calls
//! for some seconds.

mod blame;
mod calls;
mod cause;
mod causer;
mod commits;
mod databases;
mod f2fs;
mod handle;
mod homes;
mod operation;
mod pages;
mod reason;
mod share;
mod spans;
mod tables;
mod transactions;
mod unlinked;

pub use cause::{Cause, CauseId, Known};
pub use causer::Causer;
pub use commits::Commits;
pub use databases::{Asked, Database};
pub use operation::Operation;
pub use reason::Reason;
pub use share::{Share, Sharing, Verdict, Verdicts};
pub use spans::{Called, Span, called, spans};
pub use tables::Tables;

pub use databases::read as databases;
#[cfg(feature = "analyze")]
pub(crate) use operation::is_sync;

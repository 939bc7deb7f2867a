// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transactions: what one is, how many there were, whose they are, and how certain that is. This is the only place that
//! decides it.
//!
//! ```text
//! call.entries ─ Act ─ Databases ┬─ Store (a database) ─┬─ Wal ──────┐
//!                                │                      ├─ Rollback ─┼─ Commit ─┬─ Database ─┐
//!                                │                      └─ Proof ────┘          └─ Span      ├─ Transactions
//!                                └─ Threads (one transaction of several databases) ─────────┘ │
//! manifest.payload (what the application says of itself) ────────────────────────────────────┘
//! ```
//!
//! It counts SQLite's transactions that changed a database, as its own commit hook counts them. What the calls do not show
//! is not guessed: then the figure is "at least", or there is none.
// A recording may come from anybody: no number in it may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod act;
mod commits;
mod count;
mod databases;
mod proof;
mod reader;
mod rollback;
mod spans;
mod store;
#[cfg(test)]
mod tests;
mod threads;
mod told;
mod wal;

pub use commits::Commits;
pub use count::{Count, Sure};
pub use databases::{Asked, Database};
pub use spans::{Called, Span, called, spans};
pub use told::{Source, Transactions, are_calls_whole};

pub use databases::read as databases;

use commits::Commit;

/// The result of a call.
#[derive(Debug, Default)]
struct Outcome {
    commits: Vec<Commit>,
    /// True if there may be transactions that are in neither this list nor another call's.
    doubt: bool,
}

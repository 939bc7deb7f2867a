// SPDX-License-Identifier: MIT OR Apache-2.0
//! Attribution: completions, entries and the map joined into rows.
//!
//! ```text
//! process.entries ─ Pending ┐
//! file.entries ──── Pending ┤
//! dirtier.entries ─ Pending ┼─ Attributor ─ Row (a run of a completion with one answer)
//! completions ──────────────┤
//! freed.entries ─── Owners ──┤
//! fork.entries ──── Family ──┤
//! the map ──────────────────┘
//! ```
//!
//! Entries wait until the completion that they belong to; memory is bounded by what is in
//! flight, and by the processes and files that there are: the rows of a completion are handed out
//! with it. For every completion the bytes of its rows sum to its own: rows are cut from it, never
//! added up from entries.
//!
//! Truth goes before coverage ([`Attributor`] asks in this order): what a probe saw of the jbd2
//! block; what a probe saw of the file; the map, as far as it does not contradict the probe; and
//! where nothing is known, `unknown`.
// A recording may come from anybody: no number in it may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod attributor;
mod cells;
mod classify;
mod empties;
mod family;
mod file;
mod folders;
mod note;
mod op;
mod owners;
mod pending;
mod process;
mod role;
mod rows;
mod sightings;
mod submitter;

#[cfg(test)]
pub(crate) mod tests;

pub use attributor::Attributor;
pub use family::Family;
pub use file::{File, FileId};
pub use op::Op;
pub use process::{Process, ProcessId, Task};
pub use rows::{JournalBlock, Leftovers, Names, Request, Row};
pub use submitter::{Loops, SUBMITTER, program, submitter};

/// Every entry is looked up in several of these: a faster hash than the default one, and seeded
/// like it.
pub(crate) type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
/// The same of a set.
pub(crate) type HashSet<K> = std::collections::HashSet<K, foldhash::fast::RandomState>;

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
//! served.entries ── Served ──┤
//! comm.entries ──── ProcessNames ┤
//! stack.entries ─── Stacks ──┤
//! the map ──────────────────┘
//! ```
//!
//! An entry waits for the completion that it belongs to. Memory is bounded by what is in flight and by the number of
//! processes and files: the rows of a completion are handed out with it. The bytes of a completion's rows always sum to its
//! own, because rows are cut from it and never added up from entries.
//!
//! Truth goes before coverage. [`Attributor`] asks in this order: what a probe saw of the jbd2 block; what a probe saw of
//! the file; the map, as far as it does not contradict the probe. If nothing is known, the answer is `unknown`.
// A recording may come from anybody: no number in it may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod attributor;
mod cells;
mod cgroups;
mod classify;
mod empties;
mod family;
mod file;
mod file_list;
mod files;
mod folders;
mod name;
mod note;
mod op;
mod owners;
mod pending;
mod process;
mod process_names;
mod registry;
mod renames;
pub mod role;
mod rows;
mod served;
mod sightings;
mod stacks;
mod submitter;
mod task;

#[cfg(test)]
pub(crate) mod tests;

pub use attributor::Attributor;
pub use family::Family;
pub use file::{File, FileId, database_of};
pub use op::Op;
pub use process::{Process, ProcessId};
pub use process_names::ProcessNames;
pub use registry::Registry;
pub use renames::Renames;
pub use rows::{JournalBlock, Leftovers, Mounting, Names, Request, Row};
pub use served::Served;
pub use stacks::{Stack, StackId};
pub use submitter::{Loops, SUBMITTER, program, submitter};
pub use task::{Task, called};

/// Every entry is looked up in several of these maps, so the hash is faster than the default one; it is seeded at random
/// too.
pub type HashMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
/// A set with the same hash.
pub type HashSet<K> = std::collections::HashSet<K, foldhash::fast::RandomState>;

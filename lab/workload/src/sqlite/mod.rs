// SPDX-License-Identifier: MIT OR Apache-2.0
//! Workloads of SQLite transactions; each run does one kind.

mod bundled;
mod connection;
mod database;
mod engine;
mod existing;
mod library;
mod run;
mod settings;

pub(crate) use connection::Connection;
pub(crate) use engine::Engine;
pub(crate) use existing::remove;
pub use run::run;
pub use settings::{AutoVacuum, Existing, Journal, Locking, Op, Settings, Sync};

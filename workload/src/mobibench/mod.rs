// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Mobibench 1.0.8 does (<https://github.com/ESOS-Lab/Mobibench>), by its own options.
//!
//! Of files it is [`run_file`](crate::run_file). Of databases it is told here from its own sources' behaviour: T tables in
//! each of D databases, of which all but the first are attached to the first; a transaction touches one row of every table.

mod database;
mod options;
mod run;

pub use options::Mobibench;
pub use run::run_mobibench;

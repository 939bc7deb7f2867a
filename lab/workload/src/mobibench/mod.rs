// SPDX-License-Identifier: MIT OR Apache-2.0
//! The workloads of Mobibench 1.0.8 (<https://github.com/ESOS-Lab/Mobibench>), by its own options.
//!
//! For files it is [`run_file`](crate::run_file). For databases this module follows the behaviour of Mobibench's
//! sources: there are T tables in each of D databases, all but the first database are attached to the first, and a
//! transaction changes one row of every table.

mod database;
mod options;
mod run;

pub use options::Mobibench;
pub use run::run_mobibench;

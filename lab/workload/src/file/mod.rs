// SPDX-License-Identifier: MIT OR Apache-2.0
//! Workloads that read or write one file per thread, record by record.

mod mapped;
mod order;
mod run;
mod settings;
mod target;

pub use run::run_file;
pub use settings::{FileSettings, Mode, Pattern};

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reading and writing of one file in each thread, record by record.

mod mapped;
mod order;
mod run;
mod settings;
mod target;

pub use run::run_file;
pub use settings::{FileSettings, Mode, Pattern};

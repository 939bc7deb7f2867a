// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes bundles and checks how the program handles them.

mod archive;
mod bytes;
mod drive;
mod family;
mod hostile;
mod judge;
mod limits;
mod manifest;
mod number;
#[path = "../../../../trace/tests/support/random.rs"]
mod random;
mod records;
mod recount;
mod report;
mod snapshot;
mod specimen;
mod verbs;

pub use drive::Drive;

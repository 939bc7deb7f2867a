// SPDX-License-Identifier: MIT OR Apache-2.0
//! What mostrace's tests share: what they need of a machine and what becomes of them where it is not there
//! ([`need`]), loop devices ([`loopdev`]), programs ([`tool`]), waiting ([`wait`]), the seeds of property tests
//! ([`property`]).
//!
//! A test file that needs something is one with `harness = false`, whose `main` lists its tests:
//!
//! ```no_run
//! use test_support::{Need, run, tests};
//!
//! fn a_fresh_volume_has_a_root() {
//!     assert!(test_support::tool::run(test_support::tool::command("mkfs.vfat").arg("--help")).is_empty());
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     run(tests![
//!         a_fresh_volume_has_a_root needs [Need::Tool("mkfs.vfat", "dosfstools")],
//!     ])
//! }
//! ```
#![forbid(unsafe_code)]

pub mod loopdev;
pub mod need;
pub mod property;
pub mod suite;
pub mod tool;
mod tracer;
pub mod wait;

pub use need::Need;
pub use suite::{Test, run, run_one_by_one};

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Support for mostrace's tests: their requirements and what happens where these are not met ([`need`]), loop devices
//! ([`loopdev`]), programs ([`tool`]), waiting ([`wait`]), and the seeds of property tests ([`property`]).
//!
//! A test file with requirements has `harness = false`, and a `main` that lists its tests:
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
pub mod wait;

pub use need::Need;
pub use suite::{Test, run, run_one_by_one};

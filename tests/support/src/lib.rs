// SPDX-License-Identifier: MIT OR Apache-2.0
//! Support for mostrace's tests: their requirements and what happens where these are not met ([`need`]), loop devices
//! ([`loopdev`]), programs ([`tool`]), processes beside a test ([`running`]), buffers of ftrace
//! ([`tracefs`]), other programs' sync() ([`syncs`]), waiting ([`wait`]), and the seeds of property tests ([`property`]).
//!
//! Tests without requirements are modules of a crate's `tests/it`, tests with requirements are modules of its
//! `tests/needs`, which has `harness = false` and a `main` that lists the modules. A module lists its tests:
//!
//! ```no_run
//! mod volumes {
//!     use test_support::{Need, Suite, at_once, tests};
//!
//!     pub fn suite() -> Suite {
//!         at_once(tests![
//!             a_fresh_volume_has_a_root needs [Need::Tool("mkfs.vfat", "dosfstools")],
//!         ])
//!     }
//!
//!     fn a_fresh_volume_has_a_root() {
//!         assert!(test_support::tool::run(test_support::tool::command("mkfs.vfat").arg("--help")).is_empty());
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     test_support::run(test_support::suites![volumes])
//! }
//! ```
#![forbid(unsafe_code)]

pub mod loopdev;
pub mod need;
pub mod property;
pub mod running;
pub mod suite;
pub mod syncs;
pub mod tool;
pub mod tracefs;
pub mod wait;

pub use need::Need;
pub use suite::{Suite, Test, at_once, begin_anew, heard, nothing_lost, one_by_one, run};

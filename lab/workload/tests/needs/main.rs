// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the workloads, most of which need strace or sqlite3.

mod common;

mod bytes;
mod databases;
mod files;
mod replays;
mod syncs;

fn main() -> std::process::ExitCode {
    test_support::run(test_support::suites![
        bytes, databases, files, replays, syncs,
    ])
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of what the tests share, which need root.

mod loopdev;
mod syncs;

fn main() -> std::process::ExitCode {
    test_support::run(test_support::suites![loopdev, syncs])
}

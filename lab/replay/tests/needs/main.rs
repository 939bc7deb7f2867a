// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that need strace.

mod strace;

fn main() -> std::process::ExitCode {
    if let Some(folder) = std::env::var_os(strace::PROGRAM) {
        strace::program(std::path::Path::new(&folder));
        return std::process::ExitCode::SUCCESS;
    }
    test_support::run(test_support::suites![strace,])
}

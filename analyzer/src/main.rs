// SPDX-License-Identifier: MIT OR Apache-2.0
//! The mostrace command.
#![forbid(unsafe_code)]

mod cli;

fn main() -> std::process::ExitCode {
    cli::main()
}

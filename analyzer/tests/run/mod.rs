// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the program.
#![allow(dead_code)] // each test binary uses its own share

use std::process::{Command, Output};

/// Returns the output of a run, which must succeed.
pub fn bytes(args: &[&str]) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_mostrace"))
        .args(args)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    output.stdout
}

/// Returns the output as text.
pub fn mostrace(args: &[&str]) -> String {
    String::from_utf8(bytes(args)).unwrap()
}

/// The result of a command, however it ends.
pub struct Said {
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Runs a command to its end.
pub fn say(command: &mut Command) -> Said {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said {
        status: status.code(),
        out: text(stdout),
        err: text(stderr),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the examples under strace, and queries databases with the sqlite3 command: independent tools check the
//! workloads.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use mostrace_workload::{Outcome, Settings};
use test_support::Need;

/// One system call that succeeded.
#[derive(Debug)]
pub struct Call {
    /// Its name, for example `fsync`.
    pub name: String,
    /// The path of its first argument, a file descriptor.
    pub path: String,
    /// Its return value.
    pub result: u64,
    /// The arguments as strace writes them.
    pub arguments: String,
}

/// Returns the path of an example, which cargo builds beside the tests.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let example = test
        .parent()
        .and_then(Path::parent)
        .unwrap()
        .join("examples")
        .join(name);
    assert!(
        example.is_file(),
        "{}: missing: cargo build --examples",
        example.display()
    );
    example
}

/// The requirements of a test that uses strace.
pub const STRACE: [Need; 2] = [Need::Tool("strace", "strace"), Need::Ptrace];
/// The sqlite3 command.
pub const SQLITE3: Need = Need::Tool("sqlite3", "sqlite3");

/// Parses the outcome that an example printed.
pub fn outcome(output: Output) -> Outcome {
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Runs the workload in a process of its own.
pub fn run(settings: &Settings) -> Outcome {
    outcome(
        Command::new(example("sqlite"))
            .arg(serde_json::to_string(settings).unwrap())
            .output()
            .unwrap(),
    )
}

/// Runs the workload under strace. Returns the calls of a set (for example `fsync,write`) that succeeded, thread after
/// thread.
pub fn run_under_strace(settings: &Settings, set: &str) -> (Outcome, Vec<Call>) {
    let settings = serde_json::to_string(settings).unwrap();
    example_under_strace("sqlite", &settings, set)
}

/// Runs any example under strace, as [`run_under_strace`] does.
pub fn example_under_strace(name: &str, settings: &str, set: &str) -> (Outcome, Vec<Call>) {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("strace")
        // Options for a file per thread, so that no call is split; for paths; and for no data, which could hold
        // anything.
        .args([
            "-ff",
            "-y",
            "-qq",
            "-s",
            "0",
            "-e",
            "signal=none",
            "-e",
            &format!("trace={set}"),
            "-o",
        ])
        .arg(folder.path().join("trace"))
        .arg(example(name))
        .arg(settings)
        .output()
        .unwrap();
    let outcome = outcome(output);
    let mut calls = Vec::new();
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        calls.extend(text.lines().filter_map(call));
    }
    (outcome, calls)
}

/// Parses a line such as `fsync(4</tmp/x.db-journal>)      = 0`.
fn call(line: &str) -> Option<Call> {
    let (name, rest) = line.split_once('(')?;
    let (call, result) = rest.rsplit_once(" = ")?;
    // A call on mapped memory has no path.
    let path = call
        .split_once('<')
        .and_then(|(_, path)| path.split_once('>'));
    let path = path.map_or("", |(path, _)| path);
    let result = result.split(['<', ' ']).next()?;
    Some(Call {
        arguments: call.trim_end().to_owned(),
        name: name.to_owned(),
        path: path.to_owned(),
        result: result.parse().ok()?,
    })
}

/// Returns the output of the sqlite3 command, line by line.
pub fn sqlite3(database: &Path, sql: &str) -> Vec<String> {
    let output = Command::new("sqlite3")
        .arg(database)
        .arg(sql)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && error.is_empty(), "{error}");
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect()
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the program.
#![allow(dead_code)] // each test binary uses its own share

use std::path::Path;
use std::process::{Command, Output};

use mostrace_bundle::blk_io_trace::compact::Compactor;
use mostrace_bundle::blk_io_trace::{Decoded, decode};
use serde_json::Value;

/// The program, without arguments as yet.
pub fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_mostrace"))
}

/// Returns the output of a run, which must succeed.
pub fn bytes(args: &[&str]) -> Vec<u8> {
    let output = program().args(args).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    test_support::heard(&stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    output.stdout
}

/// Returns the output as text.
pub fn mostrace(args: &[&str]) -> String {
    String::from_utf8(bytes(args)).unwrap()
}

/// Returns the output of a run that answers in JSON.
pub fn json(args: &[&str]) -> Value {
    serde_json::from_slice(&bytes(args)).unwrap()
}

/// The path of a recording that comes with the repository.
pub fn sample(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sample-traces");
    format!("{folder}/{name}.most.tar.zst")
}

/// Records a device, or the device below a path; more options and the command can follow.
pub fn record(place: impl AsRef<Path>, out: impl AsRef<Path>) -> Command {
    let mut command = program();
    command.args(["record", "-d"]).arg(place.as_ref());
    command.arg("-o").arg(out.as_ref());
    command
}

/// The result of a command, however it ends.
pub struct Said {
    pub status: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    /// Checks the exit status.
    #[track_caller]
    pub fn ended(self, status: i32) -> Said {
        assert_eq!(self.status, Some(status), "{}{}", self.out, self.err);
        self
    }

    /// Checks that a text is in the output.
    #[track_caller]
    pub fn prints(&self, text: &str) {
        assert!(self.out.contains(text), "{text}: {}", self.out);
    }

    /// Checks that a text is in the messages.
    #[track_caller]
    pub fn complains(&self, text: &str) {
        assert!(self.err.contains(text), "{text}: {}", self.err);
    }
}

/// Runs a command to its end.
pub fn say(command: &mut Command) -> Said {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let [out, err] = [stdout, stderr].map(text);
    test_support::heard(&err);
    Said {
        status: status.code(),
        out,
        err,
    }
}

/// Runs a command, which must succeed.
#[track_caller]
pub fn succeeds(command: &mut Command) -> Said {
    say(command).ended(0)
}

/// Returns a file of blktrace in the compact form.
pub fn compact(mut plain: &[u8]) -> Vec<u8> {
    let (mut compactor, mut out) = (Compactor::default(), Vec::new());
    while let Decoded::Record(_, len) = decode(plain) {
        let (record, rest) = plain.split_at(len);
        compactor.put(record, &mut out);
        plain = rest;
    }
    assert!(plain.is_empty(), "{} bytes are no record", plain.len());
    out
}

/// Writes the events of a bundle as blktrace's files; their names begin with `BASENAME.blktrace.`.
pub fn export_blktrace(bundle: &Path, basename: &Path) {
    let mut export = program();
    export
        .arg("export")
        .arg(bundle)
        .args(["--format", "blktrace", "-o"]);
    succeeds(export.arg(basename));
}

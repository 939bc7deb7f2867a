// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests of the watch on sync().

use std::io::Write;
use std::process::{Command, Stdio};

use test_support::running::Running;
use test_support::{Need, Suite, at_once, syncs, tests, tool};

pub fn suite() -> Suite {
    at_once(tests![
        the_calls_of_others_are_seen needs [Need::Loop, Need::Filesystem("tracefs")],
    ])
}

/// Whom this process starts later is no other.
fn the_calls_of_others_are_seen() {
    let mut other = Command::new("sh");
    other
        .args(["-c", "read go; exec sync"])
        .stdin(Stdio::piped());
    let mut other = Running(other.spawn().unwrap());
    let (own, all) = (syncs::watch(), syncs::watch());
    tool::run(&mut Command::new("sync"));
    let of_sync = |call: &String| call.starts_with("sync-");
    assert!(!own().as_ref().is_some_and(of_sync));
    writeln!(other.0.stdin.take().unwrap(), "go").unwrap();
    assert!(other.0.wait().unwrap().success());
    assert!(all().is_some());
}

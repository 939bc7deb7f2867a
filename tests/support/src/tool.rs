// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that tests run: those that make filesystems, and independent ones that check results.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Returns PATH with the folders of system programs, which a user's PATH may lack.
fn search_path() -> OsString {
    let mut path = env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    path
}

/// Returns the path of a program; None if it is not installed.
pub fn find(name: &str) -> Option<PathBuf> {
    env::split_paths(&search_path())
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Returns a command for a program, without arguments. Its messages are in English and UTF-8, and its standard input is
/// empty.
pub fn command(name: &str) -> Command {
    let mut command = Command::new(name);
    command
        .env("PATH", search_path())
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null());
    command
}

/// Runs a command and returns its standard output; panics with its messages if it fails.
pub fn run(command: &mut Command) -> Vec<u8> {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let printed = String::from_utf8_lossy(&output.stdout);
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{printed}{complaint}",
        output.status
    );
    output.stdout
}

/// Runs a command as [`run`] does and returns its output as text.
pub fn text(command: &mut Command) -> String {
    String::from_utf8_lossy(&run(command)).into_owned()
}

/// Sends a signal, such as `-INT`, to a process, or to a group (`-NUMBER`).
pub fn kill(signal: &str, whom: &str) {
    run(command("kill").args([signal, "--", whom]));
}

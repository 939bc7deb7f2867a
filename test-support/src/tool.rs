// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs that tests run: makers of filesystems, and judges that others wrote.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// PATH with the folders of administrators' programs, which a user's may lack.
fn search_path() -> OsString {
    let mut path = env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    path
}

/// Where a program is.
pub fn find(name: &str) -> Option<PathBuf> {
    env::split_paths(&search_path())
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// A program, to be given its arguments. It speaks English, in UTF-8, and has nothing on its standard input.
pub fn command(name: &str) -> Command {
    let mut command = Command::new(name);
    command
        .env("PATH", search_path())
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null());
    command
}

/// Runs it and returns what it printed; panics with its messages if it fails.
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

/// The same, as text.
pub fn text(command: &mut Command) -> String {
    String::from_utf8_lossy(&run(command)).into_owned()
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Has `recount/answer.py` compute the numbers of a bundle's finding from its rows.

use std::path::Path;
use std::process::Command;

/// Returns how it ended, in one word: `same`, `refused`, `unclear` or `other`. `fault` gets what differs, and the command.
pub fn recount(bundle: &Path, fault: impl FnOnce(String, String)) -> String {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recount/answer.py");
    let words = [
        program.as_path(),
        Path::new(env!("CARGO_BIN_EXE_mostrace")),
        bundle,
    ];
    let done = Command::new("python3").args(words).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    let end = said.split(' ').next().unwrap_or_default().trim().to_owned();
    if end == "other" || !done.status.success() {
        let err = String::from_utf8_lossy(&done.stderr);
        let what = format!("{said}{}", err.lines().last().unwrap_or_default());
        let words = words.map(|word| format!("{word:?}"));
        fault(what, format!("python3 {}", words.join(" ")));
    }
    end
}

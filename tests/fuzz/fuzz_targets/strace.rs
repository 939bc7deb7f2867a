// SPDX-License-Identifier: MIT OR Apache-2.0
//! Two texts of strace. What is read is in order, ends after it begins, and has a start that can be deduced.
#![no_main]

use std::path::PathBuf;

use libfuzzer_sys::fuzz_target;
use mostrace_replay::{Name, Start, StraceSettings, read_strace};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let root = Name::new(b"/r").expect("a path");
    let settings = StraceSettings {
        folder: Some(root.clone()),
        root,
    };
    let parts = text.splitn(2, '\0').zip(["a.1", "a.2"]);
    let texts: Vec<(PathBuf, String)> = parts
        .map(|(text, path)| (path.into(), text.to_owned()))
        .collect();
    let Ok(recorded) = read_strace(&texts, &settings) else {
        return;
    };
    assert!(
        recorded
            .operations
            .is_sorted_by_key(|operation| operation.begin_ns)
    );
    assert!(
        recorded
            .operations
            .iter()
            .all(|operation| operation.begin_ns <= operation.end_ns)
    );
    Start::of(&recorded);
});

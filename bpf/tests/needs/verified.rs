// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel verifies the programs before a recording begins, and the user waits for it.

use std::collections::BTreeMap;
use std::{fs, thread};

use libbpf_rs::query::ProgInfoIter;
use mostrace_capture::Causes;
use test_support::{Need, Suite, one_by_one, tests, wait};

use crate::recorded::{disk, recording};

/// Instructions of one program that the verifier may follow. It takes 0.1 s for 50,000, many times as long in an emulated machine, and
/// refuses a program at a million.
const LIMIT: u32 = 50_000;

pub fn suite() -> Suite {
    one_by_one(tests![
        the_verifier_has_little_to_do needs [Need::Loop, Need::Btf],
    ])
}

/// The instructions that the verifier followed for each program that is loaded, by the program's number, with its name.
fn verified() -> BTreeMap<u32, (String, u32)> {
    let of = |program: libbpf_rs::query::ProgramInfo| {
        let name = program.name.to_string_lossy().into_owned();
        (program.id, (name, program.verified_insns))
    };
    ProgInfoIter::default().map(of).collect()
}

fn the_verifier_has_little_to_do() {
    let disk = disk("", 64, &[]);
    let folder = tempfile::tempdir().unwrap();
    let [is_running, is_seen] = ["running", "seen"].map(|name| folder.path().join(name));
    let script = format!(
        "touch {}; until [ -e {} ]; do sleep 0.1; done",
        is_running.display(),
        is_seen.display()
    );
    let others = verified();
    let ours = thread::scope(|scope| {
        let asked = scope.spawn(|| {
            wait::until("the command runs", || is_running.exists());
            let mut loaded = verified();
            fs::write(&is_seen, "").unwrap();
            loaded.retain(|id, _| !others.contains_key(id));
            loaded
        });
        recording(disk.device(), Causes::Bpf, &script);
        asked.join().unwrap()
    });
    let ours = ours
        .values()
        .filter(|(name, _)| name.starts_with("cause_") || name.starts_with("mostrace_"));
    let (name, most) = ours.max_by_key(|(_, followed)| followed).unwrap();
    assert!((1_000..LIMIT).contains(most), "{name}: {most}");
}

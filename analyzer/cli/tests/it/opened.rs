// SPDX-License-Identifier: MIT OR Apache-2.0
//! How often the tables of a bundle are opened.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::run;

/// The verbs that read rows, each with `BUNDLE` for the sample and `OUT` for a file.
const VERBS: [&str; 11] = [
    "analyze BUNDLE",
    "analyze BUNDLE --full",
    "analyze BUNDLE --json",
    "analyze BUNDLE --tree",
    "analyze BUNDLE --waits",
    "analyze BUNDLE --where bytes>0",
    "check BUNDLE --max-write-bytes 1",
    "events BUNDLE -o OUT.csv",
    "export BUNDLE --format perfetto -o OUT.pftrace",
    "flash BUNDLE --capacity 1GB",
    "report BUNDLE -o OUT.html",
];

#[test]
fn each_table_of_a_bundle_is_opened_once_whatever_the_verb() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample-traces");
    let out = tempfile::tempdir().unwrap();
    let out = out.path().join("out");
    let mut samples = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let sample = entry.unwrap().path();
        if sample.extension().is_none_or(|ending| ending != "zst") {
            continue;
        }
        samples += 1;
        for verb in VERBS {
            let words = verb.split(' ').map(|word| {
                let word = word.replace("BUNDLE", sample.to_str().unwrap());
                word.replace("OUT", out.to_str().unwrap())
            });
            let output = run::program().arg("-vv").args(words).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let opened = said.lines().filter(|line| line.ends_with(": opened"));
            let opened: Vec<&str> = opened.collect();
            let tables: BTreeSet<&str> = opened.iter().copied().collect();
            assert!(tables.len() > 5, "{verb}: {said}");
            assert_eq!(opened.len(), tables.len(), "{verb}: {said}");
        }
    }
    assert!(samples >= 7);
}

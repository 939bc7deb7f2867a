// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks the outputs in README.md and docs/: each `$ mostrace …` there, run in the repository's root, prints the lines
//! below it.
//!
//! A page may shorten. It may leave out lines, and columns of a line; what it shows must be printed, word for word, in that
//! order.

use crate::run;

use run::{program, succeeds};
use std::path::{Path, PathBuf};

/// A command line of a page, and the lines that the page shows of its output.
struct Shown<'a> {
    arguments: Vec<&'a str>,
    lines: Vec<&'a str>,
}

/// Returns the commands of all fenced blocks.
fn shown(readme: &str) -> Vec<Shown<'_>> {
    let mut all: Vec<Shown<'_>> = Vec::new();
    // Outside of a fence, every other part is a block.
    for block in readme.split("\n```").skip(1).step_by(2) {
        let mut in_output = false;
        for line in block.lines().skip(1) {
            if let Some(command) = line.strip_prefix("$ mostrace ") {
                let arguments = command.split_whitespace().collect();
                let lines = Vec::new();
                all.push(Shown { arguments, lines });
                in_output = true;
            } else if in_output && !line.trim().is_empty() {
                all.last_mut().unwrap().lines.push(line);
            }
        }
    }
    all
}

/// Returns true if the printed line has these words in this order.
fn is_part_of(line: &str, printed: &str) -> bool {
    let mut printed = printed.split_whitespace();
    line.split_whitespace()
        .all(|word| printed.any(|other| other == word))
}

/// Returns the first line that is not printed where it should be.
fn first_missing<'a>(lines: &[&'a str], output: &str) -> Option<&'a str> {
    let mut printed = output.lines();
    lines
        .iter()
        .copied()
        .find(|line| !printed.any(|other| is_part_of(line, other)))
}

#[test]
fn what_a_page_shows_is_printed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).unwrap();
    let docs = docs.map(|entry| entry.unwrap().path());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|e| e == "md");
    let pages: Vec<PathBuf> = docs
        .filter(is_page)
        .chain([root.join("README.md")])
        .collect();
    let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap();
    let texts: Vec<String> = pages.iter().map(read).collect();
    let all: Vec<Shown<'_>> = texts.iter().flat_map(|text| shown(text)).collect();
    assert!(all.len() >= 3, "README and docs/ show no output");
    for Shown { arguments, lines } in all {
        let output = succeeds(program().args(&arguments).current_dir(&root)).out;
        assert!(!lines.is_empty(), "{arguments:?}: the page shows nothing");
        if let Some(line) = first_missing(&lines, &output) {
            panic!("{arguments:?} does not print, after the lines before it: {line}\n{output}");
        }
    }
}

#[test]
fn what_is_not_printed_is_found() {
    let readme =
        "Text\n\n```text\n$ mostrace x y\n a  c\n 1  3\n\n 9\n```\n\n```sh\nmostrace z\n```\n";
    let [Shown { arguments, lines }] = &shown(readme)[..] else {
        panic!("one command has an output");
    };
    assert_eq!(
        (&arguments[..], &lines[..]),
        (&["x", "y"][..], &[" a  c", " 1  3", " 9"][..])
    );
    assert_eq!(
        first_missing(lines, " a  b  c\n 0  2  3\n 1  2  3\n 9\n"),
        None
    );
    assert_eq!(first_missing(lines, " a  b  c\n 9\n 1  2  3\n"), Some(" 9"));
    assert_eq!(
        first_missing(lines, " a  b  c\n 3  2  1\n 9\n"),
        Some(" 1  3")
    );
}

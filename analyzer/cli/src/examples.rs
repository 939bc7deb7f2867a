// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that the command line accepts every command that `--help`, README.md or a page of docs/ shows.

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{CommandFactory, Parser};

use super::{Cli, arguments};

/// The blanks that begin a comment after a command of `--help`.
const ASIDE: &str = "   ";

/// Returns the words after `mostrace` as a shell reads the line; of a pipe, the first command's.
fn words(line: &str) -> Vec<String> {
    let script = format!(
        "mostrace() {{ printf '%s\\0' mostrace \"$@\" >&3; }}\nsudo() {{ \"$@\"; }}\nexec 3>&1 >/dev/null\n{line}\n"
    );
    // What the line redirects goes to a folder of its own.
    let folder = tempfile::tempdir().unwrap();
    let mut shell = Command::new("sh");
    // A user who exists everywhere: not every machine that runs tests sets `$USER`.
    shell.env("USER", "root");
    shell.current_dir(&folder).args(["-c", &script]);
    let output = shell.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_terminator('\0').map(str::to_owned).collect()
}

fn is_command(line: &str) -> bool {
    let line = line.trim_start_matches("sudo ");
    line.starts_with("mostrace ")
}

/// Panics if a command is not accepted.
fn check(line: &str, of: &Path) {
    let words = words(line);
    assert!(words.len() > 1, "{}: {line}", of.display());
    // Asking the command itself for help is an error of clap's too.
    if let Err(error) = Cli::try_parse_from(arguments(words.into_iter().map(Into::into).collect()))
        && error.use_stderr()
    {
        panic!("{}: {line}\n{error}", of.display());
    }
}

#[test]
fn help_shows_what_is_taken() {
    let mut cli = Cli::command();
    cli.build();
    let mut checked = 0;
    let mut verbs: Vec<clap::Command> = cli.get_subcommands().cloned().collect();
    while let Some(mut verb) = verbs.pop() {
        verbs.extend(verb.get_subcommands().cloned());
        let help = verb.render_long_help().to_string();
        let lines = help.lines().map(str::trim);
        for line in lines.filter(|line| is_command(line)) {
            let line = line.split(ASIDE).next().unwrap_or(line);
            check(line, Path::new(verb.get_name()));
            checked += 1;
        }
    }
    assert!(checked > 30, "{checked}");
}

#[test]
fn pages_show_what_is_taken() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).unwrap();
    let docs = docs.map(|entry| entry.unwrap().path());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|e| e == "md");
    let mut checked = 0;
    for page in docs.filter(is_page).chain([root.join("README.md")]) {
        let text = std::fs::read_to_string(&page).unwrap();
        for line in shown(&text) {
            check(line, &page);
            checked += 1;
        }
    }
    assert!(checked > 60, "{checked}");
}

/// Returns the commands in shell code blocks and in the cells of tables.
fn shown(page: &str) -> Vec<&str> {
    let mut all = Vec::new();
    for (nth, part) in page.split("```").enumerate() {
        let is_block = nth % 2 == 1;
        if is_block && part.starts_with("sh\n") {
            all.extend(part.lines().filter(|line| is_command(line)));
        } else if !is_block {
            let cells = part.lines().filter(|line| line.starts_with("| "));
            let spans = cells.flat_map(|line| line.split('`').skip(1).step_by(2));
            all.extend(spans.filter(|span| is_command(span)));
        }
    }
    all
}

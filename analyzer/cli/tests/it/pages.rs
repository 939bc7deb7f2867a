// SPDX-License-Identifier: MIT OR Apache-2.0
//! Man pages and completions as `make install` writes them.

use crate::run;

use run::mostrace;

#[test]
fn every_verb_that_is_shown_has_a_man_page_and_is_completed() {
    let tmp = tempfile::tempdir().unwrap();
    mostrace(&["man", "--dir", tmp.path().to_str().unwrap()]);
    let page = |name: &str| std::fs::read_to_string(tmp.path().join(name));
    assert!(page("mostrace.1").unwrap().contains(".SH SUBCOMMANDS"));
    let help = mostrace(&["--help"]);
    let commands = help.split("<COMMAND>").nth(1).unwrap();
    let verbs: Vec<&str> = commands
        .lines()
        .take_while(|line| !line.starts_with("Options"))
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|verb| *verb != "help")
        .collect();
    assert!(verbs.len() >= 15, "{help}");
    for shell in ["bash", "zsh", "fish"] {
        let completions = mostrace(&["completions", shell]);
        for verb in &verbs {
            assert!(completions.contains(verb), "{shell}: {verb}");
        }
    }
    for verb in verbs {
        let text = page(&format!("mostrace-{verb}.1")).unwrap_or_else(|e| panic!("{verb}: {e}"));
        assert!(text.contains(".SH OPTIONS"), "{verb}");
    }
}

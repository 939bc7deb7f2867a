// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--help`: its first page has the verbs in groups, by what one wants to do; what a verb says flows to the terminal's width.

use std::fmt::Write as _;

use clap::Command;
use mostrace_trace::output::Output;

use crate::wrap::wrapped;

/// On a narrower terminal each option's sentence has lines of its own.
const NARROW: usize = 60;

/// The groups, and their verbs in the order in which they are shown. A build without tables lacks some of the verbs, and hides them.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Measure and record",
        &["measure", "record", "top", "ledger", "phone", "doctor"],
    ),
    (
        "Ask a recording",
        &["analyze", "report", "diff", "query", "flash"],
    ),
    ("Hold and replay", &["check", "replay"]),
    (
        "Rows, formats, loads",
        &["events", "export", "import", "map", "workload", "schema"],
    ),
];

/// Replaces the list of verbs by groups.
pub fn grouped(command: Command) -> Command {
    let width = Output::create(None).ok().and_then(|out| out.width());
    let mut text = String::new();
    for (title, verbs) in GROUPS {
        let known = verbs
            .iter()
            .filter_map(|verb| command.find_subcommand(verb))
            .filter(|verb| !verb.is_hide_set());
        let known: Vec<&Command> = known.collect();
        if known.is_empty() {
            continue;
        }
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{title}:");
        for verb in known {
            let about = verb.get_about().map(ToString::to_string);
            let about = about.unwrap_or_default();
            let about = about.lines().next().unwrap_or_default();
            let _ = writeln!(
                text,
                "  {:<11} {}",
                verb.get_name(),
                about.trim_end_matches('.')
            );
        }
        text.push('\n');
    }
    if let Some(width) = width {
        text = wrapped(&text, width);
    }
    let is_narrow = width.is_some_and(|width| width < NARROW);
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}Options:\n{{options}}\n\nmostrace help VERB says more."
    );
    let flowing = |verb| flowing(verb, is_narrow);
    command.help_template(template).mut_subcommands(flowing)
}

/// Lets the sentences of a verb and its own verbs flow; `verbatim_doc_comment` keeps the source's lines, for the examples' sake.
fn flowing(verb: Command, is_narrow: bool) -> Command {
    let text = verb
        .get_long_about()
        .map(|about| joined(&about.to_string()));
    let verb = match text {
        Some(text) => verb.long_about(text),
        None => verb,
    };
    verb.next_line_help(is_narrow)
        .mut_subcommands(|verb| flowing(verb, is_narrow))
}

/// Joins the lines of each paragraph. A line that begins with a blank or a dash, such as an example, stays one of its own.
fn joined(text: &str) -> String {
    let is_own = |line: &str| line.is_empty() || line.starts_with([' ', '-']);
    let mut out = String::new();
    let mut before = "";
    for line in text.lines() {
        match out.is_empty() {
            true => {}
            false if is_own(line) || is_own(before) || before.ends_with(':') => out.push('\n'),
            false => out.push(' '),
        }
        out.push_str(line);
        before = line;
    }
    out
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    #[test]
    fn sentences_flow_and_examples_stay() {
        let source = "One sentence\nends. Another.\n\nExamples:\n  mostrace x\n  mostrace y\n- a point\n- one more";
        let shown = "One sentence ends. Another.\n\nExamples:\n  mostrace x\n  mostrace y\n- a point\n- one more";
        assert_eq!(joined(source), shown);
    }

    #[test]
    fn each_verb_is_in_one_group() {
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        for verb in shown {
            let groups = GROUPS
                .iter()
                .filter(|(_, verbs)| verbs.contains(&verb.get_name()));
            assert_eq!(groups.count(), 1, "{}", verb.get_name());
        }
        let listed: usize = GROUPS.iter().map(|(_, verbs)| verbs.len()).sum();
        let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        assert_eq!(listed, shown.count());
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first page of `--help`: verbs in groups, by what one wants to do.

use std::fmt::Write as _;

use clap::Command;

/// The groups, and their verbs in the order in which they are shown. A build without tables lacks some of the verbs.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Measure and record",
        &["measure", "record", "top", "ledger", "phone", "doctor"],
    ),
    ("Ask a recording", &["analyze", "report", "diff", "query"]),
    ("Hold and replay", &["check", "replay"]),
    (
        "Rows, formats, loads",
        &["events", "export", "import", "map", "workload", "schema"],
    ),
];

/// Replaces the list of verbs by groups.
pub fn grouped(command: Command) -> Command {
    let mut text = String::new();
    for (title, verbs) in GROUPS {
        let known = verbs
            .iter()
            .filter_map(|verb| command.find_subcommand(verb));
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
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}Options:\n{{options}}\n\nmostrace help VERB says more."
    );
    command.help_template(template)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

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

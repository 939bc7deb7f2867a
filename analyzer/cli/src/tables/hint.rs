// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is said about a verb or a column that there is not: the nearest ones, and what lists all.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, Error};
use mostrace_tables::nearest::nearest;

use crate::Cli;

/// Values that are so many are not all printed.
const MANY: usize = 12;

/// Returns a line with the nearest words, for a verb or a column that there is not.
pub fn hint(error: &Error) -> Option<String> {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    match (error.kind(), error.get(ContextKind::ValidValue)) {
        (ErrorKind::InvalidValue, Some(ContextValue::Strings(all))) if all.len() > MANY => {
            let (wrong, option) = (
                word(ContextKind::InvalidValue)?,
                word(ContextKind::InvalidArg)?,
            );
            let near = nearest(wrong, all.iter().map(String::as_str));
            Some(format!(
                "{option}: no column {wrong}{near}; mostrace schema lists all"
            ))
        }
        (ErrorKind::InvalidSubcommand, _) => {
            let wrong = word(ContextKind::InvalidSubcommand)?;
            let (of, command) = upper(&Cli::command());
            let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
            let near = nearest(wrong, verbs.map(Command::get_name));
            Some(format!("no verb {wrong}{near}; {of} --help lists all"))
        }
        _ => None,
    }
}

/// Returns the command, or the verb that has verbs of its own, that the words on the command line begin with; and these words.
fn upper(command: &Command) -> (String, Command) {
    let mut words = std::env::args_os().skip(1);
    let verb = words.find(|word| !word.as_encoded_bytes().starts_with(b"-"));
    let verb = verb.and_then(|verb| command.find_subcommand(verb));
    match verb.filter(|verb| verb.has_subcommands()) {
        Some(verb) => (format!("mostrace {}", verb.get_name()), verb.clone()),
        None => ("mostrace".into(), command.clone()),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides whether a run has a fault.

use std::path::Path;

use mostrace_trace::text::is_deceptive;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::limits::{CPU, MEMORY, Outcome, SIGXCPU, WRITTEN};
use super::verbs::Form;

/// The exit status when limits are exceeded (`check`).
const OVER: i32 = 3;
const PANICKED: i32 = 101;

/// Returns the fault in words that are the same each time; None if there is none.
pub fn fault(outcome: &Outcome, form: Form, scratch: &Path) -> Option<String> {
    let says = ended(outcome, scratch)
        .or_else(|| spent(outcome))
        .or_else(|| left(outcome));
    says.or_else(|| printed(outcome, form))
}

fn ended(outcome: &Outcome, scratch: &Path) -> Option<String> {
    match (outcome.status, outcome.signal) {
        _ if outcome.waited => Some("it does not come to its end".into()),
        (_, Some(SIGXCPU)) => Some(format!("over {} s of CPU time", CPU.as_secs())),
        (_, Some(signal)) => Some(format!(
            "ended by signal {signal}: {}",
            last_line(&outcome.err)
        )),
        (Some(0 | OVER), _) => None,
        (Some(1), _) => error_line(&outcome.err, scratch),
        (Some(PANICKED), _) => Some(panic(&outcome.err)),
        (status, _) => Some(format!("status {status:?}: {}", last_line(&outcome.err))),
    }
}

/// Returns the place and the message of a panic.
fn panic(err: &str) -> String {
    let mut lines = err.lines().skip_while(|line| !line.contains("panicked at"));
    let place = lines
        .next()
        .and_then(|line| line.split("panicked at ").nth(1));
    format!(
        "panic at {} {}",
        place.unwrap_or("?"),
        lines.next().unwrap_or_default()
    )
}

fn last_line(err: &str) -> String {
    without_numbers(err.lines().last().unwrap_or_default())
}

/// Replaces digits, so that faults that differ only in a number are of one kind.
fn without_numbers(text: &str) -> String {
    text.replace(|c: char| c.is_ascii_digit(), "9")
}

/// Beside warnings there must be one line, which names a file.
fn error_line(err: &str, scratch: &Path) -> Option<String> {
    let mut lines = err
        .lines()
        .filter(|line| !line.starts_with("mostrace: warn: "));
    let (line, others) = (lines.next(), lines.count());
    let scratch = scratch.to_str().unwrap();
    match line.and_then(|line| line.strip_prefix("mostrace: ")) {
        _ if others > 0 => Some(format!(
            "{} lines of error: {}",
            others + 1,
            without_numbers(err)
        )),
        Some(line) if line.contains(scratch) => None,
        line => Some(format!(
            "the error names no file: {}",
            without_numbers(line.unwrap_or(err))
        )),
    }
}

fn spent(outcome: &Outcome) -> Option<String> {
    if outcome.memory >= MEMORY {
        return Some("over 1 GiB of memory".into());
    }
    (outcome.written >= WRITTEN).then(|| "over 1 GiB written to files".into())
}

fn left(outcome: &Outcome) -> Option<String> {
    if outcome.left_processes {
        return Some("a process goes on".into());
    }
    (!outcome.left_files.is_empty()).then(|| "temporary files are left".into())
}

fn printed(outcome: &Outcome, form: Form) -> Option<String> {
    if outcome.err.chars().any(deceives) {
        return Some("characters that deceive on stderr".into());
    }
    if form == Form::Other {
        return None;
    }
    let Ok(text) = std::str::from_utf8(&outcome.out) else {
        return Some("what is printed is not UTF-8".into());
    };
    if text.chars().any(deceives) {
        return Some("characters that deceive on stdout".into());
    }
    let is_json = form == Form::Json && outcome.status == Some(0);
    (is_json && serde_json::from_str::<IgnoredAny>(text).is_err())
        .then(|| "what is printed is not JSON".into())
}

fn deceives(c: char) -> bool {
    c != '\n' && is_deceptive(c)
}

/// The bytes of a row. Discards, zeroed ranges and passthrough commands are separate in a table of sums.
#[derive(Deserialize)]
struct Row {
    bytes: u64,
    #[serde(default)]
    discard_bytes: u64,
    #[serde(default)]
    write_zeroes_bytes: u64,
    #[serde(default)]
    other_bytes: u64,
}

/// Returns the sum of the bytes of a JSON table; None if it was not printed.
pub fn sum(outcome: &Outcome) -> Option<u128> {
    let rows: Vec<Row> = serde_json::from_slice(&outcome.out)
        .ok()
        .filter(|_| outcome.status == Some(0))?;
    let bytes = |row: &Row| {
        [
            row.bytes,
            row.discard_bytes,
            row.write_zeroes_bytes,
            row.other_bytes,
        ]
    };
    Some(rows.iter().flat_map(bytes).map(u128::from).sum())
}

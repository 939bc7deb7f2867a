// SPDX-License-Identifier: MIT OR Apache-2.0
//! The short output of `analyze` and `measure`: about ten lines, of which the last suggests the next command.

use mostrace_tables::analysis::Analysis;
use mostrace_tables::facts::Filter;
use mostrace_tables::tables::charged::Charged;
use mostrace_tables::tables::{about, for_the_answer, summary};
use mostrace_trace::answer::{Answer, Destination, percent, size};
use mostrace_trace::sums::Groups;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Number of programs, files and layers that are shown.
const MOST: usize = 6;
/// Number of notes that are shown.
const NOTES: usize = 3;
/// The width for an output that is not a terminal, or a terminal of unknown width.
const WIDTH: usize = 100;
/// A narrower terminal has no bars.
const NARROW: usize = 80;
/// Names are not cut to fewer characters than this.
const SHORTEST: usize = 16;
const BAR: usize = 20;

/// Returns the lines, as wide as the terminal. The analysis must have causes.
///
/// # Errors
/// Returns an error if a temporary file cannot be read or the filter does not fit its columns.
pub fn text(
    analysis: &Analysis,
    filter: Option<&Filter>,
    width: Option<usize>,
    next: &str,
) -> anyhow::Result<String> {
    let groups = for_the_answer(&analysis.facts, filter)?;
    let databases = analysis.databases()?;
    let answer = Answer::of(&groups, analysis.manifest(), &databases);
    let mut lines = analysis.warnings.clone();
    let whole = about::whole(analysis.recordings(), &analysis.warnings);
    match filter {
        None => lines.extend(answer.lines(whole.as_deref())),
        Some(_) => lines.extend(whole.into_iter().chain(answer.certainty)),
    }
    lines.extend(notes(analysis));
    lines.extend(parts(analysis, &groups, width));
    Ok(ended(lines, next))
}

/// Returns the lines about what a command caused, then those about what others wrote meanwhile.
///
/// # Errors
/// Returns an error if a temporary file cannot be read.
pub fn of_command(analysis: &Analysis, width: Option<usize>, next: &str) -> anyhow::Result<String> {
    let charged = Charged::new(&analysis.facts, analysis.manifest())?;
    let groups = charged.for_the_answer(&analysis.facts)?;
    let databases = analysis.databases()?;
    let databases = charged.databases(&analysis.facts, &databases);
    let answer = Answer::of(&groups, analysis.manifest(), &databases);
    let mut lines = analysis.warnings.clone();
    lines.extend(answer.lines(about::whole(analysis.recordings(), &analysis.warnings).as_deref()));
    lines.extend(notes(analysis));
    lines.extend(parts(analysis, &groups, width));
    if let Some(words) = charged.counted.words() {
        lines.extend([String::new(), words]);
    }
    if let Some(others) = charged.of_others(&analysis.facts)? {
        lines.extend(parts(analysis, &others, width));
    }
    Ok(ended(lines, next))
}

fn ended(mut lines: Vec<String>, next: &str) -> String {
    lines.extend([String::new(), format!("next: {next}")]);
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Returns a heading, and a line for each of the largest parts; nothing if nothing was written.
fn parts(analysis: &Analysis, groups: &[Groups], width: Option<usize>) -> Vec<String> {
    let width = width.unwrap_or(WIDTH);
    let destinations = Answer::destinations(groups, analysis.manifest(), MOST);
    if destinations.parts.is_empty() {
        return Vec::new();
    }
    let (bar, head) = match width < NARROW {
        true => (0, "program → file → layer"),
        false => (
            BAR + 1,
            "program → file it worked on → where the bytes went",
        ),
    };
    let mut lines = vec![
        String::new(),
        format!("{:>10}       {:bar$}{head}", "written", ""),
    ];
    let mut is_last = Vec::new();
    for part in &destinations.parts {
        is_last.truncate(part.depth);
        is_last.push(part.is_last);
        lines.push(line(part, &is_last, destinations.total, width));
    }
    lines
}

/// Returns the first notes, and how many more there are.
fn notes(analysis: &Analysis) -> Vec<String> {
    let all = summary::notices(&analysis.facts, &analysis.trace());
    let (shown, more) = all.split_at(all.len().min(NOTES));
    let mut lines: Vec<String> = shown.iter().map(|note| format!("note: {note}")).collect();
    if !more.is_empty() {
        lines.push(format!("note: {} more, with --full", more.len()));
    }
    lines
}

/// Formats a part as `  2.9 MB  49 % ██████████           │  └─ ext4's journal`.
fn line(part: &Destination, is_last: &[bool], total: u64, width: usize) -> String {
    let (of, whole) = (u128::from(part.bytes), u128::from(total.max(1)));
    let filled = usize::try_from((of * BAR as u128).div_ceil(whole)).unwrap_or(BAR);
    let bar = match width < NARROW {
        true => String::new(),
        false => format!("{:<BAR$} ", "█".repeat(filled.min(BAR))),
    };
    let (size, percent) = (size(part.bytes as f64), percent(part.bytes, total));
    let before = format!("{size:>10} {percent:>3} % {bar}{}", branch(is_last));
    let times = match part.processes {
        many @ 2.. if part.depth == 0 => format!(" ({many} processes)"),
        _ => String::new(),
    };
    let room = width.saturating_sub(before.width() + times.width());
    format!("{before}{}{times}", cut(&part.name, room.max(SHORTEST)))
}

/// Returns the branches before a part; `is_last` says for each level above it, and for itself, whether it is the last one.
fn branch(is_last: &[bool]) -> String {
    let Some((own, above)) = is_last.split_last().filter(|(_, above)| !above.is_empty()) else {
        return String::new();
    };
    let passing = above.iter().skip(1);
    let passing = passing.map(|last| if *last { "   " } else { "│  " });
    let own = if *own { "└─ " } else { "├─ " };
    passing.chain([own]).collect()
}

/// Cuts a name to `room` columns. A longer name keeps its end, which distinguishes files in a directory.
fn cut(name: &str, room: usize) -> String {
    if name.width() <= room {
        return name.to_owned();
    }
    let mut left = room.saturating_sub(1);
    let fits = |c: &char| {
        let width = c.width().unwrap_or(0);
        let is_fitting = width <= left;
        left = left.saturating_sub(width);
        is_fitting
    };
    let end: Vec<char> = name.chars().rev().take_while(fits).collect();
    std::iter::once('…').chain(end.into_iter().rev()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(depth: usize, name: &str, is_last: bool) -> Destination {
        Destination {
            depth,
            name: name.into(),
            processes: 3,
            bytes: 500_000,
            is_last,
        }
    }

    #[test]
    fn a_line_has_its_size_its_part_and_its_place() {
        let of = |part: &Destination, is_last: &[bool]| line(part, is_last, 1_000_000, 80);
        assert_eq!(
            of(&part(0, "app", false), &[false]),
            "  500.0 kB  50 % ██████████           app (3 processes)"
        );
        assert_eq!(
            of(&part(2, "ext4's journal", true), &[false, false, true]),
            "  500.0 kB  50 % ██████████           │  └─ ext4's journal"
        );
    }

    #[test]
    fn a_long_name_keeps_its_end_and_the_line_its_width() {
        let path = "/a/folder/".repeat(20) + "app.db-journal";
        let line = line(&part(1, &path, true), &[true, true], 1_000_000, 80);
        assert_eq!(line.width(), 80);
        assert!(line.contains("└─ …") && line.ends_with("/app.db-journal"));
        // A name is not cut further, whatever the terminal's width.
        assert_eq!(cut(&path, SHORTEST).width(), SHORTEST);
        assert_eq!(cut("数据数据", 5), "…数据");
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The short output of `analyze` and `measure`: about ten lines, of which the last suggests the next command.

use mostrace_trace::about;
use mostrace_trace::answer::{Answer, Destination, Destinations, Sums, percent, size};
use mostrace_trace::charged::Charged;
use mostrace_trace::fitting::end;
use mostrace_trace::reading::Reading;
use mostrace_trace::transactions::Database;
use unicode_width::UnicodeWidthStr;

/// Number of programs, files and layers that are shown.
pub const MOST: usize = 6;
/// Number of notes that are shown.
const NOTES: usize = 3;
/// The width for an output that is not a terminal, or a terminal of unknown width.
const WIDTH: usize = 100;
/// A narrower terminal has no bars.
const NARROW: usize = 80;
/// Names are not cut to fewer characters than this.
const SHORTEST: usize = 16;
const BAR: usize = 20;

/// What the lines are made of.
pub struct Brief {
    /// Lines that say what makes the figures incomplete.
    pub warnings: Vec<String>,
    /// The sentence that says that nothing was lost; None if something may be.
    pub whole: Option<String>,
    /// What the trace shows.
    pub answer: Answer,
    /// Where most bytes went.
    pub destinations: Destinations,
    /// Further notices.
    pub notices: Vec<String>,
    /// True if a condition leaves out rows: then the answer is not that of the trace.
    pub is_filtered: bool,
    /// What others than the command or the app wrote; None if that is nothing or not known.
    pub others: Option<Others>,
}

/// What others wrote.
pub struct Others {
    /// A line that says how much it is.
    pub words: String,
    /// Where most of it went; None if nothing is known to be theirs.
    pub destinations: Option<Destinations>,
}

impl Brief {
    /// Returns what was read and summed up, and what processes asked of their files.
    pub fn of(reading: &Reading, sums: &Sums, databases: &[Database]) -> Brief {
        let manifest = reading.manifest.as_ref();
        Brief {
            warnings: reading.warnings.clone(),
            whole: about::whole(&reading.recordings, &reading.warnings),
            answer: Answer::of(sums, manifest, databases),
            destinations: Answer::destinations(sums, manifest, MOST),
            notices: reading.all_notices(),
            is_filtered: false,
            others: None,
        }
    }

    /// Returns what a command or an app caused, and what others wrote meanwhile.
    pub fn of_charged(reading: &Reading, charged: &Charged<'_>) -> Brief {
        let others = charged.of_others();
        let others = others.map(|sums| Answer::destinations(&sums, charged.manifest, MOST));
        Brief {
            others: charged.counted.words().map(|words| Others {
                words,
                destinations: others,
            }),
            ..Brief::of(reading, &charged.sums(), &charged.own_databases())
        }
    }

    /// Returns the lines, as wide as the terminal.
    pub fn text(self, width: Option<usize>, next: &str) -> String {
        let width = width.unwrap_or(WIDTH);
        let mut lines = self.warnings;
        match self.is_filtered {
            false => lines.extend(self.answer.lines(self.whole.as_deref())),
            true => lines.extend(self.whole.into_iter().chain(self.answer.certainty)),
        }
        lines.extend(notes(&self.notices));
        lines.extend(parts(&self.destinations, width));
        if let Some(others) = self.others {
            lines.extend([String::new(), others.words]);
            lines.extend(others.destinations.iter().flat_map(|all| parts(all, width)));
        }
        lines.push(String::new());
        lines.push(format!("next: {next}"));
        lines.into_iter().map(|line| line + "\n").collect()
    }
}

/// Returns a heading, and a line for each of the largest parts; nothing if nothing was written.
fn parts(destinations: &Destinations, width: usize) -> Vec<String> {
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
fn notes(all: &[String]) -> Vec<String> {
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
    format!("…{}", end(name, room.saturating_sub(1)))
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

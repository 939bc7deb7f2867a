// SPDX-License-Identifier: MIT OR Apache-2.0
//! The processes, or several processes of one name, that caused most.

use super::base::{Base, Row};
use super::target::Targets;
use super::{is_part, listed, operations, percent};
use crate::attribute::{HashMap, HashSet, SUBMITTER, program};
use crate::tables::{Groups, Totals};
use crate::tally::{Tally, sum};

/// Number of culprits that are named, and the least share of each, per cent.
const MOST: usize = 3;
const LEAST: u64 = 10;
/// Processes of one name are named one by one if the large ones caused at least this share of what all of that name caused,
/// per cent.
const NEARLY_ALL: u64 = 95;
/// From this share on, per cent, a figure of which the rest has no known cause is as good as exact.
const ALL: u64 = 99;

/// The figure that is summed.
pub(super) type Bytes = fn(&Totals) -> u64;

/// The sums by which the culprits are found.
pub(super) struct Culprits<'a> {
    /// Sums by process, operation and how certain the process is.
    pub processes: &'a Groups,
    /// Sums by process, file, SQLite database and how certain the process is, of the largest only.
    pub files: &'a Groups,
    /// True if the operations of the first culprit are reported.
    pub tells_operations: bool,
}

/// A process, or all processes of one name.
pub(super) struct Culprit<'a> {
    /// Their labels, `name:tgid`.
    pub processes: Vec<&'a str>,
    pub bytes: u64,
}

impl Culprits<'_> {
    /// Returns the figure of the process that caused most; 0 if none is known. Submitters are not causers.
    pub fn most(&self, of: Bytes) -> u64 {
        let known = self.known(of);
        let mut causers = known.iter().filter(|(name, _)| !name.ends_with(SUBMITTER));
        causers.next().map_or(0, |(_, bytes)| *bytes)
    }

    /// Returns `, 85 % by dd:17 for /film and 10 % by 3 processes called sh`; nothing if no process is known.
    pub fn words(&self, whole: u64, of: Bytes) -> String {
        let known = self.known(of);
        let named = named(&known, whole);
        let unknown = whole.saturating_sub(known.iter().map(|(_, bytes)| bytes).sum());
        let mut words: Vec<String> = named
            .iter()
            .map(|culprit| self.of_culprit(culprit, whole, of))
            .collect();
        if let Some(first) = words.first_mut() {
            *first += &self.operations_of(named.first(), of);
        }
        if words.is_empty() && known.len() > 1 {
            words.push(format!(
                "by {} processes, none with {LEAST} % of it",
                known.len()
            ));
        }
        if !words.is_empty() && is_part(unknown, whole, LEAST) {
            words.push(format!(
                "{} % by nobody known for certain",
                percent(unknown, whole)
            ));
        }
        match words.is_empty() {
            true => String::new(),
            false => format!(", {}", listed(&words)),
        }
    }

    /// Returns the culprits that are named for what was written.
    pub fn writers(&self, written: u64) -> Vec<Culprit<'_>> {
        named(&self.known(|t| t.write_bytes), written)
    }

    /// Returns the words for the first writer's operations.
    pub fn operations(&self, written: u64) -> String {
        self.operations_of(self.writers(written).first(), |t| t.write_bytes)
    }

    fn operations_of(&self, culprit: Option<&Culprit<'_>>, of: Bytes) -> String {
        let told = culprit.filter(|_| self.tells_operations);
        told.map_or(String::new(), |culprit| {
            operations::words(self.rows(of), culprit, of)
        })
    }

    fn of_culprit(&self, culprit: &Culprit<'_>, whole: u64, of: Bytes) -> String {
        let percent = percent(culprit.bytes, whole);
        let files = Base::of(self.processes, of).rows(self.files);
        let target = Targets::new(files, &culprit.processes, of).words(culprit.bytes);
        format!("{percent} % by {}{target}", culprit.name())
    }

    /// Returns the base of what is said about writing.
    pub fn base(&self) -> Base {
        Base::of(self.processes, |t| t.write_bytes)
    }

    /// Returns the sums by process and operation that count for a figure.
    pub fn rows(&self, of: Bytes) -> impl Iterator<Item = Row<'_>> {
        Base::of(self.processes, of).rows(self.processes)
    }

    /// Returns `at least `, to precede a process's figure if the cause of a part is not in the base; else nothing.
    pub fn at_least(&self, of: Bytes) -> &'static str {
        let rows = self.rows(|t| t.write_bytes);
        let caused = rows.filter(|row| !row.process.ends_with(SUBMITTER));
        let caused = sum(caused.map(|row| of(row.totals)));
        match is_part(caused, of(&self.processes.total), ALL) {
            true => "",
            false => "at least ",
        }
    }

    /// Returns the processes with the figures of what they caused, the largest first.
    fn known(&self, of: Bytes) -> Vec<(&str, u64)> {
        let mut by_process: HashMap<&str, u64> = HashMap::default();
        for row in self.rows(of) {
            let sum = by_process.entry(row.process).or_default();
            sum.tally(of(row.totals));
        }
        let sums = by_process.into_iter();
        let mut sums: Vec<(&str, u64)> = sums.filter(|(_, bytes)| *bytes > 0).collect();
        sums.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
        sums
    }
}

/// Returns the culprits that are large enough to be named; `known` is sorted by bytes.
fn named<'a>(known: &[(&'a str, u64)], whole: u64) -> Vec<Culprit<'a>> {
    let mut names: Vec<Vec<(&str, u64)>> = Vec::new();
    let mut places = HashMap::default();
    for &(process, bytes) in known {
        let place = *places.entry(program(process)).or_insert(names.len());
        if place == names.len() {
            names.push(Vec::new());
        }
        names[place].push((process, bytes));
    }
    let culprits = names.iter().flat_map(|of_name| told_apart(of_name, whole));
    let mut culprits: Vec<Culprit<'_>> = culprits
        .filter(|culprit| is_part(culprit.bytes, whole, LEAST))
        .collect();
    culprits.sort_by_key(|culprit| std::cmp::Reverse(culprit.bytes));
    culprits.truncate(MOST);
    culprits
}

/// Returns the processes of one name, one by one or all as one.
fn told_apart<'a>(of_name: &[(&'a str, u64)], whole: u64) -> Vec<Culprit<'a>> {
    let sum = |of: &[(&str, u64)]| of.iter().map(|(_, bytes)| bytes).sum();
    let large = of_name.partition_point(|(_, bytes)| is_part(*bytes, whole, LEAST));
    let large = &of_name[..large.min(MOST)];
    let all: u64 = sum(of_name);
    match is_part(sum(large), all, NEARLY_ALL) {
        true => large
            .iter()
            .map(|&(process, bytes)| Culprit {
                processes: vec![process],
                bytes,
            })
            .collect(),
        false => vec![Culprit {
            processes: of_name.iter().map(|(process, _)| *process).collect(),
            bytes: all,
        }],
    }
}

impl Culprit<'_> {
    /// Returns its processes' labels, in which rows are looked up.
    pub fn labels(&self) -> HashSet<&str> {
        self.processes.iter().copied().collect()
    }

    /// Returns the name that all of them share.
    pub fn short_name(&self) -> &str {
        self.processes
            .first()
            .map_or("", |process| program(process))
    }

    fn name(&self) -> String {
        match self.processes[..] {
            [one] => one.to_owned(),
            [] => String::new(),
            [first, ..] => format!(
                "{} processes called {}",
                crate::text::grouped(self.processes.len() as u64),
                program(first)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Label;

    fn sums(rows: impl Iterator<Item = (Vec<Label>, u64)>) -> Groups {
        let totals = |write_bytes| Totals {
            write_bytes,
            ..Totals::default()
        };
        let mut sums = Groups::default();
        sums.groups = rows
            .map(|(labels, bytes)| (labels, totals(bytes)))
            .collect();
        sums
    }

    /// Returns the words for rows of process, file and bytes written.
    fn by(rows: &[(&str, &str, u64)]) -> String {
        let label = |word: &str| match word {
            "" => Label::Empty,
            word => Label::Text(word.to_owned()),
        };
        let processes = rows.iter();
        let processes =
            processes.map(|(p, _, bytes)| (vec![label(p), label("write"), label("exact")], *bytes));
        let processes = sums(processes);
        let files = rows.iter().map(|(p, f, bytes)| {
            (
                vec![label(p), label(f), Label::Empty, label("exact")],
                *bytes,
            )
        });
        let culprits = Culprits {
            processes: &processes,
            files: &sums(files),
            tells_operations: false,
        };
        let whole = rows.iter().map(|(.., bytes)| bytes).sum();
        culprits.words(whole, |t| t.write_bytes)
    }

    #[test]
    fn processes_of_one_name_are_one_where_each_is_small() {
        let many: Vec<String> = (1..=20).map(|pid| format!("sh:{pid}")).collect();
        let mut rows: Vec<_> = many
            .iter()
            .map(|name| (name.as_str(), "/x/f", 40))
            .collect();
        rows.push(("cp:30", "/y", 200));
        assert_eq!(
            by(&rows),
            ", 80 % by 20 processes called sh for /x/f and 20 % by cp:30 for /y"
        );
        // Two large processes are named one by one, unless others of that name wrote much.
        let two = [("sh:1", "/a", 600), ("sh:2", "/b", 380), ("sh:3", "/c", 20)];
        assert_eq!(by(&two), ", 60 % by sh:1 for /a and 38 % by sh:2 for /b");
        let three = [("sh:1", "/a", 600), ("sh:2", "/b", 340), ("sh:3", "/c", 60)];
        assert_eq!(by(&three), ", 100 % by 3 processes called sh mostly for /a");
    }

    #[test]
    fn where_none_is_large_it_is_said_how_many_there_are() {
        let names: Vec<String> = (1..=20).map(|pid| format!("p{pid}:{pid}")).collect();
        let rows: Vec<_> = names.iter().map(|name| (name.as_str(), "/f", 50)).collect();
        assert_eq!(by(&rows), ", by 20 processes, none with 10 % of it");
    }

    /// Bytes that others may have changed too count only if nobody else caused much.
    #[test]
    fn what_is_not_certain_counts_if_one_process_caused_nearly_all() {
        let said = |other: u64| {
            let row = |process: &str, known: &str, bytes| {
                let labels = [process, "write", known].map(|word| Label::Text(word.to_owned()));
                (labels.to_vec(), bytes)
            };
            let rows = [
                row("app:7", "exact", 500),
                row("app:7", "first", 450),
                row("cp:8", "exact", other),
            ];
            let culprits = Culprits {
                processes: &sums(rows.into_iter()),
                files: &Groups::default(),
                tells_operations: false,
            };
            culprits.words(950 + other, |t| t.write_bytes)
        };
        assert_eq!(said(50), ", 95 % by app:7");
        assert_eq!(
            said(150),
            ", 45 % by app:7, 14 % by cp:8 and 41 % by nobody known for certain"
        );
    }

    /// The share, the file and the operations are of the same bytes, whatever else is likely.
    #[test]
    fn all_parts_have_one_base() {
        let row = |labels: [&str; 4], bytes| {
            let label = |word: &str| match word {
                "" => Label::Empty,
                word => Label::Text(word.to_owned()),
            };
            let [process, _, _, known] = labels.map(label);
            let [_, op, file, _] = labels.map(label);
            let by_process = (vec![process.clone(), op, known.clone()], bytes);
            (
                by_process,
                (vec![process, file, Label::Empty, known], bytes),
            )
        };
        let rows = [
            row(["vim:7", "unlink", "/a~", "exact"], 28),
            row(["vim:7", "write", "/a", "exact"], 72),
            row(["vim:7", "unlink", "/a~", "first"], 102),
            row(["sh:8", "write", "/b", "exact"], 98),
        ];
        let (processes, files): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        let culprits = Culprits {
            processes: &sums(processes.into_iter()),
            files: &sums(files.into_iter()),
            tells_operations: true,
        };
        assert_eq!(
            culprits.words(300, |t| t.write_bytes),
            ", 33 % by vim:7 mostly for /a (write 72 bytes, unlink 28 bytes), 33 % by sh:8 for /b and 34 % by nobody known for \
             certain"
        );
    }

    #[test]
    fn what_nobody_is_known_for_is_said_where_it_is_much() {
        let app = ("app:7", "/f", 900);
        assert_eq!(
            by(&[app, ("", "", 100)]),
            ", 90 % by app:7 for /f and 10 % by nobody known for certain"
        );
        assert_eq!(by(&[app, ("", "", 99)]), ", 90 % by app:7 for /f");
        assert_eq!(by(&[("", "", 99)]), "");
    }
}

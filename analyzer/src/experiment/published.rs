// SPDX-License-Identifier: MIT OR Apache-2.0
//! What others have found, and what is expected here, held against what was measured.

use std::collections::BTreeMap;

use serde::Deserialize;
use strum::{Display, EnumString};

use super::summary::Summary;
use super::{Cell, Definition, Results};

/// A figure that can be claimed of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Display, EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Figure {
    /// Calls for durability for each transaction.
    Syncs,
    /// Requests that wrote, for each transaction.
    Writes,
    /// Bytes written for each transaction.
    WriteBytes,
    /// Bytes passed to write() for each transaction.
    CalledBytes,
    /// Cache flushes for each transaction.
    Flushes,
    /// Bytes written for each byte stored.
    Amplification,
    /// The journal's part of the bytes written, per cent.
    JournalPercent,
    /// The part of the requests that wrote to the journal, per cent.
    JournalWritesPercent,
    /// The metadata's part of the bytes written.
    MetadataPercent,
    /// That of data, of whatever role.
    DataPercent,
    /// The database's.
    DbPercent,
    /// That of all journaling: the filesystem's, and SQLite's.
    JournalingPercent,
    /// Transactions, or operations, in a second.
    PerSecond,
}

impl Figure {
    /// What it is counted in.
    pub fn unit(self) -> &'static str {
        match self {
            Figure::Syncs => "calls for durability a transaction",
            Figure::Writes => "write requests a transaction",
            Figure::WriteBytes => "bytes written a transaction",
            Figure::CalledBytes => "bytes passed to write() a transaction",
            Figure::Flushes => "cache flushes a transaction",
            Figure::Amplification => "bytes written a byte stored",
            Figure::JournalWritesPercent => "% of write requests",
            Figure::JournalPercent
            | Figure::MetadataPercent
            | Figure::DataPercent
            | Figure::DbPercent
            | Figure::JournalingPercent => "% of bytes written",
            Figure::PerSecond => "transactions a second",
        }
    }
}

/// Whose claim it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Display)]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    /// Others have published it.
    #[default]
    Published,
    /// It is expected here: seen by another tool, or said without a figure.
    Ours,
}

/// What somebody has found.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Whose it is: that of `[[published]]` or of `[[ours]]`.
    #[serde(skip)]
    pub kind: Kind,
    /// Of the cells with these values.
    #[serde(rename = "where", default)]
    pub at: BTreeMap<String, String>,
    /// What.
    pub figure: Figure,
    /// How much of it; for each transaction, where the figure is.
    #[serde(default)]
    pub value: Option<f64>,
    /// Or at least that much.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// Or at most.
    #[serde(default)]
    pub at_most: Option<f64>,
    /// Of a figure for each transaction: what comes once in a run, beside. Ours is told without it.
    #[serde(default)]
    pub besides: f64,
    /// By how much ours may differ and yet agree, per cent of it.
    #[serde(default)]
    pub tolerance_percent: f64,
    /// Divided by the same figure of the cells with these other values: a claim on a ratio.
    #[serde(default)]
    pub to: Option<BTreeMap<String, String>>,
    /// Who says so, and where.
    pub source: String,
    /// Other values of `[fixed]`: the cell is measured with these too, and shows whether what they change is why ours differs.
    #[serde(default)]
    pub control: BTreeMap<String, String>,
    /// What the control cell shows, if its figure agrees.
    #[serde(default)]
    pub why: String,
}

/// A claim on one cell, and what was measured.
#[derive(Clone, Debug)]
pub struct Verdict<'d> {
    /// The claim.
    pub claim: &'d Claim,
    /// The cell.
    pub cell: &'d Cell,
    /// What was measured, in the claim's own terms.
    pub ours: f64,
    /// The same of the control cell, if there is one that was measured.
    pub control: Option<f64>,
}

impl<'d> Verdict<'d> {
    /// Whether they agree.
    pub fn agrees(&self) -> bool {
        self.claim.agrees(self.ours)
    }

    /// Why they differ, if they do: a reason is known where the control cell agrees.
    pub fn why(&self) -> Option<&'d str> {
        let is_shown = self.control.is_some_and(|ours| self.claim.agrees(ours));
        match (self.agrees(), is_shown) {
            (true, _) => None,
            (false, true) => Some(&self.claim.why),
            (false, false) => Some("not known"),
        }
    }
}

/// Holds every claim against every cell that it is on and that was measured.
pub fn judge<'d>(definition: &'d Definition, results: &Results) -> Vec<Verdict<'d>> {
    let mut verdicts = Vec::new();
    for claim in &definition.claims {
        let in_matrix = definition.cells.iter().filter(|cell| !cell.is_control());
        for cell in in_matrix.filter(|cell| cell.is(&claim.at)) {
            let Some(ours) = ours(claim, cell, definition, results) else {
                continue;
            };
            let control = definition.control_of(claim, cell);
            verdicts.push(Verdict {
                claim,
                cell,
                ours,
                control: control.and_then(|cell| self::ours(claim, cell, definition, results)),
            });
        }
    }
    verdicts
}

fn ours(claim: &Claim, cell: &Cell, definition: &Definition, results: &Results) -> Option<f64> {
    let figure = |cell| Summary::of(cell, results)?.figure(claim.figure, claim.besides);
    let own = figure(cell)?;
    let Some(to) = &claim.to else {
        return Some(own);
    };
    let other = figure(definition.beside(cell, to)?)?;
    (other > 0.0).then(|| own / other)
}

/// How many claims agree in all of their cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Those that do.
    pub agree: usize,
    /// Those that were held against anything.
    pub all: usize,
}

impl Tally {
    /// Of the claims of a kind: one is one, on however many cells.
    pub fn of(kind: Kind, verdicts: &[Verdict<'_>]) -> Tally {
        let claims = verdicts.chunk_by(|a, b| std::ptr::eq(a.claim, b.claim));
        let of_kind = claims.filter(|claim| claim[0].claim.kind == kind);
        of_kind.fold(Tally::default(), |tally, cells| Tally {
            agree: tally.agree + usize::from(cells.iter().all(Verdict::agrees)),
            all: tally.all + 1,
        })
    }
}

/// Figures are quotients of whole numbers: what differs by less than this is the same.
const ROUNDING: f64 = 1e-9;

impl Claim {
    fn agrees(&self, ours: f64) -> bool {
        let slack = |value: f64| value.abs() * self.tolerance_percent / 100.0 + ROUNDING;
        let is = self
            .value
            .is_none_or(|value| (ours - value).abs() <= slack(value));
        let least = self
            .at_least
            .is_none_or(|value| ours >= value - slack(value));
        let most = self
            .at_most
            .is_none_or(|value| ours <= value + slack(value));
        is && least && most
    }

    /// What is wrong with it, if anything is. `fixed` are the values that a control cell can have others of.
    pub(super) fn check(
        &self,
        parameters: &[String],
        fixed: &BTreeMap<String, String>,
    ) -> Result<(), String> {
        let to = self.to.iter().flat_map(BTreeMap::keys);
        if let Some(name) = self.at.keys().chain(to).find(|n| !parameters.contains(n)) {
            return Err(format!("published: `{name}` is no parameter of the matrix"));
        }
        if let Some(name) = self.control.keys().find(|n| !fixed.contains_key(*n)) {
            return Err(format!("published: control: `{name}` is not in [fixed]"));
        }
        if [self.value, self.at_least, self.at_most] == [None; 3] {
            return Err(format!("published: {}: nothing is claimed", self.figure));
        }
        match self.why.is_empty() == self.control.is_empty() {
            true => Ok(()),
            false => Err(
                "published: a reason needs a control cell that shows it, and that a reason".into(),
            ),
        }
    }

    /// In words, as `4`, `at least 11`, `1 and 7 in each run`.
    pub fn words(&self) -> String {
        let number = |n: f64| match n.fract() == 0.0 {
            true => format!("{n:.0}"),
            false => format!("{n}"),
        };
        let parts = [
            ("", self.value),
            ("at least ", self.at_least),
            ("at most ", self.at_most),
        ];
        let parts = parts
            .into_iter()
            .filter_map(|(word, value)| Some(format!("{word}{}", number(value?))));
        let mut words = parts.collect::<Vec<_>>().join(", ");
        if self.besides > 0.0 {
            words.push_str(&format!(" and {} in each run", number(self.besides)));
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Figures;

    const FILE: &str = "name = 'n'\ncommand = 'app {a} {b}'\n[fixed]\nb = '1'\n[matrix]\na = ['x', 'y']\n\
        [[published]]\nfigure = 'writes'\nvalue = 10\ntolerance_percent = 10\nsource = 's'\n\
        control = { b = '2' }\nwhy = 'because'\n\
        [[published]]\nwhere = { a = 'x' }\nfigure = 'journal_writes_percent'\nat_least = 50\nsource = 's'\n\
        [[ours]]\nwhere = { a = 'y' }\nfigure = 'writes'\nat_most = 30\nbesides = 2\nsource = 's'\n";

    fn measured(counts: &[u64]) -> (Definition, Results, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("n.toml");
        std::fs::write(&file, FILE).unwrap();
        let definition = Definition::read(&file).unwrap();
        let mut results = Results::open(&file.with_extension("jsonl"), &definition).unwrap();
        for (cell, &writes) in definition.cells.iter().zip(counts) {
            let figures = Figures {
                transactions: 1,
                writes,
                journal_writes: Some(6),
                ..Figures::default()
            };
            results.add(cell, figures).unwrap();
        }
        (definition, results, folder)
    }

    #[test]
    fn a_reason_is_told_where_the_control_cell_shows_it() {
        // The matrix' x and y, and their control cells.
        let (definition, results, _folder) = measured(&[11, 20, 99, 9]);
        let verdicts = judge(&definition, &results);
        let told: Vec<_> = verdicts
            .iter()
            .map(|v| (v.cell.key(), v.agrees(), v.control, v.why()))
            .collect();
        let all = [
            ("a=x".to_owned(), true, Some(99.0), None),
            ("a=y".to_owned(), false, Some(9.0), Some("because")),
            ("a=x".to_owned(), true, None, None),
            ("a=y".to_owned(), true, None, None),
        ];
        assert_eq!(told, all);
        let words: Vec<String> = verdicts.iter().map(|v| v.claim.words()).collect();
        let claimed = ["10", "10", "at least 50", "at most 30 and 2 in each run"];
        assert_eq!(words, claimed);
        let (definition, results, _folder) = measured(&[11, 20, 9, 99]);
        assert_eq!(judge(&definition, &results)[1].why(), Some("not known"));
        let (definition, results, _folder) = measured(&[11, 20]);
        assert_eq!(judge(&definition, &results)[1].why(), Some("not known"));
    }

    #[test]
    fn claims_are_counted_by_whose_they_are_and_once_each() {
        let (definition, results, _folder) = measured(&[11, 20, 99, 9]);
        let verdicts = judge(&definition, &results);
        let tally = |kind| {
            let Tally { agree, all } = Tally::of(kind, &verdicts);
            (agree, all)
        };
        assert_eq!(
            tally(Kind::Published),
            (1, 2),
            "one of its two cells differs"
        );
        assert_eq!(tally(Kind::Ours), (1, 1));
    }
}

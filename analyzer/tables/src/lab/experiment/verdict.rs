// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares claims with measurements.

use super::summary::Summary;
use super::{Cell, Claim, Definition, Kind, Results};

/// A claim about one cell, and the measured figure.
#[derive(Clone, Debug)]
pub struct Verdict<'d> {
    /// The claim.
    pub claim: &'d Claim,
    /// The cell.
    pub cell: &'d Cell,
    /// The measured figure, in the claim's own unit.
    pub ours: f64,
    /// The figure of the control cell, if there is one that was measured.
    pub control: Option<f64>,
}

impl<'d> Verdict<'d> {
    /// Returns true if they agree.
    pub fn agrees(&self) -> bool {
        self.claim.agrees(self.ours)
    }

    /// Returns why they differ, if they do: the claim's explanation if the control cell agrees.
    pub fn why(&self) -> Option<&'d str> {
        let is_shown = self.control.is_some_and(|ours| self.claim.agrees(ours));
        match (self.agrees(), is_shown) {
            (true, _) => None,
            (false, true) => Some(&self.claim.why),
            (false, false) => Some("not known"),
        }
    }
}

/// Compares every claim with every measured cell of the matrix that it is about.
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

/// The number of claims that agree in all of their cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of claims that agree.
    pub agree: usize,
    /// Number of claims that were compared.
    pub all: usize,
}

impl Tally {
    /// Counts the claims of a kind; a claim counts once, however many cells it is about.
    pub fn of(kind: Kind, verdicts: &[Verdict<'_>]) -> Tally {
        let claims = verdicts.chunk_by(|a, b| std::ptr::eq(a.claim, b.claim));
        let of_kind = claims.filter(|claim| claim[0].claim.kind == kind);
        of_kind.fold(Tally::default(), |tally, cells| Tally {
            agree: tally.agree + usize::from(cells.iter().all(Verdict::agrees)),
            all: tally.all + 1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::experiment::Figures;

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
        // The cells are x and y of the matrix, and their control cells.
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

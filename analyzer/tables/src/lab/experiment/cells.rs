// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cells of a matrix.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A command: a list of words, or a text that is split at spaces after it was filled in. `{name}` stands for a parameter's
/// value; a word that becomes empty is dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Words {
    /// A list of words.
    List(Vec<String>),
    /// A text.
    Text(String),
}

impl Words {
    fn words(&self) -> Vec<&str> {
        match self {
            Words::List(words) => words.iter().map(String::as_str).collect(),
            Words::Text(text) => text.split_whitespace().collect(),
        }
    }

    /// Returns the parameters that it names.
    pub(super) fn parameters(&self) -> Vec<String> {
        let mut names = Vec::new();
        for word in self.words() {
            let mut rest = word;
            while let Some((_, after)) = rest.split_once('{') {
                let Some((name, after)) = after.split_once('}') else {
                    break;
                };
                names.push(name.to_owned());
                rest = after;
            }
        }
        names
    }

    /// Returns the words with the parameters' values filled in.
    fn filled(&self, values: &BTreeMap<String, String>) -> Vec<String> {
        let fill = |text: &String| {
            let replace = |text: String, (name, value): (&String, &String)| {
                text.replace(&format!("{{{name}}}"), value)
            };
            values.iter().fold(text.clone(), replace)
        };
        match self {
            Words::Text(text) => {
                let filled = fill(text);
                filled.split_whitespace().map(str::to_owned).collect()
            }
            Words::List(words) => {
                let filled = words.iter().map(fill);
                filled.filter(|word| !word.is_empty()).collect()
            }
        }
    }
}

/// One combination of the parameters' values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The parameters of the matrix and their values, in the matrix's order.
    pub parameters: Vec<(String, String)>,
    /// The values in which a control cell differs from `[fixed]`; empty for other cells.
    pub control: Vec<(String, String)>,
    /// The filesystem's settings under the names of `measure`'s options: `filesystem`, `mkfs`, `mount_options`, `size`,
    /// `scheduler`, `max_sectors_kb`.
    pub filesystem: BTreeMap<String, String>,
    /// The command that is run before.
    pub before: Option<Vec<String>>,
    /// The command that is measured.
    pub command: Vec<String>,
}

impl Cell {
    /// Returns its parameters in one line, which is unique among cells.
    pub fn key(&self) -> String {
        key(self.parameters.iter().chain(&self.control))
    }

    /// Returns the values in which a control cell differs from the cell of the matrix beside it.
    pub fn control_key(&self) -> String {
        key(&self.control)
    }

    /// Returns true for a control cell: it is not part of the matrix, but shows why a cell of the matrix differs from a
    /// claim.
    pub fn is_control(&self) -> bool {
        !self.control.is_empty()
    }

    /// Returns the value of a parameter of the matrix.
    pub fn value(&self, parameter: &str) -> Option<&str> {
        let mut parameters = self.parameters.iter();
        parameters.find_map(|(name, value)| (name == parameter).then_some(value.as_str()))
    }

    /// Returns true if it has all of these values.
    pub fn is(&self, values: &BTreeMap<String, String>) -> bool {
        values
            .iter()
            .all(|(name, value)| self.value(name) == Some(value.as_str()))
    }
}

fn key<'w>(words: impl IntoIterator<Item = &'w (String, String)>) -> String {
    let words = words.into_iter();
    let words = words.map(|(name, value)| format!("{name}={value}"));
    words.collect::<Vec<_>>().join(" ")
}

/// The parts from which all cells are made.
pub(super) struct Template {
    pub(super) fixed: BTreeMap<String, String>,
    pub(super) command: Words,
    pub(super) before: Option<Words>,
}

impl Template {
    /// Returns all combinations except the given ones.
    pub(super) fn cells(
        &self,
        matrix: &[(String, Vec<String>)],
        except: &[BTreeMap<String, String>],
    ) -> Vec<Cell> {
        let mut combinations: Vec<Vec<(String, String)>> = vec![Vec::new()];
        for (name, values) in matrix {
            let with = |combination: Vec<(String, String)>| {
                let with = |value: &String| {
                    let one = (name.clone(), value.clone());
                    combination.iter().cloned().chain([one]).collect()
                };
                values.iter().map(with).collect::<Vec<_>>()
            };
            combinations = combinations.into_iter().flat_map(with).collect();
        }
        let cells = combinations.into_iter();
        let cells = cells.map(|parameters| self.cell(parameters, Vec::new()));
        cells
            .filter(|cell| !except.iter().any(|values| cell.is(values)))
            .collect()
    }

    /// Returns the control cell of `cell` with other fixed values.
    pub(super) fn control(&self, cell: &Cell, control: &BTreeMap<String, String>) -> Cell {
        let control = control.iter().map(|(n, v)| (n.clone(), v.clone()));
        self.cell(cell.parameters.clone(), control.collect())
    }

    fn cell(&self, parameters: Vec<(String, String)>, control: Vec<(String, String)>) -> Cell {
        let mut values = self.fixed.clone();
        values.extend(parameters.iter().chain(&control).cloned());
        let of_it = |(name, _): &(&String, &String)| {
            super::definition::OF_THE_FILESYSTEM.contains(&name.as_str())
        };
        let filesystem = values.iter().filter(of_it);
        Cell {
            filesystem: filesystem.map(|(n, v)| (n.clone(), v.clone())).collect(),
            before: self.before.as_ref().map(|words| words.filled(&values)),
            command: self.command.filled(&values),
            parameters,
            control,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_are_filled_and_empty_ones_go() {
        let values = [("a", "1 2"), ("b", "")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        let filled = |words: Words| words.filled(&values.clone().into());
        assert_eq!(
            filled(Words::Text("x {a} --b={b} {b}".into())),
            ["x", "1", "2", "--b="]
        );
        assert_eq!(
            filled(Words::List(vec!["sh -c".into(), "{a}".into()])),
            ["sh -c", "1 2"]
        );
        assert_eq!(Words::Text("{a}{b} {".into()).parameters(), ["a", "b"]);
    }

    proptest! {
        #[test]
        fn there_are_as_many_cells_as_combinations(sizes in proptest::collection::vec(1_usize..4, 0..4)) {
            let values = |n: usize| (0..n).map(|v| v.to_string()).collect();
            let matrix: Vec<(String, Vec<String>)> =
                sizes.iter().enumerate().map(|(at, n)| (format!("p{at}"), values(*n))).collect();
            let template =
                Template { fixed: BTreeMap::new(), command: Words::Text("x".into()), before: None };
            let cells = template.cells(&matrix, &[]);
            let keys: std::collections::BTreeSet<String> = cells.iter().map(Cell::key).collect();
            prop_assert_eq!(keys.len(), sizes.iter().product::<usize>());
            prop_assert_eq!(cells.len(), keys.len());
        }
    }
}

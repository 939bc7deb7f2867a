// SPDX-License-Identifier: MIT OR Apache-2.0
//! The definition of an experiment, read from a file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::cells::{Cell, Template, Words};
use super::{Claim, Kind, Per, Repeat};

/// The parameters that decide how the filesystem is made and mounted, rather than words of the command.
pub(super) const OF_THE_FILESYSTEM: [&str; 6] = [
    "filesystem",
    "mkfs",
    "mount_options",
    "size",
    "scheduler",
    "max_sectors_kb",
];

/// A value of a parameter; a number is converted to its digits.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum Value {
    Text(String),
    Number(i64),
}

impl Value {
    fn text(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            Value::Number(number) => number.to_string(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    #[serde(default)]
    about: String,
    before: Option<Words>,
    command: Words,
    #[serde(default)]
    per: Per,
    #[serde(default)]
    fixed: BTreeMap<String, Value>,
    #[serde(default)]
    matrix: toml::Table,
    #[serde(default)]
    except: Vec<BTreeMap<String, Value>>,
    #[serde(default)]
    repeat: Repeat,
    #[serde(default)]
    published: Vec<Claim>,
    #[serde(default)]
    ours: Vec<Claim>,
}

/// An experiment.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The experiment's name.
    pub name: String,
    /// The question that it asks.
    pub about: String,
    /// The unit by which figures are divided.
    pub per: Per,
    /// The number of measurements of a cell.
    pub repeat: Repeat,
    /// The cells in the order of the file: the last parameter changes first. The claims' control cells follow those of the
    /// matrix.
    pub cells: Vec<Cell>,
    /// The parameters of the matrix, in the order of the file.
    pub parameters: Vec<String>,
    /// The published claims, and then our own.
    pub claims: Vec<Claim>,
    /// A text of everything that decides what is measured: results with another identity do not belong to this experiment.
    pub identity: String,
}

/// An experiment or its results cannot be used; the message is one line with the file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file has invalid contents.
    #[error("{}: {why}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// The problem.
        why: String,
    },
}

impl Error {
    pub(super) fn io(path: &Path, source: std::io::Error) -> Error {
        Error::Io {
            path: path.to_owned(),
            source,
        }
    }

    pub(super) fn wrong(path: &Path, why: &str) -> Error {
        Error::Wrong {
            path: path.to_owned(),
            why: why.to_owned(),
        }
    }
}

impl Definition {
    /// Reads a definition from a file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is not a valid definition.
    pub fn read(path: &Path) -> Result<Definition, Error> {
        let text = fs::read_to_string(path).map_err(|source| Error::io(path, source))?;
        Definition::parse(&text).map_err(|why| Error::wrong(path, &why))
    }

    fn parse(text: &str) -> Result<Definition, String> {
        let written: Written = toml::from_str(text).map_err(|e| one_line(&e, text))?;
        let texts = |values: &BTreeMap<String, Value>| -> BTreeMap<String, String> {
            let text = |(name, value): (&String, &Value)| (name.clone(), value.text());
            values.iter().map(text).collect()
        };
        let matrix = matrix(&written.matrix)?;
        let fixed = texts(&written.fixed);
        let except: Vec<_> = written.except.iter().map(texts).collect();
        let templates = [Some(&written.command), written.before.as_ref()];
        let templates: Vec<&Words> = templates.into_iter().flatten().collect();
        check(&fixed, &matrix, &templates)?;
        written.repeat.check()?;
        let parameters: Vec<String> = matrix.iter().map(|(name, _)| name.clone()).collect();
        let parts = (&written.command, &written.before, &fixed, &parameters);
        let mut identity = serde_json::to_string(&parts).map_err(|e| e.to_string())?;
        if written.per == Per::Commit {
            identity.push_str(" per commit");
        }
        let ours = written.ours.into_iter().map(|claim| Claim {
            kind: Kind::Ours,
            ..claim
        });
        let claims: Vec<Claim> = written.published.into_iter().chain(ours).collect();
        for claim in &claims {
            claim.check(&parameters, &fixed)?;
        }
        let template = Template {
            fixed,
            command: written.command,
            before: written.before,
        };
        let cells = template.cells(&matrix, &except);
        if cells.is_empty() {
            return Err("its matrix has no cell".into());
        }
        let mut definition = Definition {
            name: written.name,
            about: written.about,
            per: written.per,
            repeat: written.repeat,
            cells,
            parameters,
            claims,
            identity,
        };
        definition.add_controls(&template);
        Ok(definition)
    }

    /// Adds the control cells of all claims, each once.
    fn add_controls(&mut self, template: &Template) {
        let mut controls: Vec<Cell> = Vec::new();
        for claim in self.claims.iter().filter(|c| !c.control.is_empty()) {
            for cell in self.cells.iter().filter(|cell| cell.is(&claim.at)) {
                // A claim about a ratio needs control cells on both sides.
                let other = claim.to.as_ref().and_then(|to| self.beside(cell, to));
                for cell in std::iter::once(cell).chain(other) {
                    let control = template.control(cell, &claim.control);
                    if !controls.contains(&control) {
                        controls.push(control);
                    }
                }
            }
        }
        self.cells.extend(controls);
    }

    /// Returns the cell that differs from `cell` only in these values.
    pub(super) fn beside(&self, cell: &Cell, values: &BTreeMap<String, String>) -> Option<&Cell> {
        let mut all: BTreeMap<String, String> = cell.parameters.iter().cloned().collect();
        all.extend(values.clone());
        let mut cells = self.cells.iter();
        cells.find(|other| other.control == cell.control && other.is(&all))
    }

    /// Returns the control cell for a claim about this cell, if it has one.
    pub(super) fn control_of(&self, claim: &Claim, cell: &Cell) -> Option<&Cell> {
        let mut controls = self.cells.iter().filter(|other| other.is_control());
        controls.find(|other| {
            other.parameters == cell.parameters
                && other.control.iter().cloned().collect::<BTreeMap<_, _>>() == claim.control
        })
    }
}

/// Returns the values of each parameter, in the order of the file.
fn matrix(table: &toml::Table) -> Result<Vec<(String, Vec<String>)>, String> {
    let parameter = |(name, values): (&String, &toml::Value)| {
        let values: Vec<Value> = values
            .clone()
            .try_into()
            .map_err(|_| format!("matrix.{name}: is not a list of texts and numbers"))?;
        Ok((name.clone(), values.iter().map(Value::text).collect()))
    };
    table.iter().map(parameter).collect()
}

/// Checks that every parameter is used and that every word in braces is a parameter.
fn check(
    fixed: &BTreeMap<String, String>,
    matrix: &[(String, Vec<String>)],
    templates: &[&Words],
) -> Result<(), String> {
    let known = |name: &str| fixed.contains_key(name) || matrix.iter().any(|(n, _)| n == name);
    let used: Vec<String> = templates.iter().flat_map(|t| t.parameters()).collect();
    if let Some(name) = used.iter().find(|name| !known(name)) {
        return Err(format!("{{{name}}} is neither in [fixed] nor in [matrix]"));
    }
    for name in fixed.keys().chain(matrix.iter().map(|(name, _)| name)) {
        if !used.contains(name) && !OF_THE_FILESYSTEM.contains(&name.as_str()) {
            return Err(format!("`{name}` is not used in the command"));
        }
    }
    if let Some((name, _)) = matrix.iter().find(|(name, _)| fixed.contains_key(name)) {
        return Err(format!("`{name}` is in [fixed] and in [matrix]"));
    }
    Ok(())
}

/// Shortens TOML's error messages, which span several lines.
fn one_line(error: &toml::de::Error, text: &str) -> String {
    let place = error.span().map_or(0, |span| span.start);
    let line = text.get(..place).unwrap_or_default().lines().count().max(1);
    format!("line {line}: {}", error.message().replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "name = 'n'\ncommand = 'app --j {journal} {op}'\n[fixed]\nsize = '64M'\n\
                        [matrix]\nop = ['insert', 'delete']\njournal = ['wal', 1]\n";

    #[test]
    fn cells_are_in_the_order_of_the_file() {
        let definition = Definition::parse(GOOD).unwrap();
        assert_eq!(definition.parameters, ["op", "journal"]);
        let keys: Vec<String> = definition.cells.iter().map(Cell::key).collect();
        let all = [
            "op=insert journal=wal",
            "op=insert journal=1",
            "op=delete journal=wal",
            "op=delete journal=1",
        ];
        assert_eq!(keys, all);
    }

    const CLAIM: &str = "[[published]]\nwhere = { journal = 'wal' }\nfigure = 'writes'\nvalue = 1\nsource = 's'\n\
                         to = { op = 'delete' }\ncontrol = { size = '32M' }\nwhy = 'smaller'\n";

    #[test]
    fn a_claim_has_control_cells_beside_the_matrix() {
        let definition = Definition::parse(&(GOOD.to_owned() + CLAIM)).unwrap();
        let controls: Vec<&Cell> = definition.cells.iter().filter(|c| c.is_control()).collect();
        let keys: Vec<String> = controls.iter().map(|cell| cell.key()).collect();
        // The claim is about a ratio; the cell that is compared with itself adds no control cell.
        assert_eq!(
            keys,
            [
                "op=insert journal=wal size=32M",
                "op=delete journal=wal size=32M"
            ]
        );
        assert_eq!(controls[0].filesystem["size"], "32M");
        let claim = &definition.claims[0];
        let of = |at: usize| definition.control_of(claim, &definition.cells[at]);
        assert_eq!(of(0), Some(controls[0]));
        assert_eq!(of(1), None, "no claim is on it");
        let to = claim.to.as_ref().unwrap();
        assert_eq!(definition.beside(controls[0], to), Some(controls[1]));
        // Claims do not change what is measured of the matrix.
        assert_eq!(
            definition.identity,
            Definition::parse(GOOD).unwrap().identity
        );
    }

    #[test]
    fn results_per_commit_are_none_per_transaction() {
        let per_commit = GOOD.replace("[fixed]", "per = 'commit'\n[fixed]");
        let of = |text: &str| Definition::parse(text).unwrap().identity;
        assert_ne!(of(&per_commit), of(GOOD));
    }

    #[test]
    fn a_reason_needs_a_control_cell() {
        let wrong = |from: &str, to: &str| {
            Definition::parse(&(GOOD.to_owned() + &CLAIM.replace(from, to))).unwrap_err()
        };
        let says = "published: `why` and `control` must be given together";
        assert_eq!(wrong("control = { size = '32M' }\n", ""), says);
        assert_eq!(wrong("why = 'smaller'", ""), says);
        assert_eq!(
            wrong("size =", "op ="),
            "published: control: `op` is not in [fixed]"
        );
        assert_eq!(
            wrong("op = 'delete'", "x = 'y'"),
            "published: `x` is not a parameter of the matrix"
        );
        assert_eq!(
            wrong("value = 1\n", ""),
            "published: writes: nothing is claimed"
        );
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        let wrong = |from: &str, to: &str| Definition::parse(&GOOD.replace(from, to)).unwrap_err();
        assert_eq!(wrong("{op}", ""), "`op` is not used in the command");
        assert_eq!(
            wrong("{op}", "{op} {x}"),
            "{x} is neither in [fixed] nor in [matrix]"
        );
        assert_eq!(
            wrong("size = '64M'", "op = 'x'"),
            "`op` is in [fixed] and in [matrix]"
        );
        assert_eq!(wrong("['wal', 1]", "[]"), "its matrix has no cell");
        assert_eq!(
            wrong("['wal', 1]", "'wal'"),
            "matrix.journal: is not a list of texts and numbers"
        );
        assert!(wrong("name = 'n'", "nam = 'n'").starts_with("line 1: unknown field `nam`"));
        assert!(wrong("name = 'n'", "name = ").starts_with("line 1: "));
        let per = wrong("[fixed]", "per = 'page'\n[fixed]");
        assert!(per.starts_with("line 3: unknown variant `page`"), "{per}");
        let patient = wrong("[fixed]", "repeat.most = 21\n[fixed]");
        assert_eq!(patient, "repeat.most: a cell is measured at most 20 times");
    }
}

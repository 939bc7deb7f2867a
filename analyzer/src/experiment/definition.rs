// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an experiment is, as its file says.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cells::{self, Cell, Words};
use super::published::Claim;

/// What decides how the filesystem is made and mounted, in place of words of the command.
pub(super) const OF_THE_FILESYSTEM: [&str; 5] =
    ["filesystem", "mkfs", "mount_options", "size", "scheduler"];

/// A value of a parameter; a number is its digits.
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

/// When a cell has been measured often enough.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Repeat {
    /// When the bytes of a transaction lie within so many per cent of each other.
    pub within_percent: f64,
    /// But not more often than that.
    pub most: usize,
}

impl Default for Repeat {
    fn default() -> Self {
        Repeat {
            within_percent: 1.0,
            most: 3,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    #[serde(default)]
    about: String,
    #[serde(default)]
    before: Option<Words>,
    command: Words,
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
}

/// An experiment.
#[derive(Clone, Debug)]
pub struct Definition {
    /// What it is called.
    pub name: String,
    /// What it asks.
    pub about: String,
    /// When a cell has been measured often enough.
    pub repeat: Repeat,
    /// The cells, in the order of the file: the last parameter changes first.
    pub cells: Vec<Cell>,
    /// The parameters that differ between cells, in the order of the file.
    pub parameters: Vec<String>,
    /// What others have found.
    pub published: Vec<Claim>,
    /// What decides what is measured: results of another are none of this one's.
    pub identity: String,
}

/// Why there is no experiment, or no result; one line that names the file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {why}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
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
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or does not say what it should.
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
        let cells = cells::of(
            &fixed,
            &matrix,
            &except,
            &written.command,
            written.before.as_ref(),
        );
        if cells.is_empty() {
            return Err("there is no cell in its matrix".into());
        }
        if written.repeat.most == 0 {
            return Err("repeat.most: a cell is measured once at least".into());
        }
        let parameters: Vec<String> = matrix.into_iter().map(|(name, _)| name).collect();
        for claim in &written.published {
            let other = claim.at.keys().find(|name| !parameters.contains(name));
            if let Some(name) = other {
                return Err(format!("published: `{name}` is no parameter of the matrix"));
            }
        }
        let parts = (&written.command, &written.before, &fixed, &parameters);
        let identity = serde_json::to_string(&parts).map_err(|e| e.to_string())?;
        Ok(Definition {
            name: written.name,
            about: written.about,
            repeat: written.repeat,
            cells,
            parameters,
            published: written.published,
            identity,
        })
    }
}

/// The values of each parameter. They are kept in the order of the file.
fn matrix(table: &toml::Table) -> Result<Vec<(String, Vec<String>)>, String> {
    let parameter = |(name, values): (&String, &toml::Value)| {
        let values: Vec<Value> = values
            .clone()
            .try_into()
            .map_err(|_| format!("matrix.{name}: is no list of texts and numbers"))?;
        Ok((name.clone(), values.iter().map(Value::text).collect()))
    };
    table.iter().map(parameter).collect()
}

/// Every parameter is used, and every word in braces is one.
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
            return Err(format!("`{name}` is used nowhere in the command"));
        }
    }
    if let Some((name, _)) = matrix.iter().find(|(name, _)| fixed.contains_key(name)) {
        return Err(format!("`{name}` is in [fixed] and in [matrix]"));
    }
    Ok(())
}

/// TOML's own messages are drawn over several lines.
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

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        let wrong = |from: &str, to: &str| Definition::parse(&GOOD.replace(from, to)).unwrap_err();
        assert_eq!(wrong("{op}", ""), "`op` is used nowhere in the command");
        assert_eq!(
            wrong("{op}", "{op} {x}"),
            "{x} is neither in [fixed] nor in [matrix]"
        );
        assert_eq!(
            wrong("size = '64M'", "op = 'x'"),
            "`op` is in [fixed] and in [matrix]"
        );
        assert_eq!(wrong("['wal', 1]", "[]"), "there is no cell in its matrix");
        assert_eq!(
            wrong("['wal', 1]", "'wal'"),
            "matrix.journal: is no list of texts and numbers"
        );
        assert!(wrong("name = 'n'", "nam = 'n'").starts_with("line 1: unknown field `nam`"));
        assert!(wrong("name = 'n'", "name = ").starts_with("line 1: "));
    }
}

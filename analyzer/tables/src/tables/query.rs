// SPDX-License-Identifier: MIT OR Apache-2.0
//! SQL queries over the rows and over the tables beside them, run by polars.

use std::panic::resume_unwind;

use polars::prelude::{
    DataFrame, IntoLazy, LazyFrame, PolarsError, PolarsResult, UnionArgs, concat,
};
use polars::sql::SQLContext;

use super::relations::Relation;
use super::{Table, calls};
use crate::caught::caught;
use crate::facts::{Column, Facts, catalogue, one_line};
use crate::nearest::nearest;
use crate::sql;

/// The name of the table of rows in a query.
pub const NAME: &str = "events";

/// Why a query failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The query names an unknown column.
    #[error("no column {name}{near}; mostrace schema lists all")]
    UnknownColumn {
        /// The name.
        name: String,
        /// The nearest ones, as words.
        near: String,
    },
    /// The query asks for what cannot be.
    #[error("{0}")]
    Shape(String),
    /// The query cannot be understood, or a temporary file cannot be read.
    #[error("{}", one_line(.0))]
    Query(PolarsError),
}

impl From<PolarsError> for Error {
    fn from(error: PolarsError) -> Error {
        Error::Query(error)
    }
}

/// Returns the column that was not found, if none of the tables has it. The rest of polars' message would list only the
/// columns that were loaded.
fn unknown_in(error: &PolarsError, asked: &Asked) -> Option<String> {
    let text = match error {
        PolarsError::ColumnNotFound(text) | PolarsError::SQLInterface(text) => text,
        PolarsError::Context { error, .. } | PolarsError::ExprContext { error, .. } => {
            return unknown_in(error, asked);
        }
        _ => return None,
    };
    let quoted = [("column \"", '"'), ("column named '", '\'')];
    let name = quoted.iter().find_map(|&(ahead, end)| {
        let (_, rest) = text.split_once(ahead)?;
        Some(rest.split_once(end)?.0)
    })?;
    let of_events = !asked.columns.is_empty() && Column::find(name).is_some();
    let of_calls = asked.calls.then(calls::columns).unwrap_or_default();
    let relations = asked.relations.iter().flat_map(|one| one.columns());
    let mut others = relations.chain(of_calls);
    let is_known = of_events || others.any(|(known, ..)| known == name);
    (!is_known).then(|| name.to_owned())
}

/// Returns true if the text is a query, rather than a statement that changes tables.
pub fn asks(sql: &str) -> bool {
    let begin = sql.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    let word = begin.split(|c: char| !c.is_ascii_alphabetic()).next();
    ["select", "with"]
        .iter()
        .any(|asks| word.is_some_and(|word| word.eq_ignore_ascii_case(asks)))
}

/// The longest query, bytes. A chain of operators is as deep as it is long, and polars walks it by recursion.
const LONGEST: usize = 1 << 13;
/// The most SELECTs of a query: polars plans each of them anew wherever it is named.
const SELECTS: usize = 100;
/// The stack for a chain of operators of the longest query, bytes. Only what is used of it takes memory.
const STACK: usize = 1 << 30;

/// Returns why a query is not tried; None if it can be.
pub fn too_much(sql: &str) -> Option<String> {
    let selects = words(sql).filter(|word| word.eq_ignore_ascii_case("select"));
    if sql.len() > LONGEST {
        return Some(format!(
            "the query has {} bytes, at most {LONGEST}",
            sql.len()
        ));
    }
    let selects = selects.count();
    (selects > SELECTS).then(|| format!("the query has {selects} SELECTs, at most {SELECTS}"))
}

/// Runs something on a stack that is deep enough.
fn on_deep_stack<T: Send>(run: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let running = thread.spawn_scoped(scope, run)?;
        Ok(running.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

/// Looks at a query before anything is read for it; returns it with names for all columns of its answer.
///
/// # Errors
/// Returns an error if the query asks for what cannot be.
pub fn checked(text: &str) -> Result<String, Error> {
    let checked = on_deep_stack(|| sql::query(text, &Known)).map_err(PolarsError::from);
    checked?.map_err(Error::Shape)
}

/// The tables that every recording has.
struct Known;

impl sql::Tables for Known {
    fn names(&self) -> Vec<&'static str> {
        let relations = Relation::ALL.iter().map(|one| one.name());
        [NAME, calls::NAME].into_iter().chain(relations).collect()
    }

    fn values(&self, table: &str, column: &str) -> Option<sql::Values> {
        let relation = || Relation::ALL.iter().find(|one| one.name() == table);
        let columns = match table {
            NAME => return Column::find(column).map(Column::known),
            calls::NAME => calls::columns(),
            _ => relation()?.columns(),
        };
        let (name, ty, _) = columns.into_iter().find(|(name, ..)| *name == column)?;
        // Columns with the name of one of `events` have its words.
        let words = match (table, name) {
            (calls::NAME, "call") => Some(calls::kinds()),
            _ => Column::find(name).and_then(Column::words),
        };
        Some(sql::Values { ty, words })
    }
}

/// The tables and columns that a query needs.
pub struct Asked {
    /// The columns of `events`; none if the query does not use it.
    pub columns: Vec<&'static Column>,
    /// The other tables.
    pub relations: Vec<Relation>,
    /// True if it may use the table of calls.
    pub calls: bool,
}

impl Asked {
    /// Finds the tables and columns whose names occur in a query. A name may stand for something else; then one more is
    /// loaded, which does no harm.
    pub fn by(sql: &str) -> Asked {
        let relations = Relation::ALL
            .iter()
            .copied()
            .filter(|one| has(sql, one.name()));
        let relations: Vec<Relation> = relations.collect();
        let calls = has(sql, calls::NAME);
        let is_of_events = relations.is_empty() && !calls || has(sql, NAME);
        Asked {
            columns: match is_of_events {
                true => named(sql),
                false => Vec::new(),
            },
            relations,
            calls,
        }
    }

    /// Returns true if causes must be found.
    pub fn needs_causes(&self) -> bool {
        let mut columns = self.columns.iter();
        self.relations.iter().any(|one| one.needs_causes())
            || columns.any(|column| column.needs_causes())
    }

    /// Returns true if transactions must be found.
    pub fn needs_transactions(&self) -> bool {
        self.relations.contains(&Relation::Transactions)
    }

    /// Returns true if blocks that were written before must be tracked.
    pub fn needs_locality(&self) -> bool {
        self.columns.iter().any(|column| column.needs_locality())
    }

    /// Returns the names of all columns of the tables that it names.
    fn known(&self) -> impl Iterator<Item = &'static str> {
        let of_events = catalogue::ALL.iter().map(|column| column.name);
        let events = of_events.filter(|_| !self.columns.is_empty());
        let others = self.relations.iter().flat_map(|one| one.columns());
        let calls = self.calls.then(calls::columns).into_iter().flatten();
        events.chain(others.chain(calls).map(|(name, ..)| name))
    }
}

/// Runs a query over the tables that it needs; `calls` are the pieces of that table, none if there is no such table.
///
/// # Errors
/// Returns an error if the query cannot be understood or a temporary file cannot be read.
pub fn run(facts: &Facts, sql: &str, asked: &Asked, calls: Vec<Table>) -> Result<DataFrame, Error> {
    let mut context = SQLContext::new();
    if !asked.columns.is_empty() {
        let mut columns = asked.columns.clone();
        let bundle = Column::find("bundle").filter(|_| facts.origins.list.len() > 1);
        columns.extend(bundle.filter(|_| sql.contains('*') && !has(sql, "bundle")));
        let frames = facts.frames(&columns, None);
        context.register(NAME, one(frames.map(|frame| frame.map(DataFrame::lazy)))?);
    }
    for relation in &asked.relations {
        let pieces = relation.of(facts);
        let pieces = pieces.map(|piece| piece.map(|table| table.frame.lazy()));
        context.register(relation.name(), one(pieces)?);
    }
    if !calls.is_empty() {
        let pieces = calls.into_iter().map(|table| Ok(table.frame.lazy()));
        context.register(calls::NAME, one(pieces)?);
    }
    let mut execute = || context.execute(sql).and_then(LazyFrame::collect);
    let answer = on_deep_stack(|| caught(&mut execute)).map_err(PolarsError::from);
    let answer = answer
        .and_then(|done| done.unwrap_or_else(|why| Err(PolarsError::ComputeError(why.into()))));
    answer.map_err(|error| match unknown_in(&error, asked) {
        Some(name) => {
            let near = nearest(&name, asked.known());
            Error::UnknownColumn { name, near }
        }
        None => Error::Query(error),
    })
}

/// Concatenates the pieces to one frame: for several, polars would count rows in a type that is not compiled in.
fn one(pieces: impl Iterator<Item = PolarsResult<LazyFrame>>) -> PolarsResult<LazyFrame> {
    let pieces: Vec<LazyFrame> = pieces.collect::<PolarsResult<_>>()?;
    Ok(concat(pieces, UnionArgs::default())?.collect()?.lazy())
}

/// Returns the words of a query.
fn words(sql: &str) -> impl Iterator<Item = &str> {
    sql.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}

fn has(sql: &str, name: &str) -> bool {
    words(sql).any(|word| word.eq_ignore_ascii_case(name))
}

/// Returns the columns whose names occur in a query, and those that `events` prints if it contains `*`.
fn named(sql: &str) -> Vec<&'static Column> {
    let words: Vec<&str> = words(sql).collect();
    let all = sql.contains('*');
    let is_named = |column: &&Column| {
        let named = words
            .iter()
            .any(|word| word.eq_ignore_ascii_case(column.name));
        named || all && !column.derived
    };
    let mut columns: Vec<&Column> = catalogue::ALL.iter().filter(is_named).collect();
    // `count(1)` names no column, so any one is loaded.
    if columns.is_empty() {
        columns.extend(Column::find("completion"));
    }
    columns
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! SQL over the rows, by polars.

use polars::prelude::{
    DataFrame, IntoLazy, LazyFrame, PolarsError, PolarsResult, UnionArgs, concat,
};
use polars::sql::SQLContext;

use crate::facts::{Column, Facts, catalogue, one_line};

/// What the rows are called in a query.
pub const NAME: &str = "events";

/// Why a query has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It names a column that there is not.
    #[error("no column {name}; the columns of events are {known}")]
    UnknownColumn {
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// It cannot be understood, or a temporary file cannot be read.
    #[error("{}", one_line(.0))]
    Query(PolarsError),
}

impl From<PolarsError> for Error {
    fn from(error: PolarsError) -> Error {
        match unknown_in(&error) {
            Some(name) => Error::UnknownColumn {
                name: name.to_owned(),
                known: catalogue::ALL
                    .iter()
                    .map(|c| c.name)
                    .collect::<Vec<_>>()
                    .join(", "),
            },
            None => Error::Query(error),
        }
    }
}

/// The column that was looked for, if it is none of the catalogue's. What polars says beside its name is of the frame of the
/// columns that were named.
fn unknown_in(error: &PolarsError) -> Option<&str> {
    let text = match error {
        PolarsError::ColumnNotFound(text) | PolarsError::SQLInterface(text) => text,
        PolarsError::Context { error, .. } | PolarsError::ExprContext { error, .. } => {
            return unknown_in(error);
        }
        _ => return None,
    };
    let quoted = [("column \"", '"'), ("column named '", '\'')];
    let name = quoted.iter().find_map(|&(ahead, end)| {
        let (_, rest) = text.split_once(ahead)?;
        Some(rest.split_once(end)?.0)
    })?;
    Column::find(name).is_none().then_some(name)
}

/// Whether it is a query, and no statement that is for changing tables, of which there are none to be changed.
pub fn asks(sql: &str) -> bool {
    let begin = sql.trim_start_matches(|c: char| c.is_whitespace() || c == '(');
    let word = begin.split(|c: char| !c.is_ascii_alphabetic()).next();
    ["select", "with"]
        .iter()
        .any(|asks| word.is_some_and(|word| word.eq_ignore_ascii_case(asks)))
}

/// Runs a query over the columns that it [names](named).
///
/// # Errors
/// The query cannot be understood, or a temporary file cannot be read.
pub fn run(facts: &Facts, sql: &str, columns: &[&Column]) -> Result<DataFrame, Error> {
    let rows: Vec<LazyFrame> = facts
        .frames(columns, None)
        .map(|frame| frame.map(DataFrame::lazy))
        .collect::<PolarsResult<_>>()?;
    // One frame: polars counts the rows of several in a type that is not built in.
    let rows = concat(rows, UnionArgs::default())?.collect()?;
    let mut context = SQLContext::new();
    context.register(NAME, rows.lazy());
    Ok(context.execute(sql)?.collect()?)
}

/// The columns whose names occur in a query; all that `events` prints, if it asks for all. It does
/// no harm that a name may stand for something else: one column more is made.
pub fn named(sql: &str) -> Vec<&'static Column> {
    let words: Vec<&str> = sql
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .collect();
    let all = sql.contains('*');
    let is_named = |column: &&Column| {
        let named = words
            .iter()
            .any(|word| word.eq_ignore_ascii_case(column.name));
        named || all && !column.derived
    };
    let mut columns: Vec<&Column> = catalogue::ALL.iter().filter(is_named).collect();
    // `count(1)` names none.
    if columns.is_empty() {
        columns.extend(Column::find("completion"));
    }
    columns
}

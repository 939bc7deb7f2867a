// SPDX-License-Identifier: MIT OR Apache-2.0
//! SQL over the rows, by polars.

use polars::prelude::{DataFrame, IntoLazy, LazyFrame, UnionArgs, concat};
use polars::sql::SQLContext;

use super::Result;
use crate::facts::{Column, Facts, catalogue};

/// What the rows are called in a query.
pub const NAME: &str = "events";

/// Runs a query over the columns that it [names](named).
///
/// # Errors
/// The query cannot be understood, or a temporary file cannot be read.
pub fn run(facts: &Facts, sql: &str, columns: &[&Column]) -> Result<DataFrame> {
    let rows: Vec<LazyFrame> = facts
        .frames(columns, None)
        .map(|frame| frame.map(DataFrame::lazy))
        .collect::<Result<_>>()?;
    // One frame: polars counts the rows of several in a type that is not built in.
    let rows = concat(rows, UnionArgs::default())?.collect()?;
    let mut context = SQLContext::new();
    context.register(NAME, rows.lazy());
    context.execute(sql)?.collect()
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

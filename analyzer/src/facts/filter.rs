// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--where`: which rows are looked at.

use std::collections::BTreeSet;

use polars::prelude::{DataFrame, Expr, IntoLazy};
use polars::sql::sql_expr;

use super::catalogue::{self, Column};

/// A condition on the columns of the catalogue.
#[derive(Clone)]
pub struct Filter {
    condition: Expr,
    columns: Vec<&'static Column>,
}

/// Why a condition is none.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// It is no SQL expression.
    #[error("`{text}` is no condition: {what}")]
    Syntax {
        /// As it was given.
        text: String,
        /// What the parser says.
        what: String,
    },
    /// It names a column that there is not.
    #[error("`{text}`: no column {name}; the columns are {known}")]
    UnknownColumn {
        /// As it was given.
        text: String,
        /// The name.
        name: String,
        /// Those that there are.
        known: String,
    },
}

/// An expression of SQL that is true or false, over some columns; and those that it names.
fn parse(text: &str, known: &[&str]) -> Result<(Expr, BTreeSet<String>), FilterError> {
    let condition = sql_expr(text).map_err(|error| FilterError::Syntax {
        text: text.to_owned(),
        what: super::one_line(&error),
    })?;
    let mut names = BTreeSet::new();
    for part in &condition {
        if let Expr::Column(name) = part {
            names.insert(name.to_string());
        }
    }
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(FilterError::UnknownColumn {
            text: text.to_owned(),
            name: name.clone(),
            known: known.join(", "),
        }),
        None => Ok((condition, names)),
    }
}

impl Filter {
    /// From an expression of SQL that is true or false: `role = 'wal' AND bytes > 4096`.
    ///
    /// # Errors
    /// It cannot be parsed, or names an unknown column.
    pub fn parse(text: &str) -> Result<Filter, FilterError> {
        let known: Vec<&str> = catalogue::ALL.iter().map(|c| c.name).collect();
        let (condition, names) = parse(text, &known)?;
        let columns = names.iter().filter_map(|name| Column::find(name));
        Ok(Filter {
            condition,
            columns: columns.collect(),
        })
    }

    /// The rows of a frame for which an expression over its own columns holds.
    ///
    /// # Errors
    /// It cannot be parsed, names an unknown column, or does not fit the columns.
    pub fn rows_of(frame: DataFrame, text: &str) -> Result<DataFrame, FilterError> {
        let known = frame
            .get_column_names()
            .into_iter()
            .map(|name| name.as_str());
        let known: Vec<&str> = known.collect();
        let (condition, _) = parse(text, &known)?;
        let rows = frame.lazy().filter(condition).collect();
        rows.map_err(|error| FilterError::Syntax {
            text: text.to_owned(),
            what: super::one_line(&error),
        })
    }

    /// What is asked of each row.
    pub(super) fn condition(&self) -> Expr {
        self.condition.clone()
    }

    /// What the condition needs.
    pub fn columns(&self) -> &[&'static Column] {
        &self.columns
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--where`: a condition that selects rows.

use std::collections::BTreeSet;

use polars::prelude::{Column as Values, DataFrame, DataType, Expr, IntoLazy};
use polars::sql::sql_expr;

use super::catalogue::{self, Column};
use crate::nearest::nearest;
use crate::sql;

/// A condition on the columns of the catalogue.
#[derive(Clone)]
pub struct Filter {
    condition: Expr,
    columns: Vec<&'static Column>,
}

/// Why a text is not a valid condition.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// It is not an SQL expression.
    #[error("`{text}` is not a condition: {what}")]
    Syntax {
        /// The text as the user gave it.
        text: String,
        /// The parser's message.
        what: String,
    },
    /// It names an unknown column.
    #[error("`{text}`: no column {name}{near}; {all}")]
    UnknownColumn {
        /// The text as the user gave it.
        text: String,
        /// The unknown name.
        name: String,
        /// The nearest of them, as the end of a sentence.
        near: String,
        /// How to see all.
        all: String,
    },
    /// It does not fit the values of its columns.
    #[error("`{text}`: {what}")]
    Values {
        /// The text as the user gave it.
        text: String,
        /// What does not fit.
        what: String,
    },
}

/// So many columns are listed in a message.
const MANY: usize = 12;

/// Parses an SQL expression that is true or false; returns it with the columns that it names.
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
            near: nearest(name, known.iter().copied()),
            // More than fit a line are listed elsewhere.
            all: match known.len() {
                0..=MANY => format!("the columns are {}", known.join(", ")),
                _ => "mostrace schema lists all".into(),
            },
        }),
        None => Ok((condition, names)),
    }
}

impl Filter {
    /// Parses an SQL expression that is true or false: `role = 'wal' AND bytes > 4096`.
    ///
    /// # Errors
    /// Returns an error if the text cannot be parsed or names an unknown column.
    pub fn parse(text: &str) -> Result<Filter, FilterError> {
        let known: Vec<&str> = catalogue::ALL.iter().map(|c| c.name).collect();
        let (condition, names) = parse(text, &known)?;
        let columns = names.iter().filter_map(|name| Column::find(name));
        let filter = Filter {
            condition,
            columns: columns.collect(),
        };
        match filter.differs(text) {
            Some(what) => Err(FilterError::Values {
                text: text.to_owned(),
                what,
            }),
            None => Ok(filter),
        }
    }

    /// Returns why the condition does not fit the values of its columns.
    fn differs(&self, text: &str) -> Option<String> {
        let values = |name: &str| Column::find(name).map(Column::known);
        if let Err(what) = sql::condition(text, &values) {
            return Some(what);
        }
        let empty = self
            .columns
            .iter()
            .map(|column| Values::new_empty(column.name.into(), &column.data_type()));
        let asked = DataFrame::new(0, empty.collect()).map(DataFrame::lazy);
        let asked = asked.and_then(|empty| empty.select([self.condition()]).collect());
        match asked {
            Err(error) => Some(super::one_line(&error)),
            Ok(answer) => {
                let is_flag = answer
                    .columns()
                    .iter()
                    .all(|one| *one.dtype() == DataType::Boolean);
                (!is_flag).then(|| "a condition is true or false, and this is neither".into())
            }
        }
    }

    /// Returns the rows of a frame for which an expression over the frame's own columns holds.
    ///
    /// # Errors
    /// Returns an error if the expression cannot be parsed, names an unknown column, or does not fit the columns' types.
    pub fn rows_of(frame: DataFrame, text: &str) -> Result<DataFrame, FilterError> {
        let known = frame
            .get_column_names()
            .into_iter()
            .map(|name| name.as_str());
        let known: Vec<&str> = known.collect();
        let (condition, _) = parse(text, &known)?;
        sql::condition(text, &|_| None).map_err(|what| FilterError::Values {
            text: text.to_owned(),
            what,
        })?;
        let rows = frame.lazy().filter(condition).collect();
        rows.map_err(|error| FilterError::Syntax {
            text: text.to_owned(),
            what: super::one_line(&error),
        })
    }

    /// Returns the condition as an expression.
    pub(super) fn condition(&self) -> Expr {
        self.condition.clone()
    }

    /// Returns the columns that the condition names.
    pub fn columns(&self) -> &[&'static Column] {
        &self.columns
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables: groupings and summaries of facts.
// A recording may come from anybody: no number in it may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub mod amplification;
mod call_files;
pub mod calls;
pub mod diff;
pub mod groups;
pub mod locality;
pub mod map;
pub mod percentiles;
pub mod query;
pub mod relations;
mod schema;
pub mod sizes;
pub mod summary;
pub mod tree;
pub mod waits;

#[cfg(test)]
mod tests;

pub use groups::{Grouping, all_summed, for_the_answer, summed};
pub use schema::markdown;

use polars::prelude::{
    AnyValue, Column, DataFrame, DataType, IntoColumn, NamedFrom, PolarsError, PolarsResult, Series,
};

use crate::facts::Column as Known;
use crate::facts::catalogue::Type;
pub use mostrace_trace::about;
pub(crate) use mostrace_trace::sums::ratio;

/// Columns of equal length.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The columns in the order in which they are printed.
    pub frame: DataFrame,
    /// True if the last row is the sum of the others; only output for people shows it.
    pub has_total: bool,
}

impl Table {
    /// Makes a table of these columns.
    ///
    /// # Errors
    /// Returns an error if the columns differ in length or two have the same name.
    pub fn new(columns: Vec<Column>) -> PolarsResult<Table> {
        Ok(Table {
            frame: DataFrame::new_infer_height(columns)?,
            has_total: false,
        })
    }

    /// Makes a table of these columns, whose last row is the total.
    ///
    /// # Errors
    /// Fails as [`Table::new`] does.
    pub fn with_total(columns: Vec<Column>) -> PolarsResult<Table> {
        Ok(Table {
            has_total: true,
            ..Table::new(columns)?
        })
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.frame.height()
    }

    /// Returns the number of rows without the total.
    pub fn len_without_total(&self) -> usize {
        self.len().saturating_sub(self.has_total.into())
    }

    /// Returns true if there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns true if there is a row beside the total.
    pub fn says_something(&self) -> bool {
        self.len_without_total() > 0
    }

    /// Returns the table without its total.
    #[must_use]
    pub fn without_total(self) -> Table {
        Table {
            frame: self.frame.head(Some(self.len_without_total())),
            has_total: false,
        }
    }

    /// Returns the table with only these columns, in this order.
    ///
    /// # Errors
    /// Returns an error if there is no column of such a name.
    pub fn select(self, names: &[String]) -> PolarsResult<Table> {
        Ok(Table {
            frame: self.frame.select(names)?,
            ..self
        })
    }
}

impl From<DataFrame> for Table {
    fn from(frame: DataFrame) -> Table {
        Table {
            frame,
            has_total: false,
        }
    }
}

/// Derives a column's type from its name and its polars type.
pub fn type_of(column: &Column) -> Type {
    match column.dtype() {
        DataType::String => Type::Text,
        DataType::Boolean => Type::Flag,
        DataType::Datetime(..) => Type::Time,
        _ => Known::find(column.name()).map_or(Type::Amount, |known| known.ty),
    }
}

/// Returns a value of a column. polars keeps a column of one row as a scalar, whose times are values of another kind.
pub fn value(column: &Column, row: usize) -> AnyValue<'_> {
    let series = column.as_materialized_series();
    series.get(row).unwrap_or(AnyValue::Null)
}

/// Makes a column of numbers; they are signed because databases and pandas subtract them.
pub fn numbers(name: &str, values: impl IntoIterator<Item = Option<u64>>) -> Column {
    let signed = |value: Option<u64>| value.and_then(|v| i64::try_from(v).ok());
    let values: Vec<Option<i64>> = values.into_iter().map(signed).collect();
    Series::new(name.into(), values).into_column()
}

/// Makes a column of fractions or percentages.
pub(crate) fn reals(name: &str, values: impl IntoIterator<Item = Option<f64>>) -> Column {
    let values: Vec<Option<f64>> = values.into_iter().collect();
    Series::new(name.into(), values).into_column()
}

/// Makes a column of text.
pub fn texts(name: &str, values: impl IntoIterator<Item = Option<String>>) -> Column {
    let values: Vec<Option<String>> = values.into_iter().collect();
    Series::new(name.into(), values).into_column()
}

/// Returns `part` in per cent of `whole`; None if `whole` is 0.
fn percent(part: u64, whole: u64) -> Option<f64> {
    ratio(part, whole).map(|ratio| ratio * 100.0)
}

/// A table fails if a temporary file cannot be read or a filter does not fit its columns.
pub type Result<T> = std::result::Result<T, PolarsError>;

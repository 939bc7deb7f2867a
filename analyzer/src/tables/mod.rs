// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables: groupings and summaries over facts.
// A recording may come from anybody: no number in it may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub mod about;
pub mod amplification;
pub mod brief;
pub mod diff;
pub mod finding;
pub mod groups;
pub(crate) mod layer;
pub mod locality;
pub mod map;
pub mod percentiles;
pub mod query;
pub mod relations;
mod schema;
pub mod sizes;
pub mod summary;
mod totals;
pub mod tree;

#[cfg(test)]
mod tests;

pub use groups::{Grouping, Groups, Label};
pub use schema::markdown;
pub use totals::Totals;

use polars::prelude::{
    Column, DataFrame, DataType, IntoColumn, NamedFrom, PolarsError, PolarsResult, Series,
};

use crate::facts::Column as Known;
use crate::facts::catalogue::Type;

/// Columns of one length.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// In the order they are printed.
    pub frame: DataFrame,
    /// The last row is the sum of the others; people only get to see it.
    pub has_total: bool,
}

impl Table {
    /// Of these columns.
    ///
    /// # Errors
    /// They differ in length, or two have one name.
    pub fn new(columns: Vec<Column>) -> PolarsResult<Table> {
        Ok(Table {
            frame: DataFrame::new_infer_height(columns)?,
            has_total: false,
        })
    }

    /// Of these columns, whose last row is the total.
    ///
    /// # Errors
    /// As [`Table::new`].
    pub fn with_total(columns: Vec<Column>) -> PolarsResult<Table> {
        Ok(Table {
            has_total: true,
            ..Table::new(columns)?
        })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.frame.height()
    }

    /// Number of rows beside the total.
    pub fn len_without_total(&self) -> usize {
        self.len().saturating_sub(self.has_total.into())
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is a row beside the total.
    pub fn says_something(&self) -> bool {
        self.len_without_total() > 0
    }

    /// Without the total, if there is one.
    #[must_use]
    pub fn without_total(self) -> Table {
        Table {
            frame: self.frame.head(Some(self.len_without_total())),
            has_total: false,
        }
    }

    /// Only these columns, in this order.
    ///
    /// # Errors
    /// There is no column of such a name.
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

/// What the values of a column are, by its name and its type.
pub(crate) fn type_of(column: &Column) -> Type {
    match column.dtype() {
        DataType::String => Type::Text,
        DataType::Boolean => Type::Flag,
        DataType::Datetime(..) => Type::Time,
        _ => Known::find(column.name()).map_or(Type::Amount, |known| known.ty),
    }
}

/// A column of numbers; signed, as databases and pandas subtract them.
pub(crate) fn numbers(name: &str, values: impl IntoIterator<Item = Option<u64>>) -> Column {
    let signed = |value: Option<u64>| value.and_then(|v| i64::try_from(v).ok());
    let values: Vec<Option<i64>> = values.into_iter().map(signed).collect();
    Series::new(name.into(), values).into_column()
}

/// A column of fractions or percentages.
pub(crate) fn reals(name: &str, values: impl IntoIterator<Item = Option<f64>>) -> Column {
    let values: Vec<Option<f64>> = values.into_iter().collect();
    Series::new(name.into(), values).into_column()
}

/// A column of text.
pub(crate) fn texts(name: &str, values: impl IntoIterator<Item = Option<String>>) -> Column {
    let values: Vec<Option<String>> = values.into_iter().collect();
    Series::new(name.into(), values).into_column()
}

/// A part in per cent of the whole; None of nothing.
fn percent(part: u64, whole: u64) -> Option<f64> {
    ratio(part, whole).map(|ratio| ratio * 100.0)
}

/// How often `whole` goes into `part`; None if it is 0.
pub(crate) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole != 0).then(|| part as f64 / whole as f64)
}

/// What tables can fail with: a temporary file that cannot be read, a filter that does not fit.
pub type Result<T> = std::result::Result<T, PolarsError>;

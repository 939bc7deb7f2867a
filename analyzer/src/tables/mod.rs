// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tables: rows counted and laid out, ready for any exporter.
//!
//! Sums are folds over the rows, by number and not by name, since processes and files are
//! numbered already; text comes in when a table is made.

pub mod amplification;
pub mod by;
pub mod events;
pub mod map;
pub mod order;
pub mod sizes;
pub mod summary;
pub mod totals;
mod words;

use std::sync::Arc;

/// Version of the columns; grows when one changes its meaning or goes.
pub const SCHEMA: u32 = 1;

/// Columns of one length.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// In the order they are printed.
    pub columns: Vec<Column>,
    /// The last row is the sum of the others; people only get to see it.
    pub has_total: bool,
}

/// A named column.
#[derive(Clone, Debug)]
pub struct Column {
    /// snake_case, with its unit.
    pub name: &'static str,
    /// One for each row.
    pub values: Values,
}

/// The values of a column; None is an empty cell.
#[derive(Clone, Debug)]
pub enum Values {
    /// Numbers that name something: a pid, a sector.
    Id(Vec<Option<u64>>),
    /// Numbers that count or measure.
    Amount(Vec<Option<u64>>),
    /// Fractions and percentages.
    Real(Vec<Option<f64>>),
    /// Yes or no.
    Flag(Vec<bool>),
    /// Text, each word kept once.
    Word {
        /// Index into `words`, one for each row.
        codes: Vec<u32>,
        /// None stands for an empty cell.
        words: Arc<[Option<String>]>,
    },
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Nothing known, or does not apply.
    Empty,
    /// See [`Values::Id`].
    Id(u64),
    /// See [`Values::Amount`].
    Amount(u64),
    /// See [`Values::Real`].
    Real(f64),
    /// See [`Values::Flag`].
    Flag(bool),
    /// See [`Values::Word`].
    Text(&'a str),
}

impl Values {
    /// Text of few repetitions.
    pub fn text(words: impl IntoIterator<Item = Option<String>>) -> Values {
        let words: Arc<[Option<String>]> = words.into_iter().collect();
        let codes = (0..).take(words.len()).collect();
        Values::Word { codes, words }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Values::Id(v) | Values::Amount(v) => v.len(),
            Values::Real(v) => v.len(),
            Values::Flag(v) => v.len(),
            Values::Word { codes, .. } => codes.len(),
        }
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn pop(&mut self) {
        match self {
            Values::Id(v) | Values::Amount(v) => drop(v.pop()),
            Values::Real(v) => drop(v.pop()),
            Values::Flag(v) => drop(v.pop()),
            Values::Word { codes, .. } => drop(codes.pop()),
        }
    }

    /// The value of a row; empty beyond the last.
    pub fn cell(&self, row: usize) -> Cell<'_> {
        let cell = match self {
            Values::Id(v) => v.get(row).copied().flatten().map(Cell::Id),
            Values::Amount(v) => v.get(row).copied().flatten().map(Cell::Amount),
            Values::Real(v) => v.get(row).copied().flatten().map(Cell::Real),
            Values::Flag(v) => v.get(row).copied().map(Cell::Flag),
            Values::Word { codes, words } => codes
                .get(row)
                .and_then(|&code| words.get(code as usize)?.as_deref())
                .map(Cell::Text),
        };
        cell.unwrap_or(Cell::Empty)
    }
}

impl Table {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the total away, if there is one.
    pub fn drop_total(&mut self) {
        if std::mem::take(&mut self.has_total) {
            self.columns
                .iter_mut()
                .for_each(|column| column.values.pop());
        }
    }

    /// Adds a column.
    pub fn push(&mut self, name: &'static str, values: Values) {
        debug_assert!(
            self.columns.is_empty() || self.len() == values.len(),
            "{name}"
        );
        self.columns.push(Column { name, values });
    }
}

/// A part in per cent of the whole; None of nothing.
fn percent(part: u64, whole: u64) -> Option<f64> {
    ratio(part, whole).map(|ratio| ratio * 100.0)
}

/// How often `whole` goes into `part`; None if it is 0.
fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole != 0).then(|| part as f64 / whole as f64)
}

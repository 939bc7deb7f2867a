// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums of rows in groups, and readable names for what the rows are. Whoever sums them up, the answer is made of these.

// A recording may come from anybody: no number in it may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

pub mod layer;
mod totals;

pub use totals::{FIELDS, Sort, Totals};

/// Returns `part / whole`; None if `whole` is 0.
pub fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole != 0).then(|| part as f64 / whole as f64)
}

/// The label of a group in one column.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Label {
    /// A number.
    Id(u64),
    /// A word.
    Text(String),
    /// The value is unknown or does not apply.
    Empty,
    /// All remaining groups, of which there are this many.
    Rest(usize),
}

impl Label {
    /// Returns the label as text; None for an empty cell.
    pub fn text(&self) -> Option<String> {
        match self {
            Label::Id(id) => Some(id.to_string()),
            Label::Text(text) => Some(text.clone()),
            Label::Empty => None,
            Label::Rest(groups) => Some(format!("({groups} others)")),
        }
    }
}

/// Rows summed by one or more columns; the group with the most bytes comes first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Groups {
    /// The names of the columns.
    pub by: Vec<&'static str>,
    /// A label for each column of `by`, and the sums.
    pub groups: Vec<(Vec<Label>, Totals)>,
    /// The sums of all rows.
    pub total: Totals,
}

impl Groups {
    /// Returns the sums of the groups, then the total.
    pub fn sums(&self) -> impl Iterator<Item = &Totals> {
        self.groups
            .iter()
            .map(|(_, totals)| totals)
            .chain([&self.total])
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts: the rows of a trace as polars frames, in batches. Every table is made of them.
//!
//! ```text
//! completion and rows ─ Builder ─ batches of stored columns (memory, then temporary files)
//!                                     │
//! names of processes and files ───────┼─ catalogue: columns as people see them
//!                                     │
//! --where ────────────────────────────┴─ Facts::view: one lazy frame for each batch
//! ```
//!
//! A batch holds whole requests, so that whatever is counted by request adds up over batches.
// A recording may come from anybody: no number in it may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod anonymous;
mod batches;
mod builder;
pub mod catalogue;
mod field;
mod filter;
pub(crate) mod labels;
mod origins;
mod packages;
mod rewrites;
pub(crate) mod row;
mod shares;
mod stored;
mod values;

use std::borrow::Cow;
use std::collections::BTreeSet;

use polars::prelude::{DataFrame, Expr, IntoLazy, LazyFrame, PolarsError, PolarsResult, col};

use crate::attribute::Names;
use crate::tally::sum;
pub use anonymous::Key;
pub(crate) use anonymous::hashed;
use batches::Batches;
pub use builder::Builder;
pub use catalogue::Column;
pub use filter::{Filter, FilterError};
use origins::{Origin, Origins};
pub use rewrites::Hot;
pub(crate) use stored::{NONE, NONE_32, bits, column as stored_column};

/// The rows of a trace.
#[derive(Default)]
pub struct Facts {
    batches: Batches,
    origins: Origins,
    devices: Vec<u32>,
    requests: u64,
    rewrites: Option<rewrites::Locality>,
    /// What names are hidden with, if they are.
    hidden: Option<Key>,
}

impl Facts {
    /// From the first completion to the last, ns; of several recordings the sum.
    pub fn duration_ns(&self) -> u64 {
        let spans = self.origins.list.iter().filter_map(|origin| origin.span);
        sum(spans.map(|(first, last)| last.saturating_sub(first)))
    }

    /// The first completion and the last, ns in the trace's clock. Of several recordings None: their clocks have nothing to do
    /// with one another.
    pub fn span_ns(&self) -> Option<(u64, u64)> {
        self.only().and_then(|origin| origin.span)
    }

    fn only(&self) -> Option<&Origin> {
        match &self.origins.list[..] {
            [one] => Some(one),
            _ => None,
        }
    }

    /// What the recording at this place is called.
    pub fn name_of(&self, nth: usize) -> &str {
        let origin = self.origins.list.get(nth);
        origin.map_or("", |origin| &origin.name)
    }

    /// What the rows of the recording at this place refer to, by its own numbers.
    pub(crate) fn names_of(&self, nth: usize) -> Cow<'_, Names> {
        match self.only() {
            Some(_) => Cow::Borrowed(&self.origins.names),
            None => Cow::Owned(self.origins.names_of(nth)),
        }
    }

    /// The recording of a process, by its number.
    pub(crate) fn origin_of_process(&self, at: usize) -> usize {
        self.origins.of_process(at)
    }

    /// The recording of a file, by its number.
    pub(crate) fn origin_of_file(&self, at: usize) -> usize {
        self.origins.of_file(at)
    }

    /// How many recordings there are.
    pub(crate) fn recordings(&self) -> usize {
        self.origins.list.len()
    }

    /// Completions.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// What the rows refer to.
    pub fn names(&self) -> &Names {
        &self.origins.names
    }

    /// A moment by the clock of the only recording and by the wall clock, ns.
    pub(crate) fn clock(&self) -> Option<(u64, u64)> {
        self.only().and_then(|origin| origin.clock)
    }

    /// Which blocks were written again and again, if that was followed.
    pub(crate) fn locality(&self) -> Option<&rewrites::Locality> {
        self.rewrites.as_ref()
    }

    /// A lazy frame for each batch, of these expressions over the stored columns, and of the rows
    /// that pass the filter. A condition on a row is on the whole of it, also where it is cut into
    /// shares: only who caused it is asked of each share.
    pub(crate) fn view<'f>(
        &'f self,
        columns: Vec<Expr>,
        part: Part,
        filter: Option<&Filter>,
        rows: Rows,
    ) -> impl Iterator<Item = PolarsResult<LazyFrame>> + 'f {
        let asked = filter
            .map(Filter::columns)
            .unwrap_or_default()
            .iter()
            .copied();
        let (of_share, of_row): (Vec<&Column>, Vec<&Column>) =
            asked.partition(|column| column.needs_causes());
        let [of_share, of_row] = [of_share, of_row].map(|columns| -> Vec<Expr> {
            columns.iter().map(|column| column.expr(self)).collect()
        });
        let condition = filter.map(Filter::condition);
        let needed = columns.iter().chain(&of_share).chain(&of_row);
        let stored = stored_in(needed.chain(&[col(stored_column::bits)]));
        let batches: Box<dyn Iterator<Item = PolarsResult<DataFrame>>> = match rows {
            Rows::Whole => Box::new(self.batches.iter(stored, of_row)),
            Rows::Shares => Box::new(self.batches.cut(stored, of_row)),
        };
        batches.map(move |batch| {
            let all = part.of(batch?.lazy());
            let some = match &condition {
                Some(condition) => all.with_columns(&of_share).filter(condition.clone()),
                None => all,
            };
            Ok(some.select(&columns))
        })
    }

    /// The columns of the catalogue that are named, a frame for each batch; at least one frame, so
    /// that an empty trace has its header.
    ///
    /// # Errors
    /// A temporary file cannot be read, or the filter does not fit its columns.
    pub fn frames<'f>(
        &'f self,
        columns: &[&Column],
        filter: Option<&Filter>,
    ) -> impl Iterator<Item = PolarsResult<DataFrame>> + 'f {
        let columns = columns.iter().map(|column| column.expr(self)).collect();
        self.view(columns, Part::Any, filter, Rows::Whole)
            .map(|view| view?.collect())
    }
}

/// What is looked at as one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// A row, with the cause of its largest share.
    Whole,
    /// Each share of a row that several have caused.
    Shares,
}

/// Of which requests the rows are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All.
    Any,
    /// Those that have several rows.
    Spanning,
}

impl Part {
    fn of(self, rows: LazyFrame) -> LazyFrame {
        match self {
            Part::Any => rows,
            Part::Spanning => rows.filter(row::flag([stored_column::bits], |[b]| {
                bits::PART.of(b) != 0
            })),
        }
    }
}

/// The stored columns that expressions need.
fn stored_in<'e>(expressions: impl Iterator<Item = &'e Expr>) -> Vec<String> {
    let names = expressions.flatten().filter_map(|part| match part {
        Expr::Column(name) => Some(name.to_string()),
        _ => None,
    });
    let distinct: BTreeSet<String> = names.collect();
    distinct.into_iter().collect()
}

/// What polars says, without what it adds for its own users.
pub fn one_line(error: &PolarsError) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().to_owned()
}

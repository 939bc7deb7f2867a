// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts: the rows of a trace as polars frames, in batches. Every table is computed from them.
//!
//! ```text
//! completion and rows ─ Builder ─ batches of stored columns (memory, then temporary files)
//!                                     │
//! names of processes and files ───────┼─ catalogue: columns as people see them
//!                                     │
//! --where ────────────────────────────┴─ Facts::view: one lazy frame for each batch
//! ```
//!
//! A batch holds whole requests, so that counts of requests can be summed over batches.
// A recording may come from anybody: no number in it may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod anonymous;
mod batches;
mod builder;
pub mod catalogue;
mod committed;
pub mod field;
mod filter;
pub mod labels;
mod packages;
mod rewrites;
pub mod row;
mod shares;
mod stored;
mod values;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::OnceLock;

use mostrace_bundle::Manifest;
use polars::prelude::{DataFrame, Expr, IntoLazy, LazyFrame, PolarsError, PolarsResult, col};

pub use anonymous::Key;
pub(crate) use anonymous::{Texts, hashed, path_of};
use batches::Batches;
pub use builder::Builder;
pub use catalogue::Column;
pub(crate) use committed::Committed;
pub use filter::{Filter, FilterError};
use mostrace_trace::answer::Sums;
use mostrace_trace::attribute::{Names, ProcessNames, Task, called};
use mostrace_trace::charged::{Charged, Charging};
use mostrace_trace::origins::{Origin, Origins};
use mostrace_trace::transactions::Database;
pub(crate) use packages::package;
pub use rewrites::Hot;
pub use stored::{NONE, NONE_32, bits, column as stored_column};

/// The rows of a trace.
#[derive(Default)]
pub struct Facts {
    batches: Batches,
    pub(crate) origins: Origins,
    devices: Vec<u32>,
    requests: u64,
    rewrites: Option<rewrites::Locality>,
    /// What of the rows is charged to the command.
    charging: Charging,
    /// None if they were not looked for.
    transactions: Option<Vec<Committed>>,
    /// The key that names are hashed with, if they are hidden.
    hidden: Option<Key>,
    /// Folders with programs' files, for the functions of stacks.
    programs: Vec<PathBuf>,
    /// The text of each stack, once it was asked for: programs' files are read for it.
    stacks: OnceLock<Vec<String>>,
}

impl Facts {
    /// Returns the time from the first completion to the last, ns; for several recordings, the sum.
    pub fn duration_ns(&self) -> u64 {
        self.origins.duration_ns()
    }

    /// Returns the times of the first and the last completion, in ns of the trace's clock. None for several recordings,
    /// whose clocks are unrelated.
    pub fn span_ns(&self) -> Option<(u64, u64)> {
        self.only().and_then(|origin| origin.span)
    }

    fn only(&self) -> Option<&Origin> {
        match &self.origins.list[..] {
            [one] => Some(one),
            _ => None,
        }
    }

    /// Returns the name of the recording at index `nth`.
    pub fn name_of(&self, nth: usize) -> &str {
        let origin = self.origins.list.get(nth);
        origin.map_or("", |origin| &origin.name)
    }

    /// Returns the names and causes of all recordings, which rows refer to.
    pub fn all_origins(&self) -> &Origins {
        &self.origins
    }

    /// Replaces the manifest of each recording, for example by one that hides names.
    pub(crate) fn replace_manifests(&mut self, by: impl Fn(&Manifest) -> Manifest) {
        for origin in &mut self.origins.list {
            let manifest = origin.manifest.take();
            origin.manifest = manifest.map(|manifest| Box::new(by(&manifest)));
        }
    }

    /// Returns what the processes of the recording at index `nth` were called.
    pub(crate) fn process_names(&self, nth: usize) -> &ProcessNames {
        let origin = self.origins.list.get(nth);
        origin.map_or(&self.origins.names.process_names, |origin| {
            &origin.process_names
        })
    }

    /// Returns the name that a thread's process had at `time_ns` in the recording at index `nth`, as it may be shown; `?` if it is not
    /// known.
    pub fn called(&self, nth: usize, task: &Task, time_ns: u64) -> String {
        let name = self.process_names(nth).of_task(task, time_ns);
        called(name.map(|name| self.shown(name)).as_deref())
    }

    /// Sets folders in which programs' files are looked for, ahead of the places that the recording names.
    pub fn look_for_programs(&mut self, folders: &[PathBuf]) {
        folders.clone_into(&mut self.programs);
    }

    /// Returns true if stacks were recorded.
    pub fn has_stacks(&self) -> bool {
        self.origins.names.stacks.len() > 1
    }

    /// Returns the sums of all rows that the answer is made of.
    pub fn for_the_answer(&self) -> Sums {
        self.charging.sums(&self.origins)
    }

    /// Returns what is charged to the command, given the manifest and the calls.
    pub fn charged<'f>(
        &'f self,
        manifest: Option<&'f Manifest>,
        databases: &'f [Database],
    ) -> Charged<'f> {
        self.charging.charged(&self.origins, manifest, databases)
    }

    /// Returns the number of completions.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Returns the names that the rows refer to.
    pub fn names(&self) -> &Names {
        &self.origins.names
    }

    /// Returns one moment in the clock of the only recording and as Unix time, ns each.
    pub(crate) fn clock(&self) -> Option<(u64, u64)> {
        self.only().and_then(|origin| origin.clock)
    }

    /// Returns which blocks were written repeatedly, if that was tracked.
    pub(crate) fn locality(&self) -> Option<&rewrites::Locality> {
        self.rewrites.as_ref()
    }

    /// Returns a lazy frame for each batch, with these expressions over the stored columns, for the rows that pass the
    /// filter. A condition applies to the whole row, even if the row is cut into shares; only conditions on causes apply to
    /// each share.
    pub fn view<'f>(
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

    /// Returns these columns of the catalogue, a frame for each batch. There is at least one frame, so that an empty trace
    /// has its header.
    ///
    /// # Errors
    /// Returns an error if a temporary file cannot be read or the filter does not fit its columns.
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

/// The unit in which rows are taken: whole or by shares.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// A whole row, with the cause of its largest share.
    Whole,
    /// Each share of a row with several causers.
    Shares,
}

/// The requests whose rows are taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The rows of all requests.
    Any,
    /// The rows of requests that have several rows.
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

/// Returns the names of the stored columns that the expressions need.
fn stored_in<'e>(expressions: impl Iterator<Item = &'e Expr>) -> Vec<String> {
    let names = expressions.flatten().filter_map(|part| match part {
        Expr::Column(name) => Some(name.to_string()),
        _ => None,
    });
    let distinct: BTreeSet<String> = names.collect();
    distinct.into_iter().collect()
}

/// Returns the first line of a polars error; the rest is for users of polars.
pub fn one_line(error: &PolarsError) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().to_owned()
}

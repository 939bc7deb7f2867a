// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything that the page shows of one trace.

use std::path::Path;

use mostrace_bundle::{Counters, Manifest};
use serde::Serialize;

use super::data::{Data, data};
use super::error::Error;
use super::flash::Flash;
use super::grid::Grid;
use super::ladder::Ladder;
use mostrace_tables::analysis::Analysis;
use mostrace_tables::facts::Column;
use mostrace_tables::tables::diff::Side;
use mostrace_tables::tables::sizes::{self, Sizes};
use mostrace_tables::tables::{Grouping, about, locality, summed};
use mostrace_tables::tables::{Table, numbers, texts};
use mostrace_trace::answer::Answer;
use mostrace_trace::transactions::Transactions;

type Result<T> = std::result::Result<T, Error>;

/// The trace's completeness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Trust {
    /// Nothing was lost, and the kernel's counters agree.
    Whole,
    /// Something is missing.
    Incomplete,
    /// Nothing is known to be missing, but the trace was not compared with the kernel's counters.
    Unchecked,
}

/// The contents of the page for one trace: what the template writes, and what the scripts draw.
#[derive(Debug, Serialize)]
pub struct Sheet {
    /// The trace's label or file name.
    pub(super) name: String,
    pub(super) answer: Answer,
    pub(super) trust: Trust,
    /// The evidence for that, or what is missing.
    pub(super) trust_why: Vec<String>,
    /// Name and value of the lines that describe the trace.
    pub(super) about: Vec<(&'static str, String)>,
    pub(super) notices: Vec<String>,
    /// True if the trace shows nothing.
    pub(super) is_empty: bool,
    #[serde(skip)]
    pub(super) side: Option<Side>,
    /// The rows, see [`pack`](super::pack).
    #[serde(skip)]
    pub(super) packed: String,
    #[serde(skip)]
    pub(super) drawn: Drawn,
}

/// What the scripts draw beside the rows.
#[derive(Debug, Serialize)]
pub(super) struct Drawn {
    name: String,
    /// The path by which the user named it.
    path: String,
    is_empty: bool,
    ladder: Ladder,
    /// What is missing from the trace, which goes with every picture of it.
    missing: Vec<String>,
    /// The number of transactions, if it is known exactly.
    transactions: Option<u64>,
    counters: Option<Grid>,
    /// The sizes of the whole trace, if its rows are summed up; otherwise the scripts compute them.
    sizes: Option<Grid>,
    order: Option<Grid>,
    rewrites: Option<Grid>,
    hottest: Option<Grid>,
    /// A model tells what a drive writes to its flash; None if it is not wanted.
    flash: Option<Flash>,
}

impl Sheet {
    /// Sums up a trace that was read with its causes and with locality. `is_compared` says whether the page has another one.
    pub fn new(
        path: &Path,
        analysis: &Analysis,
        flash: Option<Flash>,
        is_compared: bool,
    ) -> Result<Sheet> {
        let facts = &analysis.facts;
        let manifest = analysis.manifest();
        let filesystem = mostrace_trace::answer::filesystem(manifest);
        let databases = &analysis.databases;
        let total = summed(facts, Grouping::by(&[]), None)?.total;
        let Data { packed, is_summed } = data(analysis, &filesystem)?;
        let sizes = is_summed.then(|| Sizes::new(facts, None)).transpose()?;
        let transactions = Transactions::new(manifest, databases);
        let (trust, trust_why) = trust(analysis, manifest);
        let of_sizes = |title: &str, note, table: Option<Table>| {
            table.map(|table| Grid::new(title, note, table))
        };
        let some = |grid: Table, title: &str, note| {
            grid.says_something().then(|| Grid::new(title, note, grid))
        };
        let side = || {
            let name = about::name(path, manifest);
            let charged = facts.charged(manifest, databases);
            Side::new(name, &charged, &analysis.warnings)
        };
        let rewrites = Column::all_of(&["class", "role"]);
        let name = about::name(path, manifest);
        let is_empty = facts.requests() == 0;
        let answer = Answer::of(&facts.for_the_answer(), manifest, databases);
        let ladder = Ladder::new(&answer, manifest, databases, &total);
        let missing = match trust {
            Trust::Incomplete => trust_why.clone(),
            Trust::Whole | Trust::Unchecked => Vec::new(),
        };
        Ok(Sheet {
            name: name.clone(),
            side: is_compared.then(side),
            answer,
            trust,
            trust_why,
            about: about::lines(path, manifest, facts.duration_ns(), &total),
            notices: analysis.all_notices(),
            is_empty,
            packed,
            drawn: Drawn {
                name,
                path: mostrace_trace::text::escape(path.as_os_str().as_encoded_bytes()),
                is_empty,
                ladder,
                missing,
                transactions: transactions
                    .count
                    .divisor()
                    .filter(|_| transactions.count.is_exact()),
                counters: manifest
                    .and_then(|m| m.counters.as_ref())
                    .and_then(counters),
                sizes: of_sizes(
                    "Sizes of requests",
                    None,
                    sizes.as_ref().map(Sizes::by_size).transpose()?,
                ),
                order: of_sizes(
                    "Order of requests",
                    Some(sizes::ORDER),
                    sizes.as_ref().map(Sizes::by_order).transpose()?,
                ),
                rewrites: some(
                    locality::table(facts, &rewrites, None)?,
                    "Rewrites",
                    Some(locality::DEFINITION),
                ),
                hottest: some(locality::hottest(facts)?, "Hottest ranges", None),
                flash,
            },
        })
    }
}

fn trust(analysis: &Analysis, manifest: Option<&Manifest>) -> (Trust, Vec<String>) {
    if !analysis.warnings.is_empty() {
        return (Trust::Incomplete, analysis.warnings.clone());
    }
    let Some(manifest) = manifest else {
        let why = "a bare trace, which does not say what was lost";
        return (Trust::Unchecked, vec![why.into()]);
    };
    let counted = format!(
        "none of the {} kinds of loss that are counted has occurred",
        manifest.losses.len()
    );
    match &manifest.counters {
        Some(counters) if counters.agree() => (Trust::Whole, vec![counters.to_string(), counted]),
        Some(counters) => {
            let why = mostrace_trace::text::escape(counters.to_string().as_bytes());
            (Trust::Unchecked, vec![counted, why])
        }
        None => {
            let why = "the recorder did not compare it with the kernel's counters";
            (Trust::Unchecked, vec![counted, why.into()])
        }
    }
}

fn counters(counters: &Counters) -> Option<Grid> {
    let Counters::Compared(compared) = counters else {
        return None;
    };
    let rows = || compared.values();
    let name =
        |name: &String| Some(mostrace_trace::text::escape(name.as_bytes()).replace('_', " "));
    let table = Table::new(vec![
        texts("counter", compared.keys().map(name)),
        numbers("traced", rows().map(|c| Some(c.traced))),
        numbers("at_least", rows().map(|c| Some(c.at_least))),
        numbers("at_most", rows().map(|c| c.at_most)),
    ]);
    let note = "what the kernel counted in /sys/block/…/stat while it was traced; its count is a range, as it is read before and after";
    Some(Grid::new("The kernel's counters", Some(note), table.ok()?))
}

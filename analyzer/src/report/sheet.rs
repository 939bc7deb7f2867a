// SPDX-License-Identifier: MIT OR Apache-2.0
//! Everything that the page shows of one trace.

use std::path::Path;

use mostrace_bundle::{Counters, Manifest};
use serde::Serialize;

use super::colour::Colour;
use super::culprits;
use super::density::{self, Density, Touched};
use super::grid::Grid;
use super::icicle::Icicle;
use super::latency::{self, Latency};
use super::scan::Scan;
use super::syncs::Syncs;
use super::timeline::Timeline;
use super::waterfall::{self, Waterfall};
use crate::analysis::{self, Analysis};
use crate::facts::Column;
use crate::recording;
use crate::tables::diff::Side;
use crate::tables::finding::size;
use crate::tables::sizes::{self, Sizes};
use crate::tables::summary;
use crate::tables::{Grouping, Groups, Totals, about, finding, locality, ratio};
use crate::tables::{Label, Table, numbers, texts};
use crate::text::grouped;
use crate::transactions::{self, Transactions};

/// Number of processes whose latencies are drawn.
const PROCESSES: usize = 8;

/// A page cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The rows cannot be read.
    #[error("temporary files: {0}")]
    Rows(#[from] polars::prelude::PolarsError),
    /// A table of the bundle cannot be read.
    #[error(transparent)]
    Bundle(#[from] mostrace_bundle::Error),
    /// The calls cannot be read.
    #[error(transparent)]
    Analysis(#[from] crate::analysis::Error),
    /// The template is invalid.
    #[error("the page: {0}")]
    Page(#[from] minijinja::Error),
    /// A figure cannot be represented in JSON.
    #[error("the page's data: {0}")]
    Data(#[from] serde_json::Error),
}

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

/// The contents of the page for one trace.
#[derive(Debug, Serialize)]
pub struct Sheet {
    /// The trace's label or file name.
    pub(super) name: String,
    pub(super) finding: String,
    pub(super) trust: Trust,
    /// The evidence for that, or what is missing.
    pub(super) trust_why: Vec<String>,
    /// Name and value of the lines that describe the trace.
    pub(super) about: Vec<(&'static str, String)>,
    pub(super) notices: Vec<String>,
    pub(super) headlines: Vec<Headline>,
    pub(super) colours: Vec<&'static str>,
    /// Bytes by process, file, layer and its parts.
    pub icicle: Icicle,
    /// The number of transactions, if it is known exactly.
    transactions: Option<u64>,
    #[serde(skip)]
    pub(super) side: Side,
    duration_ns: u64,
    #[serde(flatten)]
    pictures: Pictures,
    counters: Option<Grid>,
    processes: Grid,
    files: Grid,
    syncs: Option<Grid>,
    sizes: Grid,
    order: Grid,
    rewrites: Option<Grid>,
    hottest: Option<Grid>,
}

/// A number at the top of the page.
#[derive(Debug, Serialize)]
pub(super) struct Headline {
    value: String,
    what: &'static str,
}

impl Sheet {
    /// Sums up a trace that was read with its causes and with locality.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    pub fn new(path: &Path, analysis: &Analysis) -> Result<Sheet> {
        let facts = &analysis.facts;
        let manifest = analysis.manifest();
        let filesystem = manifest.and_then(|m| m.filesystem.as_ref());
        let filesystem = filesystem.map_or("the filesystem", |f| f.kind.as_str());
        let filesystem = crate::text::escape(filesystem.as_bytes());
        let databases = analysis.databases()?;
        let by_process = Grouping::of((&["process"], Some(PROCESSES)));
        let groups = Groups::new(facts, by_process, None)?;
        let icicle = Icicle::new(facts, &filesystem)?;
        let [processes, files] = culprits::tables(facts, &icicle)?;
        let sizes = Sizes::new(facts, None)?;
        let syncs = match calls_of(analysis)? {
            Some(mut calls) => Some(Syncs::read(&mut calls, facts)?.table()?),
            None => None,
        };
        let transactions = Transactions::new(manifest, &databases);
        let (trust, trust_why) = trust(analysis, manifest);
        let grid = |title: &str, note, table: Table| Grid::new(title, note, table);
        let some = |grid: Table, title: &str, note| {
            grid.says_something().then(|| Grid::new(title, note, grid))
        };
        let rewrites = Column::all_of(&["class", "role"]);
        Ok(Sheet {
            name: about::name(path, manifest),
            side: Side::new(
                about::name(path, manifest),
                facts,
                manifest,
                &databases,
                &analysis.warnings,
            )?,
            transactions: transactions
                .count
                .divisor()
                .filter(|_| transactions.count.is_exact()),
            finding: finding::sentence(facts, manifest, &databases)?,
            trust,
            trust_why,
            about: about::lines(path, manifest, facts.duration_ns(), &groups.total),
            notices: summary::notices(facts, &analysis.trace()),
            headlines: headlines(&groups.total, manifest, &transactions),
            colours: Colour::ALL.iter().map(|colour| colour.name()).collect(),
            duration_ns: facts.duration_ns(),
            pictures: Pictures::new(analysis, &groups)?,
            counters: manifest
                .and_then(|m| m.counters.as_ref())
                .and_then(counters),
            processes: grid("Processes", Some(OWNERS), processes),
            files: grid("Files", Some(OWNERS), files),
            syncs: syncs.and_then(|table| some(table, "Calls for durability", Some(SYNCS))),
            sizes: grid("Sizes", None, sizes.by_size()?),
            order: grid("Order", Some(sizes::ORDER), sizes.by_order()?),
            rewrites: some(
                locality::table(facts, &rewrites, None)?,
                "Rewrites",
                Some(locality::DEFINITION),
            ),
            hottest: some(locality::hottest(facts)?, "Hottest ranges", None),
            icicle,
        })
    }
}

const OWNERS: &str = "with the part that each has in the filesystem's journal and metadata; a request counts where its largest share is";
const SYNCS: &str = "from the call to its return";

fn calls_of(analysis: &Analysis) -> Result<Option<recording::Table>> {
    Ok(analysis.calls().map_err(analysis::Error::from)?)
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
            let why = crate::text::escape(counters.to_string().as_bytes());
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
    let name = |name: &String| Some(crate::text::escape(name.as_bytes()).replace('_', " "));
    let table = Table::new(vec![
        texts("counter", compared.keys().map(name)),
        numbers("traced", rows().map(|c| Some(c.traced))),
        numbers("at_least", rows().map(|c| Some(c.at_least))),
        numbers("at_most", rows().map(|c| c.at_most)),
    ]);
    let note = "what the kernel counted in /sys/block/…/stat while it was traced; its count is a range, as it is read before and after";
    Some(Grid::new("The kernel's counters", Some(note), table.ok()?))
}

fn headlines(
    total: &Totals,
    manifest: Option<&Manifest>,
    transactions: &Transactions,
) -> Vec<Headline> {
    let payload = manifest.and_then(|m| m.payload.as_ref());
    let count = transactions.count;
    let each = |value: u64| ratio(value, count.divisor()?);
    let mut lines = vec![(size(total.write_bytes as f64), "written")];
    if let Some(times) = payload.and_then(|p| ratio(total.write_bytes, p.payload_bytes)) {
        lines.push((format!("{times:.0} ×"), "what was stored"));
    }
    if let Some(bytes) = each(total.write_bytes) {
        lines.push((
            format!("{}{}", count.at_most(), size(bytes)),
            "per transaction",
        ));
    }
    if count.divisor().is_some() {
        lines.push((count.to_string(), "transactions"));
    }
    lines.push((grouped(total.writes), "writes"));
    lines.push((grouped(total.device_flushes), "device flushes"));
    if let Some(each) = each(total.device_flushes) {
        let each = format!("{}{each:.1}", count.at_most());
        lines.push((each, "device flushes per transaction"));
    }
    if total.read_bytes > 0 {
        lines.push((size(total.read_bytes as f64), "read"));
    }
    let line = |(value, what)| Headline { value, what };
    lines.into_iter().map(line).collect()
}

/// The pictures of all rows; an empty trace has none.
#[derive(Debug, Default, Serialize)]
struct Pictures {
    timeline: Option<Timeline>,
    density: Option<density::Drawn>,
    latency: Option<latency::Drawn>,
    waterfall: Option<Waterfall>,
}

impl Pictures {
    fn new(analysis: &Analysis, by_process: &Groups) -> Result<Pictures> {
        let facts = &analysis.facts;
        let Some(span) = facts.span_ns() else {
            return Ok(Pictures::default());
        };
        let named = by_process.groups.iter().map(|(labels, _)| &labels[0]);
        let named = named.filter(|label| matches!(label, Label::Text(_)));
        let processes: Vec<String> = named.filter_map(Label::text).collect();
        let scan = Scan::new(facts);
        let mut timeline = Timeline::new(span);
        let mut latency = Latency::new(span, &scan, &processes);
        let mut touched = Touched::default();
        let mut waterfall = waterfall_of(analysis, span.0)?;
        scan.each(|row| {
            timeline.see(row);
            latency.see(row);
            touched.see(row);
            if let Some(waterfall) = &mut waterfall {
                waterfall.see(row, &scan);
            }
        })?;
        let mut density = Density::new(span, &touched);
        scan.each(|row| density.see(row))?;
        scan.each(|row| density.verify(row))?;
        Ok(Pictures {
            timeline: Some(timeline),
            density: Some(density.drawn(&scan)),
            latency: Some(latency.drawn()),
            waterfall,
        })
    }
}

/// Returns None if no system calls were recorded.
fn waterfall_of(analysis: &Analysis, start_ns: u64) -> Result<Option<Waterfall>> {
    let files = &analysis.facts.names().files;
    let Some(mut calls) = calls_of(analysis)? else {
        return Ok(None);
    };
    let spans = transactions::spans(&mut calls, files)?;
    let chosen = waterfall::choose(&spans);
    let wanted: Vec<_> = chosen.iter().map(|(_, span)| *span).collect();
    let Some(mut calls) = calls_of(analysis)? else {
        return Ok(None);
    };
    let called = transactions::called(&mut calls, files, &wanted, waterfall::MOST)?;
    Ok(Some(Waterfall::new(
        &spans, &chosen, called, files, start_ns,
    )))
}

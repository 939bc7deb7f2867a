// SPDX-License-Identifier: MIT OR Apache-2.0
//! The summary that `analyze` prints when it is not asked for a single table.

use mostrace_bundle::Manifest;

use super::groups::{Grouping, all_summed, table_of};
use super::sizes::{self, Sizes};
use super::{Result, Table, amplification, locality, percent, percentiles, reals};
use crate::facts::{Column, Facts, Filter};
use mostrace_trace::answer::Answer;
use mostrace_trace::sums::Totals;
use mostrace_trace::sums::{Groups, Label};
use mostrace_trace::transactions::{Database, Transactions};

/// Number of processes and files that are shown one by one.
const TOP: usize = 20;

const SPANS: &str = "a request that spans groups counts in each of them, and once in the total; \
    flushes and discards have no class";
const DIRTIERS: &str =
    "who made the pages dirty, whoever submitted them; -: not known, or no pages of the page cache";
const TIMES: &str = "q2d: from the submission to the device, d2c: from there to the completion; once for each request";
const CERTAINTY: &str = "exact: all changes of the bytes are of one cause; shared: all of the named causes; first: others may have changed \
    them too; set: of one of several; proportional: part of a whole transaction or checkpoint";
const NO_FILE: &str = "-: the filesystem's own blocks, blocks without a known owner, discards, flushes that are of no file";

/// One table of a summary.
#[derive(Debug)]
pub struct Section {
    /// Its key in JSON.
    pub name: &'static str,
    /// Its heading.
    pub title: String,
    /// A note that is needed to read the table.
    pub note: Option<&'static str>,
    /// The figures.
    pub table: Table,
}

/// The whole summary.
#[derive(Debug)]
pub struct Summary {
    /// What the trace shows; None if a filter leaves out rows.
    pub answer: Option<Answer>,
    /// Time from the first completion to the last, ns.
    pub duration_ns: u64,
    /// The sums of all rows.
    pub total: Totals,
    /// The tables.
    pub sections: Vec<Section>,
}

impl Summary {
    /// Sums up the rows that pass the filter. `manifest` is None for a bare trace; `databases` are the calls of processes on their
    /// files.
    ///
    /// # Errors
    /// Returns an error if a temporary file cannot be read or the filter does not fit its columns.
    pub fn new(
        facts: &Facts,
        filter: Option<&Filter>,
        manifest: Option<&Manifest>,
        databases: &[Database],
    ) -> Result<Summary> {
        let groups = all_summed(facts, &GROUPINGS.map(Grouping::of), filter)?;
        let sizes = Sizes::new(facts, filter)?;
        let by = |name, title, note, at: usize| -> Result<Section> {
            Ok(section(name, title, note, traffic(&groups[at])?))
        };
        let mut sections = vec![
            by("by_class", "Classes", Some(SPANS), CLASS)?,
            by("by_kind", "Kinds", None, KIND)?,
            by("by_role", "Roles of regular files", Some(NO_FILE), ROLE)?,
            by("by_process", "Processes", None, PROCESS)?,
        ];
        let known = |(labels, _): &(Vec<Label>, Totals)| labels[0] != Label::Empty;
        if groups[DIRTIER].groups.iter().any(known) {
            sections.push(by("by_dirtier", "Dirtiers", Some(DIRTIERS), DIRTIER)?);
        }
        sections.extend([
            by("by_file", "Files", Some(NO_FILE), FILE)?,
            section(
                "journal_homes",
                "What the journal holds copies of",
                None,
                homes(&groups[HOME])?,
            ),
            section(
                "sizes",
                "Sizes of completed requests",
                None,
                sizes.by_size()?,
            ),
            section("order", "Order", Some(sizes::ORDER), sizes.by_order()?),
            by("by_provenance", "How owners are known", None, PROVENANCE)?,
            by(
                "by_cause_known",
                "How causes are known",
                Some(CERTAINTY),
                KNOWN,
            )?,
            section(
                "percentiles",
                "Times and sizes of requests",
                Some(TIMES),
                percentiles::table(facts, &Column::all_of(&["op"]), None, filter)?,
            ),
        ]);
        if facts.locality().is_some() {
            let by_role = locality::table(facts, &Column::all_of(&["class", "role"]), filter)?;
            sections.extend([
                section("rewrites", "Rewrites", Some(locality::DEFINITION), by_role),
                section("hottest", "Hottest ranges", None, locality::hottest(facts)?),
            ]);
        }
        if let Some(payload) = manifest.and_then(|m| m.payload.as_ref()) {
            let workload = mostrace_trace::text::escape(payload.workload.as_bytes());
            // The figures per transaction are those that `check` compares with limits.
            let charged = facts.charged(manifest, databases);
            let count = Transactions::new(manifest, &charged.own_databases()).count;
            let sums = [CLASS, ROLE].map(|at| match filter {
                None => charged.groups(GROUPINGS[at].0),
                Some(_) => groups[at].clone(),
            });
            let title = match count.divisor() {
                Some(_) => format!("Amplification: {workload}, {count} transactions"),
                None => format!("Amplification: {workload}"),
            };
            let media = manifest.and_then(amplification::media);
            let (class, role) = ("Amplification by class", "Amplification by role");
            let shares = |sums: &Groups| amplification::shares(payload, count, sums);
            sections.extend([
                section(
                    "amplification",
                    &title,
                    media.map(|_| amplification::MEDIA),
                    amplification::levels(payload, count, &sums[0].total, media)?,
                ),
                section("amplification_by_class", class, None, shares(&sums[0])?),
                section(
                    "amplification_by_role",
                    role,
                    Some(NO_FILE),
                    shares(&sums[1])?,
                ),
            ]);
        }
        let of_all = || Answer::of(&facts.for_the_answer(), manifest, databases);
        let answer = filter.is_none().then(of_all);
        Ok(Summary {
            answer,
            duration_ns: facts.duration_ns(),
            total: groups[CLASS].total,
            sections,
        })
    }
}

/// The groupings of a summary; the constants below are their indices.
const GROUPINGS: [(&[&str], Option<usize>); 9] = [
    (&["class"], None),
    (&["class", "kind"], None),
    (&["role"], None),
    (&["process"], Some(TOP)),
    (&["dirtier"], Some(TOP)),
    (&["file"], Some(TOP)),
    (&["kind", "home_kind"], None),
    (&["provenance"], None),
    (&["cause_known"], None),
];
const CLASS: usize = 0;
const KIND: usize = 1;
const ROLE: usize = 2;
const PROCESS: usize = 3;
const DIRTIER: usize = 4;
const FILE: usize = 5;
const HOME: usize = 6;
const PROVENANCE: usize = 7;
const KNOWN: usize = 8;

pub(super) fn section(
    name: &'static str,
    title: &str,
    note: Option<&'static str>,
    table: Table,
) -> Section {
    Section {
        name,
        title: title.to_owned(),
        note,
        table,
    }
}

/// Totals that the sections' tables leave out; `--by` has them.
const APART: [&str; 8] = [
    "bytes",
    "sync_writes",
    "fua_writes",
    "write_zeroes",
    "write_zeroes_bytes",
    "others",
    "other_bytes",
    "failed",
];

/// Returns the columns of a section; the last row is the total.
fn traffic(groups: &Groups) -> Result<Table> {
    let total = &groups.total;
    let share = |name: &str, f: fn(&Totals) -> u64| {
        reals(name, groups.sums().map(|t| percent(f(t), f(total))))
    };
    let mut columns = Vec::new();
    for column in table_of(groups)?.frame.columns() {
        let name = column.name().as_str();
        if APART.contains(&name) {
            continue;
        }
        columns.push(column.clone());
        match name {
            "write_bytes" => columns.push(share("write_percent", |t| t.write_bytes)),
            "read_bytes" => columns.push(share("read_percent", |t| t.read_bytes)),
            _ => {}
        }
    }
    Table::with_total(columns)
}

/// Returns those groups by kind and home that have a home.
fn homes(groups: &Groups) -> Result<Table> {
    let all = table_of(groups)?.without_total().frame;
    let with_home = all.column("home_kind")?.is_not_null();
    let homes = all.filter(&with_home)?;
    Ok(homes.select(["kind", "home_kind", "write_bytes"])?.into())
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! All that `analyze` says of a trace when it is not asked for one table.

use mostrace_bundle::Manifest;
use mostrace_bundle::manifest::State;

use super::by::By;
use super::totals::{Groups, Totals};
use super::{Table, Values, amplification, order, percent, sizes};
use crate::attribute::{Attributed, ProcessId};

/// How many processes and files are shown one by one.
const TOP: usize = 20;

const SPANS: &str = "a request that spans groups counts in each of them, and once in the total; \
    flushes and discards have no class";
const DIRTIER: &str =
    "who made the pages dirty, whoever submitted them; -: not known, or no pages of the page cache";
const NO_FILE: &str =
    "-: the filesystem's own blocks, blocks without a known owner, flushes, discards";

/// One table of a summary.
#[derive(Debug)]
pub struct Section {
    /// Its key in JSON.
    pub name: &'static str,
    /// Its heading.
    pub title: String,
    /// What has to be known to read it.
    pub note: Option<&'static str>,
    /// The figures.
    pub table: Table,
}

/// What is known of the trace beside its rows.
#[derive(Debug, Default)]
pub struct Trace<'a> {
    /// None for a bare trace.
    pub manifest: Option<&'a Manifest>,
    /// What the readers had to say.
    pub notices: Vec<String>,
    /// Whether there was a map of the filesystem.
    pub mapped: bool,
}

/// The whole.
#[derive(Debug)]
pub struct Summary {
    /// What makes the figures incomplete; comes first.
    pub warnings: Vec<String>,
    /// What else there is to know.
    pub notices: Vec<String>,
    /// From the first completion to the last, ns.
    pub duration_ns: u64,
    /// Of all rows.
    pub total: Totals,
    /// The tables.
    pub sections: Vec<Section>,
}

impl Summary {
    /// Sums up.
    pub fn new(attributed: &Attributed, trace: Trace<'_>) -> Summary {
        let total = Totals::new(attributed);
        let [
            by_class,
            by_kind,
            by_role,
            by_process,
            by_file,
            by_home,
            by_provenance,
        ] = in_parallel(
            [
                (&[By::Class][..], None),
                (&[By::Class, By::Kind], None),
                (&[By::Role], None),
                (&[By::Process], Some(TOP)),
                (&[By::File], Some(TOP)),
                (&[By::Kind, By::HomeKind], None),
                (&[By::Provenance], None),
            ]
            .map(|(by, top)| move || Groups::with_total(attributed, by, top, total)),
        );
        let section = |name, title: &str, note, table| {
            let title = title.to_owned();
            Section {
                name,
                title,
                note,
                table,
            }
        };
        let sizes = sizes::table(attributed);
        let order = order::table(attributed);
        let mut sections = vec![
            section("by_class", "Classes", Some(SPANS), traffic(&by_class)),
            section("by_kind", "Kinds", None, traffic(&by_kind)),
            section(
                "by_role",
                "Roles of regular files",
                Some(NO_FILE),
                traffic(&by_role),
            ),
            section("by_process", "Processes", None, traffic(&by_process)),
        ];
        if attributed
            .rows
            .iter()
            .any(|row| row.dirtier != ProcessId::UNKNOWN)
        {
            let by_dirtier = Groups::with_total(attributed, &[By::Dirtier], Some(TOP), total);
            let table = traffic(&by_dirtier);
            sections.push(section("by_dirtier", "Dirtiers", Some(DIRTIER), table));
        }
        sections.extend([
            section("by_file", "Files", Some(NO_FILE), traffic(&by_file)),
            section(
                "journal_homes",
                "What the journal holds copies of",
                None,
                homes(&by_home),
            ),
            section("sizes", "Sizes of completed requests", None, sizes),
            section("order", "Order", Some(order::DEFINITION), order),
            section(
                "by_provenance",
                "How owners are known",
                None,
                traffic(&by_provenance),
            ),
        ]);
        if let Some(payload) = trace.manifest.and_then(|m| m.payload.as_ref()) {
            let workload = crate::text::escape(payload.workload.as_bytes());
            let title = format!(
                "Amplification: {workload}, {} transactions",
                payload.transactions
            );
            let levels = amplification::levels(payload, &total);
            let class = amplification::shares(payload, &by_class, By::Class);
            let role = amplification::shares(payload, &by_role, By::Role);
            sections.extend([
                section("amplification", &title, None, levels),
                section(
                    "amplification_by_class",
                    "Amplification by class",
                    None,
                    class,
                ),
                section(
                    "amplification_by_role",
                    "Amplification by role",
                    Some(NO_FILE),
                    role,
                ),
            ]);
        }
        Summary {
            warnings: Summary::warnings(trace.manifest),
            notices: notices(attributed, &trace),
            duration_ns: duration(attributed),
            total,
            sections,
        }
    }

    /// What makes the figures of a bundle incomplete: losses, and a capture without an end.
    pub fn warnings(manifest: Option<&Manifest>) -> Vec<String> {
        let Some(manifest) = manifest else {
            return Vec::new();
        };
        let mut warnings = Vec::new();
        if manifest.state == State::Recording {
            warnings.push(
                "CUT SHORT: the recorder did not come to its end; its last records may be missing"
                    .into(),
            );
        }
        let lost: Vec<String> = manifest
            .losses
            .iter()
            .filter(|(_, count)| **count > 0)
            .map(|(stage, count)| format!("{} {count}", crate::text::escape(stage.as_bytes())))
            .collect();
        if !lost.is_empty() {
            warnings.push(format!(
                "LOSSY: records were lost during the capture ({})",
                lost.join(", ")
            ));
        }
        warnings
    }
}

/// Runs each in a thread of its own.
fn in_parallel<T: Send, const N: usize>(all: [impl FnOnce() -> T + Send; N]) -> [T; N] {
    std::thread::scope(|scope| {
        all.map(|one| scope.spawn(one))
            .map(|thread| match thread.join() {
                Ok(made) => made,
                Err(panic) => std::panic::resume_unwind(panic),
            })
    })
}

/// The columns of the sections, the last row being the total.
fn traffic(groups: &Groups) -> Table {
    let all = groups.table();
    let mut table = Table {
        has_total: true,
        ..Table::default()
    };
    let total = &groups.total;
    let share = |f: fn(&Totals) -> u64| {
        Values::Real(groups.sums().map(|t| percent(f(t), f(total))).collect())
    };
    for column in all.columns {
        let (name, values) = (column.name, column.values);
        match name {
            "bytes" | "sync_writes" | "fua_writes" | "write_zeroes" | "write_zeroes_bytes"
            | "others" | "failed" => {}
            "write_bytes" => {
                table.push(name, values);
                table.push("write_percent", share(|t| t.write_bytes));
            }
            "read_bytes" => {
                table.push(name, values);
                table.push("read_percent", share(|t| t.read_bytes));
            }
            _ => table.push(name, values),
        }
    }
    table
}

/// Of the groups by kind and home, those with a home.
fn homes(groups: &Groups) -> Table {
    let with_home = |(labels, _): &&(Vec<super::by::Label>, Totals)| {
        labels.get(1).is_some_and(|label| label.text().is_some())
    };
    let rows: Vec<_> = groups.groups.iter().filter(with_home).collect();
    let text = |at: usize| Values::text(rows.iter().map(|(l, _)| l.get(at).and_then(|l| l.text())));
    let mut table = Table::default();
    table.push("kind", text(0));
    table.push("home_kind", text(1));
    table.push(
        "write_bytes",
        Values::Amount(rows.iter().map(|(_, t)| Some(t.write_bytes)).collect()),
    );
    table
}

fn notices(attributed: &Attributed, trace: &Trace<'_>) -> Vec<String> {
    let mut notices = trace.notices.clone();
    if let Some(manifest) = trace.manifest {
        let text = |note: &String| crate::text::escape(note.as_bytes());
        notices.extend(manifest.notes.iter().map(text));
    }
    if !trace.mapped {
        notices.push("no map of the filesystem: what no probe saw is unmapped".into());
    }
    let left = attributed.leftovers;
    let left = [
        ("process", left.process_entries),
        ("file", left.file_entries),
        ("dirtier", left.dirtier_entries),
    ];
    for (table, entries) in left.into_iter().filter(|(_, entries)| *entries > 0) {
        notices.push(format!("{entries} {table} entries found no completion"));
    }
    notices
}

fn duration(attributed: &Attributed) -> u64 {
    let times = || attributed.requests.iter().map(|r| r.time_ns);
    times().max().unwrap_or(0) - times().min().unwrap_or(0)
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares groupings with a naive fold over the rows.

use std::collections::{BTreeMap, BTreeSet};

use mostrace_bundle::entry::{Jbd2, Origin, Stage};
use mostrace_map::class::{Kind, Provenance, Role};
use proptest::prelude::*;

use super::{Grouping, all_summed, for_the_answer, percentiles, summed};
use crate::facts::{Builder, Column, Facts, Filter};
use mostrace_trace::attribute::{
    File, FileId, JournalBlock, Leftovers, Names, Op, Process, ProcessId, Request, Row,
};
use mostrace_trace::sums::{Label, Sort, Totals};

/// A whole trace in memory, against which tables are checked.
#[derive(Clone, Debug)]
struct Attributed {
    requests: Vec<(Request, Vec<Row>)>,
    names: Names,
}

/// Makes three threads of two processes, one thread without a name, and two files with one path.
fn names() -> Names {
    let process = |pid, tgid, comm: Option<&str>| Process {
        pid,
        tgid,
        uid: pid.map(|_| 1000),
        comm: comm.map(|comm| comm.as_bytes().into()),
        process_comm: comm.map(|_| b"app"[..].into()),
        ..Process::default()
    };
    let file = |inode, path: Option<&str>, kind, role| File {
        inode,
        generation: inode.map(|_| 1),
        kind,
        path: path.map(|path| path.as_bytes().into()),
        name_withheld: false,
        provenance: path.map_or(Provenance::Unknown, |_| Provenance::Live),
        role,
        final_path: None,
    };
    Names {
        processes: vec![
            process(None, None, None),
            process(Some(10), Some(10), Some("app")),
            process(Some(11), Some(10), Some("worker")),
            process(Some(12), Some(12), None),
        ],
        files: vec![
            file(None, None, Kind::Unmapped, None),
            file(Some(12), Some("/a.db"), Kind::Regular, Some(Role::Db)),
            file(Some(13), Some("/a.db"), Kind::Regular, Some(Role::Db)),
            file(Some(14), None, Kind::Regular, None),
            file(Some(2), Some("/"), Kind::Directory, None),
        ],
        leftovers: Leftovers::default(),
        ..Names::default()
    }
}

fn row() -> impl Strategy<Value = Row> {
    let kinds = prop::sample::select(vec![
        None,
        Some(Kind::Regular),
        Some(Kind::InodeTable),
        Some(Kind::MetadataCopy),
        Some(Kind::Free),
    ]);
    let home = prop::option::of(prop::sample::select(vec![
        Kind::InodeTable,
        Kind::Directory,
    ]));
    (
        0u32..4,
        0u32..4,
        0u32..5,
        kinds,
        home,
        1u32..9,
        0u8..4,
        any::<bool>(),
    )
        .prop_map(
            |(process, dirtier, file, kind, home, pages, origin, seen)| Row {
                process: ProcessId(process),
                dirtier: ProcessId(dirtier),
                file: FileId(file),
                journal: home.map(|home_kind| JournalBlock {
                    jbd2: Jbd2::METADATA_COPY,
                    tid: Some(7),
                    ahead: 0,
                    behind: 0,
                    home_sector: Some(8),
                    home_kind: Some(home_kind),
                    home_file: FileId(file),
                }),
                bytes: pages * 4096,
                kind,
                origin: seen.then_some(Origin(origin)),
                stage: seen.then_some(Stage::ISSUE),
                q_ns: seen.then_some(u64::from(pages)),
                found: kind.map(|_| Provenance::Layout),
                ..Row::default()
            },
        )
}

fn trace() -> impl Strategy<Value = Attributed> {
    let op = prop::sample::select(Op::ALL);
    let request = (
        op,
        prop::collection::vec(row(), 1..5),
        any::<u64>(),
        any::<bool>(),
    );
    prop::collection::vec(request, 0..60).prop_map(|requests| {
        let mut trace = Attributed {
            requests: Vec::new(),
            names: names(),
        };
        for (at, (op, rows, action, failed)) in (0..).zip(requests) {
            let empty = matches!(op, Op::Flush | Op::DeviceFlush);
            let rows: Vec<Row> = rows
                .into_iter()
                .take(if empty { 1 } else { 9 })
                .map(|row| Row {
                    op,
                    bytes: if empty { 0 } else { row.bytes },
                    ..row
                })
                .collect();
            let request = Request {
                time_ns: 1000 * at,
                d_ns: (action % 3 > 0).then_some(1000 * at - at.min(action % 100)),
                action,
                bytes: rows.iter().map(|row| row.bytes).sum(),
                error: if failed { 5 } else { 0 },
                op,
                ..Request::default()
            };
            trace.requests.push((request, rows));
        }
        trace
    })
}

fn facts(trace: &Attributed, batch: usize) -> Facts {
    // Some of the batches go to temporary files.
    let mut builder = Builder::with_batch(true, batch, 5000);
    for (request, rows) in &trace.requests {
        builder.push(request, rows, None).unwrap();
    }
    builder.finish(trace.names.clone(), Vec::new())
}

fn word(word: Option<impl ToString>) -> Label {
    word.map_or(Label::Empty, |word| Label::Text(word.to_string()))
}

fn id(id: Option<impl Into<u64>>) -> Label {
    id.map_or(Label::Empty, |id| Label::Id(id.into()))
}

/// Returns a row's label in a column, by its plain definition.
fn label(trace: &Attributed, request: &Request, row: &Row, column: &str) -> Label {
    let file = trace.names.file(row.file);
    let process = |at: ProcessId| match at.0 {
        1 | 2 => Label::Text("app:10".into()),
        3 => Label::Text("?:12".into()),
        _ => Label::Empty,
    };
    match column {
        "class" => word(row.class()),
        "kind" => word(row.kind),
        "role" if row.kind.is_none() && file.is_none() => Label::Empty,
        "role" if row.kind.is_some_and(|kind| kind != Kind::Regular) => Label::Empty,
        "role" => match file.and_then(|file| file.role) {
            Some(role) => word(Some(role)),
            None => Label::Text("unknown".into()),
        },
        "process" => process(row.process),
        "dirtier" => process(row.dirtier),
        "pid" => id(trace.names.process(row.process).pid),
        "file" => match row.file.0 {
            1 | 2 => Label::Text("/a.db".into()),
            3 => Label::Text("(inode 14, generation 1)".into()),
            4 => Label::Text("/".into()),
            _ => Label::Empty,
        },
        "inode" => id(file.and_then(|file| file.inode)),
        "provenance" => word(trace.names.provenance(row)),
        "op" => word(Some(request.op.as_str())),
        "size_bytes" => id(Some(request.bytes)),
        "home_kind" => word(row.journal.and_then(|block| block.home_kind)),
        "sequential" => Label::Text("no".into()),
        _ => unreachable!("{column}"),
    }
}

/// Returns each group with the number of requests that have rows in it and their bytes there.
fn naive(
    trace: &Attributed,
    by: &[&str],
    passes: impl Fn(&Row) -> bool,
) -> BTreeMap<Vec<Label>, Totals> {
    let mut groups: BTreeMap<Vec<Label>, Totals> = BTreeMap::new();
    for (request, rows) in &trace.requests {
        let mut seen = BTreeSet::new();
        for row in rows.iter().filter(|row| passes(row)) {
            let key: Vec<Label> = by.iter().map(|c| label(trace, request, row, c)).collect();
            let new = u64::from(seen.insert(key.clone()));
            let totals = groups.entry(key).or_default();
            totals.count(Sort::of(request), new, row.bytes.into());
        }
    }
    groups
}

fn grouping(by: &[&str], top: Option<usize>) -> Grouping {
    Grouping {
        by: columns(by),
        top,
        every: None,
    }
}

fn columns(by: &[&str]) -> Vec<&'static Column> {
    by.iter().map(|name| Column::find(name).unwrap()).collect()
}

const BY: [&[&str]; 16] = [
    &["class"],
    &["kind"],
    &["role"],
    &["process"],
    &["dirtier"],
    &["pid"],
    &["file"],
    &["inode"],
    &["provenance"],
    &["op"],
    &["size_bytes"],
    &["home_kind"],
    &["sequential"],
    &["class", "file"],
    &["process", "inode", "op"],
    &["kind", "home_kind"],
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn groups_are_what_a_naive_fold_makes_of_the_rows(trace in trace(), batch in 1usize..40) {
        let facts = facts(&trace, batch);
        let sets: Vec<_> = BY.iter().map(|by| grouping(by, None)).collect();
        let all = all_summed(&facts, &sets, None).unwrap();
        let total = naive(&trace, &[], |_| true).remove(&Vec::new()).unwrap_or_default();
        for (by, groups) in BY.iter().zip(all) {
            let expected = naive(&trace, by, |_| true);
            prop_assert_eq!(groups.total, total, "{:?}", by);
            let found: BTreeMap<_, _> = groups.groups.into_iter().collect();
            prop_assert_eq!(found, expected, "{:?}", by);
        }
    }

    #[test]
    fn the_answer_sums_up_what_the_tables_do(trace in trace(), batch in 1usize..40) {
        let facts = facts(&trace, batch);
        prop_assert_eq!(facts.for_the_answer(), for_the_answer(&facts, None).unwrap());
    }

    #[test]
    fn a_filter_leaves_the_rows_that_pass(trace in trace(), batch in 1usize..40) {
        let facts = facts(&trace, batch);
        type Passes = fn(&Row) -> bool;
        let filters: [(&str, Passes); 3] = [
            ("class = 'data' AND bytes > 4096", |row| row.kind == Some(Kind::Regular) && row.bytes > 4096),
            ("pid IN (10, 12)", |row| [1, 3].contains(&row.process.0)),
            ("home_kind IS NOT NULL", |row| row.journal.is_some()),
        ];
        for (text, passes) in filters {
            let filter = Filter::parse(text).unwrap();
            let groups = summed(&facts, grouping(&["file"], None), Some(&filter)).unwrap();
            let found: BTreeMap<_, _> = groups.groups.into_iter().collect();
            prop_assert_eq!(found, naive(&trace, &["file"], passes), "{}", text);
        }
    }

    /// Requests with rows in several of the groups that are not shown count once.
    #[test]
    fn the_rest_is_one_group(trace in trace(), batch in 1usize..40, top in 0usize..4) {
        let facts = facts(&trace, batch);
        for by in [&["file"][..], &["pid"], &["kind", "home_kind"]] {
            let whole = summed(&facts, grouping(by, None), None).unwrap();
            let cut = summed(&facts, grouping(by, Some(top)), None).unwrap();
            if top >= whole.groups.len() {
                prop_assert_eq!(cut.groups, whole.groups);
                continue;
            }
            let rest = vec![Label::Rest(whole.groups.len() - top); by.len()];
            prop_assert_eq!(&cut.groups[..top], &whole.groups[..top]);
            prop_assert_eq!(&cut.groups[top].0, &rest);
            let shown: BTreeSet<_> = whole.groups[..top].iter().map(|(key, _)| key).collect();
            let mut expected = Totals::default();
            for (request, rows) in &trace.requests {
                let key = |row: &Row| -> Vec<Label> {
                    by.iter().map(|c| label(&trace, request, row, c)).collect()
                };
                let hidden: Vec<&Row> = rows.iter().filter(|row| !shown.contains(&key(row))).collect();
                let bytes = hidden.iter().map(|row| u64::from(row.bytes)).sum();
                expected.count(Sort::of(request), u64::from(!hidden.is_empty()), bytes);
            }
            prop_assert_eq!(cut.groups[top].1, expected);
        }
    }

    /// A percentile is the smallest value that the given part does not exceed: exact for sizes, and to two digits a value
    /// that occurs for times.
    #[test]
    fn percentiles_are_those_of_the_sorted_values(trace in trace(), batch in 1usize..40) {
        let facts = facts(&trace, batch);
        let table = percentiles::table(&facts, &columns(&["op"]), None, None).unwrap();
        let mut sizes: Vec<u64> = trace.requests.iter().map(|(r, _)| r.bytes.into()).collect();
        sizes.sort_unstable();
        let last = table.len() - 1;
        let cell = |name: &str| table.frame.column(name).unwrap().i64().unwrap().get(last);
        prop_assert_eq!(cell("requests"), Some(sizes.len() as i64));
        let Some(&most) = sizes.last() else { return Ok(()) };
        prop_assert_eq!(cell("size_max_bytes"), Some(most as i64));
        let times = trace.requests.iter().filter_map(|(r, _)| r.time_ns.checked_sub(r.d_ns?));
        let mut times: Vec<u64> = times.collect();
        times.sort_unstable();
        let exact = |values: &[u64], part: f64| {
            let rank = ((values.len() as f64 * part).ceil() as usize).max(1);
            values.get(rank - 1).copied()
        };
        for (name, part) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
            let found = cell(&format!("size_{name}_bytes")).map(|size| size as u64);
            prop_assert_eq!(found, exact(&sizes, part), "{}", name);
            let found = cell(&format!("d2c_{name}_ns")).map(|time| time as u64);
            let (Some(found), Some(exact)) = (found, exact(&times, part)) else {
                prop_assert!(found.is_none() && times.is_empty());
                continue;
            };
            prop_assert!(times.contains(&found), "{name}: {found} is none of the times");
            let most = exact as f64 * 1.01 + 1.0;
            prop_assert!(found >= exact && found as f64 <= most, "{name}: {found} for {exact}");
        }
    }
}

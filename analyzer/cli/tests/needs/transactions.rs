// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transactions are counted once and correctly: compared with SQLite's own hooks, in all modes, in one recording. The tests
//! run one at a time, because the recorder's signal handlers belong to the process.

use crate::run;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use mostrace_tables::analysis::{Analysis, Options};
use mostrace_trace::causes::Sharing;
use mostrace_trace::transactions::{Count, Transactions};
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, one_by_one, tests};

const LIVE: [Need; 3] = [Need::Loop, Need::Btf, Need::Tool("python3", "python3")];

pub fn suite() -> Suite {
    one_by_one(tests![
        every_kind_is_counted_as_sqlite_does needs LIVE,
        segments_have_no_transaction_twice needs LIVE,
    ])
}

/// The processes of each case, and what SQLite's hooks counted in them.
type Truth = BTreeMap<String, (Vec<u32>, u64)>;

/// The cases whose counts must be exact, without "at least": the recorded calls contain everything
/// that the count needs.
const EXACT: [&str; 36] = [
    "delete, off",
    "delete, full",
    "truncate, off",
    "truncate, full",
    "persist, off",
    "persist, full",
    "wal, off, pages of 512",
    "wal, full, pages of 4096",
    "wal, normal, pages of 4096",
    "exclusive, delete",
    "exclusive, persist",
    "exclusive, truncate, off",
    "exclusive, wal",
    "mmap, delete",
    "mmap, wal",
    "attached, delete",
    "attached, truncate",
    "attached, persist",
    "attached, three of delete",
    "savepoints, delete",
    "savepoints, wal",
    "savepoints that spill, wal",
    "rolled back, delete",
    "rolled back, persist",
    "vacuum, delete",
    "spilled, delete",
    "spilled, wal",
    "spilled, rolled back, delete",
    "spilled, rolled back, wal",
    "four processes, delete",
    "four processes, wal",
    "torn sectors, wal, full, pages of 4096",
    "torn sectors, wal, normal",
    "delete, off, beside sync()",
    "a name without an ending, delete",
    "no SQLite: notes and notes-journal",
];

struct Recorded {
    folder: tempfile::TempDir,
    truth: Truth,
}

/// Runs the cases on a disk of their own, and records them.
fn recorded(options: &[&str], cases: &[&str]) -> Recorded {
    let disk = LoopExt4::new(&LoopOptions {
        size_mib: 256,
        ..LoopOptions::default()
    })
    .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transactions/cases.py");
    let truth = folder.path().join("truth.json");
    let mut record = run::record(disk.device(), folder.path().join("run.most"));
    record.args(["--causes=bpf", "--entries=bpf", "--source=bpf"]);
    record.args(options).args(["--", "python3"]).arg(script);
    run::succeeds(record.arg(disk.mount_point()).arg(&truth).args(cases));
    let truth = serde_json::from_str(&fs::read_to_string(truth).unwrap()).unwrap();
    Recorded { folder, truth }
}

/// Returns the count for some processes; None if they called nothing in the recording.
fn counted(analysis: &Analysis, pids: &[u32]) -> Option<Count> {
    let manifest = analysis.manifest();
    let mut databases = analysis.databases.clone();
    databases.retain(|database| pids.contains(&database.tgid));
    (!databases.is_empty()).then(|| Transactions::shown(manifest, &databases))
}

fn open(path: &Path) -> Analysis {
    let options = Options {
        causes: Some(Sharing::default()),
        ..Options::default()
    };
    Analysis::open(path, &options).unwrap()
}

fn every_kind_is_counted_as_sqlite_does() {
    let recorded = recorded(&[], &[]);
    let analysis = open(&recorded.folder.path().join("run.most"));
    // Lost blocks do not matter for these counts.
    let losses = &analysis.manifest().unwrap().losses;
    assert_eq!([losses["causes_ring"], losses["causes_tasks"]], [0, 0]);
    let mut wrong = Vec::new();
    println!("{:<45} {:>7} said", "case", "SQLite");
    for (case, (pids, commits)) in &recorded.truth {
        let count = counted(&analysis, pids).unwrap();
        println!("{case:<45} {commits:>7} {count} ({})", count.sure.as_str());
        let is_right = match count.is_exact() {
            true => count.least == *commits,
            false => count.least <= *commits && !EXACT.contains(&case.as_str()),
        };
        if !is_right {
            wrong.push(format!("{case}: {commits}, and not {count}"));
        }
    }
    assert!(recorded.truth.len() >= 60, "{}", recorded.truth.len());
    assert_eq!(wrong, Vec::<String>::new());
}

fn segments_have_no_transaction_twice() {
    let cases = ["slow, delete, off", "slow, wal"];
    let recorded = recorded(&["--segment", "1s"], &cases);
    let mut segments: Vec<PathBuf> = fs::read_dir(recorded.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "most"))
        .collect();
    segments.sort();
    assert!(segments.len() > 1, "{segments:?}");
    let analyses: Vec<Analysis> = segments.iter().map(|path| open(path)).collect();
    for (case, (pids, commits)) in &recorded.truth {
        let counts = analyses.iter().filter_map(|a| counted(a, pids));
        let counts: Vec<Count> = counts.collect();
        let sum: u64 = counts.iter().map(|count| count.least).sum();
        let is_exact = counts.iter().all(|count| count.is_exact());
        assert!(sum <= *commits, "{case}: {commits}, and not {sum}");
        assert!(
            sum == *commits || !is_exact,
            "{case}: {commits}, {counts:?}"
        );
        assert!(
            sum + segments.len() as u64 > *commits,
            "{case}: {commits}, {counts:?}"
        );
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every way to change a file (docs/CHANGES.md), on ext4 and on overlays over it: whose bytes are in a block decides who must have
//! been named. The tests run one at a time, because each asks for a whole recording.

use crate::run;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use mostrace_bundle::Bundle;
use run::{json, mostrace, record, succeeds};
use serde_json::Value;
use test_support::loopdev::{LoopExt4, LoopOptions, unmount};
use test_support::{Need, Suite, nothing_lost, one_by_one, tests};

const PERL: Need = Need::Tool("perl", "perl-base");
/// Two programs write to the same pages before the kernel writes them back.
const ALL: [Need; 4] = [Need::Loop, Need::Btf, Need::NoSync, PERL];
const OVERLAY: [Need; 5] = [
    Need::Loop,
    Need::Btf,
    Need::NoSync,
    PERL,
    Need::Filesystem("overlay"),
];
const WAYS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/guest/ways.pl");
/// The rows of files with their causers, as ways.pl wants them.
const ROWS: &str = "SELECT path, e.sector, e.bytes AS row_bytes, c.cause_comm, c.cause_known, c.bytes AS share, e.completion \
    FROM events e JOIN causes c ON e.completion = c.completion AND e.sector = c.sector \
    WHERE e.op = 'write' AND e.kind = 'regular' ORDER BY e.completion";
/// The layouts of overlays: their options beside the folders. A container's runtime puts one layer on the other, and may move folders
/// and copy metadata alone.
const LAYOUTS: [&str; 3] = [
    "",
    ",index=on,redirect_dir=on",
    ",metacopy=on,redirect_dir=on",
];

pub fn suite() -> Suite {
    one_by_one(tests![
        the_page_lists_every_way needs [PERL],
        every_way_is_judged_by_contents_on_ext4 needs ALL,
        every_way_is_judged_by_contents_on_overlays needs OVERLAY,
        sqlite_on_an_overlay_is_told_as_beside_it needs OVERLAY,
    ])
}

fn perl(args: &[&str]) -> String {
    let said = succeeds(Command::new("perl").arg(WAYS).args(args));
    said.out
}

/// The first column of the page's table has the test's own words.
fn the_page_lists_every_way() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/CHANGES.md");
    let page = fs::read_to_string(page).unwrap();
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let listed: Vec<&str> = rows
        .flat_map(|row| row.split('|').nth(1).unwrap().split(','))
        .map(|way| way.trim().trim_matches('`'))
        .collect();
    let ways = perl(&["list"]);
    let ways: BTreeSet<&str> = ways.lines().collect();
    assert_eq!(listed.len(), ways.len());
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), ways);
}

fn disk() -> LoopExt4 {
    let options = LoopOptions {
        size_mib: 256,
        mkfs: ["-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"]
            .map(Into::into)
            .to_vec(),
        ..LoopOptions::default()
    };
    LoopExt4::new(&options).unwrap()
}

/// A folder on a disk of its own: the root of an ext4, or an overlay whose folders are on the ext4.
struct Place {
    disk: LoopExt4,
    /// Where the overlay is mounted.
    overlay: Option<tempfile::TempDir>,
}

impl Place {
    fn ext4() -> Place {
        Place {
            disk: disk(),
            overlay: None,
        }
    }

    /// Mounts an overlay. The files that are there before the recording are in the lowest of its two lower folders.
    fn overlay(options: &str) -> Place {
        let disk = disk();
        let at = |name: &str| disk.mount_point().join(name).display().to_string();
        let [lower, base, upper, work] = ["lower", "base", "upper", "work"].map(at);
        for folder in [&lower, &base, &upper, &work] {
            fs::create_dir(folder).unwrap();
        }
        perl(&["make", &base]);
        let options = format!("lowerdir={lower}:{base},upperdir={upper},workdir={work}{options}");
        let overlay = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "overlay", "overlay", "-o", &options]);
        succeeds(mount.arg(overlay.path()));
        Place {
            disk,
            overlay: Some(overlay),
        }
    }

    fn path(&self) -> PathBuf {
        match &self.overlay {
            Some(overlay) => overlay.path().to_owned(),
            None => self.disk.mount_point(),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(overlay) = &self.overlay {
            let _ = unmount(overlay.path());
        }
    }
}

/// What was recorded of a command in a place.
struct Recorded {
    place: Place,
    results: tempfile::TempDir,
}

impl Recorded {
    /// Records a command, whose last argument is the place.
    fn of(command: &[&str], place: Place) -> Recorded {
        let results = tempfile::tempdir().unwrap();
        let out = results.path().join("run.most");
        let mut record = record(place.disk.device(), &out);
        record.args(["--sync", "--"]).args(command);
        succeeds(record.arg(place.path()));
        nothing_lost(&Bundle::open(&out).unwrap().manifest().losses);
        Recorded { place, results }
    }

    fn bundle(&self) -> String {
        self.results.path().join("run.most").display().to_string()
    }
}

/// Records all ways in a place and judges them by the bytes on the disk; returns what ways.pl says of each way.
fn judged(place: Place) -> String {
    let recorded = Recorded::of(&["perl", WAYS, "do"], place);
    let rows = recorded.results.path().join("rows.csv");
    fs::write(
        &rows,
        mostrace(&["query", &recorded.bundle(), ROWS, "--format", "csv"]),
    )
    .unwrap();
    fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
    let device = recorded.place.disk.device();
    perl(&["judge", device.to_str().unwrap(), rows.to_str().unwrap()])
}

/// Whoever changes a file is named, whether or not all others are. Stores to a mapping are not seen.
#[track_caller]
fn assert_seen(said: &str) {
    let unseen: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("NOT SEEN") && !line.starts_with("mmap_store"))
        .collect();
    assert!(unseen.is_empty(), "{unseen:#?}");
    // Were nothing ever exact, no claim could be wrong.
    let nothing = BTreeMap::from([("aaaA/exact", 32768)]);
    assert_eq!(claims(said, "nothing: unchanged: "), nothing);
    let shared = [
        ("aaaA/exact", 28672),
        ("aaaA/shared", 2048),
        ("zzzZ/shared", 2048),
    ];
    assert_eq!(claims(said, "pwrite64: seen: "), BTreeMap::from(shared));
}

/// Returns the bytes of each word in a way's line. A file may lie in several pieces, of which each has a list.
#[track_caller]
fn claims<'s>(said: &'s str, begins: &str) -> BTreeMap<&'s str, u64> {
    let line = said.lines().find_map(|line| line.strip_prefix(begins));
    let line = line.unwrap_or_else(|| panic!("no {begins}: {said}"));
    let mut sums = BTreeMap::new();
    for claim in line.split([';', ',']) {
        let (word, bytes) = claim.trim().rsplit_once(' ').unwrap();
        *sums.entry(word).or_default() += bytes.parse::<u64>().unwrap();
    }
    sums
}

fn every_way_is_judged_by_contents_on_ext4() {
    assert_seen(&judged(Place::ext4()));
}

fn every_way_is_judged_by_contents_on_overlays() {
    for options in LAYOUTS {
        let said = judged(Place::overlay(options));
        assert_seen(&said);
        assert!(said.contains("\ncopy_up: seen"), "{options}: {said}");
    }
}

/// What is told of SQLite: its transactions, and its calls by the role of their file.
fn told(place: Place) -> (i64, Value) {
    let program = mostrace_path();
    let script = "\"$0\" workload sqlite --transactions 20 \"$1/a.db\"";
    let recorded = Recorded::of(&["sh", "-c", script, &program], place);
    let bundle = recorded.bundle();
    let tree = json(&["analyze", &bundle, "--tree", "--json"]);
    let owners = tree["owners"].as_array().unwrap();
    let owner = owners.iter().find(|owner| owner["database"].is_string());
    let owner = owner.unwrap_or_else(|| panic!("no database: {owners:#?}"));
    let transactions = owner["transactions"].as_i64().unwrap();
    // Each commit waits for flushes of the device, whose cause is the program.
    let of = ["analyze", &bundle, "--by", "cause_comm", "--json"];
    let flushes = json(&[&of[..], &["--where", "op = 'flush'"]].concat());
    let mut flushes = flushes.as_array().unwrap().iter();
    let flushes = flushes.find(|row| row["cause_comm"] == "mostrace");
    let flushes = flushes.and_then(|row| row["flushes"].as_i64());
    assert!(flushes > Some(transactions), "{flushes:?}");
    let calls = serde_json::json!({
        "sure": owner["transactions_sure"],
        "calls": owner["write_calls"],
    });
    (transactions, calls)
}

fn mostrace_path() -> String {
    env!("CARGO_BIN_EXE_mostrace").to_owned()
}

fn sqlite_on_an_overlay_is_told_as_beside_it() {
    let beside = told(Place::ext4());
    assert!(beside.0 >= 20, "{beside:?}");
    for options in LAYOUTS {
        let above = told(Place::overlay(options));
        assert_eq!(above, beside, "{options}");
    }
}

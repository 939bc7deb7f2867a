// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several bundles at a time: recordings that are added up, and segments that are one recording.

use crate::run;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mostrace_bundle::{Bundle, Counter, Counters, Manifest, layout};
use run::{json, mostrace, program, sample, say, succeeds};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, one_by_one, tests, wait};

pub fn suite() -> Suite {
    one_by_one(tests![
        recordings_are_added_up,
        a_glob_is_expanded_and_a_name_counts_once,
        the_tables_of_a_query_come_to_what_events_do,
        several_are_held_against_the_first,
        what_is_of_one_recording_refuses_several,
        segments_come_to_what_one_piece_does needs [Need::Loop, Need::Btf, Need::Filesystem("tracefs")],
    ])
}

/// Returns the rows of a JSON answer.
fn rows(args: &[&str]) -> Vec<Value> {
    json(args).as_array().unwrap().clone()
}

/// Returns the values of some columns by those of others; rows of equal labels must be one.
fn table(args: &[&str], by: &[&str], of: &[&str]) -> BTreeMap<Vec<String>, Vec<i64>> {
    let mut table = BTreeMap::new();
    for row in rows(args) {
        let label = by.iter().map(|name| row[name].to_string()).collect();
        let values = of.iter().map(|name| row[name].as_i64().unwrap()).collect();
        assert_eq!(table.insert(label, values), None, "{row}");
    }
    table
}

const FIGURES: [&str; 4] = ["requests", "write_bytes", "writes", "flushes"];

fn recordings_are_added_up() {
    let (a, b) = (sample("delete"), sample("wal"));
    let by = |bundles: &[&str], by: &str| {
        let args = [&["analyze"], bundles, &["--by", by, "--json"]].concat();
        table(&args, &by.split(',').collect::<Vec<_>>(), &FIGURES)
    };
    for columns in [
        "class",
        "class,kind",
        "role",
        "cause_op",
        "comm",
        "provenance",
    ] {
        let both = by(&[&a, &b], columns);
        let mut sums = by(&[&a], columns);
        for (label, values) in by(&[&b], columns) {
            let sum = sums.entry(label).or_insert_with(|| vec![0; FIGURES.len()]);
            sum.iter_mut()
                .zip(values)
                .for_each(|(sum, more)| *sum += more);
        }
        assert_eq!(both, sums, "{columns}");
    }
    // Grouped by recording, each has its own figures.
    let apart = by(&[&a, &b], "bundle,class");
    for (name, path) in [("delete", &a), ("wal", &b)] {
        for (label, values) in by(&[path], "class") {
            let label = [vec![format!("\"{name}\"")], label].concat();
            assert_eq!(apart[&label], values);
        }
    }
    // A path is the same in both; a process and an inode without a name are each recording's own.
    let of_file = |bundles: &[&str]| by(bundles, "file");
    let database = vec!["\"/mobibench.db\"".to_owned()];
    let files = of_file(&[&a, &b]);
    if let Some(in_both) = files.get(&database) {
        let each = [&a, &b].map(|path| of_file(&[path])[&database][1]);
        assert_eq!(in_both[1], each.iter().sum::<i64>());
    }
    let processes = by(&[&a, &b], "process");
    let is_named = |label: &Vec<String>| {
        label[0] == "null" || label[0].ends_with(" (delete)\"") || label[0].ends_with(" (wal)\"")
    };
    assert!(processes.keys().all(is_named), "{:?}", processes.keys());
    // This is the whole output without --by.
    let whole = json(&["analyze", &a, &b, "--json"]);
    assert_eq!(whole["traces"].as_array().unwrap().len(), 2);
    let written = whole["total"]["write_bytes"].as_i64().unwrap();
    let one = |path: &str| {
        let one = json(&["analyze", path, "--json"]);
        one["total"]["write_bytes"].as_i64().unwrap()
    };
    assert_eq!(written, one(&a) + one(&b));
    let text = mostrace(&["analyze", &a, &b]);
    assert!(
        text.contains("2,000 transactions") || text.contains("2,002"),
        "{text}"
    );
    // The tree's leaves are everything that was written, and each process has its own calls.
    let tree = json(&["analyze", &a, &b, "--tree", "--json"]);
    assert!(tree.to_string().contains("(delete)"), "{tree}");
}

fn a_glob_is_expanded_and_a_name_counts_once() {
    let count = |bundles: &[&str]| {
        let sql = "SELECT bundle, count(*) AS n FROM events GROUP BY bundle ORDER BY bundle";
        let args = [&["query"], bundles, &[sql, "--json"]].concat();
        table(&args, &["bundle"], &["n"])
    };
    let globbed = count(&[&sample("[dw][ea]l*")]);
    let expected = count(&[&sample("delete"), &sample("wal")]);
    let names: Vec<&String> = globbed.keys().map(|key| &key[0]).collect();
    assert!(names.contains(&&"\"delete\"".to_owned()), "{names:?}");
    assert_eq!(count(&[&sample("delete"), &sample("wa?")]), expected);
    assert_eq!(
        count(&[&sample("wal"), &sample("delete"), &sample("wal")]),
        expected
    );
    // The same recording under another name is not another one.
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("copy.most.tar.zst");
    fs::copy(sample("wal"), &copy).unwrap();
    let said = say(program().args(["analyze", &sample("wal")]).arg(&copy)).ended(1);
    said.complains("the same recording as");
    let none = say(program().args(["analyze", &sample("none*")]));
    assert_eq!(
        (none.status, none.err.lines().count()),
        (Some(1), 1),
        "{}",
        none.err
    );
}

fn the_tables_of_a_query_come_to_what_events_do() {
    let (a, b) = (sample("delete"), sample("wal"));
    for bundles in [&[a.as_str()][..], &[&a, &b]] {
        let one = |sql: &str| -> Vec<i64> {
            let rows = rows(&[&["query"], bundles, &[sql, "--json"]].concat());
            let row = rows[0].as_object().unwrap();
            row.values().map(|sum| sum.as_i64().unwrap_or(0)).collect()
        };
        let written = one("SELECT sum(bytes) AS b FROM events WHERE op = 'write'");
        let read = one("SELECT sum(bytes) AS b FROM events WHERE op = 'read'");
        let flushes = one("SELECT count(*) AS n FROM events WHERE op = 'flush'");
        for table in ["requests", "causes"] {
            let sum = |op: &str| {
                one(&format!(
                    "SELECT sum(bytes) AS b FROM {table} WHERE op = '{op}'"
                ))
            };
            assert_eq!(
                (sum("write"), sum("read")),
                (written.clone(), read.clone()),
                "{table}"
            );
        }
        for table in ["processes", "files"] {
            let sums = one(&format!(
                "SELECT sum(write_bytes) AS a, sum(read_bytes) AS b, sum(flushes) AS c FROM {table}"
            ));
            assert_eq!(sums, [&written[..], &read, &flushes].concat(), "{table}");
        }
        // The query joins one table with the other.
        let joined = one(
            "SELECT sum(e.bytes) AS b FROM events AS e JOIN requests AS r \
             ON e.completion = r.completion WHERE r.op = 'write'",
        );
        assert_eq!(joined, written);
        let count = one("SELECT count(*) AS n FROM transactions")[0];
        let each = 1000..1004;
        let recordings = bundles.len() as i64;
        assert!(
            (each.start * recordings..each.end * recordings).contains(&count),
            "{count}"
        );
        let odd = "SELECT count(*) AS n FROM transactions WHERE duration_ns <> end_ns - start_ns OR database <> '/app/test.db'";
        assert_eq!(one(odd), [0]);
        let requests = one("SELECT sum(events) AS n FROM requests");
        assert_eq!(requests, one("SELECT count(*) AS n FROM events"));
    }
    let wrong = say(program().args(["query", &a, "SELECT nosuch FROM files"])).ended(2);
    wrong.complains("SELECT nosuch FROM files: no column nosuch; mostrace schema lists all");
}

fn several_are_held_against_the_first() {
    let names = ["delete", "truncate", "persist", "wal"];
    let paths = names.map(sample);
    let args: Vec<&str> = ["diff"]
        .into_iter()
        .chain(paths.iter().map(String::as_str))
        .collect();
    let text = mostrace(&args);
    let lines: Vec<&str> = text.lines().collect();
    for (line, name) in lines.iter().zip(&names[1..]) {
        assert!(line.starts_with(&format!("{name} writes ")), "{line}");
        let pair = mostrace(&["diff", &paths[0], &sample(name)]);
        assert_eq!(pair.lines().next(), Some(*line));
    }
    let headed = ["a: delete", "b: truncate", "c: persist", "d: wal"];
    let heads = lines.iter().filter(|line| headed.contains(line));
    assert!(heads.eq(&headed), "{text}");
    let all = json(&[&args[..], &["--json"]].concat());
    for (letter, (name, path)) in ["a", "b", "c", "d"].iter().zip(names.iter().zip(&paths)) {
        assert_eq!(all[letter]["name"], **name);
        let of_one = table(
            &["analyze", path, "--by", "class", "--json"],
            &["class"],
            &["write_bytes"],
        );
        let total: i64 = of_one.values().map(|bytes| bytes[0]).sum();
        assert_eq!(all["total"][0][letter], total, "{name}");
        let column = format!("{letter}_write_bytes");
        let classes = all["by_class"].as_array().unwrap();
        assert_eq!(
            classes
                .iter()
                .map(|row| row[&column].as_i64().unwrap())
                .sum::<i64>(),
            total
        );
    }
    assert!(
        all["by_layer"][0]["d_change_percent"].is_number(),
        "{}",
        all["by_layer"]
    );
}

fn what_is_of_one_recording_refuses_several() {
    let (a, b) = (sample("delete"), sample("wal"));
    let several = "this needs a single recording";
    for args in [
        &["export", &a, &b, "--format", "iolog"][..],
        &["export", &a, &b, "--format", "blkparse"],
    ] {
        let said = say(program().args(args)).ended(2);
        said.complains(several);
    }
    // Sums are added up, and a data set has files for each recording.
    let weight = |bundles: &[&str]| -> u64 {
        let args = [&["export"], bundles, &["--format", "folded"]].concat();
        let lines = mostrace(&args);
        let weights = lines.lines().map(|line| line.rsplit_once(' ').unwrap().1);
        weights.map(|weight| weight.parse::<u64>().unwrap()).sum()
    };
    assert_eq!(weight(&[&a, &b]), weight(&[&a]) + weight(&[&b]));
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().to_str().unwrap();
    mostrace(&["export", &a, &b, "--format", "dataset", "-o", folder]);
    let lines = mostrace(&["export", &a, &b, "--format", "identity"]);
    assert_eq!(lines.lines().count(), 2);
    for line in lines.lines() {
        let [id, day, _] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        for table in ["events", "files"] {
            let path = format!("{table}/day={day}/{id}.parquet");
            assert!(dir.path().join(&path).exists(), "{path}");
        }
    }
    let page = dir.path().join("two.html");
    mostrace(&[
        "report",
        &sample("[dw][ea]l*"),
        "-o",
        page.to_str().unwrap(),
    ]);
    assert!(fs::metadata(page).unwrap().len() > 100_000);
}

/// How many attempts are made to record without a loss.
const TRIES: usize = 5;

/// Two recorders record one disk at the same time: one in one piece, with events of the kernel's own tracer, and one in
/// segments, with events of our own probes.
fn segments_come_to_what_one_piece_does() {
    let disk = LoopExt4::new(&LoopOptions {
        size_mib: 256,
        // Nothing but the workload must write.
        mkfs: ["-E", "lazy_itable_init=0,lazy_journal_init=0"]
            .map(Into::into)
            .into(),
        ..LoopOptions::default()
    })
    .unwrap();
    // The kernel may keep a probe from seeing a completion; the recorder reports that, and then the two cannot be equal.
    let dir = (0..TRIES).find_map(|_| recorded_twice(&disk));
    let dir = dir.expect("two recordings without a loss");
    let apart = segments(dir.path());
    let [whole, cut] = ["whole.most", "cut.most"].map(|name| dir.path().join(name));
    let [whole, cut] = [&whole, &cut].map(|path| path.to_str().unwrap());
    assert!(!Path::new(cut).exists() && apart.len() >= 4, "{apart:?}");

    // The recording in one piece began earlier and ended later.
    let [first, second, last] =
        [&apart[0], &apart[1], apart.last().unwrap()].map(|path| manifest(path).clock);
    let within = format!(
        "time_ns >= {} AND time_ns < {}",
        first.start_mono_ns, last.stop_mono_ns
    );
    let sums = |path: &str, by: &str| {
        let writes = format!("op = 'write' AND {within}");
        let args = ["analyze", path, "--by", by, "--where", &writes, "--json"];
        let by: Vec<&str> = by.split(',').collect();
        table(&args, &by, &["writes", "write_bytes"])
    };
    for by in [
        "class,kind",
        "process",
        "file",
        "role",
        "dirtier",
        "cause_process,cause_op",
        "cause_file,cause_known",
    ] {
        let (cut, whole) = (sums(cut, by), sums(whole, by));
        let differ = |label: &&Vec<String>| cut.get(*label) != whole.get(*label);
        let labels = cut.keys().chain(whole.keys()).filter(differ);
        let differ: Vec<_> = labels.map(|of| (of, cut.get(of), whole.get(of))).collect();
        assert!(differ.is_empty(), "{by}: {differ:?}");
    }
    // Others may make the disk flush all the time, also before the first segment's probes record and while the last one's end. The work
    // lies between these segments.
    let inside = format!(
        "time_ns >= {} AND time_ns < {}",
        second.start_mono_ns, last.start_mono_ns
    );
    let rows_of = |path: &str| {
        let sql = format!(
            "SELECT op, count(*) AS n, sum(bytes) AS b FROM events WHERE op != 'read' AND {inside} GROUP BY op"
        );
        table(&["query", path, &sql, "--json"], &["op"], &["n", "b"])
    };
    assert_eq!(rows_of(cut), rows_of(whole));
    // The kernel's own count agrees with the segments.
    let bytes = |path: &str| -> i64 { sums(path, "class").values().map(|sums| sums[1]).sum() };
    let written = bytes(cut);
    let counted = counted(&apart);
    assert_eq!(counted.traced, written as u64);
    assert!(counted.agrees(), "{counted}");
    let each = apart.iter().map(|path| bytes(path.to_str().unwrap()));
    assert_eq!(each.sum::<i64>(), written);
    // Named one by one, in any order, they are the same recording; a missing one is reported.
    let mut named: Vec<&str> = apart.iter().map(|path| path.to_str().unwrap()).collect();
    named.reverse();
    let sql = "SELECT count(*) AS n, sum(bytes) AS b FROM events";
    let count = |bundles: &[&str]| rows(&[&["query"], bundles, &[sql, "--json"]].concat());
    assert_eq!(count(&named), count(&[cut]));
    fs::remove_dir_all(&apart[1]).unwrap();
    let gap = succeeds(program().args(["analyze", "--by", "class", cut]));
    gap.complains("INCOMPLETE: the recording began earlier: segment 3");
}

/// Records the same work with both at once; None if one of them lost something.
fn recorded_twice(disk: &LoopExt4) -> Option<tempfile::TempDir> {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let record = |name: &str, arguments: &[&str]| {
        let mut command = run::record(disk.device(), at(name));
        command
            .args(arguments)
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut whole = record("whole.most", &["--source", "tracefs"]);
    // A read is an event, and changes nothing.
    let input = format!("if={}", disk.device().display());
    wait::until("the recording", || {
        let mut read = Command::new("dd");
        read.args([&input, "of=/dev/null", "iflag=direct", "bs=4096", "count=1"]);
        assert!(read.stderr(Stdio::null()).status().unwrap().success());
        has_events(&at("whole.most"))
    });
    // No transaction is open whose beginning only one of them has seen.
    let sync = Command::new("sync")
        .arg("-f")
        .arg(disk.mount_point())
        .status();
    assert!(sync.unwrap().success());
    let mut cut = record("cut.most", &["--source", "bpf", "--segment", "1s"]);
    wait::until("two segments", || at("cut.0002.most").exists());
    work(&disk.mount_point());
    // What was in flight is completed, as the next segments show.
    let now = segments(dir.path()).len();
    wait::until("two more segments", || segments(dir.path()).len() > now + 2);
    for child in [&mut cut, &mut whole] {
        kill_process(Pid::from_child(child), Signal::INT).unwrap();
        child.wait().unwrap();
    }
    let mut all = segments(dir.path());
    all.push(at("whole.most"));
    all.iter()
        .all(|path| is_whole(&manifest(path)))
        .then_some(dir)
}

/// Returns true if a recording has events of any CPU.
fn has_events(bundle: &Path) -> bool {
    let files = fs::read_dir(bundle).into_iter().flatten().flatten();
    let mut names = files.map(|file| file.file_name());
    names.any(|name| layout::cpu_of(&name.to_string_lossy()).is_some())
}

fn is_whole(manifest: &Manifest) -> bool {
    let counters = manifest.counters.as_ref();
    let is_whole = manifest.losses.values().all(|&lost| lost == 0)
        && counters.is_some_and(|counters| counters.differences().next().is_none());
    if !is_whole {
        let segment = manifest.segment.as_ref().map(|segment| segment.number);
        eprintln!("lost in {segment:?}: {:?}, {counters:?}", manifest.losses);
    }
    is_whole
}

/// Runs SQLite in two modes, and creates, renames and removes files, for some seconds.
fn work(place: &Path) {
    for (journal, name) in [("delete", "a.db"), ("wal", "b.db")] {
        let database = place.join(name);
        let database = database.to_str().unwrap();
        let arguments = ["--journal", journal, "--transactions", "100", database];
        mostrace(&[&["workload", "sqlite"][..], &arguments].concat());
        fs::remove_file(database).unwrap();
    }
    let script = "for i in $(seq 40); do head -c 20000 /dev/zero > f$i; sync f$i; mv f$i g$i; \
                  sleep 0.03; rm -f g$((i - 5)); done; rm -f g*; sync -f .";
    let done = Command::new("sh")
        .args(["-c", script])
        .current_dir(place)
        .status();
    assert!(done.unwrap().success());
}

fn manifest(path: &Path) -> Manifest {
    Bundle::open(path).unwrap().manifest().clone()
}

/// Returns the segments in their order.
fn segments(dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    let is_segment = |path: &PathBuf| path.to_string_lossy().contains("cut.0");
    let mut segments: Vec<PathBuf> = files.filter(is_segment).collect();
    segments.sort();
    segments
}

/// Returns the kernel's count of bytes written while these were recorded.
fn counted(segments: &[PathBuf]) -> Counter {
    let bytes = |path: &PathBuf| match manifest(path).counters {
        Some(Counters::Compared(of)) => of["write_bytes"],
        other => panic!("{other:?}"),
    };
    let each = segments.iter().map(bytes);
    each.reduce(|sum, more| sum.plus(&more)).unwrap()
}

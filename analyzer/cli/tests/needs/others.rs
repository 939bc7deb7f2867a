// SPDX-License-Identifier: MIT OR Apache-2.0
//! Limits on a filesystem that others write to as well: what others are known to have caused does not count. The tests run one
//! at a time, because the signal handlers belong to the process.

use crate::run;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use mostrace_bundle::entry::{Entry, fork_flags};
use mostrace_bundle::{Bundle, layout};
use run::{Said, mostrace, program, record, say, succeeds};
use serde_json::Value;
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, one_by_one, tests};

const LIVE: [Need; 2] = [Need::Loop, Need::Btf];
const STRACE: [Need; 4] = [
    Need::Loop,
    Need::Btf,
    Need::Ptrace,
    Need::Tool("strace", "strace"),
];
const MIB: u64 = 1 << 20;

pub fn suite() -> Suite {
    one_by_one(tests![
        what_others_write_is_not_counted needs LIVE,
        a_limit_per_byte_passed_to_write_is_of_the_command needs LIVE,
        a_figure_per_transaction_is_the_same_everywhere needs LIVE,
        the_tree_is_what_strace_sees needs STRACE,
        a_later_segment_knows_the_processes_of_before needs LIVE,
        without_a_table_everything_counts_and_is_said needs LIVE,
        alone_everything_counts needs LIVE,
        the_recording_is_kept_off_the_measured_disk needs LIVE,
    ])
}

fn disk() -> LoopExt4 {
    LoopExt4::new(&LoopOptions {
        size_mib: 256,
        ..LoopOptions::default()
    })
    .unwrap()
}

/// Forks, leaves a daemon that writes after its parents have ended, and writes itself: 2 MiB in all.
const APP: &str =
    "(setsid sh -c 'sleep 0.5; head -c 1048576 /dev/zero >daemon; sync daemon' >/dev/null 2>&1 &)
    sh -c 'head -c 524288 /dev/zero >child; sync child'
    head -c 524288 /dev/zero >own; sync own";

/// Measures in the root of the disk's filesystem, optionally while another process writes beside it.
fn measured(disk: &LoopExt4, output: &Path, limits: &[&str], beside: bool) -> Said {
    let noise = disk.mount_point().join("noise");
    let writer = beside.then(|| {
        let mut dd = Command::new("dd");
        dd.arg("if=/dev/zero")
            .arg(format!("of={}", noise.display()));
        dd.args(["bs=1M", "count=20", "conv=fsync", "status=none"]);
        let started = disk.mount_point().join("started");
        // It begins after the recording does, and ends before it.
        let script = "while [ ! -e \"$0\" ]; do sleep 0.01; done; exec \"$@\"";
        let mut waits = Command::new("sh");
        waits
            .arg("-c")
            .arg(script)
            .arg(started)
            .arg(dd.get_program());
        waits.args(dd.get_args());
        waits.spawn().unwrap()
    });
    let script = format!("touch started; {APP}; sleep 2");
    let mut measure = program();
    measure.args(["measure", "-o"]).arg(output).args(limits);
    measure.arg("--in").arg(disk.mount_point());
    let said = say(measure.args(["--", "sh", "-c", &script]));
    if let Some(mut writer) = writer {
        assert!(writer.wait().unwrap().success());
    }
    said
}

/// Returns bytes written by whether the command caused them: `yes`, `no`, or nothing if unknown.
fn written(bundle: &Path) -> BTreeMap<Option<String>, u64> {
    let bundle = bundle.to_str().unwrap();
    let said = mostrace(&["analyze", bundle, "--by", "cause_of_command", "--json"]);
    let rows: Vec<Value> = serde_json::from_str(&said).unwrap();
    let written = rows.iter().map(|row| {
        let of = row["cause_of_command"].as_str().map(str::to_owned);
        (of, row["write_bytes"].as_u64().unwrap())
    });
    written.collect()
}

fn of(written: &BTreeMap<Option<String>, u64>, who: Option<&str>) -> u64 {
    let who = who.map(str::to_owned);
    written.get(&who).copied().unwrap_or(0)
}

/// Returns the figure that exceeds a very small limit.
fn judged(bundle: &Path) -> u64 {
    let said = say(program()
        .arg("check")
        .arg(bundle)
        .args(["--max-write-bytes", "1", "--json"]));
    let told: Value = serde_json::from_str(&said.out).unwrap();
    let figure = told["limits"][0]["value"].as_f64();
    figure.unwrap_or_else(|| panic!("{}{}", said.out, said.err)) as u64
}

fn what_others_write_is_not_counted() {
    let dir = tempfile::tempdir().unwrap();
    let [quiet, busy] = ["quiet.most", "busy.most"].map(|name| dir.path().join(name));
    let limits = ["--max-write-bytes", "3500000"];
    measured(&disk(), &quiet, &limits, false).ended(0);
    let disk = disk();
    let kept = measured(&disk, &busy, &limits, true).ended(0);
    kept.prints("\nothers wrote ");
    kept.prints(": not counted");

    let [before, beside] = [&quiet, &busy].map(|bundle| written(bundle));
    let all: Vec<Value> = serde_json::from_str(&mostrace(&[
        "analyze",
        busy.to_str().unwrap(),
        "--by",
        "op",
        "--json",
    ]))
    .unwrap();
    let total: u64 = all
        .iter()
        .filter_map(|row| row["write_bytes"].as_u64())
        .sum();
    let parts = [Some("yes"), Some("no"), None].map(|who| of(&beside, who));
    assert_eq!(parts.iter().sum::<u64>(), total, "{beside:?}");
    // The command may have caused what nobody is known for.
    assert_eq!(parts[0] + parts[2], judged(&busy), "{beside:?}");
    assert!(parts[1] >= 20 * MIB, "{beside:?}");
    // These are its files and what its handles changed: its share in a journal that it shares with others differs.
    let ours = [of(&before, Some("yes")), parts[0]];
    assert!(ours.iter().all(|&bytes| bytes >= 2 * MIB), "{ours:?}");
    assert!(ours[0].abs_diff(ours[1]) < MIB / 4, "{ours:?}");
    println!("alone {before:?}, beside a dd {beside:?}");
}

fn a_limit_per_byte_passed_to_write_is_of_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("o.most");
    measured(&disk(), &bundle, &["--max-amplification", "1.7"], true).ended(0);
    let json = ["check", "--max-amplification", "1.7", "--format", "json"];
    let told = say(program().args(json).arg(&bundle)).out;
    let told: Value = serde_json::from_str(&told).unwrap();
    let value = told["limits"][0]["value"].as_f64().unwrap();
    let bytes = judged(&bundle) as f64;
    // The value is of 2 MiB, without the 20 that dd passed to write().
    assert!((value - bytes / (2 * MIB) as f64).abs() < 0.01, "{told}");
    let others = told["not_counted"]["others_bytes"].as_u64().unwrap();
    assert!(others >= 20 * MIB, "{told}");
}

/// The recorder syncs the filesystem at the end, and another process syncs files of its own meanwhile.
fn a_figure_per_transaction_is_the_same_everywhere() {
    let (disk, dir) = (disk(), tempfile::tempdir().unwrap());
    let bundle = dir.path().join("o.most");
    let noise = disk.mount_point().join("noise");
    let beside = "while :; do date >\"$0\"; sync \"$0\"; sleep 0.02; done";
    let mut beside = Command::new("sh")
        .args(["-c", beside])
        .arg(noise)
        .spawn()
        .unwrap();
    let workload = ["workload", "sqlite", "--transactions", "60", "x.db"];
    succeeds(
        record(disk.device(), &bundle)
            .args(["-q", "--sync", "--", env!("CARGO_BIN_EXE_mostrace")])
            .args(workload)
            .current_dir(disk.mount_point()),
    );
    beside.kill().unwrap();
    beside.wait().unwrap();
    let bundle = bundle.to_str().unwrap();
    let json = |words: &[&str]| -> Value {
        let said = say(program().args(words)).out;
        serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"))
    };
    let limits = [
        "--max-flushes-per-transaction",
        "1",
        "--max-bytes-per-transaction",
        "1",
    ];
    let check = json(&[&["check", bundle, "--json"], &limits[..]].concat());
    let diff = json(&["diff", bundle, bundle, "--json"]);
    let all = json(&["analyze", bundle, "--json"]);
    let by_class = all["amplification_by_class"].as_array().unwrap();
    let sum =
        |column: &str| -> f64 { by_class.iter().filter_map(|row| row[column].as_f64()).sum() };
    for (limit, what, column) in [
        (0, "bytes written", "bytes_per_transaction"),
        (1, "device flushes", "device_flushes_per_transaction"),
    ] {
        let total = diff["total"].as_array().unwrap();
        let row = total.iter().find(|row| row["what"] == what).unwrap();
        let figures = [&check["limits"][limit]["value"], &row["a_per_transaction"]];
        let [checked, compared] = figures.map(|figure| figure.as_f64().unwrap());
        assert!(
            (checked - compared).abs() < 1e-9,
            "{what}: {checked} {compared}"
        );
        let summed = sum(column);
        assert!(
            (checked - summed).abs() < 1e-6,
            "{what}: {checked} {summed}"
        );
    }
    assert_eq!(check["not_counted"], diff["a"]["not_counted"]);
    assert!(
        check["not_counted"]["others_flushes"].as_u64().unwrap() > 0,
        "{check}"
    );
}

/// Returns the processes of the table, and the command's own.
fn recorded(bundle: &Path) -> (BTreeSet<u32>, u32) {
    let bundle = Bundle::open(bundle).unwrap();
    let mut found = BTreeSet::new();
    for entry in bundle.table(layout::FORK, false).unwrap().unwrap() {
        let Entry::Fork(fork) = entry.unwrap() else {
            panic!("no fork")
        };
        if fork.head.flags.has(fork_flags::OF_COMMAND) {
            found.insert(fork.tgid.get());
        }
    }
    let command = bundle.manifest().command.clone().unwrap();
    (found, command.pid.unwrap())
}

/// Hundreds of short-lived processes, in parallel and in turn, threads, and one that outlives its parents.
fn the_tree_is_what_strace_sees() {
    let (disk, dir) = (disk(), tempfile::tempdir().unwrap());
    let (bundle, traced) = (dir.path().join("o.most"), dir.path().join("strace"));
    let makefile = disk.mount_point().join("Makefile");
    let rule = "all: $(shell seq 200)\n%:\n\t@sh -c '/bin/true; (/bin/true) | /bin/cat'\n";
    fs::write(makefile, rule).unwrap();
    let script = "make -s -j4
        i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done
        python3 -c 'import threading,subprocess
for i in range(20):
    t = threading.Thread(target=lambda: subprocess.run([\"/bin/true\"])); t.start(); t.join()'
        (setsid sh -c 'sleep 0.3; /bin/true' &)";
    succeeds(
        record(disk.device(), &bundle)
            .args(["-q", "--", "strace", "-f", "-q", "-e", "trace=none", "-o"])
            .arg(&traced)
            .args(["sh", "-c", script])
            .current_dir(disk.mount_point()),
    );
    let (found, command) = recorded(&bundle);
    // There is a line for each thread's end. Threads are those whose number is not a process's.
    let text = fs::read_to_string(&traced).unwrap();
    let ended: BTreeSet<u32> = text
        .lines()
        .filter(|line| line.contains("+++ exited") || line.contains("+++ killed"))
        .map(|line| line.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert!(found.len() > 800, "{}", found.len());
    let unseen: Vec<&u32> = ended.difference(&found).collect();
    // Python's threads are not processes.
    assert_eq!(unseen.len(), 20, "{unseen:?}");
    // These are strace itself, which is the command, and what it probes its kernel with.
    let own: Vec<&u32> = found.difference(&ended).collect();
    assert!(own.contains(&&command), "{own:?}");
    println!("{} processes, of strace's own {own:?}", found.len());
    assert!(own.len() <= 3, "{own:?}");
}

fn a_later_segment_knows_the_processes_of_before() {
    let (disk, dir) = (disk(), tempfile::tempdir().unwrap());
    let file = disk.mount_point().join("late");
    let script = format!(
        "sh -c 'sleep 2.5; head -c 1048576 /dev/zero >{0}; sync {0}'",
        file.display()
    );
    let mut record = record(disk.device(), dir.path().join("o.most"));
    succeeds(record.args(["-q", "--segment", "1s", "--", "sh", "-c", &script]));
    let segments = (1..).map(|number| dir.path().join(format!("o.{number:04}.most")));
    let segments: Vec<_> = segments.take_while(|path| path.exists()).collect();
    assert!(segments.len() >= 3, "{segments:?}");
    let trees: Vec<_> = segments.iter().map(|path| recorded(path)).collect();
    // Both were started in the first.
    assert!(
        trees.iter().all(|tree| tree.0.contains(&tree.1)),
        "{trees:?}"
    );
    assert!(trees.windows(2).all(|two| two[0].0.is_subset(&two[1].0)));
    let ours: u64 = segments
        .iter()
        .map(|path| of(&written(path), Some("yes")))
        .sum();
    assert!((MIB..2 * MIB).contains(&ours), "{ours}");
    for path in &segments {
        let bundle = Bundle::open(path).unwrap();
        assert!(bundle.shortfalls().is_empty());
    }
}

fn without_a_table_everything_counts_and_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("o.most");
    measured(&disk(), &bundle, &["--max-write-bytes", "5M"], true).ended(0);
    let total: u64 = written(&bundle).values().sum();
    // This is what an older recorder, or one without our probes of causes, leaves.
    fs::remove_file(bundle.join(layout::FORK)).unwrap();
    let manifest = bundle.join(layout::MANIFEST);
    let mut value: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    value["files"].as_object_mut().unwrap().remove(layout::FORK);
    fs::write(&manifest, value.to_string()).unwrap();
    let check = |bundle: &Path| {
        say(program()
            .args(["check", "--max-write-bytes", "5M"])
            .arg(bundle))
    };
    let unknown = "the recording does not tell what the command's processes caused";
    check(&bundle).ended(3).prints(unknown);
    assert_eq!(written(&bundle), BTreeMap::from([(None, total)]));
    // An older manifest does not say whether others could write to the filesystem.
    let command = value["command"].as_object_mut().unwrap();
    command.retain(|name, _| ["argv", "exit_status"].contains(&name.as_str()));
    fs::write(&manifest, value.to_string()).unwrap();
    let before = check(&bundle).ended(3);
    assert!(!before.out.contains(unknown), "{}", before.out);
}

/// On a fresh filesystem nobody else writes: the journal's own writes and the recorder's count too.
fn alone_everything_counts() {
    let dir = tempfile::tempdir().unwrap();
    let bundle = dir.path().join("o.most");
    let said = succeeds(
        program()
            .args(["measure", "--empty", "--max-write-bytes", "5M", "-o"])
            .arg(&bundle)
            .args(["--", "sh", "-c", APP]),
    );
    assert!(!said.out.contains("counted"), "{}", said.out);
    let total: u64 = written(&bundle).values().sum();
    assert_eq!(judged(&bundle), total);
}

fn the_recording_is_kept_off_the_measured_disk() {
    let disk = disk();
    let temporary = disk.mount_point().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let look = "ls $TMPDIR; ls -d /dev/shm/mostrace-temporary-*/*.most";
    let measure = |output: Option<&Path>| {
        let mut measure = program();
        measure.arg("measure");
        if let Some(output) = output {
            measure.arg("-o").arg(output);
        }
        // The path is relative.
        let mount = disk.mount_point();
        measure.arg("--in").arg(mount.file_name().unwrap());
        measure.current_dir(mount.parent().unwrap());
        say(measure
            .args(["--", "sh", "-c", look])
            .env("TMPDIR", &temporary))
    };
    let aside = measure(None).ended(0);
    aside.prints("/measured.most");
    assert!(!aside.out.contains("its own writes"), "{}", aside.out);
    let asked = measure(Some(&temporary.join("o.most")));
    asked.prints("note: the bundle is on the traced disk: its own writes");
}

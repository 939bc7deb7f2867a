// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace import` of what other tools traced, beside a recording of the same run.

use crate::run;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use mostrace_bundle::Bundle;
use run::{json, mostrace, record, say, succeeds};
use serde_json::Value;
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::tracefs::Instance;
use test_support::{Need, Suite, nothing_lost, one_by_one, tests};

const TRACE_CMD: [Need; 3] = [Need::Loop, Need::Btf, Need::Tool("trace-cmd", "trace-cmd")];

pub fn suite() -> Suite {
    one_by_one(tests![
        the_text_of_ftrace_tells_what_a_recording_does needs [Need::Loop, Need::Btf, Need::NoSync],
        trace_cmd_tells_what_ftrace_does needs TRACE_CMD,
        blkparse_tells_what_its_trace_does needs [Need::Tool("blkparse", "blktrace")],
        an_iolog_tells_what_a_recording_does needs [Need::Loop, Need::Btf, Need::Tool("fio", "fio")],
    ])
}

const EVENTS: [&str; 12] = [
    "block/block_bio_queue",
    "block/block_rq_insert",
    "block/block_rq_issue",
    "block/block_rq_requeue",
    "block/block_rq_complete",
    "block/block_split",
    "block/block_bio_remap",
    "ext4/ext4_ext_map_blocks_exit",
    "ext4/ext4_free_blocks",
    "ext4/ext4_evict_inode",
    "sched/sched_process_exec",
    "task",
];

fn instance() -> Instance {
    let instance = Instance::of("imported");
    instance.put("options/record-tgid", "1");
    instance.put("buffer_size_kb", "16384");
    for event in EVENTS {
        instance.put(&format!("events/{event}/enable"), "1");
    }
    instance
}

/// Two processes, a thread, a file that goes and comes again, reads.
const SCRIPT: &str = "dd if=/dev/zero of=a bs=64k count=8 conv=fsync status=none
    dd if=/dev/zero of=b bs=4k count=33 oflag=direct status=none
    rm a
    python3 -c 'import os, threading
def write():
    with open(\"c\", \"wb\") as f:
        f.write(b\"y\" * 100000); f.flush(); os.fsync(f.fileno())
t = threading.Thread(target=write); t.start(); t.join()'
    dd if=b of=/dev/null iflag=direct bs=16k status=none";

/// Records a run while ftrace traces it, too. Returns the recording and the instance.
fn recorded(disk: &LoopExt4, dir: &Path) -> (PathBuf, Instance) {
    let bundle = dir.join("o.most");
    let instance = instance();
    succeeds(
        record(disk.device(), &bundle)
            .args(["-q", "--sync", "--", "sh", "-c", SCRIPT])
            .current_dir(disk.mount_point()),
    );
    instance.put("tracing_on", "0");
    nothing_lost(&Bundle::open(&bundle).unwrap().manifest().losses);
    (bundle, instance)
}

fn disk() -> LoopExt4 {
    LoopExt4::new(&LoopOptions {
        size_mib: 64,
        // Nothing but the run must write.
        mkfs: ["-E", "lazy_itable_init=0,lazy_journal_init=0"]
            .map(Into::into)
            .into(),
        ..LoopOptions::default()
    })
    .unwrap()
}

/// Keeps the lines of events within the recording's time; the time is the word that ends in `.NNN:`.
fn within(text: &str, bundle: &Path) -> String {
    let clock = Bundle::open(bundle).unwrap().manifest().clock;
    let time_ns = |line: &str| -> Option<u64> {
        let words = line
            .split_whitespace()
            .filter_map(|word| word.strip_suffix(':'));
        let seconds: f64 = words
            .filter(|word| word.contains('.'))
            .find_map(|word| word.parse().ok())?;
        Some((seconds * 1e9) as u64)
    };
    let lines = text.lines().filter(|line| {
        let time_ns = time_ns(line);
        time_ns.is_none_or(|at| (clock.start_mono_ns..=clock.stop_mono_ns).contains(&at))
    });
    lines.map(|line| format!("{line}\n")).collect()
}

const TOTALS: [&str; 9] = [
    "requests",
    "bytes",
    "writes",
    "write_bytes",
    "reads",
    "read_bytes",
    "discards",
    "flushes",
    "device_flushes",
];

/// The figures of a bundle: its totals, then bytes written by process, and by inode.
type Figures = (Vec<Value>, BTreeMap<String, u64>, BTreeMap<String, u64>);

fn figures(bundle: &Path) -> Figures {
    let bundle = bundle.to_str().unwrap();
    let total = json(&["analyze", bundle, "--json"])["total"].clone();
    let written = |by: &str| {
        let rows = json(&[
            "analyze",
            bundle,
            "--by",
            by,
            "--where",
            "op = 'write'",
            "--json",
        ]);
        let rows = rows.as_array().unwrap().iter();
        let named = rows
            .filter_map(|row| Some((row[by].as_str()?.to_owned(), row["write_bytes"].as_u64()?)));
        named.collect::<BTreeMap<_, _>>()
    };
    let totals = TOTALS.map(|name| total[name].clone()).to_vec();
    (totals, written("process"), written("inode"))
}

/// Returns when requests were completed, in ns since the first one, and how long after their D.
fn times(bundle: &Path) -> Vec<[i64; 2]> {
    // In whole microseconds, two requests may have the same times.
    let sql = "SELECT DISTINCT time_ns, d2c_ns, completion FROM events WHERE bytes > 0 ORDER BY time_ns, d2c_ns";
    let table = mostrace(&["query", bundle.to_str().unwrap(), sql, "--format", "csv"]);
    let rows = table.lines().skip(1).map(|line| {
        let mut words = line.split(',');
        [words.next(), words.next()].map(|ns| ns.unwrap().parse::<i64>().unwrap())
    });
    let rows: Vec<_> = rows.collect();
    let first = rows[0][0];
    rows.iter().map(|row| [row[0] - first, row[1]]).collect()
}

/// Checks that most requests have the same times. Either recorder may be interrupted between an event and its time.
fn at_the_same_time(theirs: &Path, ours: &Path) {
    let (theirs, ours) = (times(theirs), times(ours));
    assert_eq!(theirs.len(), ours.len());
    for which in [0, 1] {
        let pairs = std::iter::zip(&theirs, &ours);
        let mut apart: Vec<_> = pairs.map(|(a, b)| a[which].abs_diff(b[which])).collect();
        apart.sort_unstable();
        let [half, most] = [apart.len() / 2, apart.len() - 1].map(|at| apart[at]);
        println!("times are {half} ns apart, at most {most} ns");
        assert!(half <= 1_000_000, "{theirs:?} {ours:?}");
    }
}

/// Imports what was traced of a disk.
fn imported(trace: &Path, disk: &LoopExt4) -> PathBuf {
    let bundle = trace.with_extension("most");
    let name = disk.device().file_name().unwrap().to_str().unwrap();
    let dev = fs::read_to_string(format!("/sys/block/{name}/dev")).unwrap();
    let [trace, to] = [trace, &bundle].map(|path| path.to_str().unwrap());
    mostrace(&["import", trace, "--device", dev.trim(), "-o", to]);
    bundle
}

fn the_text_of_ftrace_tells_what_a_recording_does() {
    let (disk, dir) = (disk(), tempfile::tempdir().unwrap());
    let (bundle, instance) = recorded(&disk, dir.path());
    let text = instance.text();
    let trace = dir.path().join("trace.txt");
    fs::write(&trace, within(&text, &bundle)).unwrap();
    let import = imported(&trace, &disk);
    at_the_same_time(&import, &bundle);
    let (ours, theirs) = (figures(&bundle), figures(&import));
    assert_eq!(theirs.0, ours.0, "{TOTALS:?}");
    // A process is not named unless its first thread is seen.
    let numbers = |by: &BTreeMap<String, u64>| -> BTreeMap<u32, u64> {
        let number = |name: &str| name.rsplit_once(':').unwrap().1.parse().unwrap();
        by.iter()
            .map(|(name, bytes)| (number(name), *bytes))
            .collect()
    };
    assert_eq!(numbers(&theirs.1), numbers(&ours.1), "processes");
    for name in theirs.1.keys().filter(|name| !name.starts_with('?')) {
        assert!(ours.1.contains_key(name), "{name}: {ours:?}");
    }
    // Events do not tell of all that a recording's map knows: an O_DIRECT write to a new block may be a directory's.
    for (inode, bytes) in &theirs.2 {
        assert!(ours.2.get(inode) >= Some(bytes), "inode {inode}: {ours:?}");
    }
    assert!(theirs.2.values().sum::<u64>() >= 620_000, "{theirs:?}");
    assert!(
        theirs.1.keys().any(|name| name.starts_with("python3:")),
        "{theirs:?}"
    );
}

fn trace_cmd_tells_what_ftrace_does() {
    let (disk, dir) = (disk(), tempfile::tempdir().unwrap());
    let (_, instance) = recorded(&disk, dir.path());
    let [text, dat] = ["text.txt", "all.dat"].map(|name| dir.path().join(name));
    fs::write(&text, instance.text()).unwrap();
    // It removes the instance.
    let mut extract = Command::new("trace-cmd");
    extract
        .args(["extract", "-B"])
        .arg(instance.name())
        .arg("-o")
        .arg(&dat);
    assert_eq!(say(&mut extract).status, Some(0));
    let [by_text, by_dat] = [&text, &dat].map(|trace| figures(&imported(trace, &disk)));
    assert!(by_text.0[3].as_u64() >= Some(700_000), "{by_text:?}");
    assert_eq!(by_text.0, by_dat.0, "{TOTALS:?}");
    // Its text does not tell the process of a thread.
    assert_eq!(by_text.2, by_dat.2, "inodes");
    let none = say(run::program()
        .args(["import", "-o", "none.most"])
        .arg(&dat)
        .current_dir(dir.path())
        .env("PATH", ""));
    none.complains("trace-cmd report -t");
    assert_eq!(none.status, Some(1));
}

fn totals(trace: &Path) -> Vec<Value> {
    let total = json(&["analyze", trace.to_str().unwrap(), "--json"])["total"].clone();
    TOTALS.map(|name| total[name].clone()).to_vec()
}

/// blktrace's files are read as they are, too. Its text is imported in the format that is its own, and in one that is named.
fn blkparse_tells_what_its_trace_does() {
    const FORMAT: &str = "%D %c %T.%t %p %a %d %S %N %e %C\\n";
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/data");
    for name in ["ext4-fsync", "ext4-direct", "ext4-sqlite"] {
        let expected = totals(&data.join(name));
        for format in [None, Some(FORMAT)] {
            let dir = tempfile::tempdir().unwrap();
            let mut blkparse = Command::new("blkparse");
            blkparse.args(["-q", "-i", name, "-D"]).arg(&data);
            let mut import = run::program();
            import.args(["import", "t.txt", "-o", "t.most"]);
            if let Some(format) = format {
                blkparse.args(["-f", format]);
                import.args(["--format", format]);
            }
            let text = blkparse.output().unwrap().stdout;
            fs::write(dir.path().join("t.txt"), text).unwrap();
            succeeds(import.current_dir(dir.path()));
            let found = totals(&dir.path().join("t.most"));
            assert_eq!(found, expected, "{name} {format:?} {TOTALS:?}");
        }
    }
}

/// fio writes the log of what it does to a device without a filesystem.
fn an_iolog_tells_what_a_recording_does() {
    let (mut disk, dir) = (disk(), tempfile::tempdir().unwrap());
    disk.unmount().unwrap();
    let mut device = fs::OpenOptions::new();
    let mut device = device.write(true).open(disk.device()).unwrap();
    device.write_all(&vec![0; 1 << 20]).unwrap();
    device.sync_all().unwrap();
    drop(device);
    let [bundle, log] = ["o.most", "fio.log"].map(|name| dir.path().join(name));
    succeeds(
        record(disk.device(), &bundle)
            .args(["-q", "--", "fio", "--name=f", "--rw=randrw", "--bs=4k"])
            .args(["--size=4M", "--direct=1", "--fsync=16"])
            .arg("--output=/dev/null")
            .arg(format!("--filename={}", disk.device().display()))
            .arg(format!("--write_iolog={}", log.display())),
    );
    let imported = dir.path().join("log.most");
    let [trace, to] = [&log, &imported].map(|path| path.to_str().unwrap());
    mostrace(&["import", trace, "-o", to]);
    let (ours, theirs) = (totals(&bundle), totals(&imported));
    // A log does not have what a device does for a sync.
    let of_fio = [1, 2, 3, 4, 5, 7];
    for at in of_fio {
        assert_eq!(theirs[at], ours[at], "{}", TOTALS[at]);
    }
    assert_eq!(theirs[1], 4 << 20);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace ledger`: its sums are those of a full recording of the same time, and an hour is there as a whole or not at all.

mod run;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use run::say;
use rustix::process::{Pid, Signal, kill_process};
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, run_one_by_one, tests, wait};

const LIVE: [Need; 2] = [Need::Loop, Need::Btf];

fn main() -> ExitCode {
    run_one_by_one(tests![
        its_sums_are_those_of_a_recording needs LIVE,
        an_hour_is_there_as_a_whole_or_not_at_all needs LIVE,
        limits_are_held_against_it needs LIVE,
        what_is_no_ledger_is_one_line needs [],
    ])
}

fn mostrace() -> Command {
    Command::new(env!("CARGO_BIN_EXE_mostrace"))
}

/// A disk to which nothing but the workload writes.
fn disk() -> LoopExt4 {
    LoopExt4::new(&LoopOptions {
        mount_options: "noinit_itable,noatime".into(),
        ..LoopOptions::default()
    })
    .unwrap()
}

/// Begins a ledger.
fn start(folder: &Path, disk: &LoopExt4, every: &str) -> Child {
    let mut ledger = mostrace();
    ledger.args(["ledger", "start"]).arg(folder).arg("-d");
    let ledger = ledger.arg(disk.mount_point());
    let ledger = ledger.args(["--every", every, "--segment", "0.3"]);
    ledger.stderr(Stdio::piped()).spawn().unwrap()
}

fn end(ledger: Child) {
    kill_process(Pid::from_child(&ledger), Signal::TERM).unwrap();
    let ended = ledger.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
}

fn sqlite(database: &Path, transactions: &str) {
    let workload = ["workload", "sqlite", "--transactions", transactions];
    let wrote = say(mostrace().args(workload).arg(database));
    assert_eq!(wrote.status, Some(0), "{}", wrote.err);
}

/// Returns the rows of a table in CSV, without those that are all zeros: the figures by the first columns.
fn rows(csv: &str, labels: usize, figures: &[&str]) -> BTreeMap<Vec<String>, Vec<u64>> {
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let places = figures.iter().map(|figure| {
        let place = names.iter().position(|name| name == figure);
        place.unwrap_or_else(|| panic!("no {figure} in {names:?}"))
    });
    let places: Vec<usize> = places.collect();
    let row = |line: Vec<&str>| {
        let key = line[..labels]
            .iter()
            .map(|&label| label.to_owned())
            .collect();
        let figures = places.iter().map(|&place| line[place].parse().unwrap());
        (key, figures.collect::<Vec<u64>>())
    };
    let rows = lines.map(row);
    rows.filter(|(_, figures)| figures.iter().any(|&n| n > 0))
        .collect()
}

fn shown(folder: &Path, by: &str) -> String {
    let mut show = mostrace();
    let show = show.args(["ledger", "show"]).arg(folder);
    let shown = say(show.args(["--format", "csv", "--by", by]));
    assert_eq!(shown.status, Some(0), "{}", shown.err);
    shown.out
}

/// Returns the files of the days.
fn days(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|e| e == "parquet"))
        .collect()
}

/// Waits until the recorder has added some hours to those that there are.
fn await_hours(folder: &Path, more: usize) {
    let hours = || match days(folder).is_empty() {
        true => 0,
        false => hours(folder).lines().count() - 1,
    };
    let before = hours();
    wait::until("hours are added", || hours() >= before + more);
}

fn hours(folder: &Path) -> String {
    let args = ["ledger", "show", "--hours", "--format", "csv"];
    let table = say(mostrace().args(args).arg(folder));
    assert_eq!(table.status, Some(0), "{}", table.err);
    table.out
}

/// Both record at the same time, and nothing else is written before and after.
fn its_sums_are_those_of_a_recording() {
    let disk = disk();
    let dir = tempfile::tempdir().unwrap();
    let (folder, recording) = (dir.path().join("ledger"), dir.path().join("full.most"));
    let ledger = start(&folder, &disk, "2");
    // What the mount began is written, and forgotten, before the other recording begins.
    await_hours(&folder, 1);
    let synced = Command::new("sync")
        .arg("-f")
        .arg(disk.mount_point())
        .status();
    assert!(synced.unwrap().success());
    await_hours(&folder, 2);
    days(&folder)
        .iter()
        .for_each(|day| fs::remove_file(day).unwrap());
    let script = format!(
        "m={}; d={}; $m workload sqlite --transactions 200 $d/a.db; $m workload sqlite --journal wal --transactions 200 $d/b.db; \
         dd if=/dev/zero of=$d/big bs=64k count=50; sync -f $d; rm $d/big; cp $d/a.db $d/c.db; cat $d/b.db >/dev/null; sync -f $d",
        env!("CARGO_BIN_EXE_mostrace"),
        disk.mount_point().display()
    );
    let mut record = mostrace();
    let record = record.args(["record", "-q", "--no-snapshot", "--entries", "bpf", "-d"]);
    let record = record.arg(disk.mount_point()).arg("-o").arg(&recording);
    let recorded = say(record.args(["--", "sh", "-c", &script]));
    assert_eq!(recorded.status, Some(0), "{}", recorded.err);
    std::thread::sleep(Duration::from_secs(1));
    end(ledger);

    let recording = recording.to_str().unwrap();
    for (theirs, ours) in [
        (
            "cause_uid,cause_comm,cause_op,class",
            "uid,command,operation,class",
        ),
        ("role", "role"),
    ] {
        let labels = ours.split(',').count();
        let full = run::mostrace(&["analyze", recording, "--by", theirs, "--format", "csv"]);
        let figures = ["write_bytes", "read_bytes"];
        let full = rows(&full, labels, &figures);
        let ours = rows(&shown(&folder, ours), labels, &figures);
        assert!(full.len() >= 4, "{full:?}");
        assert_eq!(ours, full);
    }
    // Nothing that the kernel counted is missing in any hour.
    let counted = rows(&hours(&folder), 1, &["kernel_write_bytes", "lost"]);
    let written = rows(&shown(&folder, "hour"), 1, &["write_bytes", "zeroed_bytes"]);
    let counted_bytes: u64 = counted.values().map(|row| row[0]).sum();
    let written_bytes: u64 = written.values().flatten().sum();
    assert!(
        counted_bytes <= written_bytes && counted_bytes > 1 << 20,
        "{counted:?} {written:?}"
    );
    assert!(counted.values().all(|row| row[1] == 0), "{counted:?}");
}

fn an_hour_is_there_as_a_whole_or_not_at_all() {
    let disk = disk();
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("ledger");
    let mut outlived = 0;
    for round in 0..4_u64 {
        let mut ledger = start(&folder, &disk, "1");
        for n in 0..3 {
            sqlite(&disk.mount_point().join(format!("{round}.{n}.db")), "60");
            std::thread::sleep(Duration::from_millis(300 + 170 * round));
        }
        ledger.kill().unwrap();
        ledger.wait().unwrap();
        if days(&folder).is_empty() {
            continue;
        }
        let now = hours(&folder).lines().count() - 1;
        assert!(now >= outlived, "{now} after {outlived}");
        outlived = now;
    }
    assert!(outlived > 0, "no hour outlived its recorder");
    let counted = rows(&hours(&folder), 1, &["kernel_write_bytes"]);
    let written = rows(&shown(&folder, "hour"), 1, &["write_bytes"]);
    // The kernel's count of a segment may lack a request that was under way at its end, and the next one have it.
    for (hour, bytes) in &written {
        assert!(bytes[0] > 0, "{hour:?}");
    }
    let sum = |rows: &BTreeMap<_, Vec<u64>>| rows.values().map(|row| row[0]).sum::<u64>();
    assert!(sum(&counted) <= sum(&written), "{counted:?} {written:?}");
}

fn limits_are_held_against_it() {
    let disk = disk();
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("ledger");
    let ledger = start(&folder, &disk, "60");
    wait::until("the ledger's lock", || folder.join("lock").exists());
    let second = start(&folder, &disk, "60").wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(
        said.contains("another process keeps a ledger here"),
        "{said}"
    );
    std::thread::sleep(Duration::from_secs(2));
    sqlite(&disk.mount_point().join("x.db"), "100");
    end(ledger);
    let limits = dir.path().join("limits.toml");
    for (limit, status) in [("1K", 3), ("1G", 0)] {
        let text = format!("[[limit]]\nof = \"mostrace\"\nmax_write_bytes = \"{limit}\"\n");
        fs::write(&limits, text).unwrap();
        let checked = say(mostrace()
            .args(["ledger", "check"])
            .arg(&folder)
            .arg(&limits));
        assert_eq!(checked.status, Some(status), "{}", checked.err);
        assert_eq!(
            checked.out.contains("mostrace wrote "),
            status == 3,
            "{}",
            checked.out
        );
    }
}

fn what_is_no_ledger_is_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let missing = format!("{path}/missing");
    let limits = format!("{path}/limits.toml");
    fs::write(dir.path().join("2026-11-25.parquet"), "PAR1, or not").unwrap();
    for (text, args, what) in [
        ("", vec!["show", &missing], "missing"),
        ("", vec!["show", path], "2026-11-25.parquet"),
        ("", vec!["check", path, &limits], "no [[limit]]"),
        (
            "[[limit]]\nby = \"colour\"",
            vec!["check", path, &limits],
            "colour",
        ),
        (
            "[[limit]]\nmax_write_bytes = \"much\"",
            vec!["check", path, &limits],
            "much",
        ),
        ("[[limit]]\nmost = 1", vec!["check", path, &limits], "most"),
    ] {
        fs::write(&limits, text).unwrap();
        let refused = say(mostrace().arg("ledger").args(&args));
        assert_eq!(refused.status, Some(1), "{}", refused.err);
        assert!(refused.err.contains(what), "{}", refused.err);
        assert_eq!(refused.err.lines().count(), 1, "{}", refused.err);
    }
    let usage = say(mostrace().args(["ledger", "start", path, "-d", path, "--every", "7h"]));
    assert_eq!(usage.status, Some(2), "{}", usage.err);
}

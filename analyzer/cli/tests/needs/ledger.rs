// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace ledger`: its sums are those of a full recording of the same time, and an hour is there as a whole or not at all.

use crate::run;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mostrace_bundle::health::{DATA_UNITS_WRITTEN, PERCENTAGE_USED};
use mostrace_bundle::{Bundle, Total};
use mostrace_tables::ledger::{Days, Figures, Gap, Hour, Key, Reading, Trial, Watched};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use run::{program, say, succeeds};
use rustix::process::{Pid, Signal, kill_process};
use test_support::loopdev::{LoopExt4, LoopOptions, unmount};
use test_support::{Need, Suite, at_once, begin_anew, nothing_lost, tests, wait};

const LIVE: [Need; 2] = [Need::Loop, Need::Btf];

pub fn suite() -> Suite {
    at_once(tests![
        its_sums_are_those_of_a_recording needs LIVE,
        an_hour_is_there_as_a_whole_or_not_at_all needs LIVE,
        limits_are_held_against_it needs LIVE,
        the_running_hour_is_shown needs LIVE,
        cgroups_are_told_apart needs LIVE,
        what_is_no_ledger_is_one_line needs [],
        a_damaged_day_prevents_no_start needs LIVE,
        nothing_of_others_is_followed_or_signalled needs [],
        others_cannot_prevent_a_start needs LIVE,
        what_cannot_be_recorded_leaves_no_folder needs [],
        a_changed_day_is_read_or_refused needs [],
        a_day_that_asks_for_gigabytes_is_refused needs [],
        the_page_has_the_sums_of_the_tables needs [],
    ])
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
    let mut ledger = program();
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
    // It says what happens when.
    assert!(
        said.contains(" the first hour is in ") && said.contains("mostrace ledger stop "),
        "{said}"
    );
}

fn sqlite(database: &Path, transactions: &str) {
    let workload = ["workload", "sqlite", "--transactions", transactions];
    succeeds(program().args(workload).arg(database));
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
    let mut show = program();
    let show = show.args(["ledger", "show"]).arg(folder);
    let shown = succeeds(show.args(["--format", "csv", "--by", by]));
    shown.out
}

/// What is written in an hour that is far from over is shown, once, and no other way than when it is over.
fn the_running_hour_is_shown() {
    let disk = disk();
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("ledger");
    let ledger = start(&folder, &disk, "24h");
    wait::until("the ledger is begun", || folder.join("running").exists());
    wait::until("it records", || hours(&folder).lines().count() > 1);
    sqlite(&disk.mount_point().join("a.db"), "50");
    let asked = || rows(&shown(&folder, "command,operation"), 2, &["write_bytes"]);
    wait::until("it is shown", || {
        asked().keys().any(|key| key[0] == "mostrace")
    });
    assert!(days(&folder).is_empty(), "nothing is written");
    let said = succeeds(program().args(["ledger", "show"]).arg(&folder)).err;
    assert!(said.contains("the running hour too"), "{said}");
    let mut before = asked();
    wait::until("nothing more is written", || {
        let now = asked();
        std::mem::replace(&mut before, now.clone()) == now
    });
    end(ledger);
    assert_eq!(days(&folder).len(), 1);
    let after = asked();
    for (key, bytes) in &before {
        assert!(after[key] >= *bytes, "{key:?}: {before:?} {after:?}");
    }
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
pub fn await_hours(folder: &Path, more: usize) {
    let hours = || match days(folder).is_empty() {
        true => 0,
        // Without the one that is not over.
        false => Days::open(folder, Trial::None)
            .unwrap()
            .ends()
            .unwrap()
            .len(),
    };
    let before = hours();
    wait::until("hours are added", || hours() >= before + more);
}

fn hours(folder: &Path) -> String {
    let args = ["ledger", "show", "--hours", "--format", "csv"];
    let table = succeeds(program().args(args).arg(folder));
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
    let mut record = program();
    let record = record.args(["record", "-q", "--no-snapshot", "--entries", "bpf", "-d"]);
    let record = record.arg(disk.mount_point()).arg("-o").arg(&recording);
    succeeds(record.args(["--", "sh", "-c", &script]));
    std::thread::sleep(Duration::from_secs(1));
    end(ledger);

    let counted = rows(&hours(&folder), 1, &["kernel_write_bytes", "lost"]);
    let lost: u64 = counted.values().map(|row| row[1]).sum();
    let losses = Bundle::open(&recording).unwrap().manifest().losses.clone();
    // If this machine's kernel keeps the probes from seeing a completion, both report it.
    nothing_lost(&losses);
    nothing_lost(&BTreeMap::from([("ledger".into(), lost)]));
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
        // What the other recorder looks at before it records is in memory, unless the kernel or another program dropped it.
        let read = |rows: &BTreeMap<_, Vec<u64>>| rows.values().map(|row| row[1]).sum::<u64>();
        if read(&ours) > read(&full) {
            begin_anew("the other recorder's look at the disk was read from it".into());
        }
        assert_eq!(ours, full);
    }
    // Nothing that the kernel counted is missing in any hour.
    let written = rows(&shown(&folder, "hour"), 1, &["write_bytes", "zeroed_bytes"]);
    let counted_bytes: u64 = counted.values().map(|row| row[0]).sum();
    let written_bytes: u64 = written.values().flatten().sum();
    assert!(
        counted_bytes <= written_bytes && counted_bytes > 1 << 20,
        "{counted:?} {written:?}"
    );
}

fn an_hour_is_there_as_a_whole_or_not_at_all() {
    let disk = disk();
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("ledger");
    let mut outlived = 0;
    // On a busy machine, no segment may have ended before the kill: each round takes longer than the one before.
    for round in 0..16_u64 {
        if round >= 4 && outlived > 0 {
            break;
        }
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
    // The kernel's count of a segment may lack a request that was in flight at its end, and the next one have it.
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
    let ledger = start(&folder, &disk, "2");
    wait::until("the ledger's lock", || folder.join("lock").exists());
    let second = start(&folder, &disk, "2").wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(
        said.contains("another process keeps a ledger here"),
        "{said}"
    );
    await_hours(&folder, 1);
    sqlite(&disk.mount_point().join("x.db"), "100");
    end(ledger);
    let limits = dir.path().join("limits.toml");
    for (limit, status) in [("1K", 3), ("1G", 0)] {
        let text = format!("[[limit]]\nof = \"mostrace\"\nmax_write_bytes = \"{limit}\"\n");
        fs::write(&limits, text).unwrap();
        let checked = say(program()
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
    let other = format!("{path}/other");
    fs::create_dir(&other).unwrap();
    fs::write(dir.path().join("other/2026-11-25.txt"), "a note").unwrap();
    fs::write(dir.path().join("2026-11-25.parquet"), "PAR1, or not").unwrap();
    for (text, args, what) in [
        ("", vec!["show", &missing], "missing"),
        ("", vec!["show", path], "2026-11-25.parquet"),
        ("", vec!["show", &other], "is no ledger"),
        ("", vec!["show", &other, "--hours"], "is no ledger"),
        ("", vec!["status", &other], "is no ledger"),
        ("", vec!["stop", &other], "is no ledger"),
        (
            "",
            vec!["start", &other, "-d", "/no/such/device"],
            "is no ledger, and has other files",
        ),
        (
            "[[limit]]\nmax_flushes = 1\n",
            vec!["check", &other, &limits],
            "is no ledger",
        ),
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
        let refused = say(program().arg("ledger").args(&args)).ended(1);
        refused.complains(what);
        assert_eq!(refused.err.lines().count(), 1, "{}", refused.err);
    }

    say(program().args(["ledger", "start", path, "-d", path, "--every", "7h"])).ended(2);
    // A copy of a ledger has no lock, and nobody keeps it.
    let copied = Days::create(&dir.path().join("copied"), Trial::None).unwrap();
    let hour = Hour {
        begin: 1_764_000_000,
        watched: Watched {
            ns: 1,
            ..Watched::default()
        },
        ..Hour::default()
    };
    copied.add(&hour, &mut |line| panic!("{line}")).unwrap();
    let mut status = program();
    let status = status
        .args(["ledger", "status"])
        .arg(copied.folder().path());
    succeeds(status).prints("nobody keeps this ledger now\n1 days");
}

/// Starts a ledger that ends by itself; returns what it says.
fn start_briefly(folder: &Path, disk: &LoopExt4) -> run::Said {
    let mut ledger = program();
    let ledger = ledger.args(["ledger", "start"]).arg(folder).arg("-d");
    let ledger = ledger.arg(disk.mount_point());
    say(ledger.args(["--every", "1", "--segment", "0.3", "-w", "1"]))
}

fn a_damaged_day_prevents_no_start() {
    let disk = disk();
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::write(at("2026-09-01.parquet"), "").unwrap();
    fs::write(at("2026-09-02.parquet"), "PAR1, or not").unwrap();
    fs::create_dir(at("2026-09-03.parquet")).unwrap();
    fs::write(at("2026-09-01.damaged"), "of an earlier time").unwrap();
    made_of_gigabytes(dir.path(), "2026-09-04.parquet");
    let said = start_briefly(dir.path(), &disk).ended(0);
    for aside in [
        "2026-09-01.damaged-2",
        "2026-09-02.damaged",
        "2026-09-03.damaged",
        "2026-09-04.damaged",
    ] {
        said.complains(&format!("set aside as {aside}"));
        assert!(at(aside).exists(), "{aside}");
    }
    let earlier = fs::read_to_string(at("2026-09-01.damaged")).unwrap();
    assert_eq!(earlier, "of an earlier time");
    assert!(hours(dir.path()).lines().count() > 1);
}

/// A user who owns the folder puts there what leads elsewhere, or keeps whoever opens it waiting.
fn nothing_of_others_is_followed_or_signalled() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, aim) = (dir.path().join("ledger"), dir.path().join("aim"));
    fs::create_dir(&folder).unwrap();
    let (lock, day) = (folder.join("lock"), folder.join("2026-11-20.parquet"));
    let refused = |verb: &str| {
        let said = say(program().args(["ledger", verb]).arg(&folder)).ended(1);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    };
    // The file is a stranger's, who has locked it.
    let stranger = fs::File::create(&aim).unwrap();
    stranger.lock().unwrap();
    std::os::unix::fs::symlink(&aim, &lock).unwrap();
    for verb in ["status", "stop"] {
        refused(verb);
    }
    fs::remove_file(&lock).unwrap();
    for at in [&lock, &day] {
        let made = Command::new("mkfifo").arg(at).status();
        assert!(made.unwrap().success());
    }
    for verb in ["status", "stop", "show"] {
        refused(verb);
    }
    fs::remove_file(&day).unwrap();
    std::os::unix::fs::symlink(&aim, &day).unwrap();
    refused("show");
}

fn open_to_all(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
}

/// A lock with a mode as earlier versions made it can be locked by anybody.
fn others_cannot_prevent_a_start() {
    const NOBODY: &str = "65534";
    let disk = disk();
    let dir = tempfile::tempdir().unwrap();
    open_to_all(dir.path());
    let lock = dir.path().join("lock");
    fs::write(&lock, "").unwrap();
    open_to_all(&lock);
    let mut holder = Command::new("setpriv");
    let holder = holder.args([
        "--reuid",
        NOBODY,
        "--regid",
        NOBODY,
        "--clear-groups",
        "flock",
        "--no-fork",
    ]);
    let holder = holder
        .arg(&lock)
        .args(["sh", "-c", "echo locked; exec sleep 1000"]);
    let mut holder = holder.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let out = holder.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
    assert_eq!(line, "locked\n");
    start_briefly(dir.path(), &disk).ended(0);
    let is_there = holder.try_wait().unwrap().is_none();
    assert!(is_there, "the stranger got a signal");
    holder.kill().unwrap();
    holder.wait().unwrap();
    let mode = fs::metadata(&lock).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // A ledger that is kept prevents another one, and its own end is waited for.
    let mut kept = start(dir.path(), &disk, "1");
    await_hours(dir.path(), 1);
    start_briefly(dir.path(), &disk)
        .ended(1)
        .complains("another process keeps a ledger here");
    let status = succeeds(program().args(["ledger", "status"]).arg(dir.path()));
    assert!(
        status.out.contains(&format!("process {} keeps", kept.id())),
        "{}",
        status.out
    );
    succeeds(program().args(["ledger", "stop"]).arg(dir.path()));
    assert!(kept.wait().unwrap().success());
}

fn what_cannot_be_recorded_leaves_no_folder() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("ledger");
    let mut ledger = program();
    let ledger = ledger.args(["ledger", "start"]).arg(&folder);
    say(ledger.args(["-d", "/no/such/device"])).ended(1);
    assert!(!folder.exists());
}

/// A day is changed again and again, most often where its columns and pages are described: each verb reads it, or refuses it in one line.
/// The library that reads it panics over some changes, and asks for more memory than there is over others.
fn a_changed_day_is_read_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    made(dir.path());
    fs::write(dir.path().join("lock"), "").unwrap();
    let mut all = days(dir.path());
    all.sort();
    let path = all.remove(0);
    for day in all {
        fs::remove_file(day).unwrap();
    }
    let sound = fs::read(&path).unwrap();
    let (read, refused) = (Cell::new(0), Cell::new(0));
    let verbs = (0..VERBS.len()).prop_map(|nth| VERBS[nth]);
    let config = test_support::property::config(file!(), 600);
    let ran = TestRunner::new(config).run(&(changes(&sound), verbs), |(changes, verb)| {
        let mut bytes = sound.clone();
        for (at, value, removed) in changes {
            let end = (at + removed).min(bytes.len());
            let with = (removed < 4).then_some(value);
            bytes.splice(at.min(end)..end, with);
        }
        fs::write(&path, &bytes).unwrap();
        let said = say(program().arg("ledger").args(verb).arg(dir.path()));
        if said.status == Some(0) {
            read.set(read.get() + 1);
            return Ok(());
        }
        refused.set(refused.get() + 1);
        prop_assert_eq!(said.status, Some(1), "{:?}: {}", verb, said.err);
        let line = format!("mostrace: {}: ", path.display());
        prop_assert!(said.err.starts_with(&line), "{}", said.err);
        prop_assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        // It says what is wrong, and not that it took too long.
        prop_assert!(!said.err.contains("60 s"), "{}", said.err);
        Ok(())
    });
    ran.unwrap();
    assert!(read.get() > 0 && refused.get() > 0);
}

/// Makes a ledger of one day whose first page says that it has 2 GiB: the library allocates them before it reads the page.
fn made_of_gigabytes(folder: &Path, name: &str) {
    let sound = tempfile::tempdir().unwrap();
    made(sound.path());
    let bytes = fs::read(days(sound.path()).remove(0)).unwrap();
    // In Thrift: `PAR1`, the page's kind, its size.
    let [b'P', b'A', b'R', b'1', 0x15, _, 0x15, rest @ ..] = &bytes[..] else {
        panic!("another header: {:x?}", &bytes[..8])
    };
    let length = 1 + rest.iter().position(|byte| byte & 0x80 == 0).unwrap();
    let largest = [0xfe, 0xff, 0xff, 0xff, 0x0f];
    let bytes = [&bytes[..7], &largest, &rest[length..]].concat();
    fs::write(folder.join(name), bytes).unwrap();
}

fn a_day_that_asks_for_gigabytes_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let name = "2026-09-04.parquet";
    made_of_gigabytes(dir.path(), name);
    let shown = say(program().args(["ledger", "show"]).arg(dir.path())).ended(1);
    let path = dir.path().join(name);
    let line = "reading it fails, or takes more than 512 MiB of memory";
    assert_eq!(shown.err, format!("mostrace: {}: {line}\n", path.display()));
}

/// What reads all days.
const VERBS: [&[&str]; 4] = [
    &["show", "--by", "command,class"],
    &["show", "--hours"],
    &["show", "--chart"],
    &["status"],
];

/// Returns what may change: bytes at these places get a value, or some are removed.
fn changes(sound: &[u8]) -> impl Strategy<Value = Vec<(usize, u8, usize)>> + use<> {
    let [.., a, b, c, d, _, _, _, _] = sound[..] else {
        panic!("no footer")
    };
    let footer = usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap();
    let place = prop_oneof![
        2 => sound.len() - 8 - footer..sound.len() - 8,
        1 => 0..sound.len(),
    ];
    let value = prop_oneof![any::<u8>(), Just(0), Just(0x7f), Just(0x80), Just(0xff)];
    let removed = prop_oneof![4 => Just(1), 1 => 0_usize..5];
    prop::collection::vec((place, value, removed), 1..5)
}

/// The unified hierarchy, mounted for this test alone, with two cgroups in it.
struct Cgroups(PathBuf);

impl Cgroups {
    const NAMES: [&str; 2] = ["mostrace-test-one", "mostrace-test-two"];

    fn new(folder: &Path) -> Cgroups {
        let root = folder.join("cgroups");
        fs::create_dir(&root).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "cgroup2", "none"])
            .arg(&root)
            .status();
        assert!(mounted.unwrap().success(), "cgroups (v2) cannot be mounted");
        let cgroups = Cgroups(root);
        for name in Cgroups::NAMES {
            fs::create_dir(cgroups.0.join(name)).unwrap();
        }
        cgroups
    }

    /// Runs a shell in a cgroup.
    fn run(&self, name: &str, script: &str) {
        let procs = self.0.join(name).join("cgroup.procs");
        let script = format!("echo $$ >{}; {script}", procs.display());
        let ran = Command::new("sh").args(["-c", &script]).status();
        assert!(ran.unwrap().success());
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        for name in Cgroups::NAMES {
            let _ = fs::remove_dir(self.0.join(name));
        }
        let _ = unmount(&self.0);
    }
}

/// The table has rows of its own for what each of two cgroups writes and asks for.
fn cgroups_are_told_apart() {
    let disk = disk();
    let dir = tempfile::tempdir().unwrap();
    let cgroups = Cgroups::new(dir.path());
    let folder = dir.path().join("ledger");
    let ledger = start(&folder, &disk, "2");
    await_hours(&folder, 1);
    let mount = disk.mount_point().display().to_string();
    for (name, blocks) in Cgroups::NAMES.into_iter().zip([300, 100]) {
        let file = format!("{mount}/{name}");
        cgroups.run(
            name,
            &format!("exec dd if=/dev/zero of={file} bs=4k count={blocks} conv=fsync 2>/dev/null"),
        );
    }
    end(ledger);
    let data = shown(&folder, "cgroup,class");
    let data = rows(&data, 2, &["write_bytes"]);
    let asked = rows(&shown(&folder, "cgroup"), 1, &["asked_bytes"]);
    for (name, blocks) in Cgroups::NAMES.into_iter().zip([300, 100]) {
        let path = format!("/{name}");
        assert_eq!(
            data[&vec![path.clone(), "data".into()]],
            [blocks * 4096],
            "{data:?}"
        );
        assert_eq!(asked[&vec![path]], [blocks * 4096], "{asked:?}");
    }
}

/// The names of applications come from strangers.
const HOSTILE: &str = "</script><b>&";
/// 2026-11-26, in hours since 1970.
const FIRST: u64 = 498_792;

/// Makes a ledger of a week by nine applications: the device was not watched for some hours, records were lost in one, and another cannot
/// be compared.
fn made(folder: &Path) {
    let days = Days::create(folder, Trial::None).unwrap();
    let mut total = 0;
    for n in (0..168_u64).filter(|n| !(50..60).contains(n)) {
        let mut hour = Hour {
            begin: (FIRST + n) * 3_600,
            device: "259:0".into(),
            ..Hour::default()
        };
        let is_day = (8..20).contains(&(n % 24));
        for app in 0..9_u64 {
            let write_bytes =
                4_096 * (1 + (n * 7 + app * 13) % 50) * if is_day { 40 } else { 1 } / (app + 1);
            total += write_bytes;
            let key = Key {
                uid: Some(10_000 + app as u32),
                command: match app {
                    0 => Some(HOSTILE.into()),
                    1 => None,
                    app => Some(format!("app{app}")),
                },
                ..Key::default()
            };
            hour.add(
                key,
                Figures {
                    write_bytes,
                    writes: write_bytes / 4_096,
                    ..Figures::default()
                },
            );
        }
        let written: u64 = hour.rows.values().map(|figures| figures.write_bytes).sum();
        let kernel = |write_bytes| Total {
            write_bytes,
            read_bytes: 0,
        };
        hour.watched = Watched {
            ns: 3_600_000_000_000,
            kernel: (n != 100).then(|| kernel(written + if n == 30 { 1 << 20 } else { 0 })),
            lost: if n == 30 { 17 } else { 0 },
            summed_up: 0,
            end: Reading {
                unix_ms: (FIRST + n + 1) * 3_600_000,
                total: Some(kernel(total)),
                epoch: Some("a".into()),
            },
            gap: (n == 60).then(|| Gap {
                ms: 36_000_000,
                kernel: Some(kernel(5 << 20)),
                is_new_epoch: false,
            }),
            drive: [
                (DATA_UNITS_WRITTEN, 1_000 + total / 512_000),
                (PERCENTAGE_USED, 3),
            ]
            .map(|(gauge, value)| (gauge.to_owned(), value))
            .into(),
        };
        days.add(&hour, &mut |said| panic!("{said}")).unwrap();
    }
}

/// Returns the values of a column of a page's table, as in CSV.
fn column(grid: &serde_json::Value, name: &str) -> Vec<String> {
    let columns = grid["columns"].as_array().unwrap();
    let place = columns
        .iter()
        .position(|column| column["name"] == name.replace('_', " "));
    let place = place.unwrap_or_else(|| panic!("no {name} in {columns:?}"));
    let rows = grid["rows"].as_array().unwrap().iter();
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    rows.map(|row| text(&row[place])).collect()
}

/// Returns the values of a column of CSV. No value of this ledger has a comma.
fn in_csv(csv: &str, name: &str) -> Vec<String> {
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let place = names.iter().position(|of| *of == name).unwrap();
    lines.map(|line| line[place].to_owned()).collect()
}

fn the_page_has_the_sums_of_the_tables() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("ledger");
    made(&folder);
    let path = dir.path().join("page.html");
    let mut show = program();
    let show = show
        .args(["ledger", "show", "--by", "command"])
        .arg(&folder);
    succeeds(show.arg("--page").arg(&path));
    let page = fs::read_to_string(&path).unwrap();
    // For scripts/report-check.cjs, or to look at.
    if let Some(kept) = std::env::var_os("MOSTRACE_KEEP_PAGE") {
        fs::write(kept, &page).unwrap();
    }
    // It is one file that asks for nothing else, and no name is markup in it.
    for outside in ["src=", "href=\"http", "@import", "<b>&"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let from = r#"<script type="application/json" id="data">"#;
    let data = page.split_once(from).unwrap().1;
    let data = data.split_once("</script>").unwrap().0;
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let [groups, hours] = [&data["grids"][0], &data["grids"][1]];

    let csv = shown(&folder, "command");
    for name in ["command", "write_bytes", "writes"] {
        assert_eq!(column(groups, name), in_csv(&csv, name), "{name}");
    }
    assert_eq!(column(groups, "command").len(), 9);
    let csv = self::hours(&folder);
    let names = [
        "watched_ms",
        "kernel_write_bytes",
        "lost",
        "gap_ms",
        "gap_write_bytes",
        "drive_data_units_written",
        "drive_percentage_used",
    ];
    for name in names {
        assert_eq!(column(hours, name), in_csv(&csv, name), "{name}");
    }

    // The chart has an hour in each column, and its groups have the bytes of the table.
    let chart = &data["chart"];
    assert_eq!(
        (&chart["seconds"], &chart["begin"]),
        (&3_600.into(), &(FIRST * 3_600).into())
    );
    let mut drawn: BTreeMap<u64, u64> = BTreeMap::new();
    let numbers = |of: &serde_json::Value| -> Vec<u64> {
        of.as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_u64().unwrap())
            .collect()
    };
    let all = chart["groups"].as_array().unwrap();
    assert_eq!((all.len(), &all[6]["name"]), (7, &"3 others".into()));
    for group in all {
        for (at, bytes) in numbers(&group["bytes"]).into_iter().enumerate() {
            *drawn.entry(at as u64).or_default() += bytes;
        }
    }
    let by_hour = rows(&shown(&folder, "hour"), 1, &["write_bytes"]);
    let by_hour: Vec<u64> = by_hour.into_values().map(|row| row[0]).collect();
    let drawn: Vec<u64> = drawn.into_values().filter(|&bytes| bytes > 0).collect();
    assert_eq!(drawn, by_hour);

    // What was not watched, lost or not compared is in its column.
    let columns = chart["columns"].as_array().unwrap();
    let places = |is: &dyn Fn(&serde_json::Value) -> bool| -> Vec<usize> {
        let places = columns.iter().enumerate().filter(|(_, column)| is(column));
        places.map(|(at, _)| at).collect()
    };
    assert_eq!(columns.len(), 168);
    assert_eq!(
        places(&|c| c["watched_ms"] == 0),
        (50..60).collect::<Vec<_>>()
    );
    assert_eq!(places(&|c| c["lost"] == 17), [30]);
    assert_eq!(places(&|c| c["gap_write_bytes"] == 5 << 20), [60]);
    assert_eq!(
        places(&|c| c["watched_ms"] != 0 && c["kernel"].is_null()),
        [100]
    );
    for said in [
        "17 records lost",
        "1 gaps",
        "1.0 MB that the kernel counted are missing",
        "3 % of its life used",
    ] {
        assert!(page.contains(said), "{said}");
    }
    let status = program()
        .args(["ledger", "show", "--page", "-", "--hours"])
        .arg(&folder)
        .output();
    assert_eq!(status.unwrap().status.code(), Some(2));
}

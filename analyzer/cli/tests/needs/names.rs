// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of processes: those of their main threads at that moment, whichever thread writes. Each file that `names.py` writes is
//! named after what its process is called then.

use crate::run;

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use mostrace_bundle::{Entry, layout};
use run::{json, program, record, say, succeeds};
use rustix::process::{Pid, Signal, kill_process};
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, at_once, tests, wait};

const PYTHON: Need = Need::Tool("python3", "python3");
/// Each process writes back its own file.
const LIVE: [Need; 4] = [Need::Loop, Need::Btf, Need::NoSync, PYTHON];
/// What the processes are called.
const NAMES: [&str; 7] = [
    "first", "second", "forker", "executed", "ended", "earlier", "later",
];

pub fn suite() -> Suite {
    at_once(tests![
        processes_have_the_names_of_the_moment needs LIVE,
        plain_tracepoints_tell_the_same needs LIVE,
        later_segments_know_the_names needs LIVE,
        whoever_watches_sees_processes needs LIVE,
    ])
}

fn disk() -> LoopExt4 {
    LoopExt4::new(&LoopOptions::default()).unwrap()
}

/// Makes the command that writes the files into the root of the disk's filesystem; `dir` gets the program that it executes.
fn writer(disk: &LoopExt4, dir: &Path) -> Command {
    let python =
        succeeds(Command::new("python3").args(["-c", "import sys; print(sys.executable)"]));
    symlink(python.out.trim(), dir.join("executed")).unwrap();
    let mut command = Command::new("python3");
    command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/names.py"));
    command.arg(dir).current_dir(disk.mount_point());
    command
}

/// Records the writer; `more` are options of `record`.
fn recorded(disk: &LoopExt4, dir: &Path, more: &[&str]) -> PathBuf {
    let out = dir.join("x.most");
    let writer = writer(disk, dir);
    let mut record = record(disk.mount_point(), &out);
    record.args(more).args(["--no-snapshot", "--"]);
    record.arg(writer.get_program()).args(writer.get_args());
    succeeds(record.current_dir(disk.mount_point()));
    out
}

/// Returns the name in the path of a file.
fn named(path: &str) -> Option<&str> {
    Some(path.strip_prefix('/')?.split_once('@')?.0)
}

/// Checks for each file that the process, by the column `whose`, is called what the path in the column `file` says, and returns the
/// names.
#[track_caller]
fn check(bundle: &Path, whose: &str, file: &str) -> BTreeSet<String> {
    let select = format!(
        "SELECT DISTINCT {whose}, {file} FROM events WHERE op = 'write' AND {file} IS NOT NULL"
    );
    let rows = json(&["query", bundle.to_str().unwrap(), &select, "--json"]);
    let mut names = BTreeSet::new();
    for row in rows.as_array().unwrap() {
        if let Some(name) = named(row[file].as_str().unwrap()) {
            assert_eq!(row[whose], *name, "{row}");
            names.insert(name.to_owned());
        }
    }
    names
}

/// Returns what the processes were called whose files are on the disk. A number can be used again only if nobody else takes it.
#[track_caller]
fn all(disk: &LoopExt4) -> BTreeSet<String> {
    let files = std::fs::read_dir(disk.mount_point()).unwrap().flatten();
    let names = files.map(|file| file.file_name().into_string().unwrap());
    let all: BTreeSet<String> = names
        .filter_map(|name| Some(name.split_once('@')?.0.to_owned()))
        .collect();
    let missing: Vec<&str> = NAMES
        .into_iter()
        .filter(|name| !all.contains(*name))
        .collect();
    assert!(missing.is_empty() || missing == ["later"], "{missing:?}");
    all
}

fn processes_have_the_names_of_the_moment() {
    let (disk, dir) = (disk(), tempfile::tempdir().unwrap());
    let bundle = recorded(&disk, dir.path(), &[]);
    assert_eq!(check(&bundle, "process_comm", "path"), all(&disk));
    assert_eq!(
        check(&bundle, "cause_process_comm", "cause_path"),
        all(&disk)
    );
    // The threads have their own names.
    let threads = json(&[
        "query",
        bundle.to_str().unwrap(),
        "SELECT DISTINCT comm FROM events WHERE path LIKE '/first@%'",
        "--json",
    ]);
    assert_eq!(threads[0]["comm"], "helper");
    // Calls, waits and the tree say the same.
    let bundle = bundle.to_str().unwrap();
    let calls = json(&[
        "query",
        bundle,
        "SELECT DISTINCT process, path FROM calls",
        "--json",
    ]);
    let mut called = BTreeSet::new();
    for row in calls.as_array().unwrap() {
        if let Some(name) = row["path"].as_str().and_then(named) {
            let process = row["process"].as_str().unwrap();
            assert_eq!(process.split_once(':').unwrap().0, name, "{row}");
            called.insert(name.to_owned());
        }
    }
    assert_eq!(called, all(&disk));
    let waits = json(&[
        "analyze",
        bundle,
        "--waits",
        "--by",
        "process,file",
        "--json",
    ]);
    for row in waits.as_array().unwrap() {
        if let Some(name) = row["file"].as_str().and_then(named) {
            assert!(
                row["process"]
                    .as_str()
                    .unwrap()
                    .starts_with(&format!("{name}:")),
                "{row}"
            );
        }
    }
    let said = say(program().args(["analyze", bundle, "--tree"])).ended(0);
    for name in all(&disk) {
        said.prints(&format!("{name}:"));
    }
    for thread in ["helper", "survivor"] {
        assert!(!said.out.contains(thread), "{thread}: {}", said.out);
    }
    // A process has the names here that it had before it executed a program, too.
    let bundle = mostrace_bundle::Bundle::open(Path::new(bundle)).unwrap();
    let table = bundle.table(layout::COMM, false).unwrap().unwrap();
    let told = table.map(|entry| match entry.unwrap() {
        Entry::Comm(raw) => raw.comm.split(|&b| b == 0).next().unwrap().to_vec(),
        other => panic!("{other:?}"),
    });
    let told: BTreeSet<String> = told.map(|comm| String::from_utf8(comm).unwrap()).collect();
    assert!(all(&disk).is_subset(&told), "{told:?}");
}

fn plain_tracepoints_tell_the_same() {
    let (disk, dir) = (disk(), tempfile::tempdir().unwrap());
    let bundle = recorded(&disk, dir.path(), &["--entries", "tracefs"]);
    // They do not tell the names of ext4's files, which are looked up by their inodes.
    let files = std::fs::read_dir(disk.mount_point()).unwrap().flatten();
    let mut names = BTreeSet::new();
    for file in files {
        let name = file.file_name().into_string().unwrap();
        let Some((name, _)) = name.split_once('@') else {
            continue;
        };
        let inode = std::os::unix::fs::DirEntryExt::ino(&file);
        let select = format!(
            "SELECT DISTINCT process_comm, tgid FROM events WHERE inode = {inode} AND op = 'write' AND kind = 'regular'"
        );
        let rows = json(&["query", bundle.to_str().unwrap(), &select, "--json"]);
        for row in rows.as_array().unwrap() {
            // /proc is read a moment later, in two steps: a process that is gone by then is not known, or has no name.
            if !row["tgid"].is_null() && !row["process_comm"].is_null() {
                assert_eq!(row["process_comm"], *name, "{row}");
                names.insert(name.to_owned());
            }
        }
    }
    // Which of them /proc still knew depends on how busy the machine is.
    assert!(!names.is_empty(), "no process was known");
}

fn later_segments_know_the_names() {
    let (disk, dir) = (disk(), tempfile::tempdir().unwrap());
    let script = "import ctypes, os, threading, time
def run():
    ctypes.CDLL(None).prctl(15, b'helper', 0, 0, 0)
    for n in range(40):
        f = os.open('leader@%d' % n, os.O_CREAT | os.O_WRONLY)
        os.write(f, bytes(65536)); os.fsync(f); time.sleep(0.1)
ctypes.CDLL(None).prctl(15, b'leader', 0, 0, 0)
thread = threading.Thread(target=run); thread.start(); thread.join()";
    let out = dir.path().join("x.most");
    let mut record = record(disk.mount_point(), &out);
    record.args([
        "--no-snapshot",
        "--segment",
        "1s",
        "--",
        "python3",
        "-c",
        script,
    ]);
    succeeds(record.current_dir(disk.mount_point()));
    for segment in ["x.0003.most", "x.most"] {
        let segment = dir.path().join(segment);
        let names = check(&segment, "cause_process_comm", "cause_path");
        assert_eq!(
            names,
            BTreeSet::from(["leader".to_owned()]),
            "{}",
            segment.display()
        );
    }
}

fn whoever_watches_sees_processes() {
    let (disk, dir) = (disk(), tempfile::tempdir().unwrap());
    let kept = dir.path().join("kept.most");
    let top = program()
        .args(["top", "-b", "-i", "0.4", "-n", "100", "-d"])
        .arg(disk.mount_point())
        .arg("-o")
        .arg(&kept)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let second = dir.path().join("kept.0002.most");
    wait::until("a second segment", || second.exists());
    succeeds(&mut writer(&disk, dir.path()));
    let third = dir.path().join("kept.0004.most");
    wait::until("a fourth segment", || third.exists());
    kill_process(Pid::from_child(&top), Signal::INT).unwrap();
    let out = String::from_utf8(top.wait_with_output().unwrap().stdout).unwrap();
    for name in all(&disk) {
        let is_its = |line: &str| line.trim_start().starts_with(&format!("process {name}["));
        assert!(out.lines().any(is_its), "{name}: {out}");
    }
    for thread in ["helper", "survivor"] {
        assert!(!out.contains(thread), "{thread}: {out}");
    }
    // The joined segments say the same.
    assert_eq!(check(&kept, "cause_process_comm", "cause_path"), all(&disk));
}

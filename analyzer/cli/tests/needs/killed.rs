// SPDX-License-Identifier: MIT OR Apache-2.0
//! A recorder under load that is killed at random moments, and once by a full disk: every segment that it has finished can
//! be read, and nothing of the tracing is left. This takes twenty seconds; with `MOSTRACE_LONG=1`, ten minutes. The guard is
//! also killed, alone and with the recorder.
//!
//! The tests run one at a time, because each counts what is left on the machine.

use crate::run;

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mostrace_bundle::manifest::State;
use mostrace_bundle::{Bundle, layout};
use run::{program, succeeds};
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::running::Running;
use test_support::{Need, Suite, one_by_one, tests, tool, wait};

const FIO: Need = Need::Tool("fio", "fio");
const NEEDS: [Need; 4] = [Need::Loop, Need::Btf, Need::Filesystem("tracefs"), FIO];
const GUARD_NEEDS: [Need; 3] = [Need::Loop, Need::Btf, Need::Filesystem("tracefs")];
const INSTANCES: &str = "/sys/kernel/tracing/instances";

pub fn suite() -> Suite {
    one_by_one(tests![
        a_killed_guard needs GUARD_NEEDS,
        a_guard_killed_with_its_recorder needs GUARD_NEEDS,
        killed_at_random needs NEEDS,
        killed_at_random_for_ten_minutes needs [Need::Loop, Need::Btf, Need::Filesystem("tracefs"), FIO, Need::Minutes],
    ])
}

fn killed_at_random() {
    killed(Duration::from_secs(20), 4);
}

fn killed_at_random_for_ten_minutes() {
    killed(Duration::from_secs(600), 10);
}

const LOAD: [&str; 5] = [
    "--rw=randrw",
    "--rwmixread=30",
    "--iodepth=16",
    "--rate_iops=3000,7000",
    "--fdatasync=500",
];

fn record(device: &Path, output: &Path, source: &str, temporary: &Path) -> Command {
    let mut command = run::record(device, output);
    command.args(["--no-snapshot", "--entries=bpf", "--source", source]);
    command.env("TMPDIR", temporary).stderr(Stdio::piped());
    command
}

/// Returns the bundles in a folder, in their order. A recorder that was killed while it made a folder may have left the
/// one in which it made it, without any file.
fn segments(dir: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let (mut bundles, others): (Vec<_>, Vec<_>) =
        all.partition(|path| path.extension().is_some_and(|ext| ext == "most"));
    assert!(others.len() <= 1, "{others:?}");
    for path in others.iter().flat_map(|outer| fs::read_dir(outer).unwrap()) {
        // It is an error if this holds anything.
        fs::remove_dir(path.unwrap().path()).unwrap();
    }
    bundles.sort();
    bundles
}

/// Checks that each segment can be read. Returns how many are finished, and the number of their events.
fn read(dir: &Path) -> (usize, u64) {
    let all = segments(dir);
    let (mut finished, mut events) = (0, 0);
    for (index, path) in all.iter().enumerate() {
        // The last one may not have a manifest yet.
        let is_last = index + 1 == all.len();
        if is_last && !path.join(layout::MANIFEST).exists() {
            continue;
        }
        let bundle = Bundle::open(path).unwrap();
        let manifest = bundle.manifest();
        if manifest.state == State::Complete {
            finished += 1;
            events += manifest.counts["events"];
            assert!(bundle.shortfalls().is_empty(), "{}", path.display());
            let counters = manifest.counters.as_ref().unwrap();
            // What the kernel keeps probes from seeing is reported here, and counted when it is given up.
            let by_bpf = manifest.sources.events == "bpf";
            assert!(counters.agree() || by_bpf, "{}: {counters}", path.display());
        }
        // The one before it may have been about to be finished.
        assert!(manifest.state == State::Complete || index + 2 >= all.len());
        succeeds(program().args(["analyze", "--by", "op"]).arg(path));
    }
    (finished, events)
}

/// Returns the names of BPF programs and of guards that exist.
fn left() -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let guards = processes
        .filter_map(|p| fs::read(p.path().join("cmdline")).ok())
        .filter(|line| line.windows(14).any(|part| part == b"mostrace-guard"))
        .map(|_| "a guard".to_owned());
    let maps = fs::read_dir("/run/mostrace")
        .into_iter()
        .flatten()
        .flatten();
    let locks = fs::read_to_string("/proc/locks").unwrap();
    let held = maps
        .filter(|file| {
            use std::os::unix::fs::MetadataExt;
            let inode = format!(":{} ", file.metadata().map_or(0, |m| m.ino()));
            locks
                .lines()
                .any(|line| line.contains("FLOCK") && line.contains(&inode))
        })
        .map(|file| format!("lock {}", file.path().display()));
    guards.chain(held).collect()
}

fn assert_nothing_is_left(recorder: u32) {
    wait::until("something is left", || {
        instances(recorder) == 0 && left().is_empty()
    });
}

fn killed(time: Duration, times: u32) {
    let mut disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    disk.unmount().unwrap();
    let load = Running::fio(disk.device(), &LOAD);
    let dir = tempfile::tempdir().unwrap();
    let temporary = dir.path().join("tmp");
    fs::create_dir(&temporary).unwrap();
    let temporaries = || fs::read_dir(&temporary).unwrap().count();
    let begun = Instant::now();
    let (mut finished, mut events) = (0, 0);
    for round in 0..times {
        let place = dir.path().join(format!("killed-{round}"));
        fs::create_dir(&place).unwrap();
        let source = ["bpf", "tracefs"][round as usize % 2];
        let mut recorder = record(disk.device(), &place.join("t.most"), source, &temporary)
            .args(["--segment", "1s", "-w", "3600"])
            .spawn()
            .unwrap();
        wait::until("no manifest", || {
            let ended = recorder.try_wait().unwrap();
            assert!(ended.is_none(), "the recorder has ended: {ended:?}");
            place.join("t.0001.most").join(layout::MANIFEST).exists()
        });
        // Earlier recorders have ended by now, and this one has its own folder: what they left is removed.
        wait::until("what was left in temporary folders stays", || {
            temporaries() <= 1
        });
        // It is killed at a random moment of the remaining time.
        wait::until("no segment is finished", || {
            let first = Bundle::open(&place.join("t.0001.most"));
            first.is_ok_and(|bundle| bundle.manifest().state == State::Complete)
        });
        let share = time.saturating_sub(begun.elapsed()) / (times - round);
        let chance = RandomState::new().hash_one(round) % 1000;
        std::thread::sleep(share * (500 + u32::try_from(chance).unwrap()) / 1000);
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        assert_nothing_is_left(recorder.id());
        let (more, their_events) = read(&place);
        (finished, events) = (finished + more, events + their_events);
        fs::remove_dir_all(&place).unwrap();
    }
    full_disk(&disk, &temporary, dir.path());
    drop(load);
    let ended = record(
        disk.device(),
        &dir.path().join("last.most"),
        "bpf",
        &temporary,
    )
    .args(["--", "true"])
    .output()
    .unwrap();
    assert!(ended.status.success());
    assert_eq!(temporaries(), 0);
    println!(
        "killed {times} times in {} s: {finished} finished segments, {events} events",
        begun.elapsed().as_secs()
    );
    assert!(finished >= times as usize);
}

fn full_disk(disk: &LoopExt4, temporary: &Path, dir: &Path) {
    let small = dir.join("small");
    fs::create_dir(&small).unwrap();
    let mount = |command: &str, args: &[&str]| {
        let done = Command::new(command).args(args).arg(&small).status();
        assert!(done.unwrap().success(), "{command}");
    };
    mount("mount", &["-t", "tmpfs", "-o", "size=24m", "tmpfs"]);
    let recorder = record(disk.device(), &small.join("t.most"), "tracefs", temporary)
        .args(["--segment", "1s", "-w", "3600"])
        .spawn()
        .unwrap();
    let pid = recorder.id();
    let ended = recorder.wait_with_output().unwrap();
    assert_nothing_is_left(pid);
    let all = segments(&small);
    let (finished, _) = read(&small);
    mount("umount", &[]);
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    let says = "No space left on device: the recording ends here; what came before is in ";
    assert!(matches!(lines[..], [line] if line.contains(says)), "{said}");
    assert!(
        finished >= 2 && finished + 2 >= all.len(),
        "{finished} of {all:?}"
    );
}

/// Returns the instances of a recorder.
fn instances(recorder: u32) -> usize {
    let of = format!("mostrace-{recorder}-");
    let all = fs::read_dir(INSTANCES).unwrap();
    let names = all.map(|i| i.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(&of)).count()
}

/// Kills its children of that name.
fn kill_guards(recorder: u32) {
    let done = Command::new("pkill")
        .args(["-KILL", "-f", "mostrace-guard", "-P"])
        .arg(recorder.to_string())
        .status();
    assert!(done.unwrap().success(), "it has no guard");
}

/// Starts a recorder with this source and with entries of plain tracepoints, which need an instance; returns once it traces.
fn started(disk: &LoopExt4, output: &Path, source: &str) -> Child {
    let mut recorder = run::record(disk.device(), output)
        .args(["--no-snapshot", "--entries", "tracefs"])
        .args(["-w", "3600", "--source", source])
        .spawn()
        .unwrap();
    wait::until("no manifest", || {
        let ended = recorder.try_wait().unwrap();
        assert!(ended.is_none(), "the recorder has ended: {ended:?}");
        output.join(layout::MANIFEST).exists()
    });
    recorder
}

fn notes(bundle: &Path) -> Vec<String> {
    Bundle::open(bundle).unwrap().manifest().notes.clone()
}

/// The recorder ends properly, and another guard undoes its changes.
fn a_killed_guard() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for (source, of_instances) in [("tracefs", 3), ("bpf", 2)] {
        let bundle = dir.path().join(format!("{source}.most"));
        let recorder = started(&disk, &bundle, source);
        let pid = recorder.id();
        assert_eq!(instances(pid), of_instances);
        kill_guards(pid);
        stop(recorder);
        assert_eq!(instances(pid), 0);
        let notes = notes(&bundle);
        let says = "was killed (signal 9): another one was started to do it";
        assert!(notes.iter().any(|note| note.ends_with(says)), "{notes:?}");
    }
}

/// Both are killed: the next recorder removes their instances, and leaves those of others alone.
fn a_guard_killed_with_its_recorder() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for next in ["bpf", "tracefs"] {
        let mut recorder = started(&disk, &dir.path().join(format!("{next}.most")), "tracefs");
        kill_guards(recorder.id());
        recorder.kill().unwrap();
        recorder.wait().unwrap();
        assert_eq!(instances(recorder.id()), 3);
        // A change to another recorder's instance would be reported there.
        let other_bundle = dir.path().join(format!("{next}-other.most"));
        let other = started(&disk, &other_bundle, "tracefs");
        assert_eq!(instances(recorder.id()), 0);
        let bundle = dir.path().join(format!("{next}-next.most"));
        let mut again = run::record(disk.device(), &bundle);
        again.args(["--no-snapshot", "--entries=none", "--source", next]);
        let said = succeeds(again.args(["--", "true"])).err;
        assert_eq!(instances(other.id()), 3);
        stop(other);
        let first = notes(&other_bundle);
        let says = "instances of tracefs that killed recorders had left were removed before this recording: 3";
        assert!(first.iter().any(|note| note == says), "{first:?}");
        assert!(!said.contains("killed"), "{said}");
    }
}

fn stop(mut recorder: Child) {
    tool::kill("-INT", &recorder.id().to_string());
    assert!(recorder.wait().unwrap().success());
}

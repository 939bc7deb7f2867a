// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mostrace replay --blocks`: the requests of a recording reach the target again. blkparse reads both recordings.

use crate::run;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs;
use std::path::Path;
use std::process::Command;

use mostrace_bundle::Bundle;
use run::{program, record, say, succeeds};
use serde_json::Value;
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, nothing_lost, one_by_one, tests};

pub fn suite() -> Suite {
    one_by_one(tests![
        the_same_requests_reach_the_target needs [
            Need::Loop,
            Need::Btf,
            Need::Tool("blkparse", "blktrace"),
        ],
        what_is_in_use_is_not_written needs [Need::Loop],
        a_bare_trace_is_replayed_in_a_file needs [Need::Loop],
    ])
}

/// A block event as blkparse prints it.
struct Event {
    action: char,
    rwbs: String,
    sector: u64,
    sectors: u64,
    ns: u64,
    cpu: u32,
}

fn events(bundle: &Path) -> Vec<Event> {
    let folder = tempfile::tempdir().unwrap();
    let basename = folder.path().join("trace");
    run::export_blktrace(bundle, &basename);
    let parsed = say(Command::new("blkparse")
        .args(["-q", "-f", "%a %d %S %n %T %t %c\n", "-i"])
        .arg(basename));
    let event = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [action, rwbs, sector, sectors, seconds, ns, cpu] = words[..] else {
            return None;
        };
        let seconds: u64 = seconds.parse().ok()?;
        Some(Event {
            action: action.chars().next()?,
            rwbs: rwbs.to_owned(),
            sector: sector.parse().ok()?,
            sectors: sectors.parse().ok()?,
            ns: seconds * 1_000_000_000 + ns.parse::<u64>().ok()?,
            cpu: cpu.parse().ok()?,
        })
    };
    parsed.out.lines().filter_map(event).collect()
}

/// The kind and place of a request, which several requests may share.
type Key = (&'static str, u64, u64);

/// The number of requests of each kind and place. No program can ask for a write with a preflush, so that one counts as a
/// flush and a write on either side.
fn requests(events: &[Event]) -> BTreeMap<Key, u64> {
    let mut found = BTreeMap::new();
    let mut add = |key| *found.entry(key).or_default() += 1;
    for event in events {
        let place = |kind| (kind, event.sector, event.sectors);
        match event.action {
            'C' if event.sectors > 0 && event.rwbs.contains('W') => add(place("write")),
            'C' if event.sectors > 0 => add(place("read")),
            'Q' if event.rwbs.starts_with('F') => add(("flush", 0, 0)),
            _ => {}
        }
        let flags = event.rwbs.trim_start_matches('F');
        if event.action == 'Q' && flags.starts_with("WF") {
            add(place("FUA"));
        }
    }
    found
}

/// Returns for each write its number among those of the same sectors, and when it was queued and completed, ns. One with a preflush
/// has a second completion, without sectors, when its flushes have ended.
fn writes(events: &[Event]) -> Vec<(Key, usize, u64, u64)> {
    let mut queued: HashMap<u64, VecDeque<(u64, bool)>> = HashMap::new();
    let mut flushing: HashMap<u64, usize> = HashMap::new();
    let mut seen: HashMap<Key, usize> = HashMap::new();
    let mut writes: Vec<(Key, usize, u64, u64)> = Vec::new();
    for event in events.iter().filter(|event| event.rwbs.contains('W')) {
        match (event.action, event.sectors) {
            ('Q', 1..) => {
                let has_preflush = event.rwbs.starts_with('F');
                let at = queued.entry(event.sector).or_default();
                at.push_back((event.ns, has_preflush));
            }
            ('C', 0) => {
                if let Some(write) = flushing.remove(&event.sector) {
                    writes[write].3 = event.ns;
                }
            }
            ('C', _) => {
                let waiting = queued.get_mut(&event.sector);
                let Some((q_ns, has_preflush)) = waiting.and_then(VecDeque::pop_front) else {
                    continue;
                };
                if has_preflush {
                    flushing.insert(event.sector, writes.len());
                }
                let key = ("write", event.sector, event.sectors);
                let nth = seen.entry(key).or_default();
                writes.push((key, *nth, q_ns, event.ns));
                *nth += 1;
            }
            _ => {}
        }
    }
    writes
}

/// Returns the number of flushes that had been queued when the recording of queueings began. That of completions begins before it, and
/// somebody else's sync() may ask for one flush at a time.
fn flushes_under_way(events: &[Event]) -> u64 {
    let mut queued: HashMap<u64, u64> = HashMap::new();
    let (mut under_way, mut before, mut has_begun) = (0, 0, false);
    for event in events.iter().filter(|event| event.rwbs.contains('W')) {
        has_begun |= event.action == 'Q';
        let waiting = queued.entry(event.sector).or_default();
        match event.action {
            'Q' if event.rwbs.contains('F') => *waiting += 1,
            'C' if event.sectors == 0 && *waiting == 0 => under_way += 1,
            'C' if event.sectors == 0 => *waiting -= 1,
            _ => {}
        }
        if !has_begun {
            before = under_way;
        }
    }
    assert!(
        under_way - before <= 1,
        "{under_way}, {before} of them before"
    );
    under_way
}

fn recorded(disk: &LoopExt4, output: &Path) {
    let database = disk.mount_point().join("x.db");
    let workload = ["workload", "sqlite", "--transactions", "100"];
    let mut record = record(disk.mount_point(), output);
    record.args(["-q", "--", env!("CARGO_BIN_EXE_mostrace")]);
    succeeds(record.args(workload).arg(database));
}

/// A disk that nobody but the program under test writes to: the kernel does not go on to initialise it after the mount.
fn disk() -> LoopExt4 {
    let mkfs = ["-E", "lazy_itable_init=0,lazy_journal_init=0"];
    LoopExt4::new(&LoopOptions {
        mkfs: mkfs.map(str::to_owned).to_vec(),
        ..LoopOptions::default()
    })
    .unwrap()
}

fn the_same_requests_reach_the_target() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (
        dir.path().join("first.most"),
        dir.path().join("second.most"),
    );
    let (source, mut target) = (disk(), disk());
    target.unmount().unwrap();
    recorded(&source, &first);
    let again = succeeds(
        record(target.disk(), &second)
            .args([
                "-q",
                "--",
                env!("CARGO_BIN_EXE_mostrace"),
                "replay",
                "--json",
            ])
            .arg(&first)
            .arg("--blocks")
            .arg(target.disk())
            .arg("--yes")
            .arg(target.disk()),
    );
    let told: Value = serde_json::from_str(&again.out).unwrap();
    assert_eq!(told["blocks"]["failed"], serde_json::json!({}));
    // A completion that this machine's kernel keeps from the probes cannot be replayed.
    for bundle in [&first, &second] {
        nothing_lost(&Bundle::open(bundle).unwrap().manifest().losses);
    }

    let (first, second) = (events(&first), events(&second));
    // Nothing else is left out.
    let left_out = match flushes_under_way(&first) {
        0 => serde_json::json!({}),
        number => serde_json::json!({ "flushes whose queueing was not seen": number }),
    };
    assert_eq!(told["left_out"], left_out);
    let of_recording = requests(&first);
    for kind in ["write", "flush", "FUA"] {
        let of_kind = of_recording.iter().filter(|((k, ..), _)| *k == kind);
        let number: u64 = of_kind.map(|(_, count)| count).sum();
        assert!(number >= 100, "{number} of {kind}");
    }
    assert_eq!(of_recording, requests(&second));

    // A write that was queued after a commit had been completed, is so again.
    let (before, after) = (writes(&first), writes(&second));
    let times: HashMap<_, _> = after
        .iter()
        .map(|&(key, nth, q_ns, c_ns)| ((key, nth), (q_ns, c_ns)))
        .collect();
    let commits: Vec<u64> = first
        .iter()
        .filter(|event| event.action == 'Q' && event.rwbs.starts_with("FWF"))
        .map(|event| event.sector)
        .collect();
    let mut pairs = 0;
    for (commit, nth, _, completed) in &before {
        if !commits.contains(&commit.1) {
            continue;
        }
        for (write, other, queued, _) in &before {
            if completed < queued {
                let (_, completed) = times[&(*commit, *nth)];
                let (queued, _) = times[&(*write, *other)];
                assert!(completed < queued, "{write:?} went ahead of {commit:?}");
                pairs += 1;
            }
        }
    }
    assert!(pairs > 1000, "{pairs}");
    let cpus: std::collections::BTreeSet<u32> = first.iter().map(|event| event.cpu).collect();
    println!("{pairs} pairs, {} CPUs", cpus.len());
}

fn what_is_in_use_is_not_written() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("run.most");
    let mut source = disk();
    recorded(&source, &recording);
    let replay = |target: &Path, more: &[&str]| {
        let mut replay = program();
        replay
            .arg("replay")
            .arg(&recording)
            .arg("--blocks")
            .arg(target);
        say(replay.arg("--yes").arg(target).args(more))
    };
    let mounted = replay(source.disk(), &[]).ended(1);
    mounted.complains("is mounted, or in use by another device");
    let backing = replay(&source.image(), &[]).ended(1);
    backing.complains("is in use as loop");
    let folder = replay(dir.path(), &[]);
    folder.complains("is neither a block device nor a file");
    let small = dir.path().join("small");
    fs::write(&small, [7; 4096]).unwrap();
    let small = replay(&small, &[]);
    small.complains("has 4096 bytes, but the requests reach");
    replay(source.disk(), &["--speed", "0"]).ended(2);

    // Nothing is written unless --yes names the target.
    source.unmount().unwrap();
    let before = fs::read(source.image()).unwrap();
    let only = |yes: &[&str]| {
        let mut replay = program();
        replay.arg("replay").arg(&recording).arg("--blocks");
        say(replay.arg(source.disk()).args(yes))
    };
    let dry = only(&[]).ended(0);
    dry.prints("Nothing was written");
    assert_eq!(only(&["--yes", "/dev/null"]).status, Some(1));
    assert!(before == fs::read(source.image()).unwrap());
}

fn a_bare_trace_is_replayed_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("run.most");
    recorded(&disk(), &recording);
    let bare = dir.path().join("bare");
    run::export_blktrace(&recording, &bare);
    let target = dir.path().join("target");
    fs::File::create(&target)
        .unwrap()
        .set_len(64 << 20)
        .unwrap();
    let replayed = succeeds(
        program()
            .arg("replay")
            .arg(bare)
            .arg("--blocks")
            .arg(&target)
            .arg("--yes")
            .arg(&target)
            .args(["--fast", "--json"]),
    );
    let told: Value = serde_json::from_str(&replayed.out).unwrap();
    assert_eq!(told["blocks"]["failed"], serde_json::json!({}));
    let written = &told["blocks"]["requests"]["write"];
    assert!(written["requests"].as_u64() > Some(100), "{told}");
    assert!(fs::read(&target).unwrap().iter().any(|byte| *byte != 0));
}

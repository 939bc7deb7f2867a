// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flushes on loop devices: those that were asked for, those that the device executed, and their owners.
//!
//! The tests run one at a time: signal handlers belong to the process.

use crate::captured;

use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use captured::{Captured, capture, is_flush, options};
use mostrace_bundle::blk_io_trace::Event;
use mostrace_bundle::blk_io_trace::action::{BLK_TC_WRITE, ta};
use mostrace_bundle::entry::FileEntry;
use mostrace_bundle::entry::{Flags, RawProcess, Stage};
use mostrace_capture::{Choice, Events, record};
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, one_by_one, tests};

const FIO: Need = Need::Tool("fio", "fio");
const SFDISK: Need = Need::Tool("sfdisk", "fdisk");
const PROBES: [Need; 2] = [Need::Loop, Need::Btf];

pub fn suite() -> Suite {
    one_by_one(tests![
        flushes_are_asked_for_and_made needs PROBES,
        a_neighbours_flushes_are_not_the_partitions needs [Need::Loop, Need::Btf, SFDISK],
        flushes_of_two_at_once_have_their_owners needs [Need::Loop, Need::Btf, Need::NoSync, FIO],
    ])
}

/// Each flush that a process asks for is queued by it and completed, and the device's own flush for it is in the trace
/// too.
fn flushes_are_asked_for_and_made() {
    let mut disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    disk.unmount().unwrap();
    let script = format!(
        "for i in 1 2 3 4 5; do dd if=/dev/zero of={} bs=4k count=1 oflag=direct conv=fdatasync 2>/dev/null; done",
        disk.device().display()
    );
    let got = capture(disk.device(), Choice::Bpf, &script);
    got.assert_nothing_lost();
    let events = &got.events;
    let empty = |act: u64| {
        let of_act = move |e: &&Event<'_>| !e.is_note() && e.act() == act && e.bytes == 0;
        events.iter().filter(of_act)
    };
    let asked: Vec<_> = empty(ta::QUEUE).filter(|e| is_flush(e)).collect();
    assert_eq!(asked.len(), 5);
    let names: HashMap<u32, &str> = got
        .names
        .iter()
        .map(|(pid, name)| (*pid, &name[..]))
        .collect();
    assert!(
        asked.iter().all(|e| names.get(&e.pid) == Some(&"dd")),
        "{names:?}"
    );
    // The device's own flushes, one for each request, and the ends of those that were asked for.
    assert_eq!(empty(ta::ISSUE).filter(|e| is_flush(e)).count(), 5);
    assert_eq!(empty(ta::COMPLETE).filter(|e| is_flush(e)).count(), 5);
    assert_eq!(empty(ta::COMPLETE).filter(|e| !is_flush(e)).count(), 5);
}

/// The neighbour writes nothing that reaches the partition, and flushes: the device's flush has no sectors to show
/// whose it is.
fn a_neighbours_flushes_are_not_the_partitions() {
    let mut disk = LoopExt4::new(&LoopOptions {
        partitioned: true,
        ..LoopOptions::default()
    })
    .unwrap();
    disk.unmount().unwrap();
    let first = PathBuf::from(format!("{}p1", disk.disk().display()));
    let write = |device: &Path, times: u32| {
        format!(
            "for i in $(seq {times}); do dd if=/dev/zero of={} bs=4k count=1 oflag=direct conv=fdatasync 2>/dev/null; done\n",
            device.display()
        )
    };
    let requests = |got: &Captured| {
        let mut counts = BTreeMap::new();
        let events = &got.events;
        for e in events.iter().filter(|e| !e.is_note()) {
            *counts
                .entry((e.act(), e.bytes, is_flush(e)))
                .or_insert(0u32) += 1;
        }
        counts
    };
    let capture = |script: &str| {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("t.most");
        let mut opts = options(disk.device(), output.clone(), Choice::Bpf, script);
        opts.events = Events::Needed;
        let outcome = record(&opts).unwrap();
        Captured::of(&output, outcome)
    };
    let got = capture(&write(&first, 20));
    assert_eq!(requests(&got), BTreeMap::new(), "the neighbour's");
    let got = capture(&(write(&first, 20) + &write(disk.device(), 3)));
    let own = |act, bytes, flush| ((act, bytes, flush), 3);
    let expected = [
        own(ta::QUEUE, 0, true),
        own(ta::QUEUE, 4096, false),
        own(ta::ISSUE, 0, true),
        own(ta::ISSUE, 4096, false),
        own(ta::COMPLETE, 0, false),
        own(ta::COMPLETE, 0, true),
        own(ta::COMPLETE, 4096, false),
    ];
    assert_eq!(requests(&got), BTreeMap::from(expected));
}

/// Two processes sync at once, each a file of its own. Every flush that ends must have an entry of its submitter, made
/// on the CPU of its C and directly ahead of it, and every flush of theirs one of the file.
fn flushes_of_two_at_once_have_their_owners() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let mount = disk.mount_point();
    let made = format!(
        "cd {}; for f in a b; do dd if=/dev/zero of=$f bs=1M count=1 status=none; done; sync",
        mount.display()
    );
    assert!(
        Command::new("sh")
            .args(["-ec", &made])
            .status()
            .unwrap()
            .success()
    );
    let job = |name| {
        format!(
            "fio --thread --name={name} --filename={name} --size=1m --rw=randwrite --bs=4k --number_ios=150 \
             --fdatasync=1 --overwrite=1 --output={name}.out & "
        )
    };
    let script = format!("cd {}; {}{}wait", mount.display(), job("a"), job("b"));
    let got = capture(disk.device(), Choice::Bpf, &script);
    got.assert_nothing_lost();

    let is_end = |e: &&Event<'_>| !e.is_note() && e.act() == ta::COMPLETE && e.bytes == 0;
    let events = got.events;
    let ended: Vec<(u32, u64)> = events
        .iter()
        .filter(is_end)
        .filter(|e| e.action & BLK_TC_WRITE != 0 && e.sector == 0)
        .map(|e| (e.cpu, e.time_ns))
        .collect();
    let mut told: Vec<&RawProcess> = got.process.iter().collect();
    // The probes for entries stop last.
    let end_ns = events.iter().map(|e| e.time_ns).max().unwrap();
    told.retain(|p| p.head.stage == Stage::COMPLETE && p.head.time_ns.get() <= end_ns);
    assert_eq!(told.len(), ended.len());
    for p in &told {
        assert!(!p.head.flags.has(Flags::NO_SUBMITTER), "{p:?}");
        let (cpu, time_ns) = (u32::from(p.head.cpu.get()), p.head.time_ns.get());
        let next = ended
            .iter()
            .filter(|&&(c, t)| c == cpu && t >= time_ns)
            .min();
        let (_, next_ns) = next.expect("its C");
        let between = |q: &&&RawProcess| {
            let at = q.head.time_ns.get();
            q.head.cpu == p.head.cpu && at > time_ns && at <= *next_ns
        };
        assert_eq!(told.iter().filter(between).count(), 0, "{p:?}");
    }

    for name in ["a", "b"] {
        let ino = mount.join(name).metadata().unwrap().ino();
        let of_file = |f: &&FileEntry| f.raw.head.bytes.get() == 0 && f.raw.ino.get() == ino;
        let synced = got.file.iter().filter(of_file).count();
        // A commit of the journal, which has a flush of its own, replaces some.
        assert!((50..=151).contains(&synced), "{name}: {synced}");
    }
    let of_fio = told.iter().filter(|p| p.comm.starts_with(b"fio")).count();
    let then = |f: &&FileEntry| f.raw.head.bytes.get() == 0 && f.raw.head.time_ns.get() <= end_ns;
    let synced = got.file.iter().filter(then);
    assert_eq!(synced.count(), of_fio);
}

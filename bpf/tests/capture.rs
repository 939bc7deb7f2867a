// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures on loop-mounted ext4, held against FIEMAP, the writers' own pids and debugfs' logdump.
//!
//! One at a time: ftrace has one user, and the signal handlers are the process's.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use mostrace_bundle::blk_io_trace::action::{BLK_TC_DISCARD, BLK_TC_FLUSH, BLK_TC_WRITE, ta, tn};
use mostrace_bundle::blk_io_trace::{Decoded, Event, decode};
use mostrace_bundle::entry::{Flags, Home, Jbd2, NONE, Origin, RawDirtier, RawProcess, Stage};
use mostrace_bundle::{Bundle, Entry, entry::FileEntry, layout};
use mostrace_capture::{Choice, Entries, Events, Options, Outcome, record};
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Test, run_one_by_one, tests, wait};

const FIO: Need = Need::Tool("fio", "fio");
const XFS_IO: Need = Need::Tool("xfs_io", "xfsprogs");
const SFDISK: Need = Need::Tool("sfdisk", "fdisk");
const PROBES: [Need; 2] = [Need::Loop, Need::Btf];

fn main() -> ExitCode {
    let mut all = tests![
        a_partition_and_its_disk needs [Need::Loop, Need::Btf, Need::BlkTracer, SFDISK],
        ftrace_and_bpf_tell_the_same needs [Need::Loop, Need::Btf, Need::BlkTracer, FIO],
        names_of_unlinked_linked_and_long needs PROBES,
        journalled_copies_know_their_home needs PROBES,
        nothing_is_missing_at_the_end needs [Need::Loop, Need::Btf, FIO],
        nothing_is_missing_at_the_end_of_many needs [Need::Loop, Need::Btf, FIO, Need::Minutes],
        flushes_are_asked_for_and_made needs PROBES,
        a_neighbours_flushes_are_not_the_partitions needs [Need::Loop, Need::Btf, SFDISK],
        the_reader_sleeps_while_there_is_little needs [Need::Loop, Need::Btf, FIO],
        plain_tracepoints_tell_what_the_probes_tell needs [Need::Loop, SFDISK],
        other_probes_are_not_loaded needs [Need::Loop, Need::Btf, Need::BlkTracer],
        flushes_of_two_at_once_have_their_owners needs [Need::Loop, Need::Btf, FIO],
        padded_writes_move_no_offset needs PROBES,
        names_are_whole_while_renamed needs PROBES,
        homes_of_an_external_journal needs PROBES,
        encrypted_files_are_known needs [Need::Loop, Need::Btf, Need::Encryption, XFS_IO],
    ];
    all.extend(["none", "mq-deadline", "bfq"].map(|scheduler| {
        Test::new(
            format!("writers_under_{scheduler}"),
            &[Need::Loop, Need::Btf, FIO, Need::Scheduler(scheduler)],
            move || writers_under(scheduler),
        )
    }));
    run_one_by_one(all)
}

struct Captured {
    bundle: Bundle,
    outcome: Outcome,
    /// Decoded without their payloads.
    events: Vec<Event<'static>>,
    /// Threads' names as the trace notes them.
    names: Vec<(u32, String)>,
    process: Vec<RawProcess>,
    file: Vec<FileEntry>,
    dirtier: Vec<RawDirtier>,
}

fn options(device: &Path, output: PathBuf, source: Choice, script: &str) -> Options {
    Options {
        device: device.to_owned(),
        output,
        source,
        events: Events::All,
        entries: Entries::Bpf,
        sync: true,
        snapshot: false,
        argv: ["sh", "-ec", script].map(Into::into).to_vec(),
        ..Options::default()
    }
}

fn capture(device: &Path, source: Choice, script: &str) -> Captured {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("t.most");
    let outcome = record(&options(device, output.clone(), source, script)).unwrap();
    assert_eq!(outcome.exit_status, 0, "the script failed");
    Captured::of(&output, outcome)
}

fn is_issue(event: &Event<'_>) -> bool {
    !event.is_note() && event.act() == ta::ISSUE
}

impl Captured {
    /// All of a bundle that goes when it was read.
    fn of(output: &Path, outcome: Outcome) -> Captured {
        let bundle = Bundle::open(output).unwrap();
        let (mut process, mut file, mut dirtier) = (Vec::new(), Vec::new(), Vec::new());
        for name in layout::TABLES {
            for entry in bundle.table(name, false).unwrap().into_iter().flatten() {
                match entry.unwrap() {
                    Entry::Process(p) => process.push(p),
                    Entry::File(f) => file.push(f),
                    Entry::Dirtier(d) => dirtier.push(d),
                    Entry::Handle(_) | Entry::Dirtied(_) | Entry::Call(_) | Entry::Freed(_) => {
                        unreachable!()
                    }
                }
            }
        }
        let (mut events, mut names) = (Vec::new(), Vec::new());
        for path in bundle.event_files() {
            let data = fs::read(path).unwrap();
            let mut rest = &data[..];
            while !rest.is_empty() {
                let at = data.len() - rest.len();
                let Decoded::Record(event, len) = decode(rest) else {
                    panic!("no record at byte {at} of {}", path.display())
                };
                if event.is_note() && event.act() == tn::PROCESS {
                    let name = event.pdu.split(|b| *b == 0).next().unwrap_or_default();
                    names.push((event.pid, String::from_utf8_lossy(name).into_owned()));
                }
                events.push(Event { pdu: &[], ..event });
                rest = &rest[len..];
            }
        }
        Captured {
            bundle,
            outcome,
            events,
            names,
            process,
            file,
            dirtier,
        }
    }

    /// Sectors that process entries cover.
    fn covered(&self) -> HashSet<u64> {
        let range = |p: &RawProcess| {
            let (start, bytes) = (p.head.sector.get(), u64::from(p.head.bytes.get()));
            start..start + bytes / 512
        };
        self.process.iter().flat_map(range).collect()
    }

    /// Sector → the process that dirtied it.
    fn dirtiers(&self) -> HashMap<u64, u32> {
        let sectors = |d: &RawDirtier| {
            let (start, bytes) = (d.head.sector.get(), u64::from(d.head.bytes.get()));
            let tgid = d.tgid.get();
            (start..start + bytes / 512).map(move |sector| (sector, tgid))
        };
        self.dirtier.iter().flat_map(sectors).collect()
    }

    /// But completions, see [`completions_are_fios`].
    fn assert_nothing_lost(&self) {
        let losses = &self.outcome.manifest.losses;
        for (what, lost) in losses.iter().filter(|(what, _)| *what != "completions") {
            assert_eq!(*lost, 0, "{what}");
        }
    }
}

/// FIEMAP of a file through filefrag: device sector → sector of the file.
fn fiemap(path: &Path, start: u64) -> HashMap<u64, u64> {
    let out = Command::new("filefrag")
        .args(["-b512", "-e"])
        .arg(path)
        .output()
        .unwrap();
    assert!(out.status.success());
    let mut map = HashMap::new();
    for line in String::from_utf8_lossy(&out.stdout).lines() {
        let Some((index, rest)) = line.trim().split_once(':') else {
            continue;
        };
        if index.parse::<u32>().is_err() {
            continue;
        }
        let n: Vec<u64> = rest
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|t| t.parse().ok())
            .take(4)
            .collect();
        let [logical, last, physical, _] = n[..] else {
            panic!("filefrag: {line}")
        };
        map.extend((0..=last - logical).map(|i| (start + physical + i, logical + i)));
    }
    map
}

/// Writers at once, each a process of its own; each leaves its pid in `NAME.pid` outside the filesystem.
fn writers(mount: &Path, pids: &Path) -> String {
    let job = |name: &str, command: &str| {
        format!(
            "({command}) >/dev/null 2>&1 & echo $! > {}/{name}.pid\n",
            pids.display()
        )
    };
    let fio = |name: &str, args: &str| {
        job(
            name,
            &format!("exec fio --thread --name=x --filename={name} --size=2m {args}"),
        )
    };
    format!(
        "cd {}\n{}{}{}{}{}{}wait\n",
        mount.display(),
        job(
            "buffered",
            "exec dd if=/dev/urandom of=buffered bs=64k count=32 conv=fsync"
        ),
        job("late", "exec dd if=/dev/urandom of=late bs=5k count=400"),
        job(
            "direct",
            "exec dd if=/dev/urandom of=direct bs=256k count=8 oflag=direct"
        ),
        fio(
            "uring",
            "--ioengine=io_uring --direct=1 --rw=randwrite --bs=16k --iodepth=8"
        ),
        fio(
            "aio",
            "--ioengine=libaio --direct=1 --rw=write --bs=128k --iodepth=4"
        ),
        fio(
            "mmap",
            "--ioengine=mmap --rw=randwrite --bs=4k --end_fsync=1"
        ),
    )
}

const WRITERS: [&str; 6] = ["buffered", "late", "direct", "uring", "aio", "mmap"];

fn writers_under(scheduler: &str) {
    let disk = LoopExt4::new(&LoopOptions {
        scheduler: Some(scheduler.into()),
        ..LoopOptions::default()
    })
    .unwrap();
    // Small requests: large bios are split.
    let name = disk.disk().file_name().unwrap().to_owned();
    let queue = Path::new("/sys/block").join(name).join("queue");
    fs::write(queue.join("max_sectors_kb"), "16").unwrap();
    let pids = tempfile::tempdir().unwrap();
    let got = capture(
        disk.device(),
        Choice::Bpf,
        &writers(&disk.mount_point(), pids.path()),
    );
    got.assert_nothing_lost();
    assert_eq!(got.bundle.manifest().device.scheduler, scheduler);
    for name in WRITERS {
        check_writer(&got, &disk, name, pids.path());
    }
    check_every_issue_has_an_entry(&got);
    // Only what is never issued has its entry at the end.
    for p in &got.process {
        let at = if p.head.bytes.get() > 0 {
            Stage::QUEUE
        } else {
            Stage::COMPLETE
        };
        assert_eq!(p.head.stage, at, "{p:?}");
    }
}

/// Every file entry of `name` agrees with FIEMAP, all of the file was seen, every write of it was
/// submitted by its writer or, in the page cache, dirtied by it.
fn check_writer(got: &Captured, disk: &LoopExt4, name: &str, pids: &Path) {
    let path = disk.mount_point().join(name);
    let ino = path.metadata().unwrap().ino();
    let truth = fiemap(&path, disk.start_sector());
    let pid: u32 = fs::read_to_string(pids.join(format!("{name}.pid")))
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let mut seen = HashSet::new();
    for entry in got.file.iter().filter(|f| f.raw.ino.get() == ino) {
        assert_eq!(entry.name, format!("/{name}").as_bytes());
        let (sector, offset) = (entry.raw.head.sector.get(), entry.raw.offset.get());
        for i in 0..u64::from(entry.raw.head.bytes.get()) / 512 {
            assert_eq!(
                truth.get(&(sector + i)),
                Some(&(offset / 512 + i)),
                "{name}: sector {}",
                sector + i
            );
            seen.insert(sector + i);
        }
    }
    assert_eq!(
        seen.len(),
        truth.len(),
        "{name}: sectors seen against FIEMAP"
    );
    let direct = ["direct", "uring", "aio"].contains(&name);
    let of_file = |p: &&RawProcess| truth.contains_key(&p.head.sector.get());
    for entry in got.process.iter().filter(of_file) {
        assert_eq!(
            entry.origin,
            if direct { Origin::DIRECT } else { Origin::FILE },
            "{name}"
        );
        // mmap's pages may be written back by a flusher before its fsync.
        match name {
            "mmap" => {}
            "late" => assert_ne!(entry.tgid.get(), pid, "{name}: submitter"),
            _ => assert_eq!(entry.tgid.get(), pid, "{name}: submitter"),
        }
    }
    let dirtiers = got.dirtiers();
    for sector in truth.keys() {
        let expected = (!direct).then_some(pid);
        assert_eq!(
            dirtiers.get(sector).copied(),
            expected,
            "{name}: dirtier of sector {sector}"
        );
    }
}

fn check_every_issue_has_an_entry(got: &Captured) {
    let covered = got.covered();
    let issued: Vec<_> = got
        .events
        .iter()
        .filter(|e| is_issue(e) && e.action & BLK_TC_DISCARD == 0)
        .collect();
    assert!(issued.len() > 100);
    for e in issued {
        for sector in e.sector..e.sector + u64::from(e.bytes) / 512 {
            assert!(
                covered.contains(&sector),
                "sector {sector} was issued without a process entry"
            );
        }
    }
}

fn a_partition_and_its_disk() {
    let disk = LoopExt4::new(&LoopOptions {
        partitioned: true,
        ..LoopOptions::default()
    })
    .unwrap();
    let start = disk.start_sector();
    assert!(start > 0);
    let file = disk.mount_point().join("f");
    // The first partition, beside the filesystem, is written raw.
    let first = PathBuf::from(format!("{}p1", disk.disk().display()));
    let script = format!(
        "dd if=/dev/zero of={} bs=4k count=16 oflag=direct 2>/dev/null\n\
         dd if=/dev/zero of={} bs=1M count=2 oflag=direct 2>/dev/null\n\
         dd if=/dev/urandom of={} bs=64k count=8 conv=fsync 2>/dev/null",
        first.display(),
        first.display(),
        file.display()
    );
    for device in [disk.device(), disk.disk()] {
        for source in [Choice::Bpf, Choice::Ftrace] {
            let got = capture(device, source, &script);
            got.assert_nothing_lost();
            let ino = file.metadata().unwrap().ino();
            let truth = fiemap(&file, start);
            let entries: Vec<_> = got.file.iter().filter(|f| f.raw.ino.get() == ino).collect();
            assert!(!entries.is_empty());
            assert!(
                entries
                    .iter()
                    .all(|f| truth.contains_key(&f.raw.head.sector.get()))
            );
            let raw = got
                .process
                .iter()
                .filter(|p| p.origin == Origin::RAW)
                .count();
            let whole = device == disk.disk();
            assert_eq!(raw > 0, whole, "the other partition's writes, {source}");
            if !whole {
                assert!(
                    got.process
                        .iter()
                        .all(|p| p.head.bytes.get() == 0 || p.head.sector.get() >= start)
                );
            }
            check_covered(&got, start, whole);
        }
    }
}

fn check_covered(got: &Captured, start: u64, whole: bool) {
    let covered = got.covered();
    for e in got.events.iter().filter(|e| is_issue(e) && e.bytes > 0) {
        assert!(covered.contains(&e.sector), "sector {}", e.sector);
        assert!(whole || e.sector >= start);
    }
}

fn ftrace_and_bpf_tell_the_same() {
    let disk = LoopExt4::new(&LoopOptions {
        scheduler: Some("mq-deadline".into()),
        mount_options: "discard".into(),
        // No initialisation in the background.
        mkfs: ["-E", "lazy_itable_init=0,lazy_journal_init=0"]
            .map(str::to_owned)
            .to_vec(),
        ..LoopOptions::default()
    })
    .unwrap();
    let pids = tempfile::tempdir().unwrap();
    let script = format!(
        "sleep 1; {}rm {}/direct {}/mmap; sync; sleep 2",
        writers(&disk.mount_point(), pids.path()),
        disk.mount_point().display(),
        disk.mount_point().display()
    );
    // The BPF capture runs inside the ftrace one, and the queue is quiet at its start and end.
    let dir = tempfile::tempdir().unwrap();
    let outer = dir.path().join("outer.most");
    let inner_ended = dir.path().join("inner-ended");
    let until_then = format!("until [ -e {} ]; do sleep 0.1; done", inner_ended.display());
    let mut around = options(disk.device(), outer.clone(), Choice::Ftrace, &until_then);
    around.sync = false;
    let device = disk.device().to_owned();
    let outer_run = std::thread::spawn(move || record(&around).unwrap());
    wait::until("the outer capture begins", || {
        outer.join(layout::MANIFEST).exists() || outer_run.is_finished()
    });
    let inner = capture(&device, Choice::Bpf, &script);
    fs::write(&inner_ended, "").unwrap();
    let outcome = outer_run.join().unwrap();
    assert!(outcome.manifest.losses.values().all(|l| *l == 0));
    inner.assert_nothing_lost();
    let outer = Captured::of(&outer, outcome);
    let clock = inner.bundle.manifest().clock;
    let quiet = 300_000_000;
    let common = clock.start_mono_ns + quiet..clock.stop_mono_ns - quiet;
    let count = |c: &Captured| {
        let mut counts = BTreeMap::new();
        for e in c
            .events
            .iter()
            .filter(|e| !e.is_note() && common.contains(&e.time_ns))
        {
            *counts.entry((e.act(), e.action >> 16)).or_insert(0u32) += 1;
        }
        counts
    };
    let counts = count(&inner);
    assert!(counts.values().sum::<u32>() > 1000);
    assert_eq!(count(&outer), counts);
}

/// iomap pads a direct write that ends within a block, with bios of their own: neither these nor what is written
/// after them is placed anywhere else than FIEMAP says.
fn padded_writes_move_no_offset() {
    let disk = LoopExt4::new(&LoopOptions {
        mkfs: ["-b", "4096"].map(str::to_owned).to_vec(),
        ..LoopOptions::default()
    })
    .unwrap();
    // Half a block from its start, the other half, a piece in the middle: pads behind, in front and at both ends.
    let script = format!(
        "cd {}\n\
         write() {{ dd if=/dev/urandom conv=notrunc oflag=direct \"$@\" 2>/dev/null; }}\n\
         write of=behind bs=512 count=1\n\
         write of=again bs=4k count=3; write of=again bs=4k count=3\n\
         write of=half bs=2k count=1\n\
         write of=front bs=1k seek=3 count=1\n\
         write of=both bs=1k seek=5 count=2\n\
         write of=again bs=4k count=3; write of=long bs=9k count=1",
        disk.mount_point().display()
    );
    let got = capture(disk.device(), Choice::Bpf, &script);
    got.assert_nothing_lost();
    let mut short = 0;
    for name in ["behind", "again", "half", "front", "both", "long"] {
        let path = disk.mount_point().join(name);
        let ino = path.metadata().unwrap().ino();
        let truth = fiemap(&path, disk.start_sector());
        let mut seen = HashSet::new();
        let of_file = |f: &&FileEntry| f.raw.ino.get() == ino && f.raw.origin == Origin::DIRECT;
        for entry in got.file.iter().filter(of_file) {
            let (sector, offset) = (entry.raw.head.sector.get(), entry.raw.offset.get());
            let sectors = u64::from(entry.raw.head.bytes.get()) / 512;
            for i in 0..sectors {
                let place = truth.get(&(sector + i));
                assert_eq!(
                    place,
                    Some(&(offset / 512 + i)),
                    "{name}: sector {}",
                    sector + i
                );
            }
            seen.insert(sector);
            short += u32::from(sectors < 8);
        }
        assert!(!seen.is_empty(), "{name}");
    }
    assert!(
        short >= 9,
        "iomap padded nothing: {short} bios within a block"
    );
}

fn nothing_is_missing_at_the_end() {
    completions_are_fios(3);
}

fn nothing_is_missing_at_the_end_of_many() {
    completions_are_fios(20);
}

/// The command ends with its last completions on their way through the ring: the request that was issued last is
/// completed in the trace. A kernel may keep BPF programs from running in the time of some task (seen of process 1 of a
/// virtual machine), in which a softirq may complete other tasks' requests: these completions are missing, and counted.
fn completions_are_fios(runs: u32) {
    let mut disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    disk.unmount().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("fio.json");
    let script = format!(
        "exec fio --name=x --filename={} --rw=randwrite --bs=4k --ioengine=libaio --iodepth=16 \
         --direct=1 --time_based --runtime=2 --output-format=json --output={}",
        disk.device().display(),
        report.display()
    );
    for run in 0..runs {
        let output = dir.path().join(format!("{run}.most"));
        let mut opts = options(disk.device(), output.clone(), Choice::Bpf, &script);
        opts.events = Events::Needed;
        let outcome = record(&opts).unwrap();
        let got = Captured::of(&output, outcome);
        got.assert_nothing_lost();
        let fio: serde_json::Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
        let fios = fio["jobs"][0]["write"]["total_ios"].as_u64().unwrap();
        assert!(fios > 1000);
        // Neighbours may be merged to one request.
        let bytes = |act: u64| -> u64 {
            let of_act = got.events.iter().filter(|e| !e.is_note() && e.act() == act);
            of_act.map(|e| u64::from(e.bytes)).sum()
        };
        let missing = got.outcome.manifest.losses["completions"];
        assert_eq!(bytes(ta::QUEUE), fios * 4096, "run {run}: queued");
        assert_eq!(bytes(ta::ISSUE), fios * 4096, "run {run}: issued");
        assert_eq!(
            bytes(ta::COMPLETE),
            (fios - missing) * 4096,
            "run {run}: completed"
        );
        let last = got
            .events
            .iter()
            .filter(|e| is_issue(e))
            .max_by_key(|e| e.time_ns)
            .unwrap();
        let is_its_end = |e: &&Event<'_>| {
            e.act() == ta::COMPLETE && e.sector == last.sector && e.time_ns > last.time_ns
        };
        // It may be one of those that are missing, which are counted.
        assert!(
            missing > 0 || got.events.iter().any(|e| is_its_end(&e)),
            "run {run}: the last"
        );
        fs::remove_dir_all(&output).unwrap();
    }
}

fn is_flush(event: &Event<'_>) -> bool {
    event.action & BLK_TC_FLUSH != 0
}

/// Each flush that a process asks for is queued by it and completed, and what the device flushed for it is there too.
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
    // The device's own, made for each, and the ends of those that were asked for.
    assert_eq!(empty(ta::ISSUE).filter(|e| is_flush(e)).count(), 5);
    assert_eq!(empty(ta::COMPLETE).filter(|e| is_flush(e)).count(), 5);
    assert_eq!(empty(ta::COMPLETE).filter(|e| !is_flush(e)).count(), 5);
}

/// The neighbour writes nothing that reaches the partition, and flushes: the device's flush has no sectors that would tell.
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

/// Its threads are woken by a full ring, and look a few times a second by themselves: not at every record.
fn the_reader_sleeps_while_there_is_little() {
    let mut disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    disk.unmount().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("t.most");
    let script = format!(
        "exec fio --name=x --filename={} --rw=randwrite --bs=4k --direct=1 --rate_iops=500 --time_based --runtime=4 >/dev/null",
        disk.device().display()
    );
    let mut opts = options(disk.device(), output.clone(), Choice::Bpf, &script);
    opts.events = Events::Needed;
    let run = std::thread::spawn(move || record(&opts).unwrap());
    wait::until("the writes begin", || {
        run.is_finished()
            || fs::metadata(output.join("process.entries")).is_ok_and(|m| m.len() > 1000)
    });
    let before = wakeups("ring-reader");
    let start = std::time::Instant::now();
    std::thread::sleep(std::time::Duration::from_secs(2));
    let woken = wakeups("ring-reader") - before;
    let rests = start.elapsed().as_secs_f64() / 0.4;
    run.join().unwrap();
    assert!(
        before > 0 && (woken as f64) < 2.0 * rests + 10.0,
        "woken {woken} times in {rests} rests"
    );
}

/// How often threads of this process of a name have slept.
fn wakeups(name: &str) -> u64 {
    let mut sum = 0;
    for task in fs::read_dir("/proc/self/task").unwrap() {
        let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap_or_default();
        let field = |key: &str| {
            status
                .lines()
                .find_map(|l| Some(l.strip_prefix(key)?.trim().to_owned()))
        };
        if field("Name:").as_deref() == Some(name) {
            sum += field("voluntary_ctxt_switches:").map_or(0, |n| n.parse::<u64>().unwrap());
        }
    }
    sum
}

/// Events and entries of plain tracepoints, in an instance that goes: with the same truth as the probes', on a partition.
fn plain_tracepoints_tell_what_the_probes_tell() {
    let disk = LoopExt4::new(&LoopOptions {
        partitioned: true,
        ..LoopOptions::default()
    })
    .unwrap();
    let (file, gone) = (
        disk.mount_point().join("f"),
        disk.mount_point().join("gone"),
    );
    let script = format!(
        "dd if=/dev/urandom of={} bs=64k count=8 conv=fsync 2>/dev/null\n\
         dd if=/dev/urandom of={} bs=4k count=5 conv=fsync 2>/dev/null\n\
         rm {}",
        file.display(),
        gone.display(),
        gone.display()
    );
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("t.most");
    let mut opts = options(disk.device(), output.clone(), Choice::Tracefs, &script);
    opts.entries = Entries::Tracefs;
    let outcome = record(&opts).unwrap();
    let got = Captured::of(&output, outcome);
    got.assert_nothing_lost();
    check_covered(&got, disk.start_sector(), false);

    let truth = fiemap(&file, disk.start_sector());
    let ino = file.metadata().unwrap().ino();
    let of_file: Vec<_> = got.file.iter().filter(|f| f.raw.ino.get() == ino).collect();
    let bytes: u32 = of_file.iter().map(|f| f.raw.head.bytes.get()).sum();
    assert_eq!(bytes, 8 << 16);
    for f in of_file {
        let offset = truth.get(&f.raw.head.sector.get());
        assert_eq!(offset, Some(&(f.raw.offset.get() / 512)), "{f:?}");
    }
    // Of the one that is gone there is its number, and no name.
    let others: Vec<_> = got.file.iter().filter(|f| f.raw.ino.get() != ino).collect();
    let bytes: u32 = others.iter().map(|f| f.raw.head.bytes.get()).sum();
    assert_eq!(bytes, 5 << 12, "{others:?}");
    assert!(others.iter().all(|f| f.name.is_empty()));

    let dd = got.process.iter().filter(|p| p.comm.starts_with(b"dd\0"));
    let bytes: u32 = dd.map(|p| p.head.bytes.get()).sum();
    assert!(bytes >= (8 << 16) + (5 << 12), "{bytes}");
    let names = fs::read_dir("/sys/kernel/tracing/instances")
        .into_iter()
        .flatten();
    let of_ours = format!("mostrace-{}-", std::process::id());
    let ours = names
        .flatten()
        .filter(|n| n.file_name().to_string_lossy().starts_with(&of_ours));
    assert_eq!(ours.count(), 0);
}

/// What a run does not need is not loaded: neither another kind's probes, nor events that nobody asked for.
fn other_probes_are_not_loaded() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for (source, entries, expected) in [
        (Choice::Ftrace, Entries::Bpf, [false, true, true]),
        (Choice::Bpf, Entries::None, [true, false, false]),
    ] {
        let output = dir.path().join(format!("{source}.most"));
        let go_on = dir.path().join(format!("{source}-go-on"));
        let until_then = format!("until [ -e {} ]; do sleep 0.1; done", go_on.display());
        let mut opts = options(disk.device(), output.clone(), source, &until_then);
        opts.entries = entries;
        opts.events = Events::Needed;
        let run = std::thread::spawn(move || record(&opts).unwrap());
        wait::until("the capture begins", || {
            output.join(layout::MANIFEST).exists() || run.is_finished()
        });
        let mine = programs();
        fs::write(&go_on, "").unwrap();
        run.join().unwrap();
        let of = |prefix: &str| mine.iter().any(|name| name.starts_with(prefix));
        assert_eq!(
            [of("event_"), of("mostrace_"), of("cause_")],
            expected,
            "{source}: {mine:?}"
        );
        assert!(!of("event_getrq") && !of("event_plug"), "{mine:?}");
    }
}

/// The names, cut to 15 bytes, of the BPF programs that this process has.
fn programs() -> Vec<String> {
    let mut mine = HashSet::new();
    for descriptor in fs::read_dir("/proc/self/fdinfo").unwrap() {
        // One that was closed meanwhile is no matter.
        let text = fs::read_to_string(descriptor.unwrap().path()).unwrap_or_default();
        let ids = text.lines().filter_map(|l| l.strip_prefix("prog_id:"));
        mine.extend(ids.filter_map(|id| id.trim().parse::<u32>().ok()));
    }
    libbpf_rs::query::ProgInfoIter::default()
        .filter(|program| mine.contains(&program.id))
        .map(|program| program.name.to_string_lossy().into_owned())
        .collect()
}

fn names_of_unlinked_linked_and_long() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let long = "n".repeat(247) + "-journal";
    let script = format!(
        "cd {}\n\
         dd if=/dev/urandom of={long} bs=4k count=4 conv=fsync 2>/dev/null\n\
         dd if=/dev/urandom of=two-journal bs=4k count=4 2>/dev/null; ln two-journal second\n\
         sync two-journal\n\
         exec 3<>gone-wal; dd if=/dev/urandom bs=4k count=4 >&3 2>/dev/null; rm gone-wal; sync /dev/fd/3\n\
         dd if=/dev/urandom of=plain bs=4k count=4 conv=fsync 2>/dev/null",
        disk.mount_point().display()
    );
    let dir = tempfile::tempdir().unwrap();
    let mut opts = options(
        disk.device(),
        dir.path().join("t.most"),
        Choice::Bpf,
        &script,
    );
    opts.files = "temp".into();
    record(&opts).unwrap();
    let bundle = Bundle::open(&opts.output).unwrap();
    let mut named: HashMap<Vec<u8>, Flags> = HashMap::new();
    for entry in bundle.table(layout::FILE, false).unwrap().unwrap() {
        let Entry::File(f) = entry.unwrap() else {
            panic!("a process entry in the file table")
        };
        named.insert(f.name, f.raw.head.flags);
        assert_eq!(f.raw.parent.get(), 2, "the root directory");
    }
    // With the slash it is longer than an entry holds: without the folders then.
    assert!(named.contains_key(long.as_bytes()), "{named:?}");
    assert!(named[&b"/gone-wal"[..]].has(Flags::UNLINKED));
    let linked = named
        .get(&b"/two-journal"[..])
        .or(named.get(&b"/second"[..]));
    // Either name may be the first; only the temporary one is kept under `temp`.
    assert!(linked.is_some_and(|f| f.has(Flags::HARDLINKED)) || named.contains_key(&b""[..]));
    assert!(!named.contains_key(&b"/plain"[..]), "not asked for");
    assert!(named[&b""[..]].has(Flags::NAME_WITHHELD));
}

/// A rename between the reads of a name's length and of its bytes leaves no mixture behind.
fn names_are_whole_while_renamed() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let long = "l".repeat(200);
    let script = format!(
        "cd {}; : > {long}; exec 3<>{long}\n\
         (while mv {long} short && mv short {long}; do :; done) 2>/dev/null & mover=$!\n\
         dd if=/dev/zero of=/dev/fd/3 bs=4k count=3000 oflag=direct conv=notrunc 2>/dev/null\n\
         kill $mover; wait",
        disk.mount_point().display()
    );
    let got = capture(disk.device(), Choice::Bpf, &script);
    let direct = |f: &&FileEntry| f.raw.origin == Origin::DIRECT;
    let mut seen = HashSet::new();
    for entry in got.file.iter().filter(direct) {
        // Where a rename came in between there is no path, or no name.
        let name = String::from_utf8_lossy(&entry.name).into_owned();
        let name = name.strip_prefix('/').unwrap_or(&name).to_owned();
        assert!(["", "short", &long].contains(&&*name), "{name:?}");
        seen.insert(name);
    }
    assert!(seen.contains("short") && seen.contains(&long), "{seen:?}");
}

/// The home block of a copy in an external journal lies on the filesystem's device, not on the journal's.
fn homes_of_an_external_journal() {
    let dir = tempfile::tempdir().unwrap();
    let sh = |script: &str| {
        let out = Command::new("sh")
            .args(["-ec", script])
            .current_dir(dir.path())
            .output();
        let out = out.unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "{script}: {said}");
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    };
    sh("mkdir mnt; truncate -s 16M journal; truncate -s 64M disk");
    let journal = sh("losetup -f --show journal");
    let disk = sh("losetup -f --show disk");
    sh(&format!("mke2fs -q -O journal_dev -b 4096 {journal}"));
    sh(&format!(
        "mke2fs -q -t ext4 -b 4096 -J device={journal} {disk}; mount {disk} mnt"
    ));
    let mount = dir.path().join("mnt");
    let script = format!(
        "cd {}; for i in 1 2 3 4; do echo $i > f$i; sync f$i; done",
        mount.display()
    );
    let device = PathBuf::from(&journal);
    let done = std::panic::catch_unwind(|| capture(&device, Choice::Bpf, &script));
    sh(&format!("umount mnt; losetup -d {disk} {journal}"));
    let got = done.unwrap();
    let root = sh("debugfs -R 'blocks <2>' disk 2>/dev/null");
    let root: u64 = root.split_whitespace().next().unwrap().parse().unwrap();
    let copies = got.process.iter().filter(|p| p.jbd2 == Jbd2::METADATA_COPY);
    let homes: Vec<_> = copies.map(|p| (p.home, p.home_sector.get())).collect();
    assert!(
        homes.iter().all(|(home, _)| *home == Home::FILESYSTEM),
        "{homes:?}"
    );
    assert!(
        homes.contains(&(Home::FILESYSTEM, root * 8)),
        "{root}: {homes:?}"
    );
}

/// `debugfs logdump -a`: (journal block → (transaction, home block)) of every logged copy.
fn logdump(image: &Path) -> HashMap<(u32, u64), u64> {
    let out = Command::new("debugfs")
        .args(["-R", "logdump -aO"])
        .arg(image)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let mut found = HashMap::new();
    let mut tid = 0;
    for line in text.lines().map(str::trim_start) {
        let n: Vec<u64> = line
            .split(|c: char| !c.is_ascii_digit())
            .filter_map(|t| t.parse().ok())
            .collect();
        if line.starts_with("Found expected sequence") {
            tid = u32::try_from(n[0]).unwrap();
        } else if line.starts_with("FS block") {
            // FS block 276 logged at journal block 2 (flags 0x0)
            found.insert((tid, n[1]), n[0]);
        }
    }
    found
}

/// The home block that each live entry carries is the one that the journal on disk says.
fn journalled_copies_know_their_home() {
    for (mode, blocks) in [
        ("data=ordered", "4096"),
        ("data=ordered", "1024"),
        ("data=journal", "4096"),
    ] {
        let mut disk = LoopExt4::new(&LoopOptions {
            mkfs: ["-b", blocks, "-J", "size=8"].map(str::to_owned).to_vec(),
            mount_options: mode.into(),
            ..LoopOptions::default()
        })
        .unwrap();
        let per_block = blocks.parse::<u64>().unwrap() / 512;
        let script = format!(
            "cd {}; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i > f$i; mkdir d$i; sync f$i; done",
            disk.mount_point().display()
        );
        let got = capture(disk.device(), Choice::Bpf, &script);
        got.assert_nothing_lost();
        disk.unmount().unwrap();
        let truth = logdump(&disk.image());
        let journal = journal_blocks(&disk.image(), per_block);
        let copies: Vec<&RawProcess> = got
            .process
            .iter()
            .filter(|p| p.jbd2 == Jbd2::METADATA_COPY || p.jbd2 == Jbd2::DATA_COPY)
            .collect();
        let mut checked = 0;
        for copy in &copies {
            let at = journal[&copy.head.sector.get()];
            if let Some(home) = truth.get(&(copy.tid.get(), at)) {
                assert_eq!(
                    copy.home_sector.get(),
                    home * per_block,
                    "{mode}, journal block {at}"
                );
                checked += 1;
            }
        }
        assert!(
            checked >= 30,
            "logdump knows only {checked} of {} copies",
            copies.len()
        );
        assert_eq!(
            checked,
            copies.len(),
            "{mode}: every copy stands in the journal"
        );
        // A commit record waits for the flush before it and is inserted by kblockd: only the
        // submitter, remembered since Q, is jbd2's thread as for the blocks before it.
        let committers: HashSet<u32> = got
            .process
            .iter()
            .filter(|p| p.jbd2 == Jbd2::DESCRIPTOR || p.jbd2 == Jbd2::COMMIT)
            .map(|p| p.pid.get())
            .collect();
        assert_eq!(committers.len(), 1, "{mode}: one thread commits");
        let kinds: HashSet<u8> = got.process.iter().map(|p| p.jbd2.0).collect();
        assert!(kinds.contains(&Jbd2::DESCRIPTOR.0) && kinds.contains(&Jbd2::COMMIT.0));
        assert_eq!(kinds.contains(&Jbd2::DATA_COPY.0), mode == "data=journal");
        assert!(
            got.process
                .iter()
                .all(|p| p.jbd2 != Jbd2::NONE || p.home_sector.get() == NONE)
        );
    }
}

/// Two processes sync at once, each a file of its own: every flush that ends has an entry of its submitter, made on
/// the CPU of its C and right ahead of it, and every flush of theirs one of the file.
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
    // The probes of entries stop last.
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
        // A commit of the journal, which has a flush of its own, stands for some.
        assert!((50..=151).contains(&synced), "{name}: {synced}");
    }
    let of_fio = told.iter().filter(|p| p.comm.starts_with(b"fio")).count();
    let then = |f: &&FileEntry| f.raw.head.bytes.get() == 0 && f.raw.head.time_ns.get() <= end_ns;
    let synced = got.file.iter().filter(then);
    assert_eq!(synced.count(), of_fio);
}

/// First sector of a journal block → its number in the journal, by debugfs.
fn journal_blocks(image: &Path, per_block: u64) -> HashMap<u64, u64> {
    let out = Command::new("debugfs")
        .args(["-R", "blocks <8>"])
        .arg(image)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    (0..)
        .zip(text.split_whitespace().map(|b| b.parse::<u64>().unwrap()))
        .map(|(i, block)| (block * per_block, i))
        .collect()
}

/// Without inline encryption the pages on their way are fscrypt's, which have no mapping.
fn encrypted_files_are_known() {
    let disk = LoopExt4::new(&LoopOptions {
        mkfs: vec!["-O".into(), "encrypt".into()],
        ..LoopOptions::default()
    })
    .unwrap();
    let folder = disk.mount_point().join("encrypted");
    fs::create_dir(&folder).unwrap();
    encrypt(&disk.mount_point(), &folder).unwrap();
    let file = folder.join("secret");
    let script = format!(
        "dd if=/dev/zero of={} bs=64k count=4 conv=fsync 2>/dev/null",
        file.display()
    );
    let got = capture(disk.device(), Choice::Bpf, &script);
    got.assert_nothing_lost();
    let ino = file.metadata().unwrap().ino();
    let truth = fiemap(&file, 0);
    let mut bytes = 0;
    for entry in got.file.iter().filter(|f| f.raw.ino.get() == ino) {
        assert!(entry.name.ends_with(b"/secret"), "{:?}", entry.name);
        let sector = entry.raw.head.sector.get();
        assert_eq!(truth.get(&sector), Some(&(entry.raw.offset.get() / 512)));
        bytes += entry.raw.head.bytes.get();
    }
    assert_eq!(bytes, 4 << 16);
}

/// Sets an encryption policy with a key of its own.
fn encrypt(mount: &Path, folder: &Path) -> Result<(), String> {
    let xfs_io = |command: &str, target: &Path| {
        let script = format!(
            "head -c 64 /dev/urandom | xfs_io -c '{command}' {}",
            target.display()
        );
        let out = Command::new("sh").args(["-c", &script]).output();
        let out = out.map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&out.stderr).into_owned();
        if out.status.success() && complaint.is_empty() {
            Ok(said)
        } else {
            Err(format!("xfs_io {command}: {complaint}"))
        }
    };
    let added = xfs_io("add_enckey", mount)?;
    let key = added.split_whitespace().last().unwrap_or_default();
    xfs_io(&format!("set_encpolicy -v 2 {key}"), folder).map(drop)
}

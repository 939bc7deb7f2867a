// SPDX-License-Identifier: MIT OR Apache-2.0
//! Captures on loop-mounted ext4 by every source, compared with FIEMAP and the writers' own pids.
//!
//! The tests run one at a time: signal handlers belong to the process.

use crate::captured;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use captured::{Captured, capture, fiemap, is_issue, options};
use mostrace_bundle::blk_io_trace::Event;
use mostrace_bundle::blk_io_trace::action::{BLK_TC_DISCARD, BLK_TC_WRITE, ta};
use mostrace_bundle::entry::{Origin, RawDirtier, RawProcess, Stage};
use mostrace_bundle::layout;
use mostrace_capture::{Choice, Entries, Events, record};
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::running::Running;
use test_support::{Need, Suite, Test, nothing_lost, one_by_one, tests, tool, wait};

const FIO: Need = Need::Tool("fio", "fio");
const SFDISK: Need = Need::Tool("sfdisk", "fdisk");
const ADDPART: Need = Need::Tool("addpart", "util-linux");

pub fn suite() -> Suite {
    let mut all = tests![
        a_partition_and_its_disk needs [Need::Loop, Need::Btf, Need::Filesystem("tracefs"), SFDISK],
        a_disk_syncs_what_is_on_its_partitions needs [Need::Loop, Need::Btf, SFDISK],
        sectors_of_one_page_have_dirtiers_of_their_own needs [Need::Loop, Need::Btf, SFDISK, ADDPART],
        tracepoints_and_bpf_tell_the_same needs [Need::Loop, Need::Btf, Need::NoSync, Need::Filesystem("tracefs"), FIO],
        nothing_is_missing_at_the_end needs [Need::Loop, Need::Btf, FIO],
        nothing_is_missing_at_the_end_of_many needs [Need::Loop, Need::Btf, FIO, Need::Minutes],
        flushes_that_go_on_have_an_end needs [Need::Loop, Need::Btf, Need::Filesystem("tracefs"), FIO],
        a_load_that_goes_on_has_an_end needs [Need::Loop, Need::Btf, Need::Filesystem("tracefs"), FIO],
        what_was_issued_late_completes needs [Need::Loop, Need::Btf, Need::Filesystem("tracefs"), Need::Tool("fsfreeze", "util-linux")],
        small_rings_are_emptied_in_time needs [Need::Loop, Need::Btf, FIO],
        the_reader_sleeps_while_there_is_little needs [Need::Loop, Need::Btf, FIO],
        plain_tracepoints_tell_what_the_probes_tell needs [Need::Loop, SFDISK],
        other_probes_are_not_loaded needs [Need::Loop, Need::Btf, Need::Filesystem("tracefs")],
    ];
    all.extend(["none", "mq-deadline", "bfq"].map(|scheduler| {
        Test::new(
            format!("writers_under_{scheduler}"),
            &[
                Need::Loop,
                Need::Btf,
                Need::NoSync,
                FIO,
                Need::Scheduler(scheduler),
            ],
            move || writers_under(scheduler),
        )
    }));
    one_by_one(all)
}

/// Returns a script that runs several writers at once, each as a process that leaves its pid in `NAME.pid` outside the
/// filesystem.
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
    // Requests are small, so that large bios are split.
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
    check_queued(&got);
    // Only bios that are never issued have their entry at the end.
    for p in &got.process {
        let at = if p.head.bytes.get() > 0 {
            Stage::QUEUE
        } else {
            Stage::COMPLETE
        };
        assert_eq!(p.head.stage, at, "{p:?}");
    }
}

/// Checks the file entries of `name`: each agrees with FIEMAP, together they cover the file, and every write was
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
    }
    for entry in got.of_file(ino) {
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
        // A flusher may write back pages of mmap before the fsync does.
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

/// Checks that each entry of a queued bio has the time of its event, since one program reports both. Entries begin
/// before events and end after them.
fn check_queued(got: &Captured) {
    let queued = got.events.iter().filter(|e| e.act() == ta::QUEUE);
    let events: BTreeSet<_> = queued
        .map(|e| (e.time_ns, e.sector, e.bytes, e.cpu))
        .collect();
    let entries = got.process.iter().map(|p| &p.head);
    let entries: BTreeSet<_> = entries
        .filter(|head| head.stage == Stage::QUEUE)
        .map(|head| {
            let (time, sector) = (head.time_ns.get(), head.sector.get());
            (time, sector, head.bytes.get(), u32::from(head.cpu.get()))
        })
        .filter(|entry| Some(entry) >= events.first() && Some(entry) <= events.last())
        .collect();
    assert!(entries.len() > 100);
    assert!(entries.is_subset(&events));
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
    // The first partition, beside the filesystem, is written directly.
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
        for source in [Choice::Bpf, Choice::Tracefs] {
            let got = capture(device, source, &script);
            got.assert_nothing_lost();
            let ino = file.metadata().unwrap().ino();
            let truth = fiemap(&file, start);
            let entries: Vec<_> = got.of_file(ino).collect();
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

fn a_disk_syncs_what_is_on_its_partitions() {
    let disk = LoopExt4::new(&LoopOptions {
        partitioned: true,
        ..LoopOptions::default()
    })
    .unwrap();
    let file = disk.mount_point().join("f");
    let script = format!("head -c 65536 /dev/urandom >{}", file.display());
    let got = capture(disk.disk(), Choice::Bpf, &script);
    let ino = file.metadata().unwrap().ino();
    let bytes: u32 = got.of_file(ino).map(|f| f.raw.head.bytes.get()).sum();
    assert_eq!(bytes, 65536, "left in memory");
}

/// Blocks of one sector share pages, as FAT's do. A device with an odd number of sectors has such blocks.
fn sectors_of_one_page_have_dirtiers_of_their_own() {
    const FIRST: u64 = 2048;
    let disk = LoopExt4::new(&LoopOptions {
        partitioned: true,
        ..LoopOptions::default()
    })
    .unwrap();
    let whole = disk.disk().display();
    let folder = tempfile::tempdir().unwrap();
    let pids = folder.path().join("pids");
    let script = format!(
        "delpart {whole} 1\n\
         addpart {whole} 1 {FIRST} 8001\n\
         exec 3<>{whole}p1\n\
         for at in 0 1 2 3; do\n\
         dd if=/dev/zero of={whole}p1 bs=512 seek=$at count=1 conv=notrunc,nocreat 2>/dev/null &\n\
         echo $! >>{}\n\
         wait $!\n\
         done\n\
         sync {whole}p1",
        pids.display()
    );
    let got = capture(disk.disk(), Choice::Bpf, &script);
    let pids = fs::read_to_string(pids).unwrap();
    let wrote: Vec<u32> = pids.lines().map(|pid| pid.parse().unwrap()).collect();
    let dirtied = |at: u64| {
        let covers = |d: &&RawDirtier| {
            let sectors = u64::from(d.head.bytes.get()) / 512;
            (d.head.sector.get()..d.head.sector.get() + sectors).contains(&(FIRST + at))
        };
        got.dirtier.iter().find(covers).map(|d| d.pid.get())
    };
    let said: Vec<_> = (0..4).map(dirtied).collect();
    assert_eq!(said, wrote.into_iter().map(Some).collect::<Vec<_>>());
}

fn check_covered(got: &Captured, start: u64, whole: bool) {
    let covered = got.covered();
    for e in got.events.iter().filter(|e| is_issue(e) && e.bytes > 0) {
        assert!(covered.contains(&e.sector), "sector {}", e.sector);
        assert!(whole || e.sector >= start);
    }
}

fn tracepoints_and_bpf_tell_the_same() {
    // Queued bios are reported by the probes for entries, or by one for events.
    for entries in [Entries::Bpf, Entries::None] {
        tracepoints_and_bpf_with(entries);
    }
}

fn tracepoints_and_bpf_with(entries: Entries) {
    let disk = LoopExt4::new(&LoopOptions {
        scheduler: Some("mq-deadline".into()),
        mount_options: "discard".into(),
        // No inode tables are initialised in the background.
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
    // While these run, a kernel may keep BPF programs from running: see completions_are_fios.
    let mut of_first = threads_of_first();
    // The BPF capture runs inside the other one, and the queue is quiet at its start and end.
    let dir = tempfile::tempdir().unwrap();
    let outer = dir.path().join("outer.most");
    let inner_ended = dir.path().join("inner-ended");
    let until_then = format!("until [ -e {} ]; do sleep 0.1; done", inner_ended.display());
    let mut around = options(disk.device(), outer.clone(), Choice::Tracefs, &until_then);
    around.sync = false;
    let device = disk.device().to_owned();
    let outer_run = std::thread::spawn(move || record(&around).unwrap());
    wait::until("the outer capture begins", || {
        outer.join(layout::MANIFEST).exists() || outer_run.is_finished()
    });
    let inner = dir.path().join("inner.most");
    let mut opts = options(&device, inner.clone(), Choice::Bpf, &script);
    opts.entries = entries;
    let inner = Captured::of(&inner, record(&opts).unwrap());
    fs::write(&inner_ended, "").unwrap();
    let outcome = outer_run.join().unwrap();
    of_first.extend(threads_of_first());
    nothing_lost(&outcome.manifest.losses);
    inner.assert_nothing_lost();
    let outer = Captured::of(&outer, outcome);
    let clock = inner.bundle.manifest().clock;
    let mut names = inner.events.iter().filter(|e| e.is_note()).peekable();
    assert!(names.peek().is_some());
    assert!(names.all(|name| name.time_ns >= clock.start_mono_ns));
    let quiet = 300_000_000;
    let common = clock.start_mono_ns + quiet..clock.stop_mono_ns - quiet;
    // Plain tracepoints record no others.
    let of_life_cycles = [
        ta::QUEUE,
        ta::SPLIT,
        ta::INSERT,
        ta::ISSUE,
        ta::REQUEUE,
        ta::COMPLETE,
    ];
    let count = |c: &Captured| {
        let mut counts = BTreeMap::new();
        for e in c
            .events
            .iter()
            .filter(|e| !e.is_note() && common.contains(&e.time_ns))
            .filter(|e| of_life_cycles.contains(&e.act()))
            .filter(|e| e.act() != ta::COMPLETE || !of_first.contains(&e.pid))
        {
            *counts.entry((e.act(), e.action >> 16)).or_insert(0u32) += 1;
        }
        counts
    };
    let counts = count(&inner);
    assert!(counts.values().sum::<u32>() > 1000);
    assert_eq!(count(&outer), counts);
}

/// Returns the threads of process 1.
fn threads_of_first() -> HashSet<u32> {
    let tasks = fs::read_dir("/proc/1/task").unwrap();
    let names = tasks.map(|task| task.unwrap().file_name());
    names.filter_map(|n| n.to_str()?.parse().ok()).collect()
}

fn nothing_is_missing_at_the_end() {
    completions_are_fios(3);
}

fn nothing_is_missing_at_the_end_of_many() {
    completions_are_fios(20);
}

/// The command ends while its last completions are on their way through the ring: the request that was issued last must
/// be completed in the trace. A kernel may keep BPF programs from running while some task runs (seen with process 1 of
/// a virtual machine), and a softirq may complete other tasks' requests meanwhile: these completions are missing, and
/// counted.
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
        // Neighbouring writes may be merged into one request.
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
        // The last completion may be one of the missing ones, which are counted.
        assert!(
            missing > 0 || got.events.iter().any(|e| is_its_end(&e)),
            "run {run}: the last"
        );
        fs::remove_dir_all(&output).unwrap();
    }
}

/// The recording ends while writes go on: the requests that it issued are completed in it, it has no completions of later ones, and
/// the kernel counted no more.
fn a_load_that_goes_on_has_an_end() {
    let mut disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    disk.unmount().unwrap();
    let depth = format!("--iodepth={DEPTH}");
    let _load = Running::fio(disk.device(), &["--rw=randwrite", &depth]);
    ends_of(disk.device(), Choice::Bpf);
    // Nothing keeps the kernel's own handlers from running. What is in flight at the end differs from time to time.
    for _ in 0..3 {
        assert_eq!(ends_of(disk.device(), Choice::Tracefs), 0);
    }
}

/// The number of requests that fio has in flight.
const DEPTH: usize = 8;

/// Records a disk that fio writes to, and checks that the requests that were issued are completed but for those that it says are
/// missing. Returns the number of these.
fn ends_of(disk: &Path, source: Choice) -> usize {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("t.most");
    let mut opts = options(disk, output.clone(), source, "sleep 1");
    opts.events = Events::Needed;
    let outcome = record(&opts).unwrap();
    let mut got = Captured::of(&output, outcome);
    got.assert_nothing_lost();
    let manifest = &got.outcome.manifest;
    let counters = manifest.counters.as_ref().unwrap();
    assert!(counters.agree(), "{counters}");
    let missing = usize::try_from(manifest.losses["completions"]).unwrap();
    got.events.sort_by_key(|event| event.time_ns);
    let (mut issued, mut completed, mut strange) = (0, 0, 0);
    let mut in_flight = HashMap::new();
    // The probes of completions come first.
    let from_issue = got.events.iter().skip_while(|event| !is_issue(event));
    for event in from_issue.filter(|event| !event.is_note()) {
        let waiting: &mut usize = in_flight.entry(event.sector).or_default();
        match event.act() {
            ta::ISSUE => {
                issued += 1;
                *waiting += 1;
            }
            ta::COMPLETE if *waiting == 0 => strange += 1,
            ta::COMPLETE => {
                completed += 1;
                *waiting -= 1;
            }
            _ => {}
        }
    }
    assert!(issued > 1000, "{issued}");
    assert_eq!(completed + missing, issued);
    // These were in flight when the recording began.
    assert!(strange <= DEPTH + missing, "{strange}");
    missing
}

/// A flush is queued and completed, but not issued itself.
fn flushes_that_go_on_have_an_end() {
    const JOBS: usize = 4;
    let mut disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    disk.unmount().unwrap();
    let jobs = format!("--numjobs={JOBS}");
    let _load = Running::fio(disk.device(), &["--rw=randwrite", "--fsync=1", &jobs]);
    for source in [Choice::Bpf, Choice::Tracefs] {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("t.most");
        let mut opts = options(disk.device(), output.clone(), source, "sleep 1");
        opts.events = Events::Needed;
        let mut got = Captured::of(&output, record(&opts).unwrap());
        got.assert_nothing_lost();
        got.events.sort_by_key(|event| event.time_ns);
        let (mut queued, mut waiting, mut strange) = (0, 0, 0);
        let flushes = got.events.iter().filter(|event| event.bytes == 0);
        let flushes = flushes.filter(|event| event.action & BLK_TC_WRITE != 0);
        // Completions begin first.
        for event in flushes.skip_while(|event| event.act() != ta::QUEUE) {
            match event.act() {
                ta::QUEUE => {
                    queued += 1;
                    waiting += 1;
                }
                ta::COMPLETE if waiting == 0 => strange += 1,
                ta::COMPLETE => waiting -= 1,
                _ => {}
            }
        }
        assert!(queued > 100, "{queued}");
        // These had been queued when the recording of queueings began.
        assert!(strange <= JOBS, "{source:?}: {strange} of {queued}");
    }
}

/// The disk's image lies in a filesystem that is frozen when the command ends: a write that was issued before completes only after
/// that, and the recorder waits for it.
fn what_was_issued_late_completes() {
    let beneath = LoopExt4::new(&LoopOptions::default()).unwrap();
    let image = beneath.mount_point().join("image");
    fs::File::create(&image).unwrap().set_len(8 << 20).unwrap();
    let attached = tool::run(tool::command("losetup").args(["-f", "--show"]).arg(&image));
    let disk = PathBuf::from(String::from_utf8(attached).unwrap().trim());
    let done = std::panic::catch_unwind(|| {
        for source in [Choice::Bpf, Choice::Tracefs] {
            issued_late(&disk, &beneath.mount_point(), source);
        }
    });
    tool::run(tool::command("losetup").arg("-d").arg(&disk));
    if let Err(failed) = done {
        std::panic::resume_unwind(failed);
    }
}

/// Records the disk until somebody else has issued a write to it, which completes half a second later.
fn issued_late(disk: &Path, beneath: &Path, source: Choice) {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("t.most");
    let (begun, issued) = (dir.path().join("begun"), dir.path().join("issued"));
    let stranger = format!(
        "until [ -e {begun} ]; do sleep 0.01; done
         fsfreeze -f {beneath}
         dd if=/dev/zero of={disk} bs=4096 count=1 oflag=direct 2>/dev/null &
         for i in $(seq 1000); do
             [ $(awk '{{print $9}}' /sys/block/{name}/stat) -gt 0 ] && break
             sleep 0.01
         done
         touch {issued}
         sleep 0.5
         fsfreeze -u {beneath}
         wait",
        begun = begun.display(),
        beneath = beneath.display(),
        disk = disk.display(),
        name = disk.file_name().unwrap().display(),
        issued = issued.display(),
    );
    let mut stranger = Command::new("sh").args(["-c", &stranger]).spawn().unwrap();
    let command = format!(
        "touch {}; until [ -e {} ]; do sleep 0.01; done",
        begun.display(),
        issued.display()
    );
    let mut opts = options(disk, output.clone(), source, &command);
    (opts.events, opts.sync) = (Events::Needed, false);
    let recorded = record(&opts);
    assert!(stranger.wait().unwrap().success());
    let got = Captured::of(&output, recorded.unwrap());
    assert!(got.events.iter().any(is_issue));
    nothing_lost(&got.outcome.manifest.losses);
}

/// Each ring wakes its reader when much waits there; in the time after which the reader looks by itself, each ring
/// would overflow. A busy machine may delay a reader too long once, but not each time.
fn small_rings_are_emptied_in_time() {
    let mut disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    disk.unmount().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let script = format!(
        "exec fio --name=x --filename={} --rw=randwrite --bs=4k --ioengine=libaio --iodepth=4 --direct=1 \
         --rate_iops=5000 --time_based --runtime=1 >/dev/null",
        disk.device().display()
    );
    let output = dir.path().join("t.most");
    let mut opts = options(disk.device(), output, Choice::Bpf, &script);
    opts.events = Events::Needed;
    opts.ring_size = Some("128K".parse().unwrap());
    let mut losses = record(&opts).unwrap().manifest.losses;
    losses.retain(|what, _| what.ends_with("_ring"));
    nothing_lost(&losses);
}

/// The reader's threads are woken by a full ring, and look a few times a second by themselves, not at every record.
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

/// Returns how often this process's threads with that name have slept.
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

/// Events and entries from plain tracepoints, in an instance that is removed afterwards, equal those of the probes, on
/// a partition.
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
    let of_file: Vec<_> = got.of_file(ino).collect();
    let bytes: u32 = of_file.iter().map(|f| f.raw.head.bytes.get()).sum();
    assert_eq!(bytes, 8 << 16);
    for f in of_file {
        let offset = truth.get(&f.raw.head.sector.get());
        assert_eq!(offset, Some(&(f.raw.offset.get() / 512)), "{f:?}");
    }
    // The deleted file has its number and no name.
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

/// Probes that a run does not need are not loaded: neither those of another kind, nor those for events that nobody
/// asked for.
fn other_probes_are_not_loaded() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for (source, entries, expected) in [
        (Choice::Tracefs, Entries::Bpf, [false, true, true]),
        (Choice::Bpf, Entries::None, [true, false, false]),
        (Choice::Bpf, Entries::Bpf, [true, true, true]),
    ] {
        let output = dir.path().join(format!("{source}-{entries}.most"));
        let go_on = dir.path().join(format!("{source}-{entries}-go-on"));
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
        let by_events = source == Choice::Bpf && entries == Entries::None;
        // The names are cut to the length that the kernel reports.
        for told_by_either in ["event_bio_queue", "event_rq_comple"] {
            assert_eq!(of(told_by_either), by_events, "{mine:?}");
        }
    }
}

/// Returns the names, cut to 15 bytes, of the BPF programs that this process has.
fn programs() -> Vec<String> {
    let mut mine = HashSet::new();
    for descriptor in fs::read_dir("/proc/self/fdinfo").unwrap() {
        // A descriptor may have been closed meanwhile.
        let text = fs::read_to_string(descriptor.unwrap().path()).unwrap_or_default();
        let ids = text.lines().filter_map(|l| l.strip_prefix("prog_id:"));
        mine.extend(ids.filter_map(|id| id.trim().parse::<u32>().ok()));
    }
    libbpf_rs::query::ProgInfoIter::default()
        .filter(|program| mine.contains(&program.id))
        .map(|program| program.name.to_string_lossy().into_owned())
        .collect()
}

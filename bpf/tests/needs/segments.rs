// SPDX-License-Identifier: MIT OR Apache-2.0
//! Recordings that are cut: every segment can be read alone, and together they hold everything once.
//!
//! The tests run one at a time: signal handlers belong to the process.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use mostrace_bundle::blk_io_trace::action::ta;
use mostrace_bundle::blk_io_trace::{Decoded, Event, Records, Then, decode};
use mostrace_bundle::entry::RawProcess;
use mostrace_bundle::manifest::{Segment, State};
use mostrace_bundle::table::HEADER_LEN;
use mostrace_bundle::{Bundle, Entry, Manifest, layout};
use mostrace_capture::{Choice, Entries, Error, Keep, Options, Outcome, Segments, Size, record};
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, nothing_lost, one_by_one, tests, wait};

const FIO: Need = Need::Tool("fio", "fio");
const BPF: [Need; 3] = [Need::Loop, Need::Btf, FIO];
const BOTH: [Need; 4] = [Need::Loop, Need::Btf, Need::Filesystem("tracefs"), FIO];

pub fn suite() -> Suite {
    one_by_one(tests![
        segments_have_everything_once needs BOTH,
        segments_by_tracepoints needs BOTH,
        buffered_files_across_cuts needs BPF,
        the_oldest_goes needs BPF,
        segments_are_packed needs BPF,
        segments_come_from_memory needs BPF,
        segments_of_before_are_not_written_over needs BPF,
        blktrace_has_no_segments needs BPF,
        a_full_disk_ends_the_recording needs BPF,
        a_full_disk_leaves_finished_segments needs BPF,
    ])
}

fn options(device: &Path, output: PathBuf, source: Choice, each: Size, script: &str) -> Options {
    Options {
        device: device.to_owned(),
        output,
        source,
        entries: Entries::Bpf,
        no_snapshot: true,
        segments: Some(Segments {
            each,
            keep: None,
            memory: false,
        }),
        argv: ["sh", "-ec", script].map(Into::into).to_vec(),
        ..Options::default()
    }
}

/// Makes an unmounted disk.
fn raw_disk() -> LoopExt4 {
    let mut disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    disk.unmount().unwrap();
    disk
}

fn writes(disk: &LoopExt4, seconds: u32, report: &Path) -> String {
    format!(
        "exec fio --name=x --filename={} --rw=randwrite --bs=4k --ioengine=libaio --iodepth=16 --direct=1 \
         --time_based --runtime={seconds} --output-format=json --output={}",
        disk.device().display(),
        report.display()
    )
}

fn written_by_fio(report: &Path) -> u64 {
    let fio: serde_json::Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    fio["jobs"][0]["write"]["total_ios"].as_u64().unwrap() * 4096
}

/// Returns the bundles in a folder by their names.
fn bundles(dir: &Path) -> BTreeMap<String, PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|e| (e.file_name().into_string().unwrap(), e.path()))
        .filter(|(name, _)| name.contains(".most"))
        .collect()
}

/// One segment, read on its own.
struct Read {
    manifest: Manifest,
    /// The events in time order, decoded without their payloads, each with whether it is the segment's own.
    events: Vec<(Event<'static>, bool)>,
    process: Vec<(RawProcess, bool)>,
}

impl Read {
    fn of(path: &Path) -> Read {
        let bundle = Bundle::open(path).unwrap();
        let manifest = bundle.manifest().clone();
        assert_eq!(manifest.state, State::Complete, "{}", path.display());
        assert!(bundle.shortfalls().is_empty());
        let segment = manifest.segment.clone().unwrap();
        let own_from = |name: &str| segment.own_from.get(name).copied().unwrap_or(0);
        let mut events = Vec::new();
        for file in bundle.event_files() {
            let own_from = own_from(file.file_name().unwrap().to_str().unwrap());
            let data = fs::read(file).unwrap();
            let (repeated, own) = data.split_at(usize::try_from(own_from).unwrap());
            for (part, is_own) in [(repeated, false), (own, true)] {
                let (records, then) = Records::new(part).read_all().unwrap();
                assert_eq!(then, Then::End, "{}", file.display());
                let mut rest = &records[..];
                while let Decoded::Record(event, len) = decode(rest) {
                    if !event.is_note() {
                        events.push((Event { pdu: &[], ..event }, is_own));
                    }
                    rest = &rest[len..];
                }
                assert!(rest.is_empty(), "{}", file.display());
            }
        }
        events.sort_by_key(|(event, _)| event.time_ns);
        let mut process = Vec::new();
        // What is repeated is whole.
        let repeated = own_from(layout::PROCESS).saturating_sub(HEADER_LEN as u64);
        let own_nth = repeated / size_of::<RawProcess>() as u64;
        let table = bundle.table(layout::PROCESS, false).unwrap();
        for (nth, entry) in (0..).zip(table.into_iter().flatten()) {
            let Entry::Process(entry) = entry.unwrap() else {
                panic!("no process entry")
            };
            process.push((entry, nth >= own_nth));
        }
        Read {
            manifest,
            events,
            process,
        }
    }

    fn segment(&self) -> &Segment {
        self.manifest.segment.as_ref().unwrap()
    }

    fn own_bytes(&self, act: u64) -> u64 {
        let of_act = self.events.iter().filter(|(e, own)| *own && e.act() == act);
        of_act.map(|(e, _)| u64::from(e.bytes)).sum()
    }

    /// Returns the number of requests with bytes that have such an event.
    fn own_requests(&self, act: u64) -> u64 {
        let is_one = |(event, own): &&(Event<'_>, bool)| *own && event.act() == act;
        let requests = self.events.iter().filter(is_one);
        requests.filter(|(event, _)| event.bytes > 0).count() as u64
    }

    /// Checks that every completion has its issue ahead of it and an entry of its first sector, and that nothing
    /// repeated is a completion or falls into the segment's time.
    fn assert_readable_alone(&self) {
        let start = self.manifest.clock.start_mono_ns;
        let mut issued = BTreeMap::new();
        let mut told: BTreeMap<u64, u64> = BTreeMap::new();
        for (entry, own) in &self.process {
            let time_ns = entry.head.time_ns.get();
            assert!(*own || time_ns < start, "{entry:?}");
            for sector in sectors(entry.head.sector.get(), entry.head.bytes.get()) {
                // The first entry for the sector counts.
                told.entry(sector).or_insert(time_ns);
            }
        }
        for (event, own) in &self.events {
            assert!(*own || (event.time_ns < start && event.act() != ta::COMPLETE));
            let number = self.segment().number;
            match event.act() {
                ta::ISSUE => *issued.entry((event.sector, event.bytes)).or_insert(0) += 1,
                ta::COMPLETE if event.bytes > 0 => {
                    let left = issued.entry((event.sector, event.bytes)).or_insert(0);
                    assert!(*left > 0, "segment {number}: {event:?} without its issue");
                    *left -= 1;
                    for sector in sectors(event.sector, event.bytes) {
                        let known = told.get(&sector).is_some_and(|at| *at <= event.time_ns);
                        assert!(known, "segment {number}: {event:?} without its entry");
                    }
                }
                _ => {}
            }
        }
    }

    /// Begins the test anew if something but completions was lost.
    fn lost_nothing(&self) {
        let mut losses = self.manifest.losses.clone();
        losses.remove("completions");
        nothing_lost(&losses);
    }
}

fn sectors(first: u64, bytes: u32) -> std::ops::Range<u64> {
    first..first + u64::from(bytes) / 512
}

fn read_all(dir: &Path) -> Vec<Read> {
    let all: Vec<Read> = bundles(dir).values().map(|path| Read::of(path)).collect();
    for (number, read) in (1..).zip(&all) {
        assert_eq!(read.segment().number, number);
        assert_eq!(read.segment().last, number as usize == all.len());
    }
    // A missing completion is counted in the segment in which it is given up.
    let missing = sum(&all, |s| s.manifest.losses.values().sum());
    for read in &all {
        let counters = read.manifest.counters.as_ref().unwrap();
        assert!(counters.agree() || missing > 0, "{counters}");
    }
    all
}

fn sum(all: &[Read], of: impl Fn(&Read) -> u64) -> u64 {
    all.iter().map(of).sum()
}

/// The events are compared with fio's own count, and with a trace that plain tracepoints make at the same time.
fn segments_have_everything_once() {
    let disk = raw_disk();
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("fio.json");
    let outer = tempfile::tempdir().unwrap();
    let (outer, ended) = (outer.path().join("outer.most"), outer.path().join("ended"));
    let until_then = format!("until [ -e {} ]; do sleep 0.1; done", ended.display());
    let mut around = options(
        disk.device(),
        outer.clone(),
        Choice::Tracefs,
        Size::Bytes(1),
        &until_then,
    );
    (around.segments, around.entries) = (None, Entries::None);
    let (outcome, whole, while_it_ran) = std::thread::scope(|scope| {
        let outer_run = scope.spawn(|| record(&around).unwrap());
        wait::until("the outer recording begins", || {
            outer.join(layout::MANIFEST).exists() || outer_run.is_finished()
        });
        let inner = options(
            disk.device(),
            dir.path().join("t.most"),
            Choice::Bpf,
            Size::Time(Duration::from_secs(1)),
            &writes(&disk, 4, &report),
        );
        let inner = scope.spawn(move || record(&inner).unwrap());
        // The first segment is read while the recording continues.
        let first = dir.path().join("t.0001.most");
        let is_complete =
            || Bundle::open(&first).is_ok_and(|b| b.manifest().state == State::Complete);
        wait::until("the first segment is complete", || {
            is_complete() || inner.is_finished()
        });
        let while_it_ran = (!inner.is_finished()).then(|| Read::of(&first));
        let outcome = inner.join().unwrap();
        fs::write(&ended, "").unwrap();
        (outcome, outer_run.join().unwrap(), while_it_ran)
    });
    while_it_ran.expect("it still runs").assert_readable_alone();
    let all = read_all(dir.path());
    all.iter().for_each(Read::lost_nothing);
    assert!(all.len() >= 4, "{}", all.len());
    let fio = written_by_fio(&report);
    let missing = sum(&all, |s| s.manifest.losses["completions"]);
    assert_eq!(sum(&all, |s| s.own_bytes(ta::QUEUE)), fio);
    assert_eq!(sum(&all, |s| s.own_bytes(ta::ISSUE)), fio);
    assert_eq!(
        sum(&all, |s| s.own_bytes(ta::COMPLETE)) + missing * 4096,
        fio
    );
    let entries = |s: &Read| s.process.iter().filter(|(_, own)| *own).count() as u64;
    assert_eq!(sum(&all, entries) * 4096, fio);
    let counted = |what: &str| sum(&all, |s| s.manifest.counts[what]);
    assert_eq!(outcome.manifest.counts["events"], counted("events"));
    let own = |s: &Read| s.events.iter().filter(|(_, own)| *own).count() as u64;
    assert_eq!(sum(&all, own), counted("events"));
    assert_eq!(sum(&all, entries), counted("process_entries"));
    assert_eq!(
        outcome.output,
        dir.path().join(format!("t.{:04}.most", all.len()))
    );
    if missing == 0 {
        all.iter().for_each(Read::assert_readable_alone);
    }
    // The tracer of a busy machine may lose events, and then says so.
    let dropped = whole.manifest.losses["events_tracefs"];
    assert!(
        traced(&whole) == fio || dropped > 0,
        "by tracepoints: {} of {fio}",
        traced(&whole)
    );
    let cut_in_the_middle = all.iter().filter(|s| s.segment().under_way > 0).count();
    println!("{cut_in_the_middle} cuts with requests under way");
}

/// Returns the bytes of completed writes, from the recording's comparison with the kernel's counters.
fn traced(outcome: &Outcome) -> u64 {
    match outcome.manifest.counters.as_ref().unwrap() {
        mostrace_bundle::Counters::Compared(counters) => counters["write_bytes"].traced,
        not => panic!("{not}"),
    }
}

fn segments_by_tracepoints() {
    let disk = raw_disk();
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("fio.json");
    let opts = options(
        disk.device(),
        dir.path().join("t.most"),
        Choice::Tracefs,
        Size::Bytes(8 << 20),
        &writes(&disk, 3, &report),
    );
    record(&opts).unwrap();
    let all = read_all(dir.path());
    assert!(all.len() >= 2, "{}", all.len());
    let fio = written_by_fio(&report);
    let missing = |act| fio.checked_sub(sum(&all, |s| s.own_bytes(act))).unwrap();
    let missing: u64 = [ta::QUEUE, ta::ISSUE, ta::COMPLETE]
        .map(missing)
        .iter()
        .sum();
    // The tracer of a busy machine loses events, and says how many.
    let dropped = sum(&all, |s| s.manifest.losses["events_tracefs"]);
    assert!(
        missing <= dropped * 4096,
        "{missing} of {fio}, {dropped} lost"
    );
    for read in &all {
        if dropped == 0 {
            assert_eq!(read.manifest.losses["completions"], 0);
            read.assert_readable_alone();
        }
        let size: u64 = read.manifest.files.values().sum();
        let number = read.segment().number;
        assert!(
            size >= 8 << 20 || read.segment().last,
            "segment {number}: {size}"
        );
    }
}

/// Merged and split requests, flushes and a journal may all be in flight at a cut.
fn buffered_files_across_cuts() {
    // ext4lazyinit would have a request in flight when the recording begins, which nobody saw issued.
    let disk = LoopExt4::new(&LoopOptions {
        scheduler: Some("mq-deadline".into()),
        mkfs: ["-E", "lazy_itable_init=0"].map(String::from).into(),
        ..LoopOptions::default()
    })
    .unwrap();
    let name = disk.disk().file_name().unwrap().to_owned();
    let queue = Path::new("/sys/block").join(name).join("queue");
    fs::write(queue.join("max_sectors_kb"), "64").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let script = format!(
        "cd {}; for i in 1 2 3 4 5 6 7 8; do dd if=/dev/zero of=f$i bs=256k count=16 conv=fsync 2>/dev/null; \
         fio --name=s --filename=s --size=1m --rw=randwrite --bs=4k --number_ios=64 --fdatasync=1 >/dev/null; \
         sleep 0.2; done",
        disk.mount_point().display()
    );
    let opts = options(
        disk.device(),
        dir.path().join("t.most"),
        Choice::Bpf,
        Size::Bytes(64 << 10),
        &script,
    );
    let outcome = record(&opts).unwrap();
    assert_eq!(outcome.exit_status, 0);
    let all = read_all(dir.path());
    all.iter().for_each(Read::lost_nothing);
    assert!(all.len() >= 3, "{}", all.len());
    for read in &all {
        read.assert_readable_alone();
        let notes = read.manifest.notes.join("\n");
        assert_eq!(
            notes.contains("no snapshot in this segment"),
            !read.segment().last
        );
    }
    // Completions that this machine's kernel kept from the probes are counted as lost, and then they are missing.
    let requests = |act| sum(&all, |s| s.own_requests(act));
    let missing = sum(&all, |s| s.manifest.losses["completions"]);
    assert_eq!(requests(ta::ISSUE), requests(ta::COMPLETE) + missing);
}

/// A segment that somebody has moved away is not removed.
fn the_oldest_goes() {
    let disk = raw_disk();
    let dir = tempfile::tempdir().unwrap();
    let away = dir.path().join("away");
    let script = format!(
        "cd {}; until [ -e t.0002.most ]; do sleep 0.05; done; mv t.0001.most {}; sleep 2",
        dir.path().display(),
        away.display()
    );
    let each = Size::Time(Duration::from_millis(400));
    let mut opts = options(
        disk.device(),
        dir.path().join("t.most"),
        Choice::Bpf,
        each,
        &script,
    );
    opts.segments = Some(Segments {
        each,
        keep: Some(Keep::Number(2)),
        memory: false,
    });
    let outcome = record(&opts).unwrap();
    let last = outcome.manifest.segment.unwrap().number;
    assert!(last >= 5, "{last}");
    let expected = [last - 1, last].map(|n| format!("t.{n:04}.most"));
    assert_eq!(
        bundles(dir.path()).into_keys().collect::<Vec<_>>(),
        expected
    );
    assert!(away.join(layout::MANIFEST).exists());
}

fn segments_are_packed() {
    let disk = raw_disk();
    let dir = tempfile::tempdir().unwrap();
    let each = Size::Time(Duration::from_millis(300));
    let output = dir.path().join("t.most.tar.zst");
    let mut opts = options(disk.device(), output, Choice::Bpf, each, "sleep 1.3");
    opts.segments = Some(Segments {
        each,
        keep: Some(Keep::Number(3)),
        memory: false,
    });
    record(&opts).unwrap();
    let names: Vec<_> = bundles(dir.path()).into_keys().collect();
    assert_eq!(names.len(), 3, "{names:?}");
    for name in names {
        assert!(name.ends_with(".most.tar.zst"), "{name}");
        Read::of(&dir.path().join(name));
    }
}

/// What is held in memory comes to the disk, packed or not; a limit in bytes leaves at least the last segment.
fn segments_come_from_memory() {
    for (name, keep, least, most) in [
        ("t.most", None, 3, usize::MAX),
        ("t.most.tar.zst", Some(Keep::Bytes(1 << 30)), 3, usize::MAX),
        ("t.most.tar.zst", Some(Keep::Bytes(1)), 1, 1),
    ] {
        let disk = raw_disk();
        let dir = tempfile::tempdir().unwrap();
        let each = Size::Time(Duration::from_millis(300));
        let output = dir.path().join(name);
        let mut opts = options(disk.device(), output, Choice::Bpf, each, "sleep 1.3");
        opts.segments = Some(Segments {
            each,
            keep,
            memory: true,
        });
        record(&opts).unwrap();
        let found = bundles(dir.path());
        assert!((least..=most).contains(&found.len()), "{found:?}");
        for bundle in found.into_values() {
            Read::of(&bundle);
        }
    }
}

fn segments_of_before_are_not_written_over() {
    let disk = raw_disk();
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().join("t.0003.most");
    fs::create_dir(&there).unwrap();
    let each = Size::Time(Duration::from_secs(1));
    let opts = options(
        disk.device(),
        dir.path().join("t.most"),
        Choice::Bpf,
        each,
        "true",
    );
    let said = record(&opts).unwrap_err().to_string();
    assert_eq!(
        said,
        format!(
            "{}: exists already (-o NAME.most names another)",
            there.display()
        )
    );
}

fn blktrace_has_no_segments() {
    let disk = raw_disk();
    let dir = tempfile::tempdir().unwrap();
    let each = Size::Time(Duration::from_secs(1));
    let opts = options(
        disk.device(),
        dir.path().join("t.most"),
        Choice::Blktrace,
        each,
        "true",
    );
    let said = record(&opts).unwrap_err().to_string();
    assert_eq!(
        said,
        "blktrace writes its files itself: a recording by it cannot be cut into segments"
    );
    assert!(bundles(dir.path()).is_empty());
}

/// A small disk for bundles.
struct Tmpfs {
    dir: tempfile::TempDir,
}

impl Tmpfs {
    fn new(mib: u32) -> Tmpfs {
        let dir = tempfile::tempdir().unwrap();
        let size = format!("size={mib}m");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(dir.path())
            .status();
        assert!(mounted.unwrap().success());
        Tmpfs { dir }
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .arg("-l")
            .arg(self.dir.path())
            .status();
    }
}

/// Records onto a disk that is too small. Returns the disk and the error's line.
fn full_disk(segments: Option<Segments>) -> (Tmpfs, String) {
    let disk = raw_disk();
    let small = Tmpfs::new(24);
    let elsewhere = tempfile::tempdir().unwrap();
    let report = elsewhere.path().join("fio.json");
    let each = Size::Time(Duration::from_secs(1));
    let output = small.dir.path().join("t.most");
    let mut opts = options(
        disk.device(),
        output,
        Choice::Bpf,
        each,
        &writes(&disk, 700, &report),
    );
    opts.segments = segments;
    let start = std::time::Instant::now();
    let error = record(&opts).unwrap_err();
    assert!(start.elapsed() < wait::HUNG, "the command is ended");
    assert!(matches!(error, Error::DiskFull { .. }), "{error}");
    assert_eq!(error.exit_status(), 1);
    (small, error.to_string())
}

fn is_readable(path: &Path) -> u64 {
    let bundle = Bundle::open(path).unwrap();
    let mut events = 0;
    for file in bundle.event_files() {
        let (records, then) = Records::new(fs::File::open(file).unwrap())
            .read_all()
            .unwrap();
        let mut rest = &records[..];
        while let Decoded::Record(_, len) = decode(rest) {
            rest = &rest[len..];
            events += 1;
        }
        assert!(rest.is_empty(), "{}: {} bytes", file.display(), rest.len());
        let is_whole = matches!(then, Then::End | Then::Cut { left: 0..64, .. });
        assert!(is_whole, "{}: {then:?}", file.display());
    }
    let table = bundle.table(layout::PROCESS, true).unwrap();
    assert!(table.into_iter().flatten().all(|entry| entry.is_ok()));
    events
}

fn a_full_disk_ends_the_recording() {
    let (small, said) = full_disk(None);
    let bundle = small.dir.path().join("t.most");
    assert!(
        said.ends_with(&format!(
            ": No space left on device: the recording ends here; what came before is in {}",
            bundle.display()
        )),
        "{said}"
    );
    assert_eq!(
        Bundle::open(&bundle).unwrap().manifest().state,
        State::Recording
    );
    assert!(is_readable(&bundle) > 10_000);
}

fn a_full_disk_leaves_finished_segments() {
    let each = Size::Bytes(5 << 20);
    let (small, said) = full_disk(Some(Segments {
        each,
        keep: None,
        memory: false,
    }));
    let all = bundles(small.dir.path());
    assert!(all.len() >= 3, "{all:?}");
    // The segment that is kept is the last one. If the disk was full at a cut, it is the one before, and little is left
    // of the last one.
    let is_kept = |path: &PathBuf| said.ends_with(&*path.to_string_lossy());
    let finished = all.values().position(is_kept);
    let finished = finished.unwrap_or_else(|| panic!("{said}: {all:?}"));
    assert!(all.len() - finished <= 2, "{said}: {all:?}");
    let is_complete = |path: &Path| Bundle::open(path).unwrap().manifest().state == State::Complete;
    // The one before may have been unfinished when the disk was full.
    let complete = all.values().take_while(|path| is_complete(path)).count();
    assert!(complete >= 2 && complete + 1 >= finished, "{said}: {all:?}");
    for path in all.values().take(finished).skip(complete) {
        is_readable(path);
    }
    for (name, path) in all.iter().take(complete) {
        let read = Read::of(path);
        assert!(read.own_bytes(ta::COMPLETE) > 0, "{name}");
        read.lost_nothing();
    }
    for path in all.values().skip(finished) {
        if path.join(layout::MANIFEST).exists() {
            is_readable(path);
        }
    }
}

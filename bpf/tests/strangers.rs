// SPDX-License-Identifier: MIT OR Apache-2.0
//! Several recorders at once, and others who use the same tracers: nothing is taken over or lost without a message.
//!
//! The tests run one at a time: ftrace has one user.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use mostrace_bundle::blk_io_trace::action::{BLK_TC_DISCARD, BLK_TC_WRITE, ta};
use mostrace_bundle::blk_io_trace::{Decoded, decode};
use mostrace_bundle::{Bundle, Counters, Manifest};
use mostrace_capture::{Choice, Entries, Error, Events, KernelPaths, Options, record};
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, run_one_by_one, tests, wait};

const TRACEFS: &str = "/sys/kernel/tracing";
const FTRACE: [Need; 2] = [Need::Loop, Need::BlkTracer];
const FTRACE_AND_BPF: [Need; 3] = [Need::Loop, Need::BlkTracer, Need::Btf];
const MIB: u64 = 1 << 20;

fn main() -> ExitCode {
    run_one_by_one(tests![
        two_recorders_at_once needs FTRACE_AND_BPF,
        four_recorders_on_four_devices needs FTRACE_AND_BPF,
        four_sources_on_four_devices needs [Need::Loop, Need::BlkTracer, Need::Btf, Need::Tool("blktrace", "blktrace")],
        a_second_recorder_of_a_device needs FTRACE_AND_BPF,
        what_others_trace_is_left_alone needs FTRACE,
        what_others_do_to_the_trace_is_seen needs FTRACE,
        the_counters_agree needs FTRACE,
        the_counters_of_a_partition_agree needs [Need::Loop, Need::BlkTracer, Need::Tool("sfdisk", "fdisk")],
        counters_that_are_off_do_not_agree needs FTRACE,
    ])
}

fn disk() -> LoopExt4 {
    LoopExt4::new(&LoopOptions::default()).unwrap()
}

fn options(device: &Path, output: PathBuf, source: Choice, script: &str) -> Options {
    Options {
        device: device.to_owned(),
        output,
        source,
        events: Events::Needed,
        entries: Entries::None,
        kernel: KernelPaths::default(),
        files: "all".into(),
        limit: None,
        sync: false,
        snapshot: false,
        argv: ["sh", "-ec", script].map(Into::into).to_vec(),
        ..Options::default()
    }
}

struct Recording {
    manifest: Manifest,
    /// Bytes of completed writes.
    written: u64,
}

fn try_recording(device: &Path, source: Choice, script: &str) -> Result<Recording, Error> {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("t.most");
    let outcome = record(&options(device, output.clone(), source, script))?;
    assert_eq!(outcome.exit_status, 0, "the script failed: {script}");
    Ok(Recording {
        written: written(&Bundle::open(&output).unwrap()),
        manifest: outcome.manifest,
    })
}

fn recording(device: &Path, source: Choice, script: &str) -> Recording {
    try_recording(device, source, script).unwrap()
}

fn written(bundle: &Bundle) -> u64 {
    let mut bytes = 0;
    for path in bundle.event_files() {
        let data = fs::read(path).unwrap();
        let mut rest = &data[..];
        while let Decoded::Record(event, len) = decode(rest) {
            let is_write = event.action & (BLK_TC_WRITE | BLK_TC_DISCARD) == BLK_TC_WRITE;
            if !event.is_note() && event.act() == ta::COMPLETE && is_write {
                bytes += u64::from(event.bytes);
            }
            rest = &rest[len..];
        }
        assert!(rest.is_empty(), "{}", path.display());
    }
    bytes
}

impl Recording {
    fn counters(&self) -> &Counters {
        self.manifest.counters.as_ref().unwrap()
    }

    fn assert_agrees(&self) {
        assert!(self.counters().agree(), "{}", self.counters());
        assert_eq!(self.manifest.interference, [""; 0]);
        for (what, lost) in &self.manifest.losses {
            assert_eq!(*lost, 0, "{what}");
        }
    }

    /// Checks that all that was written is in the trace, or that the loss is reported.
    fn assert_whole_or_said(&self, bytes: u64) {
        let said = !self.counters().agree() || self.manifest.losses.values().any(|lost| *lost > 0);
        assert!(
            said || self.written >= bytes,
            "{}: {} of {bytes} bytes by {}, and no word",
            self.manifest.device.name,
            self.written,
            self.manifest.sources.events
        );
    }
}

/// Returns a script that writes this many MiB past the page cache.
fn write(disk: &LoopExt4, mib: u64) -> String {
    let file = disk.mount_point().join("f");
    format!(
        "dd if=/dev/zero of={} bs=4k count={} oflag=direct conv=notrunc status=none\n",
        file.display(),
        mib * 256
    )
}

/// Records on all disks at the same time. Returns the number of recordings that used ftrace.
fn record_at_once(disks: &[LoopExt4], mib: u64) -> usize {
    let recordings: Vec<_> = thread::scope(|scope| {
        let started: Vec<_> = disks
            .iter()
            .map(|disk| scope.spawn(|| recording(disk.device(), Choice::Auto, &write(disk, mib))))
            .collect();
        started.into_iter().map(|r| r.join().unwrap()).collect()
    });
    for recording in &recordings {
        recording.assert_whole_or_said(mib * MIB);
        assert_eq!(recording.manifest.interference, [""; 0]);
    }
    let by_ftrace = recordings
        .iter()
        .filter(|r| r.manifest.sources.events == "ftrace");
    by_ftrace
        .inspect(|recording| recording.assert_agrees())
        .count()
}

fn two_recorders_at_once() {
    let disks = [disk(), disk()];
    for _ in 0..5 {
        let by_ftrace = record_at_once(&disks, 4);
        assert!(by_ftrace <= 1, "ftrace has one user");
    }
    assert_is_put_back();
}

fn four_recorders_on_four_devices() {
    let disks = [(); 4].map(|()| disk());
    assert!(record_at_once(&disks, 16) <= 1, "ftrace has one user");
    assert_is_put_back();
}

/// Each source records a device of its own, all at the same time; one that cannot names the process that keeps it from
/// recording.
fn four_sources_on_four_devices() {
    let disks = [(); 4].map(|()| disk());
    let sources = [
        Choice::Ftrace,
        Choice::Blktrace,
        Choice::Bpf,
        Choice::Tracefs,
    ];
    let dir = tempfile::tempdir().unwrap();
    let begun = |disk: &LoopExt4| dir.path().join(disk.device().file_name().unwrap());
    let all = disks
        .each_ref()
        .map(|disk| begun(disk).display().to_string());
    let recorded = |disk: &LoopExt4, source| {
        let script = format!(
            "touch {}\nfor f in {}; do until [ -e $f ]; do sleep 0.1; done; done\n{}",
            begun(disk).display(),
            all.join(" "),
            write(disk, 16)
        );
        let result = try_recording(disk.device(), source, &script);
        // The others do not wait for a recording that was refused.
        File::create(begun(disk)).unwrap();
        result
    };
    let results = thread::scope(|scope| {
        let start = |(disk, source)| scope.spawn(move || recorded(disk, source));
        // The first one holds the tracer that the second one wants too.
        let mut started = vec![start((&disks[0], sources[0]))];
        wait::until("the first records", || begun(&disks[0]).exists());
        started.extend(disks.iter().zip(sources).skip(1).map(start));
        let ended = started.into_iter().map(|r| r.join().unwrap());
        ended.collect::<Vec<_>>()
    });
    let holder = format!(": pid {} records ", std::process::id());
    for (source, result) in sources.iter().zip(&results) {
        match result {
            Ok(recording) => {
                assert_eq!(recording.manifest.sources.events, source.to_string());
                assert_eq!(recording.manifest.interference, [""; 0]);
                recording.assert_whole_or_said(16 * MIB);
                // With the probes, requests that process 1 completes may be missing, see `completions_are_fios`.
                if *source != Choice::Bpf {
                    recording.assert_agrees();
                }
            }
            Err(refused) => {
                // These two use the same tracer.
                assert!(matches!(source, Choice::Ftrace | Choice::Blktrace));
                assert!(refused.to_string().contains(&holder), "{refused}");
            }
        }
    }
    assert!(results[0].is_ok());
    assert_is_put_back();
}

/// `auto` chooses a source that is free; ftrace on request is refused; and the first recording's trace goes on.
fn a_second_recorder_of_a_device() {
    let (first, other) = (disk(), disk());
    let dir = tempfile::tempdir().unwrap();
    let (begun, ended) = (dir.path().join("begun"), dir.path().join("ended"));
    let script = format!(
        "{write}touch {}\nuntil [ -e {} ]; do sleep 0.1; done\n{write}",
        begun.display(),
        ended.display(),
        write = write(&first, 1)
    );
    let recordings = thread::scope(|scope| {
        let recorded = scope.spawn(|| recording(first.device(), Choice::Ftrace, &script));
        wait::until("the first recording begins", || {
            begun.exists() || recorded.is_finished()
        });
        let refused = |disk: &LoopExt4, source| {
            let result = try_recording(disk.device(), source, "true");
            result.map(|_| ()).unwrap_err().to_string()
        };
        let who = format!(
            "pid {} records {} by ftrace",
            std::process::id(),
            first.device().display()
        );
        for source in [Choice::Ftrace, Choice::Blktrace] {
            let said = refused(&first, source);
            assert!(said.ends_with(&format!(" is taken: {who}")), "{said}");
        }
        let said = refused(&other, Choice::Ftrace);
        assert_eq!(said, format!("ftrace's blk tracer is taken: {who}"));
        let said = refused(&other, Choice::Blktrace);
        assert!(said.ends_with(&who), "{said}");
        let second = recording(first.device(), Choice::Auto, &write(&first, 1));
        File::create(&ended).unwrap();
        [recorded.join().unwrap(), second]
    });
    let [recorded, second] = &recordings;
    assert_eq!(second.manifest.sources.events, "bpf");
    second.assert_whole_or_said(MIB);
    recorded.assert_agrees();
    assert!(recorded.written >= 3 * MIB);
    assert_is_put_back();
}

fn setting(name: &str) -> String {
    let text = fs::read_to_string(Path::new(TRACEFS).join(name)).unwrap();
    text.trim_end().to_owned()
}

fn set(name: &str, text: &str) {
    fs::write(Path::new(TRACEFS).join(name), format!("{text}\n")).unwrap();
}

/// A setting to which `text` was written, and which is set to `back` when this is dropped, also after a panic.
struct Changed {
    path: PathBuf,
    back: &'static str,
}

impl Changed {
    fn new(path: PathBuf, text: &str, back: &'static str) -> Changed {
        fs::write(&path, format!("{text}\n")).unwrap();
        Changed { path, back }
    }
}

impl Drop for Changed {
    fn drop(&mut self) {
        fs::write(&self.path, format!("{}\n", self.back)).unwrap();
    }
}

/// Checks that nobody uses ftrace while a test does, and that its settings are those of an unused machine.
fn assert_is_put_back() {
    assert_eq!(setting("current_tracer"), "nop");
    assert_eq!(setting("tracing_on"), "1");
    let clock = setting("trace_clock");
    assert!(clock.starts_with("[local]"), "{clock}");
}

fn enable(disk: &LoopExt4) -> PathBuf {
    let name = disk.disk().file_name().unwrap().to_owned();
    Path::new("/sys/block").join(name).join("trace/enable")
}

/// Checks that a recording is refused with these words, and that nothing has changed.
fn assert_refused(disk: &LoopExt4, says: &str) {
    let state = || {
        let settings = ["current_tracer", "trace_clock", "set_event", "tracing_on"];
        let stats = ["per_cpu/cpu0/stats"].map(|name| {
            let text = setting(name);
            text.lines().next().unwrap_or_default().to_owned()
        });
        (settings.map(setting), stats)
    };
    let before = state();
    let result = try_recording(disk.device(), Choice::Ftrace, "true");
    let said = result.map(|_| ()).unwrap_err().to_string();
    assert!(said.contains(says), "`{said}` lacks `{says}`");
    assert_eq!(state(), before);
}

fn what_others_trace_is_left_alone() {
    let (disk, other) = (disk(), disk());
    let name = |disk: &LoopExt4| disk.disk().file_name().unwrap().display().to_string();

    // An event that never occurs.
    let events = Changed::new(
        Path::new(TRACEFS).join("set_event"),
        "ext4:ext4_shutdown",
        "",
    );
    assert_refused(&disk, "events are enabled, ext4:ext4_shutdown first");
    drop(events);

    let emptied = Changed::new(Path::new(TRACEFS).join("trace"), "", "");
    set("trace_marker", "somebody's");
    assert_refused(&disk, "1 events of CPU");
    drop(emptied);

    let mut reader = std::process::Command::new("cat")
        .arg(Path::new(TRACEFS).join("trace_pipe"))
        .spawn()
        .unwrap();
    let pipe = format!("/proc/{}/fd/3", reader.id());
    wait::until("cat opens its file", || {
        fs::read_link(&pipe).is_ok_and(|target| target.ends_with("trace_pipe"))
    });
    assert_refused(
        &disk,
        &format!("its pipes are open: pid {} (cat)", reader.id()),
    );
    reader.kill().unwrap();
    reader.wait().unwrap();

    for traced in [&disk, &other] {
        let enabled = Changed::new(enable(traced), "1", "0");
        assert_refused(&disk, &name(traced));
        assert_refused(&disk, "is being traced");
        assert_eq!(fs::read_to_string(enable(traced)).unwrap(), "1\n");
        drop(enabled);
    }
    recording(disk.device(), Choice::Ftrace, "true");
    assert_is_put_back();
}

/// Changes to a trace while it runs, and the reports about them.
fn what_others_do_to_the_trace_is_seen() {
    let disk = disk();
    let enable = enable(&disk);
    let enable = enable.display();
    let mask = enable.to_string().replace("enable", "act_mask");
    let raw = format!("timeout 1 cat {TRACEFS}/per_cpu/cpu*/trace_pipe_raw >/dev/null || :");
    for (stranger, says, is_whole) in [
        (
            format!("echo 0 >{TRACEFS}/tracing_on"),
            "tracing_on was set to `0`, from `1`",
            false,
        ),
        (
            format!("echo 0 >{enable}"),
            "trace/enable was set to `0`, from `1`",
            false,
        ),
        (
            format!("echo issue >{mask}"),
            "trace/act_mask was set to `issue`",
            false,
        ),
        (
            format!("echo global >{TRACEFS}/trace_clock"),
            "trace_clock was set to `local [global]",
            true,
        ),
        (
            format!("echo 64 >{TRACEFS}/buffer_size_kb"),
            "buffer_size_kb was set to `",
            true,
        ),
        (
            format!("echo >{TRACEFS}/trace"),
            "the buffer was emptied by somebody else",
            true,
        ),
        (
            format!("({raw}) & {} wait", write(&disk, 1).repeat(8)),
            "events were read by somebody else",
            true,
        ),
    ] {
        let script = format!("{0}sleep 0.1\n{stranger}\n{0}", write(&disk, 1));
        let mut got = recording(disk.device(), Choice::Ftrace, &script);
        got.assert_whole_or_said(2 * MIB);
        // On a busy machine the other reader may find nothing between our own reads.
        for _ in 0..4 {
            if !got.manifest.interference.is_empty() {
                break;
            }
            got = recording(disk.device(), Choice::Ftrace, &script);
            got.assert_whole_or_said(2 * MIB);
        }
        let seen = &got.manifest.interference;
        assert!(
            seen.iter().any(|line| line.contains(says)),
            "{stranger}: {seen:?}"
        );
        assert!(
            is_whole || !got.counters().agree(),
            "{stranger}: {}",
            got.counters()
        );
        assert_is_put_back();
    }
    // Newer kernels do not allow these.
    let kept: BTreeSet<_> = ["trace_pipe", "current_tracer"]
        .map(|name| format!("{TRACEFS}/{name}"))
        .into();
    for file in kept {
        let stranger = match file.ends_with("pipe") {
            true => format!("timeout 1 cat {file} >/dev/null 2>&1 || :"),
            false => format!("echo nop >{file} 2>/dev/null || :"),
        };
        let script = format!("({stranger}) &\n{} wait\n", write(&disk, 1).repeat(4));
        let got = recording(disk.device(), Choice::Ftrace, &script);
        if got.manifest.interference.is_empty() {
            got.assert_agrees();
        }
        got.assert_whole_or_said(4 * MIB);
    }
}

/// Returns a script with reads, writes, discards and flushes, all of which are counted.
fn mixed(disk: &LoopExt4) -> String {
    let mount = disk.mount_point().display().to_string();
    format!(
        "{}dd if=/dev/urandom of={mount}/g bs=64k count=32 conv=fsync status=none\n\
         dd if={mount}/g of=/dev/null bs=16k iflag=direct status=none\n\
         rm {mount}/f\nsync\nfstrim {mount}\n",
        write(disk, 1)
    )
}

fn the_counters_agree() {
    let disk = disk();
    let got = recording(disk.device(), Choice::Ftrace, &mixed(&disk));
    got.assert_agrees();
    let Counters::Compared(counters) = got.counters() else {
        panic!("{}", got.counters())
    };
    for (name, least) in [
        ("read_bytes", 2 * MIB),
        ("write_bytes", 3 * MIB),
        ("discard_bytes", MIB),
        ("reads", 128),
        ("writes", 256),
        ("discards", 1),
        ("flushes", 1),
    ] {
        let counter = counters[name];
        assert!(counter.at_least >= least, "{name}: {counter}");
    }
}

fn the_counters_of_a_partition_agree() {
    let disk = LoopExt4::new(&LoopOptions {
        partitioned: true,
        ..LoopOptions::default()
    })
    .unwrap();
    let first = format!("{}p1", disk.disk().display());
    let script = format!(
        "{}dd if=/dev/zero of={first} bs=1M count=2 oflag=direct status=none\n",
        mixed(&disk)
    );
    let got = recording(disk.device(), Choice::Ftrace, &script);
    got.assert_agrees();
    let Counters::Compared(counters) = got.counters() else {
        panic!("{}", got.counters())
    };
    assert!(
        !counters.contains_key("flushes"),
        "the disk's, not the partition's"
    );
    let bytes = counters["write_bytes"];
    assert!(
        bytes.at_least >= 3 * MIB && bytes.traced < bytes.at_least + 2 * MIB,
        "{bytes}"
    );
}

fn counters_that_are_off_do_not_agree() {
    let disk = disk();
    let name = disk.disk().file_name().unwrap().display().to_string();
    let iostats = Path::new("/sys/block").join(&name).join("queue/iostats");
    let says = format!("not held against the kernel's counters: queue/iostats of {name} is off");
    let iostats_off = Changed::new(iostats.clone(), "0", "1");
    let off = recording(disk.device(), Choice::Ftrace, &write(&disk, 1));
    drop(iostats_off);
    assert_eq!(off.counters().to_string(), says);
    let script = format!("echo 0 >{}", iostats.display());
    let _on_again = Changed::new(iostats, "1", "1");
    let turned_off = recording(disk.device(), Choice::Ftrace, &script);
    assert_eq!(turned_off.counters().to_string(), says);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Operations on loop-mounted ext4, compared with strace and with what the program itself says.
//!
//! The tests run one at a time: signal handlers belong to the process.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use mostrace_bundle::operation::{OperationEntry, OperationKind};
use mostrace_bundle::{Bundle, Entry, Manifest, layout};
use mostrace_capture::{Operations, Options, RingSize, record};
use test_support::loopdev::LoopExt4;
use test_support::{Need, Suite, nothing_lost, one_by_one, tests};

use crate::recorded;

const PROBES: [Need; 2] = [Need::Loop, Need::Btf];
const PYTHON: Need = Need::Tool("python3", "python3");
const STRACE: Need = Need::Tool("strace", "strace");

pub fn suite() -> Suite {
    one_by_one(tests![
        operations_are_straces needs [Need::Loop, Need::Btf, Need::NoSync, Need::Ptrace, PYTHON, STRACE],
        requests_are_the_programs needs [Need::Loop, Need::Btf, Need::NoSync, PYTHON],
        reads_are_recorded_if_asked_for needs PROBES,
        what_an_executed_program_does_not_get_is_closed needs [Need::Loop, Need::Btf, PYTHON],
        a_file_that_was_open_before_is_opened needs PROBES,
        what_finds_the_ring_full_is_counted needs PROBES,
        none_are_recorded_unless_asked_for needs PROBES,
    ])
}

struct Recording {
    manifest: Manifest,
    operations: Vec<OperationEntry>,
}

fn disk() -> LoopExt4 {
    recorded::disk("data=ordered", 64, &[])
}

fn recorded_with(disk: &LoopExt4, script: &str, options: Options) -> Recording {
    let dir = tempfile::tempdir().unwrap();
    let output = dir.path().join("t.most");
    let options = Options {
        device: disk.device().to_owned(),
        output: output.clone(),
        no_snapshot: true,
        argv: ["sh", "-ec", script].map(Into::into).to_vec(),
        ..options
    };
    let outcome = record(&options).unwrap();
    assert_eq!(outcome.exit_status, 0, "the script failed: {script}");
    let bundle = Bundle::open(&output).unwrap();
    let table = bundle.table(layout::OPERATION, false).unwrap();
    let entries = table.into_iter().flatten().map(|entry| match entry {
        Ok(Entry::Operation(operation)) => operation,
        other => panic!("{other:?}"),
    });
    Recording {
        operations: entries.collect(),
        manifest: outcome.manifest,
    }
}

fn operations(disk: &LoopExt4, script: &str) -> Recording {
    let options = Options {
        operations: Operations::Changes,
        ..Options::default()
    };
    let got = recorded_with(disk, script, options);
    nothing_lost(&got.manifest.losses);
    got
}

fn kind(operation: &OperationEntry) -> OperationKind {
    OperationKind::of(operation.raw.kind.get())
}

/// Returns the path of each open file by its number.
fn opened(got: &Recording) -> BTreeMap<u64, String> {
    let opens = got.operations.iter().filter(|operation| {
        matches!(kind(operation), OperationKind::Open | OperationKind::Opened)
            && operation.raw.file.get() != 0
    });
    opens
        .map(|open| {
            let path = String::from_utf8(open.path.clone()).unwrap();
            (open.raw.file.get(), path)
        })
        .collect()
}

fn operations_are_straces() {
    let disk = disk();
    let (other, log) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (log, writes) = (log.path().join("log"), other.path().join("writes"));
    fs::create_dir_all(log.parent().unwrap()).unwrap();
    let python = concat!(
        "python3 ",
        env!("CARGO_MANIFEST_DIR"),
        "/tests/operations.py"
    );
    let root = disk.mount_point();
    let script = format!(
        "strace -f -y -s 1000 -o {} {python} make {} {} {}",
        log.display(),
        root.display(),
        other.path().display(),
        writes.display()
    );
    let got = operations(&disk, &script);
    let told = test_support::tool::run(std::process::Command::new("sh").arg("-c").arg(format!(
        "{python} told {} {}",
        log.display(),
        root.display()
    )));
    let paths = opened(&got);
    let line = |operation: &OperationEntry| {
        let path = match operation.raw.file.get() {
            0 => String::from_utf8(operation.path.clone()).unwrap(),
            file => paths[&file].clone(),
        };
        let kind: &str = kind(operation).into();
        let other = String::from_utf8_lossy(&operation.other);
        format!("{kind}|{path}|{other}|{}", operation.raw.result.get())
    };
    let seen: Vec<String> = got
        .operations
        .iter()
        .filter(|operation| !is_unseen(operation))
        .map(line)
        .collect();
    let told = String::from_utf8(told).unwrap();
    let told: Vec<&str> = told.lines().collect();
    for (nth, (seen, told)) in seen.iter().zip(&told).enumerate() {
        assert_eq!(seen, told, "the {nth}th");
    }
    assert_eq!(seen.len(), told.len(), "{:?}", seen.last());
    assert!(told.len() > 60, "{}", told.len());
    places_are_the_programs(&got, &writes);
    no_file_is_used_after_its_close(&got);
    closes_of_mapped_files_are_ahead_of_their_end(&got);
    stores_are_the_programs(&got);
}

/// The program prints its requests to io_uring and their results; the recording must have the same.
fn requests_are_the_programs() {
    let disk = disk();
    let aside = tempfile::tempdir().unwrap();
    let log = aside.path().join("log");
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/requests.py");
    let root = disk.mount_point();
    let script = format!("python3 {program} {} {}", root.display(), log.display());
    let options = Options {
        operations: Operations::All,
        ..Options::default()
    };
    let mut got = recorded_with(&disk, &script, options);
    nothing_lost(&got.manifest.losses);
    got.operations
        .sort_by_key(|operation| operation.raw.start_ns);
    let paths = opened(&got);
    let line = |operation: &OperationEntry| {
        use OperationKind as Kind;
        let raw = &operation.raw;
        let path = paths.get(&raw.file.get()).cloned();
        let path = path.unwrap_or_else(|| String::from_utf8(operation.path.clone()).unwrap());
        let word: &str = kind(operation).into();
        let other = String::from_utf8_lossy(&operation.other);
        let line = format!("{word}|{path}|{other}|{}", raw.result.get());
        match kind(operation) {
            Kind::Write
            | Kind::Read
            | Kind::SyncRange
            | Kind::Fallocate
            | Kind::Fadvise
            | Kind::Copy => {
                format!("{line}|{}|{}", raw.offset.get(), raw.bytes.get())
            }
            _ => line,
        }
    };
    let seen = got.operations.iter().filter(|o| !is_unseen(o)).map(line);
    let seen: Vec<String> = seen.collect();
    let told = fs::read_to_string(&log).unwrap();
    let told: Vec<&str> = told.lines().collect();
    assert_eq!(seen, told);
    assert!(told.len() >= 30, "{}", told.len());
    no_file_is_used_after_its_close(&got);
}

fn reads_are_recorded_if_asked_for() {
    let disk = disk();
    let script = format!(
        "cd {}; echo 0123456789 >f; dd if=f of=/dev/null bs=4 count=2 status=none",
        disk.mount_point().display()
    );
    let kinds = |what: Operations| {
        let options = Options {
            operations: what,
            ..Options::default()
        };
        let got = recorded_with(&disk, &script, options);
        let reads = got.operations.into_iter();
        let reads = reads.filter(|o| kind(o) == OperationKind::Read && o.raw.result.get() > 0);
        let places = reads.map(|o| (o.raw.offset.get(), o.raw.bytes.get(), o.raw.result.get()));
        places.collect::<Vec<_>>()
    };
    assert_eq!(kinds(Operations::All), [(0, 4, 4), (4, 4, 4)]);
    assert_eq!(kinds(Operations::Changes), []);
}

/// Of two removed files, one is closed by the execution of a program, and one by close_range.
fn what_an_executed_program_does_not_get_is_closed() {
    let disk = disk();
    let python = "import os, ctypes
f = [os.open(n, os.O_RDWR | os.O_CREAT) for n in ('marked', 'kept', 'ranged')]
os.set_inheritable(f[1], True)
ctypes.CDLL(None).syscall(436, f[2], f[2], 0)
os.unlink('ranged')
try:
    os.execv('/nonexistent', ['x'])
except OSError:
    os.write(f[0], b'still open')
os.execv('/bin/sh', ['sh', '-c', f'echo x >&{f[1]}; : >last'])";
    let script = format!(
        "cd {}; python3 -c \"{python}\"",
        disk.mount_point().display()
    );
    let got = operations(&disk, &script);
    let find = |what: OperationKind, path: &str| {
        let is_it = |o: &OperationEntry| kind(o) == what && o.path == path.as_bytes();
        got.operations.iter().position(is_it).unwrap()
    };
    let closed = |path: &str| {
        let file = got.operations[find(OperationKind::Open, path)].raw.file;
        let is_it = |o: &OperationEntry| kind(o) == OperationKind::Close && o.raw.file == file;
        got.operations.iter().position(is_it).unwrap()
    };
    let is_write = |o: &OperationEntry| kind(o) == OperationKind::Write;
    let writes: Vec<usize> = (0..got.operations.len())
        .filter(|at| is_write(&got.operations[*at]))
        .collect();
    assert!(closed("ranged") < find(OperationKind::Unlink, "ranged"));
    assert!(writes[0] < closed("marked") && closed("marked") < writes[1]);
    assert!(find(OperationKind::Open, "last") < closed("kept"));
    no_file_is_used_after_its_close(&got);
}

/// The mapping of a file holds it, but its descriptor ends where the program closes it.
fn closes_of_mapped_files_are_ahead_of_their_end(got: &Recording) {
    let with = |what: OperationKind| {
        let is_it = move |o: &&OperationEntry| kind(o) == what && o.path == b"d/mapped";
        got.operations.iter().find(is_it).unwrap()
    };
    let [opened, unlinked] = [OperationKind::Open, OperationKind::Unlink].map(with);
    let is_close =
        |o: &&OperationEntry| kind(o) == OperationKind::Close && o.raw.file == opened.raw.file;
    let closed = got.operations.iter().find(is_close).unwrap();
    assert!(closed.raw.head.time_ns <= unlinked.raw.start_ns);
}

/// Returns true for what strace does not see, or not of which file: stores, what follows a close, and closes that are not the
/// last.
fn is_unseen(operation: &OperationEntry) -> bool {
    use OperationKind as Kind;
    matches!(
        kind(operation),
        Kind::Close | Kind::Opened | Kind::Store | Kind::Msync
    )
}

/// `STORES` of the program: the pages that it makes dirty, and its calls of msync.
fn stores_are_the_programs(got: &Recording) {
    const PAGE: u64 = 4096;
    let of_mapping =
        |o: &&OperationEntry| matches!(kind(o), OperationKind::Store | OperationKind::Msync);
    let seen = got.operations.iter().filter(of_mapping).map(|o| {
        assert_eq!((o.raw.result.get(), o.raw.offset.get() % PAGE), (0, 0));
        let pages = o.raw.bytes.get() / PAGE;
        (kind(o), o.raw.offset.get() / PAGE, pages)
    });
    let store = |page| (OperationKind::Store, page, 1);
    let synced = (OperationKind::Msync, 2, 38);
    let expected = [
        store(3),
        store(4),
        store(17),
        synced,
        store(17),
        store(39),
        synced,
    ];
    assert_eq!(seen.collect::<Vec<_>>(), expected);
}

/// The program says where it writes; appended writes are known by the flags of their file.
fn places_are_the_programs(got: &Recording, writes: &Path) {
    let appends: BTreeSet<u64> = got
        .operations
        .iter()
        .filter(|o| kind(o) == OperationKind::Open && o.raw.flags.get() & 0o2000 != 0)
        .map(|o| o.raw.file.get())
        .collect();
    let is_placed = |o: &&OperationEntry| {
        let at_offset = !appends.contains(&o.raw.file.get());
        kind(o) == OperationKind::Write && o.raw.result.get() > 0 && at_offset
    };
    let seen: Vec<String> = got
        .operations
        .iter()
        .filter(is_placed)
        .map(|o| format!("{} {}", o.raw.offset.get(), o.raw.bytes.get()))
        .collect();
    let told = fs::read_to_string(writes).unwrap();
    assert_eq!(seen, told.lines().collect::<Vec<_>>());
    let copies = got
        .operations
        .iter()
        .filter(|o| kind(o) == OperationKind::Copy);
    let copies: Vec<_> = copies
        .map(|o| {
            (
                o.raw.offset.get(),
                o.raw.other_offset.get(),
                o.raw.bytes.get(),
            )
        })
        .collect();
    assert_eq!(copies, [(4096, 16, 1000), (0, 100, 500)]);
}

fn no_file_is_used_after_its_close(got: &Recording) {
    let mut open = BTreeSet::new();
    let mut mapped = BTreeSet::new();
    for operation in &got.operations {
        let file = operation.raw.file.get();
        match kind(operation) {
            OperationKind::Open if file != 0 => assert!(open.insert(file)),
            OperationKind::Opened => assert!(mapped.insert(file)),
            OperationKind::Store | OperationKind::Msync => assert!(mapped.contains(&file)),
            OperationKind::Close => assert!(open.remove(&file), "{file} was not open"),
            _ => assert!(file == 0 || open.contains(&file), "{operation:?}"),
        }
        assert!(operation.raw.start_ns <= operation.raw.head.time_ns);
    }
    assert!(open.is_empty(), "{open:?}");
}

/// This process has the file open; the shell inherits it.
fn a_file_that_was_open_before_is_opened() {
    let disk = disk();
    let path = disk.mount_point().join("before");
    fs::write(&path, b"0123456789").unwrap();
    let script = format!(
        "exec 3>>{0}; exec 4<{0}; mv {0} {0}.moved; echo go >&3; sleep 1000 & echo on >&3; kill $!",
        path.display()
    );
    let got = operations(&disk, &script);
    assert!(
        got.operations
            .iter()
            .all(|o| kind(o) != OperationKind::Opened)
    );

    let holder = disk.mount_point().join("held");
    let held = fs::File::create(&holder).unwrap();
    rustix::fs::ftruncate(&held, 7).unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&held);
    let script = format!(
        "echo go >/proc/{}/fd/{fd}; truncate -s 3 {}",
        std::process::id(),
        holder.display()
    );
    let got = operations(&disk, &script);
    assert!(
        got.operations
            .iter()
            .any(|o| kind(o) == OperationKind::Open && o.path == b"held")
    );
}

/// The ring is the smallest, and its reader is busy with a table of its own.
fn what_finds_the_ring_full_is_counted() {
    let disk = disk();
    let script = format!(
        "cd {}; i=0; while [ $i -lt 20000 ]; do : >f; i=$((i+1)); done",
        disk.mount_point().display()
    );
    let options = Options {
        operations: Operations::Changes,
        ring_size: Some("64K".parse::<RingSize>().unwrap()),
        ..Options::default()
    };
    let got = recorded_with(&disk, &script, options);
    let opens = got.operations.iter().filter(|o| o.path == b"f").count() as u64;
    let lost = got.manifest.losses["operations_ring"];
    assert!(opens <= 20_000 && opens + lost >= 20_000, "{opens} {lost}");
}

fn none_are_recorded_unless_asked_for() {
    let disk = disk();
    let script = format!("echo x >{}/f", disk.mount_point().display());
    let got = recorded_with(&disk, &script, Options::default());
    assert!(got.operations.is_empty());
    assert!(!got.manifest.losses.contains_key("operations_ring"));
    assert!(!got.manifest.counts.contains_key("operation_entries"));
}

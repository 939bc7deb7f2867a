// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls that change files, on loop-mounted ext4: each change is in the recording, or the recording says what it lacks.
//!
//! The tests run one at a time: signal handlers belong to the process.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;

use mostrace_bundle::entry::{CallKind, Flags, NONE, RawCall, call_flags, handle_flags};
use mostrace_capture::Causes;
use test_support::loopdev::LoopExt4;
use test_support::{Need, Suite, nothing_lost, one_by_one, tests};

use crate::recorded;

use recorded::{Recording, disk, recording, recording_with_losses};

const PROBES: [Need; 2] = [Need::Loop, Need::Btf];
const PYTHON: [Need; 3] = [Need::Loop, Need::Btf, Need::Tool("python3", "python3")];
const PAGE: u64 = 4096;

pub fn suite() -> Suite {
    one_by_one(tests![
        a_request_without_completion_is_a_call needs PYTHON,
        requests_with_paths_are_calls needs PYTHON,
        a_file_that_is_replaced_is_unlinked needs PROBES,
        what_may_be_changed_through_memory_is_told needs PYTHON,
        what_is_spliced_is_a_call needs PYTHON,
        an_appended_write_has_its_own_place needs PYTHON,
        what_io_submit_writes_is_a_call needs PYTHON,
        a_fallocate_has_its_mode needs [Need::Loop, Need::Btf, Need::Tool("fallocate", "util-linux")],
        a_handle_that_gives_blocks_back_says_so needs PROBES,
        dirtiers_that_are_forgotten_are_counted needs [Need::Loop, Need::Btf, Need::NoSync, Need::Tool("python3", "python3")],
    ])
}

fn in_python(disk: &LoopExt4, way: &str) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/changes.py");
    format!("python3 {script} {way} {}", disk.mount_point().display())
}

fn small_disk() -> LoopExt4 {
    disk("data=ordered", 64, &[])
}

fn recorded(disk: &LoopExt4, way: &str) -> Recording {
    recording(disk.device(), Causes::Bpf, &in_python(disk, way))
}

fn inode(disk: &LoopExt4, name: &str) -> u64 {
    fs::metadata(disk.mount_point().join(name)).unwrap().ino()
}

fn of_kind(got: &Recording, kind: CallKind) -> impl Iterator<Item = &RawCall> {
    let wanted = move |call: &&RawCall| call.kind.get() == kind as u16;
    got.calls.iter().filter(wanted)
}

fn range(call: &RawCall) -> (u64, u64) {
    (call.offset.get(), call.bytes.get())
}

/// The reads that follow use the memory of the requests that wrote.
fn a_request_without_completion_is_a_call() {
    let disk = small_disk();
    let got = recorded(&disk, "uring_without_completions");
    let ino = inode(&disk, "f");
    let writes: Vec<_> = of_kind(&got, CallKind::Write)
        .filter(|call| call.ino.get() == ino)
        .collect();
    let expected: BTreeSet<_> = (0..5).map(|nth| (2 * nth * PAGE, PAGE)).collect();
    let ranges: BTreeSet<_> = writes.iter().map(|call| range(call)).collect();
    assert_eq!(ranges, expected);
    assert!(
        writes
            .iter()
            .all(|call| call.head.flags.has(call_flags::OPEN_END) && call.result.get() == 0)
    );
    assert_eq!(writes.len(), 5);
}

fn requests_with_paths_are_calls() {
    let disk = small_disk();
    let inodes = disk.mount_point().join("inodes");
    let script = format!("{} >{}", in_python(&disk, "uring_paths"), inodes.display());
    let got = recording(disk.device(), Causes::Bpf, &script);
    let inodes = fs::read_to_string(inodes).unwrap();
    let (moved, replaced) = inodes.trim().split_once(' ').unwrap();
    let (moved, replaced): (u64, u64) = (moved.parse().unwrap(), replaced.parse().unwrap());
    let of = |kind| -> Vec<(u64, bool)> {
        of_kind(&got, kind)
            .filter(|call| call.comm.starts_with(b"python3") && call.result.get() == 0)
            .map(|call| (call.ino.get(), call.head.flags.has(call_flags::REPLACED)))
            .collect()
    };
    assert_eq!(of(CallKind::Mkdir).len(), 1);
    assert_eq!(of(CallKind::Link).len(), 2);
    assert_eq!(of(CallKind::Rename), [(moved, false)]);
    assert_eq!(of(CallKind::Unlink), [(replaced, true), (moved, false)]);
    // The worker's handle belongs to the call.
    let mut handles = got.handles.iter();
    assert!(handles.any(|h| h.call.get() == CallKind::Mkdir as u16));
}

/// The shell that has the file open frees it; mv removed its name.
fn a_file_that_is_replaced_is_unlinked() {
    let disk = small_disk();
    let script = format!(
        "cd {}; echo a >a; echo b >b; ln b c; echo e >e; sync; stat -c %i b e >inodes; exec 3<e; mv a b; mv b e; exec 3<&-",
        disk.mount_point().display()
    );
    let got = recording(disk.device(), Causes::Bpf, &script);
    let inodes = fs::read_to_string(disk.mount_point().join("inodes")).unwrap();
    let replaced: u64 = inodes.lines().nth(1).unwrap().parse().unwrap();
    let unlinks: Vec<_> = of_kind(&got, CallKind::Unlink).collect();
    // The file b has another name, c, and lives on.
    assert_eq!(unlinks.len(), 1);
    let unlink = unlinks[0];
    assert!(unlink.head.flags.has(call_flags::REPLACED) && unlink.comm.starts_with(b"mv"));
    assert_eq!((unlink.ino.get(), unlink.result.get()), (replaced, 0));
    let rename = of_kind(&got, CallKind::Rename).last().unwrap();
    assert_eq!(rename.start_ns, unlink.start_ns);
    assert_eq!(rename.pid, unlink.pid);
    assert_ne!(rename.ino, unlink.ino);
}

fn what_may_be_changed_through_memory_is_told() {
    let disk = small_disk();
    let got = recorded(&disk, "mapped");
    let maps: Vec<_> = of_kind(&got, CallKind::Mmap).collect();
    assert_eq!(maps.len(), 1);
    assert_eq!(maps[0].ino.get(), inode(&disk, "m"));
    assert_eq!(
        (range(maps[0]), maps[0].result.get()),
        ((PAGE, 2 * PAGE), 0)
    );
    // The flags of the dirtiers of a file's pages since it was mapped.
    let flags_of = |name: &str| -> Vec<bool> {
        let ino = inode(&disk, name);
        let since = maps[0].start_ns.get();
        let files = got.files.iter().filter(|file| file.ino.get() == ino);
        let sectors: BTreeSet<u64> = files
            .filter(|file| file.head.time_ns.get() > since)
            .map(|file| file.head.sector.get())
            .collect();
        got.dirtiers
            .iter()
            .filter(|d| d.head.time_ns.get() > since && sectors.contains(&d.head.sector.get()))
            .map(|d| d.head.flags.has(Flags::MAPPED))
            .collect()
    };
    // The first page of each is written by pwrite; that of the store is dirtied while the mapping exists.
    assert_eq!(flags_of("m"), [true, true]);
    assert_eq!(flags_of("n"), [false]);
}

fn what_is_spliced_is_a_call() {
    let disk = small_disk();
    let got = recorded(&disk, "spliced");
    let target = inode(&disk, "t");
    let spliced: Vec<_> = of_kind(&got, CallKind::Splice).collect();
    assert!(spliced.iter().all(|call| call.ino.get() == target));
    let ranges: Vec<_> = spliced.iter().map(|call| range(call)).collect();
    assert_eq!(
        ranges,
        [(3 * PAGE, PAGE), (5 * PAGE, 2 * PAGE), (9 * PAGE, 1000)]
    );
}

/// With O_APPEND, pwrite64 appends, whatever its offset is.
fn an_appended_write_has_its_own_place() {
    let disk = small_disk();
    let got = recorded(&disk, "appended");
    let ino = inode(&disk, "f");
    let writes = of_kind(&got, CallKind::Write).filter(|call| call.ino.get() == ino);
    let ranges: Vec<_> = writes.map(range).collect();
    assert_eq!(ranges, [(0, 3000), (3000, 500)]);
}

fn what_io_submit_writes_is_a_call() {
    let disk = small_disk();
    let got = recorded(&disk, "submitted");
    let ino = inode(&disk, "f");
    let writes: Vec<_> = of_kind(&got, CallKind::Write)
        .filter(|call| call.ino.get() == ino)
        .collect();
    let ranges: Vec<_> = writes.iter().map(|call| range(call)).collect();
    assert_eq!(ranges, [(PAGE, PAGE), (7 * PAGE, PAGE)]);
    assert!(writes.iter().all(|c| c.head.flags.has(call_flags::PART)));
}

fn a_fallocate_has_its_mode() {
    let disk = small_disk();
    let script = format!(
        "cd {}; dd if=/dev/zero of=f bs=4k count=8 2>/dev/null; fallocate -l 64k f; fallocate -c -o 4096 -l 4096 f",
        disk.mount_point().display()
    );
    let got = recording(disk.device(), Causes::Bpf, &script);
    let modes: Vec<_> = of_kind(&got, CallKind::Fallocate)
        .map(|call| {
            assert!(call.head.flags.has(call_flags::MODE));
            (call.first_bytes[0], range(call))
        })
        .collect();
    // FALLOC_FL_COLLAPSE_RANGE is 8.
    assert_eq!(modes, [(0, (0, 65536)), (8, (PAGE, PAGE))]);
}

/// The blocks that a folder loses were modified in the same transaction: jbd2 subtracts them from what `rm` dirtied.
fn a_handle_that_gives_blocks_back_says_so() {
    let disk = disk("data=ordered,commit=1000", 64, &["-b", "1024"]);
    let script = format!(
        "cd {}; mkdir d; for i in 1 2 3 4 5 6 7 8 9; do for j in a b c d e f g h i j; do
            : >d/$i$j-a-name-that-is-long-enough-to-fill-blocks-of-a-folder-soon; done; done; rm -r d",
        disk.mount_point().display()
    );
    let got = recording(disk.device(), Causes::Bpf, &script);
    let mut of_rm = got.handles.iter().filter(|h| h.comm.starts_with(b"rm\0"));
    assert!(of_rm.any(|h| h.head.flags.has(handle_flags::FORGOT)));
}

fn dirtiers_that_are_forgotten_are_counted() {
    let disk = disk("data=ordered", 1024, &[]);
    let script = in_python(&disk, "many_pages");
    let got = recording_with_losses(disk.device(), Causes::Bpf, &script);
    let mut losses = got.manifest.losses.clone();
    let lost = losses.remove("dirtiers").unwrap();
    assert!(lost > 0);
    nothing_lost(&losses);
    let ino = inode(&disk, "f");
    let of_file = got
        .files
        .iter()
        .filter(|f| f.ino.get() == ino && f.offset.get() != NONE);
    let written: u64 = of_file.map(|f| u64::from(f.head.bytes.get())).sum();
    let python = got
        .dirtiers
        .iter()
        .filter(|d| d.comm.starts_with(b"python3"));
    let known: u64 = python.map(|d| u64::from(d.head.bytes.get())).sum();
    assert!(written >= 200_000 * PAGE, "{written}");
    // Blocks of the filesystem's metadata wait in the same table, and those that are forgotten count too.
    let all: u64 = got
        .process
        .iter()
        .map(|p| u64::from(p.head.bytes.get()))
        .sum();
    let unknown = (written - known) / PAGE;
    let others = (all - written) / PAGE;
    assert!(
        (unknown..=unknown + others).contains(&lost),
        "{lost}, {unknown}, {others}"
    );
}

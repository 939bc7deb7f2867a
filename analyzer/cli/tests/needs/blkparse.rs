// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares `export --format blkparse` with blkparse on the same files, line by line.

use crate::run;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mostrace_bundle::Bundle;
use mostrace_bundle::blk_io_trace::action::*;
use mostrace_bundle::blk_io_trace::{Event, Layout, Version, encode};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use run::{program, record, succeeds};
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, one_by_one, property, tests};

const BLKPARSE: Need = Need::Tool("blkparse", "blktrace");

pub fn suite() -> Suite {
    one_by_one(tests![
        of_the_samples needs [BLKPARSE],
        of_a_new_recording needs [BLKPARSE, Need::Loop, Need::Btf],
        of_events_of_all_kinds needs [BLKPARSE],
        of_a_trace_that_was_cut needs [BLKPARSE],
        what_has_no_line_is_counted,
        nothing_tells_a_name_if_they_are_hidden,
        blktraces_files_hide_names_too,
        what_is_read_is_not_written_over,
    ])
}

/// Returns the lines of events that blkparse prints for `trace.blktrace.N` in a folder.
fn theirs(folder: &Path) -> Vec<String> {
    let out = Command::new("blkparse")
        .args(["-i", "trace"])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(out.status.success());
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    // The summary begins where lines no longer begin with a device.
    let is_event = |line: &&str| {
        let device = line.split_whitespace().next().unwrap_or_default();
        let numbers = device.split_once(',');
        numbers.is_some_and(|(major, _)| major.parse::<u32>().is_ok())
    };
    text.lines().filter(is_event).map(str::to_owned).collect()
}

fn ours(path: &Path) -> Vec<String> {
    let path = path.to_str().unwrap();
    let text = run::mostrace(&["export", path, "--format", "blkparse"]);
    text.lines().map(str::to_owned).collect()
}

/// Sorts lines by time and then by CPU, because blkparse prints events of equal time in another order.
fn in_order(mut lines: Vec<String>) -> Vec<String> {
    lines.sort_by_key(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let cpu: u32 = fields.next().unwrap().parse().unwrap();
        let time = fields.nth(1).unwrap().replace('.', "");
        (time.parse::<u64>().unwrap(), cpu)
    });
    lines
}

fn assert_equal(ours: Vec<String>, theirs: Vec<String>, what: &str) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    for (ours, theirs) in in_order(ours).iter().zip(&in_order(theirs)) {
        assert_eq!(ours, theirs, "{what}");
    }
}

fn of_the_samples() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample-traces");
    let mut lines = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "zst") {
            let bundle = Bundle::open(&path).unwrap();
            let theirs = theirs(bundle.event_files()[0].parent().unwrap());
            lines += theirs.len();
            assert_equal(ours(&path), theirs, &path.display().to_string());
        }
    }
    assert!(lines > 400_000, "{lines}");
}

fn of_a_new_recording() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("new.most");
    let file = disk.mount_point().join("f");
    let script = format!(
        "dd if=/dev/zero of={0} bs=1M count=8 conv=fsync status=none; dd if={0} of=/dev/null iflag=direct bs=64k status=none; \
         rm {0}; fstrim {1}",
        file.display(),
        disk.mount_point().display()
    );
    succeeds(record(disk.device(), &out).args(["--", "sh", "-c", &script]));
    let ours = in_order(ours(&out));
    run::export_blktrace(&out, &dir.path().join("trace"));
    let theirs = in_order(theirs(dir.path()));
    assert!(theirs.len() > 100, "{}", theirs.len());
    assert_eq!(ours.len(), theirs.len());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        // blkparse has not yet reached the note with the name if that stands later in another CPU's file.
        match theirs.split_once("[(null)]") {
            Some((ahead, _)) => assert!(ours.starts_with(ahead), "{ours}\n{theirs}"),
            None => assert_eq!(ours, theirs),
        }
    }
}

/// Writes events as CPU 0's file into a folder; they begin at 1 s, each some time after the one before it.
fn folder_of(events: &[(u64, Event<'_>)]) -> (tempfile::TempDir, PathBuf) {
    let layout = Layout {
        version: Version::V7,
        big_endian: false,
    };
    let mut bytes = Vec::new();
    let mut time_ns = 1_000_000_000;
    for (since_ns, event) in events {
        time_ns += since_ns;
        let event = Event { time_ns, ..*event };
        encode(&event, layout, &mut bytes).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace.blktrace.0");
    fs::write(&path, bytes).unwrap();
    (dir, path)
}

/// Generates the fields of an event other than its action and payload.
fn common() -> impl Strategy<Value = (u64, Event<'static>)> {
    let numbers = (any::<u64>(), any::<u32>(), any::<u16>(), 0..u32::MAX);
    let small = (0..1_u32 << 12, 0..1_u32 << 20, 1..20_u32);
    let bytes = prop_oneof![Just(0), any::<u32>(), Just(4096)];
    (numbers, small, bytes, 1..5_000_000_000_u64).prop_map(
        |((sector, sequence, error, flags), (major, minor, pid), bytes, since_ns)| {
            let event = Event {
                sector,
                action: u64::from(flags) & OPERATION,
                bytes,
                pid,
                device: major << 20 | minor,
                sequence,
                error,
                ..Event::default()
            };
            (since_ns, event)
        },
    )
}

/// The categories that describe a request's operation.
const OPERATION: u64 = BLK_TC_READ
    | BLK_TC_WRITE
    | BLK_TC_FLUSH
    | BLK_TC_SYNC
    | BLK_TC_AHEAD
    | BLK_TC_META
    | BLK_TC_DISCARD
    | BLK_TC_FUA;

/// Generates any event for which blkparse prints a line, and notes with the names of processes.
fn event() -> impl Strategy<Value = (u64, Event<'static>)> {
    use ta::*;
    let plain = prop::sample::select(vec![
        QUEUE, BACKMERGE, FRONTMERGE, GETRQ, SLEEPRQ, REQUEUE, ISSUE, COMPLETE, PLUG, INSERT,
        BOUNCE,
    ]);
    let passthrough = prop::sample::select(vec![
        QUEUE, GETRQ, SLEEPRQ, REQUEUE, ISSUE, COMPLETE, INSERT,
    ]);
    // The number has at most 32 bits, which is all that blkparse prints of it.
    let number = any::<u32>().prop_map(|number| u64::from(number).to_be_bytes().to_vec());
    let of_number = prop::sample::select(vec![UNPLUG_IO, UNPLUG_TIMER, SPLIT]);
    let remap = prop::collection::vec(any::<u8>(), 16);
    let command = prop::collection::vec(prop_oneof![Just(0), any::<u8>()], 0..32);
    let text = r"[ !-\[\]-~]{1,15}".prop_map(|text| [text.as_bytes(), &[0]].concat());
    let comm = "[a-z/0-9:-]{1,15}".prop_map(|comm| {
        let mut comm = comm.into_bytes();
        comm.resize(16, 0);
        comm
    });
    let kinds = prop_oneof![
        6 => plain.prop_map(|act| (BLK_TC_FS | act, Vec::new())),
        2 => (of_number, number).prop_map(|(act, pdu)| (BLK_TC_FS | act, pdu)),
        1 => remap.prop_map(|pdu| (BLK_TC_FS | REMAP, pdu)),
        2 => (passthrough, command).prop_map(|(act, pdu)| (BLK_TC_PC | act, pdu)),
        1 => text.prop_map(|pdu| (BLK_TC_NOTIFY | tn::MESSAGE, pdu)),
        1 => comm.prop_map(|pdu| (BLK_TC_NOTIFY | tn::PROCESS, pdu)),
    ];
    (common(), kinds).prop_map(|((since_ns, event), (action, pdu))| {
        // A note has no operation.
        let operation = if action & BLK_TC_NOTIFY == 0 {
            event.action
        } else {
            0
        };
        // blkparse 1.2.0 prints 0 as the pid of a message.
        let is_message = action == BLK_TC_NOTIFY | tn::MESSAGE;
        let event = Event {
            action: action | operation,
            pid: if is_message { 0 } else { event.pid },
            // A case leaks little memory.
            pdu: pdu.leak(),
            ..event
        };
        (since_ns, event)
    })
}

fn of_events_of_all_kinds() {
    let events = prop::collection::vec(event(), 1..300);
    let mut runner = TestRunner::new(property::config(file!(), 48));
    let result = runner.run(&events, |events| {
        let (dir, file) = folder_of(&events);
        let (ours, theirs) = (ours(&file), theirs(dir.path()));
        let has_line = |(_, event): &&(u64, Event<'_>)| event.action != BLK_TC_NOTIFY | tn::PROCESS;
        prop_assert_eq!(theirs.len(), events.iter().filter(has_line).count());
        for (ours, theirs) in ours.iter().zip(&theirs) {
            prop_assert_eq!(ours, theirs);
        }
        prop_assert_eq!(ours.len(), theirs.len());
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

fn queue(pid: u32) -> Event<'static> {
    Event {
        action: BLK_TC_FS | BLK_TC_WRITE | ta::QUEUE,
        sector: 8,
        bytes: 4096,
        pid,
        device: 8 << 20,
        ..Event::default()
    }
}

fn what_has_no_line_is_counted() {
    let act = |act| Event {
        action: BLK_TC_FS | act,
        ..queue(1)
    };
    let events = [
        queue(1),
        act(ta::ABORT),
        act(ta::DRV_DATA),
        // These events lack the payload that has the place.
        act(ta::REMAP),
        act(ta::SPLIT),
        Event {
            action: BLK_TC_PC | ta::BACKMERGE,
            ..queue(1)
        },
    ];
    let (_dir, file) = folder_of(&events.map(|event| (1, event)));
    let mut command = program();
    command.args(["export", "--format", "blkparse"]).arg(file);
    let said = succeeds(&mut command);
    assert_eq!(
        said.out,
        "  8,0    0        0     0.000000000     1  Q   W 8 + 8 [(null)]\n"
    );
    said.complains("5 events are of a kind that blkparse");
}

/// blkparse reads up to the last whole record; so do we, and we say so.
fn of_a_trace_that_was_cut() {
    let events: Vec<(u64, Event<'_>)> = (1..200).map(|pid| (1000, queue(pid))).collect();
    let (dir, file) = folder_of(&events);
    let whole = fs::read(&file).unwrap();
    for cut in [1, 20, 44, 47] {
        fs::write(&file, &whole[..whole.len() - cut]).unwrap();
        let mut command = program();
        let said = succeeds(command.args(["export", "--format", "blkparse"]).arg(&file));
        let ours: Vec<&str> = said.out.lines().collect();
        assert_eq!(ours, theirs(dir.path()), "cut by {cut} bytes");
        assert_eq!(ours.len(), events.len() - 1);
        let left_out = format!("left out {} bytes", 48 - cut);
        let is_said = said.err.contains("INCOMPLETE: ") && said.err.contains(&left_out);
        assert!(is_said, "{}", said.err);
    }
}

fn nothing_tells_a_name_if_they_are_hidden() {
    let note = |action, pdu| Event {
        action: BLK_TC_NOTIFY | action,
        pdu,
        ..queue(7)
    };
    let events = [
        note(tn::PROCESS, b"secret\0"),
        queue(7),
        note(tn::MESSAGE, b"secret of 7\0"),
    ];
    let (_dir, file) = folder_of(&events.map(|event| (1, event)));
    let mut command = program();
    command.args(["export", "--format", "blkparse", "--anonymize"]);
    let said = succeeds(command.arg(file));
    assert!(!said.out.contains("secret"), "{}", said.out);
    assert!(
        said.out.ends_with("]\n") && !said.out.contains("(null)"),
        "{}",
        said.out
    );
    said.complains("1 messages are left out");
}

fn blktraces_files_hide_names_too() {
    let note = |action, pdu| Event {
        action: BLK_TC_NOTIFY | action,
        pdu,
        ..queue(7)
    };
    let events = [
        note(tn::PROCESS, b"secret\0"),
        queue(7),
        note(tn::MESSAGE, b"secret of 7\0"),
    ];
    let (dir, file) = folder_of(&events.map(|event| (1, event)));
    let mut command = program();
    command.args(["export", "--format", "blktrace", "--anonymize", "-o"]);
    let said = succeeds(command.arg(dir.path().join("hidden")).arg(file));
    said.complains("1 messages are left out");
    let written = fs::read(dir.path().join("hidden.blktrace.0")).unwrap();
    // The note's payload has 16 bytes.
    assert_eq!(written.len(), 48 + 16 + 48);
    assert!(!written.windows(6).any(|bytes| bytes == b"secret"));
}

fn what_is_read_is_not_written_over() {
    let (dir, file) = folder_of(&[(1, queue(7))]);
    let before = fs::read(&file).unwrap();
    let mut command = program();
    command.args(["export", "--format", "blktrace", "-o"]);
    let said = run::say(command.arg(dir.path().join("trace")).arg(&file)).ended(1);
    said.complains("the events are read from it");
    assert_eq!(fs::read(&file).unwrap(), before);
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares what forced the writes of the kernel's threads with the reasons that the kernel's own writeback gives.

use std::fs;
use std::path::Path;

use crate::run::{json, record};

use mostrace_bundle::Bundle;
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::running::Running;
use test_support::tracefs::Instance;
use test_support::{Need, Suite, at_once, nothing_lost, tests, wait};

/// tracefs prints whole microseconds, rounded.
const ROUNDED_NS: u64 = 1_000;

/// Half a minute passes before the kernel writes what is old. Other tests may run meanwhile.
pub fn suite() -> Suite {
    at_once(tests![
        writeback_is_what_the_kernel_calls_so needs [Need::Loop, Need::Btf, Need::NoSync],
    ])
}

/// Traces one disk's writeback.
fn reference(disk: &Path) -> Instance {
    let instance = Instance::of("forced");
    let name = disk.file_name().unwrap();
    let dev = fs::read_to_string(Path::new("/sys/block").join(name).join("dev")).unwrap();
    for event in ["writeback_start", "writeback_written"] {
        let event = format!("events/writeback/{event}");
        let filter = format!("name == \"{}\"", dev.trim());
        instance.put(&format!("{event}/filter"), &filter);
        instance.put(&format!("{event}/enable"), "1");
    }
    instance
}

/// The spells in which a thread wrote back for one reason.
fn spells(reference: &Instance) -> Vec<Spell> {
    let text = reference.text();
    let mut open: Vec<Spell> = Vec::new();
    let mut spells = Vec::new();
    for line in text.lines() {
        let Some(event) = Event::of(line) else {
            continue;
        };
        match event.is_start {
            true => open.push(Spell {
                pid: event.pid,
                from_ns: event.ns - ROUNDED_NS,
                until_ns: 0,
                reason: event.reason.into(),
                pages: event.pages,
            }),
            false => {
                let at = open.iter().position(|spell| spell.pid == event.pid);
                let begun = open.remove(at.expect("a spell that began"));
                spells.push(Spell {
                    until_ns: event.ns + ROUNDED_NS,
                    pages: begun.pages - event.pages,
                    ..begun
                });
            }
        }
    }
    spells
}

struct Spell {
    pid: u64,
    from_ns: u64,
    until_ns: u64,
    reason: String,
    /// Pages that were left to write, and in the end those that were written.
    pages: i64,
}

struct Event<'a> {
    pid: u64,
    ns: u64,
    is_start: bool,
    reason: &'a str,
    pages: i64,
}

impl Event<'_> {
    /// `  kworker/u8:3-123 [001] ..... 4567.123456: writeback_start: bdi 7:0: … nr_pages=257 … reason=periodic cgroup_ino=1`
    fn of(line: &str) -> Option<Event<'_>> {
        let (task, rest) = line.split_once(" [")?;
        let (before, told) = rest.split_once(": writeback_")?;
        let (seconds, micros) = before.rsplit_once(' ')?.1.split_once('.')?;
        let ns = |text: &str, unit: u64| text.parse::<u64>().unwrap() * unit;
        let value = |name: &str| told.split_once(name)?.1.split(' ').next();
        Some(Event {
            pid: task.rsplit_once('-')?.1.trim().parse().unwrap(),
            ns: ns(seconds, 1_000_000_000) + ns(micros, 1_000),
            is_start: told.starts_with("start:"),
            reason: value(" reason=")?,
            pages: value(" nr_pages=")?.parse().unwrap(),
        })
    }
}

/// A file that nobody syncs is written by the kernel when it is old enough, and another because of a syncfs. Both are written by a
/// kworker; only the first is forced by writeback.
fn writeback_is_what_the_kernel_calls_so() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [bundle, is_written] = ["run.most", "written"].map(|name| folder.path().join(name));
    let reference = reference(disk.disk());
    let script = "head -c 1M /dev/zero >old; until [ -e \"$1\" ]; do sleep 0.1; kill -0 $PPID || exit; done; head -c 1M /dev/zero >new; sync -f new";
    let mut recorder = record(disk.disk(), &bundle);
    recorder
        .args(["--", "sh", "-c", script, "sh"])
        .arg(&is_written);
    let recorder = recorder.current_dir(disk.mount_point()).spawn().unwrap();
    let mut recorder = Running(recorder);
    wait::until("the kernel writes what is old", || {
        assert!(
            recorder.0.try_wait().unwrap().is_none(),
            "the recording ended"
        );
        let spells = spells(&reference);
        let pages = |reason: &str| -> i64 {
            let of_reason = spells.iter().filter(|spell| spell.reason == reason);
            of_reason.map(|spell| spell.pages).sum()
        };
        let of_the_file = (1 << 20) / rustix::param::page_size() as i64;
        assert!(pages("sync") < of_the_file, "it did not grow old");
        // What the mount made dirty is older than the file, and may be written before.
        pages("periodic") >= of_the_file
    });
    fs::write(&is_written, "").unwrap();
    assert!(recorder.0.wait().unwrap().success());
    nothing_lost(&Bundle::open(&bundle).unwrap().manifest().losses);

    let spells = spells(&reference);
    let columns = "op,class,pid,comm,time_ns,q2c_ns,bytes,forced_by";
    let events = json(&[
        "events",
        bundle.to_str().unwrap(),
        "--columns",
        columns,
        "--format",
        "json",
    ]);
    let (mut by_writeback, mut by_sync) = (0, 0);
    for row in events.as_array().unwrap() {
        let number = |column: &str| row[column].as_u64();
        let (Some(pid), Some(q2c_ns)) = (number("pid"), number("q2c_ns")) else {
            continue;
        };
        let queued = number("time_ns").unwrap() - q2c_ns;
        let of =
            |spell: &&Spell| spell.pid == pid && (spell.from_ns..=spell.until_ns).contains(&queued);
        let bytes = number("bytes").unwrap();
        match (spells.iter().find(of), row["class"].as_str()) {
            (Some(spell), Some("data")) if spell.reason == "sync" => {
                assert_ne!(row["forced_by"], "writeback", "{row}");
                by_sync += bytes;
            }
            (Some(_), Some("data")) => {
                assert_eq!(row["forced_by"], "writeback", "{row}");
                by_writeback += bytes;
            }
            (Some(_), _) => {}
            (None, _) => assert_ne!(row["forced_by"], "writeback", "{row}"),
        }
    }
    assert!(
        by_writeback >= 1 << 20 && by_sync >= 1 << 20,
        "{by_writeback}, {by_sync}"
    );
}

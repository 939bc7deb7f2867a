// SPDX-License-Identifier: MIT OR Apache-2.0
//! How the time of `mostrace analyze`, `report` and `analyze --tree` grows with the recording: loads of many kinds, each doubled four times. A
//! load that is twice as long should take about twice the time; what looks at all that came before takes four times. A load outgrows
//! the processor's caches at one of the doublings, and takes more than twice the time for that, so the growth is the mean of all.
//!
//! `cargo bench -p mostrace --bench growth [-- REQUESTS [WORD]]`: the number of requests of the smallest, and a word that the load's
//! name must contain.

#[path = "../tests/support/cost.rs"]
mod cost;
#[path = "../../trace/tests/scene/mod.rs"]
mod scene;

use std::error::Error;
use std::fs;
use std::path::Path;

use cost::{Cost, run_as_told};
use mostrace_bundle::entry::{CallKind, Jbd2, NONE, Origin, Step};
use scene::{CREATE, CallOf, DISCARD, HandleOf, JBD2, KWORKER, SQLITE, SYNC, Scene, Thread, WRITE};

/// The requests of the smallest load of each kind.
const REQUESTS: u64 = 20_000;
/// The time of a load may grow so much each time that it is doubled; the rest is disturbance.
const GROWTH: f64 = 2.3;
/// How often each is doubled; the sizes between the first and the last are left out.
const DOUBLINGS: u32 = 4;
const RUNS: u32 = 2;
/// The time from one step to the next, µs.
const STEP_US: u64 = 10;
const PAGE: u64 = 4096;
const SECTORS: u64 = 8;
/// Where the files begin; the journal and the metadata are ahead.
const FILES: u64 = 1 << 20;

type Load = fn(&mut Scene, u64);

const LOADS: [(&str, Load); 16] = [
    ("direct writes of one thread", direct),
    ("direct writes of 64 threads", direct_by_many),
    ("buffered writes and fsyncs of one file", synced),
    ("buffered writes and fsyncs of many files", synced_files),
    ("small appends, written out together", appends),
    ("overwrites of one page", overwrites),
    ("large calls, written out in parts", parts),
    ("files made, renamed and removed", names),
    ("shared mappings", mappings),
    ("processes that write once", processes),
    ("commits with fsyncs of 32 threads", commits),
    ("one large transaction", transaction),
    ("discards of removed files", discards),
    ("flushes of the device", flushes),
    ("checkpoints of f2fs", checkpoints),
    ("calls that last a minute", long_calls),
];

const VERBS: [&[&str]; 3] = [&["analyze"], &["report", "-o", "-"], &["analyze", "--tree"]];

fn main() -> Result<(), Box<dyn Error>> {
    if run_as_told()? {
        return Ok(());
    }
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let requests = args.next().map_or(Ok(REQUESTS), |n| n.parse())?;
    let wanted = args.next().unwrap_or_default();
    let mut grow = Vec::new();
    for (name, load) in LOADS.iter().filter(|(name, _)| name.contains(&wanted)) {
        for verb in VERBS {
            let [first, last] = seconds(*load, requests, verb)?;
            let growth = (last / first).powf(1.0 / f64::from(DOUBLINGS));
            let words: Vec<&str> = verb.iter().copied().filter(|word| word.len() > 2).collect();
            let what = format!("{name}, {}", words.join(" "));
            println!("{what:<60} {first:6.2} {last:6.2} growth {growth:5.2}");
            if growth > GROWTH {
                grow.push(what);
            }
        }
    }
    match grow.is_empty() {
        true => Ok(()),
        false => Err(format!("more than {GROWTH} times: {}", grow.join("; ")).into()),
    }
}

/// Returns the processor time for a load, and for it doubled, s.
fn seconds(load: Load, requests: u64, verb: &[&str]) -> Result<[f64; 2], Box<dyn Error>> {
    let mut seconds = [0.0; 2];
    for (seconds, doublings) in seconds.iter_mut().zip([0, DOUBLINGS]) {
        let folder = tempfile::tempdir()?;
        let mut scene = Scene::new();
        scene.step_us = STEP_US;
        load(&mut scene, requests << doublings);
        let bundle = scene.save(folder.path());
        drop(scene);
        *seconds = cost(folder.path(), &bundle, verb)?.cpu();
        fs::remove_dir_all(bundle)?;
    }
    Ok(seconds)
}

fn cost(folder: &Path, bundle: &Path, verb: &[&str]) -> Result<Cost, Box<dyn Error>> {
    let bundle = bundle.display().to_string();
    let args = [&verb[..1], &[&bundle], &verb[1..]].concat();
    Cost::of(folder, RUNS, env!("CARGO_BIN_EXE_mostrace"), &args)
}

fn thread(number: u64) -> Thread {
    let pid = 1_000 + number as u32;
    Thread::new(pid, pid, "load")
}

fn call(kind: CallKind, thread: Thread, inode: u64, offset: u64, bytes: u64) -> CallOf {
    CallOf {
        thread,
        kind,
        inode,
        offset,
        bytes,
        first_bytes: None,
        lasted_us: STEP_US / 2,
    }
}

/// Adds a write of a file's pages by a thread that submits it.
fn write(s: &mut Scene, thread: Thread, origin: Origin, inode: u64, at: u64, bytes: u64) {
    let sector = FILES + (inode * 1024 + at / PAGE % 1024) * SECTORS;
    s.owned(WRITE | SYNC, sector, bytes as u32, thread, origin);
    s.file(
        sector,
        bytes as u32,
        inode,
        at,
        format!("file-{inode}").as_bytes(),
    );
}

/// Adds a write by a kernel worker of pages that a thread made dirty.
fn written_out(s: &mut Scene, thread: Thread, inode: u64, at: u64, bytes: u64, ago_us: u64) {
    let sector = FILES + (inode * 1024 + at / PAGE % 1024) * SECTORS;
    write(s, KWORKER, Origin::FILE, inode, at, bytes);
    s.dirtier_since(sector, bytes as u32, thread, ago_us);
}

fn direct(s: &mut Scene, requests: u64) {
    for at in 0..requests {
        let at = at % 1024 * PAGE;
        write(s, SQLITE, Origin::DIRECT, 12, at, PAGE);
        s.call(CallOf {
            lasted_us: STEP_US + STEP_US / 2,
            ..call(CallKind::Write, SQLITE, 12, at, PAGE)
        });
    }
}

fn direct_by_many(s: &mut Scene, requests: u64) {
    for nth in 0..requests {
        let at = nth % 1024 * PAGE;
        write(s, thread(nth % 64), Origin::DIRECT, 12, at, PAGE);
        // Each waits for 63 others.
        s.call(CallOf {
            lasted_us: 64 * STEP_US,
            ..call(CallKind::Write, thread(nth % 64), 12, at, PAGE)
        });
    }
}

fn sync(s: &mut Scene, inode: u64, at: u64) {
    s.call(call(CallKind::Write, SQLITE, inode, at, PAGE));
    written_out(s, SQLITE, inode, at, PAGE, STEP_US + STEP_US / 4);
    s.call(CallOf {
        lasted_us: 2 * STEP_US,
        ..call(CallKind::Fsync, SQLITE, inode, 0, 0)
    });
}

fn synced(s: &mut Scene, requests: u64) {
    (0..requests).for_each(|nth| sync(s, 12, nth % 1024 * PAGE));
}

fn synced_files(s: &mut Scene, requests: u64) {
    (0..requests).for_each(|nth| sync(s, 12 + nth, 0));
}

fn appends(s: &mut Scene, requests: u64) {
    const LINE: u64 = 128;
    for nth in 0..requests / 64 {
        let from = nth * 64 * PAGE;
        for line in 0..64 * PAGE / LINE {
            s.call(call(CallKind::Write, SQLITE, 12, from + line * LINE, LINE));
        }
        for page in 0..64 {
            written_out(s, SQLITE, 12, from + page * PAGE, PAGE, STEP_US / 2);
        }
    }
}

fn overwrites(s: &mut Scene, requests: u64) {
    for nth in 0..requests {
        for byte in 0..8 {
            let at = (nth * 7919 + byte * 509) % PAGE;
            s.call(call(CallKind::Write, thread(byte % 4), 12, at, 1));
        }
        written_out(s, thread(0), 12, 0, PAGE, 8 * STEP_US);
    }
}

fn parts(s: &mut Scene, requests: u64) {
    for nth in 0..requests / 256 {
        let from = nth * 256 * PAGE;
        // They are written out while the call is in progress, and not in their order.
        for page in 0..256 {
            let at = from + page * 101 % 256 * PAGE;
            written_out(s, SQLITE, 12, at, PAGE, STEP_US / 2);
        }
        s.call(CallOf {
            lasted_us: 257 * STEP_US,
            ..call(CallKind::Write, SQLITE, 12, from, 256 * PAGE)
        });
    }
}

fn names(s: &mut Scene, requests: u64) {
    for nth in 0..requests / 4 {
        let inode = 12 + nth;
        let homes = [64 + nth % 512 * SECTORS, 8192 + nth / 32 % 512 * SECTORS];
        for (function, call) in [
            ("__ext4_new_inode", CallKind::Open),
            ("ext4_rename2", CallKind::Rename),
            ("ext4_evict_inode", CallKind::Unlink),
        ] {
            let of = HandleOf {
                thread: thread(nth % 8),
                function,
                inode,
                call,
                lasted_us: STEP_US / 2,
                ..CREATE
            };
            s.handle(of, &homes);
        }
        s.call(call(CallKind::Unlink, thread(nth % 8), inode, 0, 0));
        if nth % 64 == 63 {
            let homes: Vec<u64> = (0..64).map(|at| 64 + at * SECTORS).collect();
            s.commit(40_000 + nth % 512 * 1024, &homes);
            for home in homes {
                s.owned(WRITE, home, 4096, KWORKER, Origin::BDEV);
            }
        }
    }
}

fn mappings(s: &mut Scene, requests: u64) {
    for nth in 0..requests {
        let (inode, at) = (12 + nth % 16, nth % 512 * PAGE);
        s.call(call(CallKind::Mmap, thread(nth % 16), inode, 0, 1 << 20));
        written_out(s, thread(nth % 16), inode, at, PAGE, STEP_US / 2);
    }
}

fn processes(s: &mut Scene, requests: u64) {
    for nth in 0..requests {
        let at = nth % 1024 * PAGE;
        s.call(call(CallKind::Write, thread(nth), 12, at, PAGE));
        written_out(s, thread(nth), 12, at, PAGE, STEP_US + STEP_US / 4);
    }
}

fn commits(s: &mut Scene, requests: u64) {
    for nth in 0..requests / 3 {
        let homes = [64 + nth % 32 * SECTORS];
        for at in 0..2 {
            let of = HandleOf {
                thread: thread((nth + at) % 32),
                function: "ext4_dirty_inode",
                inode: 12 + nth % 32,
                call: CallKind::Write,
                lasted_us: STEP_US / 2,
                ..CREATE
            };
            s.handle(of, &homes);
        }
        s.commit(40_000 + nth % 4096 * 32, &homes);
        // Each waits for some of the commits before.
        s.call(CallOf {
            lasted_us: 64 * STEP_US,
            ..call(CallKind::Fsync, thread(nth % 32), 12 + nth % 32, 0, 0)
        });
    }
}

fn transaction(s: &mut Scene, requests: u64) {
    let homes: Vec<u64> = (0..requests).map(|nth| 64 + nth * SECTORS).collect();
    for (nth, home) in (0..).zip(&homes) {
        let of = HandleOf {
            thread: thread(nth % 8),
            function: "ext4_dirty_inode",
            inode: 12 + nth,
            call: CallKind::Write,
            lasted_us: STEP_US / 2,
            ..CREATE
        };
        s.handle(of, &[*home]);
    }
    let first = 64 + requests * SECTORS;
    for (nth, home) in (0..).zip(&homes) {
        let sector = first + nth * SECTORS;
        s.request(WRITE | SYNC, sector, 4096, JBD2);
        let (what, home) = match nth % 256 {
            0 => (Jbd2::DESCRIPTOR, NONE),
            _ => (Jbd2::METADATA_COPY, *home),
        };
        s.journal(sector, 4096, JBD2, Origin::JOURNAL, what, home);
    }
    s.commit(first + requests * SECTORS, &homes[..1]);
}

fn discards(s: &mut Scene, requests: u64) {
    for nth in 0..requests / 2 {
        let of = HandleOf {
            thread: thread(nth % 8),
            function: "ext4_evict_inode",
            inode: 12 + nth,
            call: CallKind::Unlink,
            lasted_us: STEP_US / 2,
            ..CREATE
        };
        s.handle(of, &[64 + nth % 32 * SECTORS]);
        if nth % 32 == 31 {
            s.commit(40_000 + nth % 512 * 1024, &[64]);
            for at in 0..32 {
                let sector = FILES + (nth + at) * 1024;
                s.owned(WRITE | DISCARD, sector, 65_536, JBD2, Origin::EMPTY);
            }
        }
    }
}

fn flushes(s: &mut Scene, requests: u64) {
    for nth in 0..requests {
        s.device_flush();
        s.call(call(CallKind::Fsync, thread(nth % 64), 12 + nth % 64, 0, 0));
    }
}

fn checkpoints(s: &mut Scene, requests: u64) {
    const F2FS: Thread = Thread::new(40, 40, "f2fs_ckpt-7:0");
    for nth in 0..requests / 4 {
        let asker = thread(nth % 64);
        s.f2fs(Step::Asked, asker);
        s.f2fs(Step::Checkpoint, F2FS);
        for at in 0..4 {
            s.owned(WRITE | SYNC, 512 + at * SECTORS, 4096, F2FS, Origin::META);
        }
        s.f2fs(Step::Written, F2FS);
        s.call(CallOf {
            lasted_us: 7 * STEP_US,
            ..call(CallKind::Fsync, asker, 12 + nth % 64, 0, 0)
        });
    }
}

/// 64 threads write directly, and as many are in a call that lasts a minute.
fn long_calls(s: &mut Scene, requests: u64) {
    direct_by_many(s, requests);
    for nth in 64..128 {
        s.call(CallOf {
            lasted_us: 60_000_000,
            ..call(CallKind::Write, thread(nth), 12, nth << 20, 1 << 20)
        });
    }
}

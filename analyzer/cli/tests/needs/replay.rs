// SPDX-License-Identifier: MIT OR Apache-2.0
//! `export --format iolog`, replayed by fio at its own times, and recorded again.

use crate::run;

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use run::{json, record, succeeds};
use rustix::fs::OFlags;
use serde_json::Value;
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, begin_anew, one_by_one, tests, wait};

const FIO: Need = Need::Tool("fio", "fio");
/// Time between two writes of the recorded program, µs; a gap of at least half of it is a pause.
const PAUSE_US: u64 = 250_000;
/// How much a pause of the replay may differ from the log's, per cent. Other programs on the machine lengthen most pauses, so
/// only the lower quartile must stay within it.
const TOLERANCE: f64 = 5.0;

pub fn suite() -> Suite {
    one_by_one(tests![
        a_replay_makes_the_same_requests_in_the_same_time needs [Need::Loop, Need::Btf, FIO],
    ])
}

/// Returns true if no filesystem is mounted on it. A process with its own mounts may keep one for longer than we do.
fn is_free(device: &Path) -> bool {
    let exclusive = OFlags::EXCL.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(exclusive);
    options.open(device).is_ok()
}

/// Returns a total over all rows.
fn total(bundle: &Path, column: &str) -> u64 {
    let summary = json(&["analyze", bundle.to_str().unwrap(), "--json"]);
    summary["total"][column].as_u64().unwrap()
}

/// A write: the time when it was queued (µs), its sector and its bytes.
type Write = (u64, u64, u64);

/// Returns the writes of a recording in the order in which they were queued.
fn writes(bundle: &Path) -> Vec<Write> {
    let sql = "SELECT completion, min(time_ns - q2c_ns) AS queued, min(sector) AS sector, sum(bytes) AS bytes \
               FROM events WHERE op = 'write' GROUP BY completion ORDER BY queued, completion";
    let rows = json(&["query", bundle.to_str().unwrap(), sql, "--json"]);
    let write = |row: &Value| {
        let number = |name: &str| row[name].as_u64().unwrap();
        (number("queued") / 1000, number("sector"), number("bytes"))
    };
    rows.as_array().unwrap().iter().map(write).collect()
}

/// Returns the time from each write to the next, µs.
fn gaps(writes: &[Write]) -> Vec<u64> {
    let times = writes.windows(2);
    times.map(|two| two[1].0 - two[0].0).collect()
}

fn a_replay_makes_the_same_requests_in_the_same_time() {
    let mut disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let device = disk.device().to_owned();
    let dir = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| dir.path().join(format!("{name}.most")));
    // First the file's blocks are allocated and committed; then they are written again, which needs no commit.
    let file = disk.mount_point().join("f");
    let script = format!(
        "for i in 1 2 3 4 5 6 7 8 1 2 3 4 5 6 7 8; do \
         dd if=/dev/zero of={} bs=4k count=1 seek=$i conv=notrunc,fdatasync status=none; sleep {}; done",
        file.display(),
        PAUSE_US as f64 / 1e6
    );
    succeeds(record(&device, &first).args(["--", "sh", "-ec", &script]));
    disk.unmount().unwrap();
    wait::until("nobody has the disk mounted", || is_free(&device));

    let log = dir.path().join("log");
    run::mostrace(&[
        "export",
        first.to_str().unwrap(),
        "--format",
        "iolog",
        "--target",
        device.to_str().unwrap(),
        "-o",
        log.to_str().unwrap(),
    ]);
    let read_log = format!("--read_iolog={}", log.display());
    // It ends by itself, long before its time limit.
    let fio = [
        "fio",
        "--name=replay",
        &read_log,
        "--replay_no_stall=0",
        "--direct=1",
        "--ioengine=psync",
        "--runtime=60",
        "--output=/dev/null",
    ];
    succeeds(record(&device, &second).arg("--").args(fio));

    let [logged, replayed] = [&first, &second].map(|bundle| writes(bundle));
    let what = |writes: &[Write]| -> Vec<(u64, u64)> {
        writes
            .iter()
            .map(|&(_, sector, bytes)| (sector, bytes))
            .collect()
    };
    assert_eq!(what(&logged), what(&replayed));
    for column in [
        "writes",
        "write_bytes",
        "reads",
        "read_bytes",
        "device_flushes",
    ] {
        let totals = [&first, &second].map(|bundle| total(bundle, column));
        assert_eq!(totals[0], totals[1], "{column}");
    }
    assert!(total(&first, "device_flushes") > 16);
    // fio waits for each request before it makes the next, and makes up for oversleeping: one pause may be longer or
    // shorter, but their sum is not shorter. A busy machine lengthens them.
    let last = |writes: &[Write]| writes[writes.len() - 1].0 - writes[0].0;
    let whole = last(&replayed) as f64 / last(&logged) as f64;
    assert!((0.99..20.0).contains(&whole), "{whole}");
    let gaps = gaps(&logged).into_iter().zip(gaps(&replayed));
    let pauses = gaps.filter(|(log, _)| *log >= PAUSE_US / 2);
    let mut late: Vec<f64> = pauses
        .map(|(log, replay)| (replay as f64 / log as f64 - 1.0) * 100.0)
        .collect();
    assert!(late.len() >= 12, "{late:?}");
    late.sort_by(f64::total_cmp);
    let quartile = late[late.len() / 4];
    println!(
        "the replay takes {whole:.3} times as long; its pauses are longer by {quartile:.2} %, {late:.2?}"
    );
    if quartile.abs() >= TOLERANCE {
        begin_anew(format!("pauses are longer by {late:.2?} %"));
    }
}

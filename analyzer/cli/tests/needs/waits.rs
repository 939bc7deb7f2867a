// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks what calls for durability waited for: the parts sum to each call's time, in the samples and in a recording, whose calls strace
//! times as well. Disks whose delays are known are in `tests/guest/disks/tests/delay.sh`.

use crate::run;

use run::{json, program, sample, say};
use serde_json::Value;
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, begin_anew, one_by_one, tests, tool};

const SAMPLES: [&str; 7] = [
    "delete",
    "persist",
    "truncate",
    "wal",
    "f2fs-delete",
    "f2fs-wal",
    "fat32-delete",
];
const PARTS: [&str; 6] = [
    "wait_data_ns",
    "wait_metadata_ns",
    "wait_commit_start_ns",
    "wait_commit_ns",
    "wait_flush_ns",
    "wait_other_ns",
];
const DURABLE: [&str; 3] = ["fsync", "fdatasync", "sync"];

pub fn suite() -> Suite {
    one_by_one(tests![
        the_parts_of_each_call_sum_to_its_time,
        a_commit_on_a_write_back_disk_is_mostly_flush,
        rows_cannot_be_chosen,
        the_times_are_those_of_strace needs [
            Need::Loop,
            Need::Btf,
            Need::Ptrace,
            Need::Tool("strace", "strace"),
        ],
        other_ways_to_wait_last_as_long_as_fio_says needs [Need::Loop, Need::Btf, Need::Tool("fio", "fio")],
    ])
}

/// Conditions choose rows, and a call waits for all of them: they are refused, not ignored.
fn rows_cannot_be_chosen() {
    let mut analyze = program();
    let analyze = analyze.args(["analyze", &sample("wal"), "--waits"]);
    let said = say(analyze.args(["--where", "bytes > 0"])).ended(2);
    said.complains("--where");
}

/// Returns the calls of a bundle.
fn calls(bundle: &str) -> Vec<Value> {
    let sql = format!(
        "SELECT call, path, error, duration_ns, {} FROM calls ORDER BY time_ns",
        PARTS.join(", ")
    );
    let calls = json(&["query", bundle, &sql, "--json"]);
    calls.as_array().unwrap().clone()
}

/// Returns the parts of a call; None if it is not divided.
fn parts(call: &Value) -> Option<Vec<u64>> {
    PARTS.iter().map(|part| call[part].as_u64()).collect()
}

/// Checks every call of a bundle; returns the sum of each part.
fn check(bundle: &str) -> Vec<u64> {
    let calls = calls(bundle);
    let mut sums = vec![0; PARTS.len()];
    let mut divided = 0;
    for call in &calls {
        let is_durable = DURABLE.contains(&call["call"].as_str().unwrap());
        let parts = parts(call);
        assert_eq!(parts.is_some(), is_durable, "{bundle}: {call}");
        if let Some(parts) = parts {
            assert_eq!(parts.iter().sum::<u64>(), call["duration_ns"], "{call}");
            sums.iter_mut()
                .zip(parts)
                .for_each(|(sum, part)| *sum += part);
            divided += 1;
        }
    }
    // The table of sums says the same.
    let rows = json(&["analyze", bundle, "--waits", "--by", "file", "--json"]);
    let rows = rows.as_array().unwrap();
    let sum = |column: &str| -> u64 { rows.iter().map(|row| row[column].as_u64().unwrap()).sum() };
    assert_eq!(PARTS.map(sum).to_vec(), sums, "{bundle}");
    assert_eq!(sum("calls"), divided, "{bundle}");
    assert_eq!(sum("duration_ns"), sums.iter().sum::<u64>(), "{bundle}");
    sums
}

fn the_parts_of_each_call_sum_to_its_time() {
    for name in SAMPLES {
        let sums = check(&sample(name));
        // ext4 writes its metadata by its journal, FAT has none, and f2fs's checkpoints are not in these recordings.
        let is_ext4 = !name.contains("f2fs") && !name.contains("fat");
        assert_eq!(sums[2] > 0 && sums[3] > 0, is_ext4, "{name}: {sums:?}");
        assert!(
            sums[0] > 0 && sums[1] > 0 && sums[4] > 0,
            "{name}: {sums:?}"
        );
    }
}

/// The time of a flush is also that of the flushes that the device executed, one after the other.
fn a_commit_on_a_write_back_disk_is_mostly_flush() {
    let sql = "SELECT sum(d2c_ns) AS ns FROM requests WHERE op = 'device_flush'";
    for name in ["delete", "wal"] {
        let bundle = sample(name);
        let answer = json(&["query", &bundle, sql, "--json"]);
        let flushed = check(&bundle)[4] as f64;
        let executed = answer[0]["ns"].as_f64().unwrap();
        // One thread makes all the calls: it waits for no flush twice, and hardly any flush is for nobody. A little is the time
        // between the device's answer and the end of the flush sequence.
        assert!(
            (0.9..1.1).contains(&(flushed / executed)),
            "{name}: {flushed} of {executed}"
        );
    }
}

fn the_times_are_those_of_strace() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [bundle, log] = ["run.most", "strace"].map(|name| folder.path().join(name));
    let program = env!("CARGO_BIN_EXE_mostrace");
    let mut record = run::record(disk.disk(), &bundle);
    record
        .args([
            "--",
            "strace",
            "-f",
            "-T",
            "-e",
            "trace=fsync,fdatasync",
            "-o",
        ])
        .arg(&log);
    record.args([
        program,
        "workload",
        "sqlite",
        "--transactions",
        "100",
        "--journal",
        "delete",
    ]);
    record.arg(disk.mount_point().join("test.db"));
    tool::run(&mut record);
    let log = std::fs::read_to_string(log).unwrap();
    // 1234 fdatasync(4) = 0 <0.001234>
    let took = |line: &str| -> Option<f64> {
        let (_, time) = line.strip_suffix('>')?.rsplit_once('<')?;
        time.parse().ok()
    };
    let theirs: Vec<f64> = log.lines().filter_map(took).collect();
    let bundle = bundle.to_str().unwrap();
    check(bundle);
    let ours = calls(bundle);
    let ours: Vec<f64> = ours
        .iter()
        .filter(|call| call["call"] != "sync" && parts(call).is_some())
        .map(|call| parts(call).unwrap().iter().sum::<u64>() as f64 / 1e9)
        .collect();
    assert_eq!(ours.len(), theirs.len());
    assert!(ours.len() >= 200, "{} calls", ours.len());
    // strace times from one stop of the process to the next, around the call; on a busy machine it waits for a CPU in between.
    let mut longer: Vec<f64> = theirs
        .iter()
        .zip(&ours)
        .map(|(theirs, ours)| theirs - ours)
        .collect();
    longer.sort_by(f64::total_cmp);
    assert!(longer[0] >= -2e-6, "shorter by {longer:?}");
    let (half, whole) = (
        longer[longer.len() / 2],
        ours.iter().sum::<f64>() / ours.len() as f64,
    );
    assert!(
        half < 0.5 * whole,
        "{half} s longer than {whole} s on average"
    );
}

/// A way in which fio waits for its data to be durable.
struct Way {
    mkfs: &'static [&'static str],
    options: &'static [&'static str],
    /// The call, and the part of fio's report with its times.
    call: &'static str,
    told: [&'static str; 2],
}

const WAYS: [Way; 5] = [
    Way {
        mkfs: &["-O", "fast_commit"],
        options: &["--ioengine=psync", "--fsync=1"],
        call: "fsync",
        told: ["sync", "lat_ns"],
    },
    Way {
        mkfs: &[],
        options: &["--ioengine=psync", "--sync=dsync"],
        call: "write",
        told: ["write", "clat_ns"],
    },
    Way {
        mkfs: &[],
        options: &["--ioengine=psync", "--sync=sync", "--direct=1"],
        call: "write",
        told: ["write", "clat_ns"],
    },
    Way {
        mkfs: &[],
        options: &["--ioengine=mmap", "--fsync=1"],
        call: "msync",
        told: ["sync", "lat_ns"],
    },
    Way {
        mkfs: &[],
        options: &["--ioengine=io_uring", "--fsync=1"],
        call: "fsync",
        told: ["sync", "lat_ns"],
    },
];

/// fio times each call, and counts them.
fn other_ways_to_wait_last_as_long_as_fio_says() {
    let folder = tempfile::tempdir().unwrap();
    for (number, way) in WAYS.iter().enumerate() {
        let mkfs = way.mkfs.iter().map(|word| (*word).to_owned()).collect();
        let disk = LoopExt4::new(&LoopOptions {
            mkfs,
            ..LoopOptions::default()
        });
        let disk = disk.unwrap();
        let [bundle, told] =
            ["most", "json"].map(|suffix| folder.path().join(format!("{number}.{suffix}")));
        let mut record = run::record(disk.disk(), &bundle);
        record.args(["--", "fio", "--name=w", "--rw=randwrite", "--bs=4k"]);
        record.args(["--size=1m", "--output-format=json"]);
        record.args(way.options);
        record.arg(format!("--directory={}", disk.mount_point().display()));
        record.arg(format!("--output={}", told.display()));
        tool::run(&mut record);
        let told: Value = serde_json::from_slice(&std::fs::read(told).unwrap()).unwrap();
        let theirs = &told["jobs"][0][way.told[0]][way.told[1]];
        let ours: Vec<(u64, Vec<u64>)> = calls(bundle.to_str().unwrap())
            .iter()
            .filter(|call| call["call"] == way.call)
            .filter_map(|call| Some((call["duration_ns"].as_u64()?, parts(call)?)))
            .collect();
        let of_way = way.options;
        assert_eq!(theirs["N"], ours.len(), "{of_way:?}");
        assert!(ours.len() >= 255, "{of_way:?}: {}", ours.len());
        let (mut whole, mut other) = (0, 0);
        for (duration, parts) in &ours {
            assert_eq!(parts.iter().sum::<u64>(), *duration, "{of_way:?}");
            whole += duration;
            other += parts[5];
        }
        let theirs = theirs["mean"].as_f64().unwrap() * ours.len() as f64;
        // fio times around a call, and a request to io_uring from a little later on.
        assert!(
            whole as f64 <= 1.02 * theirs,
            "{of_way:?}: {whole} of {theirs}"
        );
        assert!(
            whole as f64 >= 0.5 * theirs,
            "{of_way:?}: {whole} of {theirs}"
        );
        if other >= whole / 2 {
            // On a busy machine calls wait for a processor.
            begin_anew(format!("{of_way:?}: {other} of {whole} for other things"));
        }
    }
}

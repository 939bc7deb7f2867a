// SPDX-License-Identifier: MIT OR Apache-2.0
//! `analyze` and `events` on bundles made by hand, whose sums are known, and on real traces, whose sums blkparse has.

use crate::run;
use crate::scene;
use crate::support;

use std::path::Path;

use mostrace_bundle::entry::Origin;
use mostrace_bundle::{Counter, Counters};
use mostrace_tables::analysis::{Analysis, Options};
use mostrace_tables::facts::catalogue;
use mostrace_trace::causes::Sharing;
use run::{json, mostrace};
use scene::{Scene, saved};
use serde_json::Value;

fn sum(table: &Value, column: &str) -> u64 {
    table
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row[column].as_u64().unwrap())
        .sum()
}

/// Returns (name, writes, write_bytes, reads, read_bytes) of each row.
fn rows(table: &Value, name: &str) -> Vec<(String, u64, u64, u64, u64)> {
    let number = |row: &Value, column: &str| row[column].as_u64().unwrap();
    let row = |row: &Value| {
        (
            row[name].as_str().unwrap_or("-").to_owned(),
            number(row, "writes"),
            number(row, "write_bytes"),
            number(row, "reads"),
            number(row, "read_bytes"),
        )
    };
    table.as_array().unwrap().iter().map(row).collect()
}

#[test]
fn a_transaction_sums_up() {
    let (_tmp, path) = saved(&scene::transaction());
    let all = json(&["analyze", &path, "--json"]);
    assert_eq!(all["schema"], 3);
    let total = &all["total"];
    for (column, value) in [
        ("requests", 8),
        ("bytes", 8192 + 12288 + 4096 + 4096 + 16384),
        ("writes", 4),
        ("write_bytes", 8192 + 12288 + 4096 + 4096),
        ("sync_writes", 3),
        ("reads", 1),
        ("read_bytes", 16384),
        ("flushes", 1),
        ("device_flushes", 1),
        ("discards", 1),
        ("discard_bytes", 65536),
        ("failed", 0),
    ] {
        assert_eq!(total[column], value, "{column}");
    }
    let row = |name: &str, w, wb, r, rb| (name.to_owned(), w, wb, r, rb);
    assert_eq!(
        rows(&all["by_class"], "class"),
        [
            row("data", 2, 12288, 1, 16384),
            row("journal", 1, 12288, 0, 0),
            row("unknown", 1, 4096, 0, 0),
            row("-", 0, 0, 0, 0),
        ]
    );
    assert_eq!(
        rows(&all["by_role"], "role"),
        [
            row("db", 1, 4096, 1, 16384),
            row("-", 2, 16384, 0, 0),
            row("rollback_journal", 1, 8192, 0, 0),
        ]
    );
    // One request of jbd2 spans three kinds, and counts in each.
    let kinds = rows(&all["by_kind"], "kind");
    for kind in ["descriptor", "metadata_copy", "commit"] {
        assert!(kinds.contains(&row(kind, 1, 4096, 0, 0)), "{kinds:?}");
    }
    assert_eq!(
        rows(&all["by_process"], "process"),
        [
            row("sqlite3:100", 2, 12288, 1, 16384),
            row("jbd2/loop0-8:50", 1, 12288, 0, 0),
            row("kworker/u8:1:60", 1, 4096, 0, 0),
            row("-", 0, 0, 0, 0),
        ]
    );
    let sums = [
        "by_class",
        "by_kind",
        "by_role",
        "by_process",
        "by_file",
        "by_provenance",
    ];
    for name in sums {
        for column in ["write_bytes", "read_bytes", "discard_bytes", "flushes"] {
            assert_eq!(
                sum(&all[name], column),
                total[column].as_u64().unwrap(),
                "{name} {column}"
            );
        }
    }
}

/// The scene's users are root and 1000.
#[test]
fn users_are_apps_where_the_bundle_has_their_list() {
    let mut scene = scene::transaction();
    let (_tmp, desktop) = saved(&scene);
    let on_desktop = json(&["analyze", &desktop, "--by", "package", "--json"]);
    assert_eq!(on_desktop.as_array().unwrap().len(), 1);
    assert_eq!(on_desktop[0]["package"], Value::Null);
    scene.packages = Some("com.example.b 1000\ncom.example.a 1000\ncom.example.c 10001\n");
    let (_tmp, phone) = saved(&scene);
    let by_package = json(&["analyze", &phone, "--by", "package", "--json"]);
    assert_eq!(
        rows(&by_package, "package"),
        [
            ("com.example.a,com.example.b".to_owned(), 2, 12288, 1, 16384),
            ("root".to_owned(), 2, 16384, 0, 0),
            ("-".to_owned(), 0, 0, 0, 0),
        ]
    );
    let by_cause = json(&["analyze", &phone, "--by", "cause_package", "--json"]);
    assert_eq!(
        sum(&by_cause, "write_bytes"),
        sum(&by_package, "write_bytes")
    );
    let condition = ["--where", "package LIKE '%com.example.b%' AND op = 'write'"];
    let events = json(&[&["events", &phone, "--json"][..], &condition].concat());
    assert_eq!(sum(&events, "bytes"), 12288);
}

#[test]
fn every_grouping_sums_to_the_same() {
    let (_tmp, path) = saved(&scene::transaction());
    for by in [
        "class",
        "kind",
        "role",
        "process",
        "dirtier",
        "file",
        "comm",
        "pid",
        "tgid",
        "uid",
        "provenance",
        "origin",
        "stage",
        "op",
        "rwbs",
        "size",
        "inode",
        "home_kind",
        "device",
        "class,file,pid,op",
    ] {
        let table = json(&["analyze", &path, "--by", by, "--json"]);
        assert_eq!(sum(&table, "bytes"), 45056, "{by}");
        let top = json(&["analyze", &path, "--by", by, "--top", "1", "--json"]);
        assert_eq!(sum(&top, "bytes"), 45056, "{by}");
        assert!(top.as_array().unwrap().len() <= 2);
    }
    // The remaining files have rows of one request each: requests are not counted twice.
    let top = json(&["analyze", &path, "--by", "kind", "--top", "1", "--json"]);
    assert_eq!(
        (&top[1]["kind"], &top[1]["requests"]),
        (&"(5 others)".into(), &5.into())
    );
}

#[test]
fn tables_end_with_the_total() {
    let (_tmp, path) = saved(&scene::transaction());
    let text = mostrace(&["analyze", &path, "--by", "class"]);
    let last = text.lines().last().unwrap();
    let words: Vec<&str> = last.split_whitespace().collect();
    assert_eq!(words[..3], ["total", "8", "45,056"], "{text}");
    let csv = mostrace(&["analyze", &path, "--by", "class", "--format", "csv"]);
    let lines: Vec<&str> = csv.lines().collect();
    assert!(
        lines[0].starts_with(
            "class,requests,bytes,writes,write_bytes,reads,read_bytes,flushes,discards,"
        )
    );
    assert!(
        lines[1].starts_with("data,3,28672,2,12288,1,16384,0,0,"),
        "{csv}"
    );
    assert_eq!(lines.len(), 5, "{csv}");
    assert!(lines[4].starts_with(",3,0,0,0,0,0,1,1,65536,1,"), "{csv}");
}

#[test]
fn events_have_the_columns_they_promise() {
    let (_tmp, path) = saved(&scene::transaction());
    let csv = mostrace(&["events", &path, "--format", "csv"]);
    let header = csv.lines().next().unwrap();
    assert!(header.starts_with(
        "time_ns,rwbs,sector,bytes,pid,comm,class,path,device,tgid,uid,kind,role,inode,\
         file_offset,stage,provenance,q2d_ns,d2c_ns,completion,"
    ));
    let second = csv.lines().nth(1).unwrap();
    assert_eq!(
        second,
        "2100000,WS,800,8192,101,sqlite3,data,a.db-journal,7:0,100,1000,regular,\
         rollback_journal,12,0,insert,live,20000,80000,0,write,true,false,false,false,0,file,1,,,,,,,,,,,,\
         8192,false,0,,100000,,,,,,,,,unknown,0,,,,,unknown,,,,,,"
    );
    assert_eq!(csv.lines().count(), 1 + 10);
    let rows = json(&["events", &path, "--json"]);
    let copy = rows
        .as_array()
        .unwrap()
        .iter()
        .find(|r| r["kind"] == "metadata_copy")
        .unwrap();
    assert_eq!(
        (&copy["home_sector"], &copy["jbd2_tid"]),
        (&8.into(), &1.into())
    );
    assert_eq!(copy["path"], Value::Null);
    let bytes = |rows: &Value| sum(rows, "bytes");
    assert_eq!(bytes(&rows), 45056 + 65536);
    let some = mostrace(&["events", &path, "--columns", "op,bytes", "--format", "csv"]);
    assert!(some.starts_with("op,bytes\nwrite,8192\n"), "{some}");
}

/// A flusher writes pages that two tasks dirtied; the dirtier of the last page is unknown.
fn written_back() -> Scene {
    let mut s = Scene::new();
    s.request(scene::WRITE, 1000, 4 * 4096, scene::KWORKER);
    let origin = mostrace_bundle::entry::Origin::FILE;
    s.process(1000, 4 * 4096, scene::KWORKER, origin);
    s.file(1000, 4 * 4096, 13, 0, b"a.db");
    s.dirtier(1000, 2 * 4096, scene::SQLITE);
    s.dirtier(1016, 4096, scene::JBD2);
    s
}

#[test]
fn who_dirtied_is_told_apart_from_who_submitted() {
    let (_tmp, path) = saved(&written_back());
    let all = json(&["analyze", &path, "--json"]);
    let row = |name: &str, bytes| (name.to_owned(), 1, bytes, 0, 0);
    let dirtiers = [
        row("sqlite3:100", 8192),
        row("jbd2/loop0-8:50", 4096),
        row("-", 4096),
    ];
    assert_eq!(rows(&all["by_dirtier"], "dirtier"), dirtiers);
    assert_eq!(
        rows(&all["by_process"], "process"),
        [row("kworker/u8:1:60", 16384)]
    );
    let by = json(&["analyze", &path, "--by", "dirtier", "--json"]);
    assert_eq!(rows(&by, "dirtier"), dirtiers);
    assert!(mostrace(&["analyze", &path, "--full"]).contains("\nDirtiers\n"));
    let csv = mostrace(&[
        "events",
        &path,
        "--columns",
        "sector,bytes,comm,dirty_pid,dirty_tgid,dirty_uid,dirty_comm,dirty2q_ns",
        "--format",
        "csv",
    ]);
    assert_eq!(
        csv,
        "sector,bytes,comm,dirty_pid,dirty_tgid,dirty_uid,dirty_comm,dirty2q_ns\n\
         1000,8192,kworker/u8:1,101,100,1000,sqlite3,500000\n\
         1016,4096,kworker/u8:1,50,50,0,jbd2/loop0-8,500000\n\
         1024,4096,kworker/u8:1,,,,,\n"
    );
}

#[test]
fn where_no_dirtier_is_known_there_is_no_table_of_them() {
    let mut scene = scene::transaction();
    for dirtiers in [None, Some(vec![])] {
        scene.dirtiers = dirtiers;
        let (_tmp, path) = saved(&scene);
        let all = json(&["analyze", &path, "--json"]);
        assert_eq!(all.get("by_dirtier"), None);
        assert!(!mostrace(&["analyze", &path, "--full"]).contains("irtier"));
        let by = json(&["analyze", &path, "--by", "dirtier", "--json"]);
        let names: Vec<&Value> = by
            .as_array()
            .unwrap()
            .iter()
            .map(|r| &r["dirtier"])
            .collect();
        assert_eq!(names, [&Value::Null]);
    }
}

#[test]
fn an_archive_gives_the_same() {
    let (tmp, path) = saved(&written_back());
    let packed = tmp.path().join("scene.most.tar.zst");
    mostrace_bundle::archive::pack(Path::new(&path), &packed).unwrap();
    let folder = mostrace(&["events", &path, "--format", "csv"]);
    assert_eq!(
        mostrace(&["events", packed.to_str().unwrap(), "--format", "csv"]),
        folder
    );
}

#[test]
fn parquet_comes_back_as_csv_has_it() {
    use polars_io::csv::write::CsvWriter;
    use polars_io::parquet::read::ParquetReader;
    use polars_io::{SerReader, SerWriter};
    let (tmp, path) = saved(&written_back());
    let file = tmp.path().join("events.parquet");
    mostrace(&["events", &path, "-o", file.to_str().unwrap()]);
    let frame = ParquetReader::new(std::fs::File::open(&file).unwrap())
        .finish()
        .unwrap();
    // polars does not write times as text.
    let mut frame = frame.drop("time_utc").unwrap();
    let columns: Vec<&str> = frame.columns().iter().map(|c| c.name().as_str()).collect();
    let columns = columns.join(",");
    let mut csv = Vec::new();
    CsvWriter::new(&mut csv).finish(&mut frame).unwrap();
    let expected = mostrace(&["events", &path, "--columns", &columns, "--format", "csv"]);
    assert_eq!(String::from_utf8(csv).unwrap(), expected);
}

#[test]
fn an_empty_trace_has_headers() {
    let (_tmp, path) = saved(&Scene::new());
    assert_eq!(
        mostrace(&["events", &path, "--format", "csv"])
            .lines()
            .count(),
        1
    );
    assert_eq!(json(&["events", &path, "--json"]), Value::Array(vec![]));
    assert_eq!(json(&["analyze", &path, "--json"])["total"]["requests"], 0);
    assert!(mostrace(&["analyze", &path, "--full"]).contains("0 bytes in 0 requests"));
}

#[test]
fn amplification_is_told_where_the_payload_is_known() {
    let mut scene = scene::transaction();
    scene.manifest.payload = Some(mostrace_bundle::manifest::Payload {
        workload: "sqlite".into(),
        payload_bytes: 100,
        file_bytes: 12288,
        transactions: 2,
        ..Default::default()
    });
    let (_tmp, path) = saved(&scene);
    let all = json(&["analyze", &path, "--json"]);
    let block = &all["amplification"][2];
    assert_eq!(
        (&block["level"], &block["bytes"]),
        (&"block".into(), &28672.into())
    );
    assert_eq!(block["times_payload"], 286.72);
    assert_eq!(block["bytes_per_transaction"], 14336.0);
    for table in ["amplification_by_class", "amplification_by_role"] {
        let rows = all[table].as_array().unwrap();
        let sum = |column: &str| {
            rows.iter()
                .map(|r| r[column].as_f64().unwrap())
                .sum::<f64>()
        };
        assert!((sum("times_payload") - 286.72).abs() < 1e-9, "{table}");
        assert!((sum("write_percent") - 100.0).abs() < 1e-9, "{table}");
        assert!(
            (sum("flushes_per_transaction") - 0.5).abs() < 1e-9,
            "{table}"
        );
    }
    assert!(!mostrace(&["analyze", &path, "--full"]).contains("NaN"));
}

#[test]
fn losses_come_first() {
    let mut scene = scene::transaction();
    scene.manifest.losses.insert("entries_ring".into(), 12);
    scene.manifest.losses.insert("events_tracer".into(), 0);
    let (_tmp, path) = saved(&scene);
    let text = mostrace(&["analyze", &path]);
    let first = text.lines().next().unwrap();
    assert_eq!(
        first,
        "LOSSY: records were lost during the capture (entries_ring 12)"
    );
}

#[test]
fn what_others_did_and_what_is_missing_come_first() {
    let counter = |traced, at_least| Counter {
        traced,
        at_least,
        at_most: Some(at_least),
        ..Counter::default()
    };
    let mut scene = scene::transaction();
    scene.manifest.interference = vec!["tracing_on was set to `0`".into()];
    let compared = [
        ("writes".to_owned(), counter(1, 1)),
        ("write_bytes".to_owned(), counter(512, 1024)),
    ];
    scene.manifest.counters = Some(Counters::Compared(compared.into()));
    let (_tmp, path) = saved(&scene);
    let text = mostrace(&["analyze", &path]);
    let first: Vec<_> = text.lines().take(2).collect();
    assert_eq!(
        first,
        [
            "INTERFERED: others changed the tracing while it ran (tracing_on was set to `0`)",
            "DIFFERS: the kernel's counters differ: write_bytes 512 traced, 1024 counted",
        ]
    );

    let mut scene = scene::transaction();
    for (counters, says) in [
        (
            Counters::Compared([("writes".to_owned(), counter(1, 1))].into()),
            "checked     the kernel's counters agree",
        ),
        (
            Counters::NotCompared("sda is zoned".into()),
            "checked     not held against the kernel's counters: sda is zoned",
        ),
    ] {
        scene.manifest.counters = Some(counters);
        let (_tmp, path) = saved(&scene);
        let text = mostrace(&["analyze", &path, "--full"]);
        // There is no table of causes, so submitters stand in for them.
        let said = "28.7 kB were written, 43 % by jbd2/loop0-8 (submitter)";
        assert!(text.starts_with(said), "{text}");
        assert!(text.lines().any(|line| line == says), "{text}");
    }
}

/// The output has the largest parts of both processes, and few lines.
#[test]
fn what_is_not_asked_for_is_few_lines() {
    let mut scene = Scene::new();
    for (nth, bytes) in [(0, 4096), (1, 8192)] {
        let path = format!("/folder/{nth}");
        scene.write_file(nth * 1000, bytes, 12 + nth, path.as_bytes());
    }
    let (_tmp, path) = saved(&scene);
    let text = mostrace(&["analyze", &path]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() <= 16, "{text}");
    assert!(lines[0] == "sqlite3 (submitter) wrote 12.3 kB.", "{text}");
    let last =
        format!("next: mostrace analyze {path} --full; mostrace report {path} -o report.html");
    assert_eq!(lines.last(), Some(&&*last));
    assert!(text.contains(" 100 % ████████████████████ "), "{text}");
    // Rows that pass a filter are shown without the sentence, which is about all rows.
    let some = mostrace(&["analyze", &path, "--where", "bytes > 4096"]);
    assert!(
        some.contains("8.2 kB 100 %") && !some.contains(" wrote "),
        "{some}"
    );
    // What is suggested next is about the same rows.
    let next = format!("next: mostrace analyze {path} --no-map --where 'bytes > 4096' --full");
    let some = mostrace(&["analyze", &path, "--no-map", "--where", "bytes > 4096"]);
    assert_eq!(some.lines().last(), Some(&*next));
    // On a terminal without a size, nothing is left out.
    let full = mostrace(&["analyze", &path, "--full"]);
    assert!(
        full.lines().count() > 30 && full.contains("/folder/1"),
        "{full}"
    );
}

/// A complete trace has such entries at its ends; if something is missing, their number shows how much.
#[test]
fn entries_without_a_completion_are_told_where_something_is_missing() {
    let mut scene = Scene::new();
    scene.owned(scene::WRITE, 8, 4096, scene::SQLITE, Origin::FILE);
    scene.process(800, 4096, scene::SQLITE, Origin::FILE);
    let says = "1 process entries found no completion";
    let (_tmp, path) = saved(&scene);
    assert!(!mostrace(&["analyze", &path]).contains(says));
    scene.manifest.losses.insert("events_tracer".into(), 1);
    let (_tmp, path) = saved(&scene);
    let text = mostrace(&["analyze", &path]);
    assert!(text.contains(says), "{text}");
}

#[test]
fn the_number_of_a_thread_may_come_back_as_anothers() {
    let named = |comm| scene::Thread {
        comm,
        ..scene::SQLITE
    };
    let mut scene = Scene::new();
    for (comm, writes) in [("first", 1), ("second", 2)] {
        // This happens a moment later.
        scene.device_flush();
        scene.note(named(comm));
        for _ in 0..writes {
            scene.request(scene::WRITE, 8, 4096, named(comm));
        }
    }
    let (_tmp, path) = saved(&scene);
    let table = json(&["analyze", &path, "--by", "comm", "--format", "json"]);
    let mut got = rows(&table, "comm");
    got.retain(|(comm, ..)| comm != "-");
    got.sort();
    let row = |comm: &str, writes| (comm.to_owned(), writes, writes * 4096, 0, 0);
    assert_eq!(got, [row("first", 1), row("second", 2)]);
}

#[test]
fn order_and_sizes() {
    let mut scene = Scene::new();
    for (sector, bytes) in [(0, 4096), (8, 4096), (16, 8192), (100, 512), (101, 4096)] {
        scene.request(scene::WRITE, sector, bytes, scene::SQLITE);
    }
    let (_tmp, path) = saved(&scene);
    let all = json(&["analyze", &path, "--json"]);
    let row = |name: &str, w, wb| (name.to_owned(), w, wb, 0, 0);
    let order = rows(&all["order"], "order");
    assert_eq!(order, [row("sequential", 3, 16384), row("random", 2, 4608)]);
    let sizes = rows(&all["sizes"], "size");
    assert_eq!(
        sizes,
        [
            row("under 4 KiB", 1, 512),
            row("4 KiB", 3, 12288),
            row("over 4 to 8 KiB", 1, 8192),
        ]
    );
    assert_eq!(all["sizes"][1]["write_percent"], 60.0);
}

#[test]
fn a_bare_trace_takes_names_from_its_notes() {
    let mut scene = scene::transaction();
    scene.note(scene::JBD2);
    let tmp = tempfile::tempdir().unwrap();
    std::fs::write(tmp.path().join("x.blktrace.0"), &scene.events).unwrap();
    let basename = tmp.path().join("x");
    let table = json(&[
        "analyze",
        basename.to_str().unwrap(),
        "--by",
        "process",
        "--json",
    ]);
    let bytes = |name: &str| {
        let row = table
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["process"] == name);
        row.map(|row| row["write_bytes"].as_u64().unwrap())
    };
    assert_eq!(bytes("jbd2/loop0-8:50"), Some(12288), "{table}");
    assert_eq!(bytes("?:101"), Some(12288), "{table}");
}

#[test]
fn bare_traces_sum_as_blkparse_sums_them() {
    for name in support::REAL {
        let basename = support::real(name);
        let expected = support::oracle::summary(&basename);
        let all = json(&["analyze", basename.to_str().unwrap(), "--json"]);
        let total = |column: &str| all["total"][column].as_u64().unwrap();
        // blkparse counts discards as writes.
        let written = total("write_bytes") + total("discard_bytes");
        assert_eq!(written / 1024, expected.write_kib, "{name}");
        assert_eq!(total("read_bytes") / 1024, expected.read_kib, "{name}");
        assert_eq!(sum(&all["by_process"], "write_bytes"), total("write_bytes"));
        assert_eq!(all["by_class"][0]["class"], "unknown");
        let events = json(&["events", basename.to_str().unwrap(), "--json"]);
        let completions = events.as_array().unwrap().last().unwrap()["completion"].as_u64();
        assert_eq!(completions, Some(total("requests") - 1));
    }
}

#[test]
fn rows_are_chosen_by_a_condition() {
    let (_tmp, path) = saved(&scene::transaction());
    let table = |args: &[&str]| json(&[&["analyze", &path, "--json"][..], args].concat());
    let journal = table(&["--by", "kind", "--where", "class = 'journal'"]);
    let kinds = journal
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["kind"].as_str().unwrap());
    assert_eq!(
        kinds.collect::<Vec<_>>(),
        ["commit", "descriptor", "metadata_copy"]
    );
    let condition = "op = 'write' AND NOT sync AND bytes >= 4096";
    let summary = table(&["--where", condition]);
    assert_eq!(
        (&summary["total"]["writes"], &summary["total"]["reads"]),
        (&1.into(), &0.into())
    );
    let events = json(&[
        "events",
        &path,
        "--where",
        "home_sector IS NOT NULL",
        "--json",
    ]);
    assert_eq!(events.as_array().unwrap().len(), 1);
    let none = mostrace(&["events", &path, "--where", "bytes < 0", "--format", "csv"]);
    assert_eq!(none.lines().count(), 1, "{none}");
}

/// A column's information is determined even if only that column is asked for.
#[test]
fn a_column_alone_is_what_it_is_among_all() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample-traces");
    for name in ["f2fs-delete", "delete"] {
        let path = folder.join(format!("{name}.most.tar.zst"));
        let read = |locality, causes: bool| {
            let options = Options {
                locality,
                causes: causes.then_some(Sharing::First),
                ..Options::default()
            };
            Analysis::open(&path, &options).unwrap()
        };
        let all = read(true, true);
        let some = [false, true].map(|locality| [false, true].map(|causes| read(locality, causes)));
        for column in catalogue::ALL {
            let [locality, causes] = [column.needs_locality(), column.needs_causes()];
            let alone = &some[usize::from(locality)][usize::from(causes)];
            let frames = |analysis: &Analysis| -> Vec<_> {
                let frames = analysis.facts.frames(&[column], None);
                frames.map(Result::unwrap).collect()
            };
            for (alone, among) in frames(alone).iter().zip(frames(&all)) {
                assert!(alone.equals_missing(&among), "{name}: {}", column.name);
            }
        }
    }
}

/// A request of several files has a row for each: none of them rewrites what another one has just written.
#[test]
fn nothing_is_rewritten_by_its_own_request() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample-traces");
    for name in ["fat32-delete", "delete"] {
        let path = folder.join(format!("{name}.most.tar.zst"));
        let sql = "SELECT count(rewrite_ns) AS rewrites, min(rewrite_ns) AS first FROM events";
        let rows = json(&["query", path.to_str().unwrap(), sql, "--json"]);
        assert!(
            rows[0]["rewrites"].as_u64().unwrap() > 1000,
            "{name}: {rows}"
        );
        assert!(rows[0]["first"].as_u64().unwrap() > 0, "{name}: {rows}");
    }
}

#[test]
fn the_columns_of_a_grouping_can_be_chosen() {
    let (_tmp, path) = saved(&scene::transaction());
    let args = [
        "analyze",
        &path,
        "--by",
        "op",
        "--columns",
        "writes,op",
        "--format",
        "csv",
    ];
    let csv = mostrace(&args);
    assert!(csv.starts_with("writes,op\n4,write\n"), "{csv}");
}

#[test]
fn percentiles_are_of_requests() {
    let (_tmp, path) = saved(&scene::transaction());
    let rows = json(&["analyze", &path, "--by", "op", "--percentiles", "--json"]);
    let write = rows
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["op"] == "write")
        .unwrap();
    for (column, value) in [
        ("requests", 4),
        ("size_p50_bytes", 4096),
        ("size_max_bytes", 12288),
        ("q2d_p99_ns", 20_000),
        ("d2c_max_ns", 80_000),
    ] {
        // All percentiles are values that occur.
        assert_eq!(write[column], value, "{column}");
    }
}

#[test]
fn rows_can_be_asked_in_sql() {
    let (_tmp, path) = saved(&scene::transaction());
    let sql = "SELECT role, sum(bytes) AS bytes FROM events WHERE op = 'write' AND role IS NOT NULL \
               GROUP BY role ORDER BY bytes DESC";
    let csv = mostrace(&["query", &path, sql, "--format", "csv"]);
    assert_eq!(csv, "role,bytes\nrollback_journal,8192\ndb,4096\n");
    let all = json(&["query", &path, "SELECT * FROM events LIMIT 1", "--json"]);
    assert_eq!(all[0]["completion"], 0);
    let count = json(&["query", &path, "SELECT count(*) AS n FROM events", "--json"]);
    assert_eq!(count[0]["n"], 10);
}

#[test]
fn what_is_written_again_is_told() {
    let mut scene = Scene::new();
    for sector in [0, 8, 0, 0, 64] {
        scene.request(scene::WRITE, sector, 4096, scene::SQLITE);
    }
    let (_tmp, path) = saved(&scene);
    let all = json(&["analyze", &path, "--json"]);
    let rewrites = &all["rewrites"][0];
    assert_eq!(
        (&rewrites["write_bytes"], &rewrites["rewritten_bytes"]),
        (&20480.into(), &8192.into())
    );
    assert_eq!(all["hottest"][0]["sector"], 0);
    assert_eq!(all["hottest"][0]["writes"], 3);
    let csv = mostrace(&[
        "events",
        &path,
        "--columns",
        "rewritten_bytes",
        "--format",
        "csv",
    ]);
    assert_eq!(csv, "rewritten_bytes\n0\n0\n4096\n4096\n0\n");
}

/// The manifest's clock says when the trace was made; numbers are signed.
#[test]
fn columns_are_of_types_that_databases_know() {
    use polars::prelude::DataType;
    use polars_io::SerReader;
    use polars_io::parquet::read::ParquetReader;
    let mut scene = scene::transaction();
    scene.manifest.clock.start_mono_ns = 1_000_000;
    scene.manifest.clock.start_unix_ns = 1_600_000_000_000_000_000;
    let (tmp, path) = saved(&scene);
    let file = tmp.path().join("events.parquet");
    mostrace(&["events", &path, "-o", file.to_str().unwrap()]);
    let frame = ParquetReader::new(std::fs::File::open(&file).unwrap())
        .finish()
        .unwrap();
    for column in frame.columns() {
        let known = matches!(
            column.dtype(),
            DataType::Int64 | DataType::String | DataType::Boolean | DataType::Datetime(..)
        );
        assert!(known, "{}: {}", column.name(), column.dtype());
    }
    let events = json(&["events", &path, "--columns", "time_ns,time_utc", "--json"]);
    assert_eq!(events[0]["time_ns"], 2_100_000);
    assert_eq!(events[0]["time_utc"], "2020-09-13T12:26:40.001100Z");
}

#[test]
fn the_schema_page_is_current() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/SCHEMA.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page == mostrace(&["schema"]),
        "run: mostrace schema > docs/SCHEMA.md"
    );
}

#[test]
fn a_trace_without_io_is_analysed() {
    let mut scene = Scene::new();
    scene.manifest.counts.insert("events".into(), 0);
    let (_tmp, path) = saved(&scene);
    std::fs::remove_file(Path::new(&path).join("trace.blktrace.0")).unwrap();
    assert_eq!(json(&["analyze", &path, "--json"])["total"]["requests"], 0);
}

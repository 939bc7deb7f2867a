// SPDX-License-Identifier: MIT OR Apache-2.0
//! `export`: the sums of every format are those of `analyze`.
#![cfg(feature = "analyze")]

mod run;
mod scene;

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use polars::prelude::DataFrame;
use polars_io::SerReader;
use polars_io::parquet::read::ParquetReader;
use run::bytes as mostrace;
use serde_json::Value;

fn sample(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sample-traces");
    folder.join(format!("{name}.most.tar.zst"))
}

fn export(name: &str, format: &str, more: &[&str]) -> Vec<u8> {
    let path = sample(name);
    let args = [
        &["export", path.to_str().unwrap(), "--format", format],
        more,
    ];
    mostrace(&args.concat())
}

fn text(name: &str, format: &str, more: &[&str]) -> String {
    String::from_utf8(export(name, format, more)).unwrap()
}

/// Of all rows, as `analyze` says.
fn total(name: &str, column: &str) -> u64 {
    let json = mostrace(&["analyze", sample(name).to_str().unwrap(), "--json"]);
    let summary: Value = serde_json::from_slice(&json).unwrap();
    summary["total"][column].as_u64().unwrap()
}

/// The fields of each line.
fn csv(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split(',').collect()).collect()
}

fn sum(lines: &[Vec<&str>], bytes: usize, is: impl Fn(&[&str]) -> bool) -> u64 {
    let some = lines.iter().filter(|line| is(line));
    some.map(|line| line[bytes].parse::<u64>().unwrap()).sum()
}

#[test]
fn folded_stacks_sum_to_the_bytes() {
    let text = text("wal", "folded", &[]);
    let stacks: Vec<(&str, &str)> = text.lines().map(|l| l.rsplit_once(' ').unwrap()).collect();
    let bytes: u64 = stacks
        .iter()
        .map(|(_, bytes)| bytes.parse::<u64>().unwrap())
        .sum();
    assert_eq!(bytes, total("wal", "write_bytes"));
    assert!(
        stacks
            .iter()
            .all(|(stack, _)| stack.split(';').count() >= 5),
        "{text}"
    );
    assert!(
        text.contains(";journal;metadata_copy;inode_table "),
        "{text}"
    );
}

#[test]
fn block_traces_have_every_read_and_write() {
    for name in ["wal", "fat32-delete"] {
        let (written, read) = (total(name, "write_bytes"), total(name, "read_bytes"));
        let alibaba = text(name, "alibaba", &[]);
        let lines = csv(&alibaba);
        assert_eq!(sum(&lines, 3, |l| l[1] == "W"), written, "{name}");
        assert_eq!(sum(&lines, 3, |l| l[1] == "R"), read, "{name}");
        let times: Vec<u64> = lines.iter().map(|l| l[4].parse().unwrap()).collect();
        assert!(times.is_sorted(), "{name}");
        let msr = text(name, "msr", &[]);
        let lines = csv(&msr);
        assert_eq!(sum(&lines, 5, |l| l[3] == "Write"), written, "{name}");
        assert_eq!(sum(&lines, 5, |l| l[3] == "Read"), read, "{name}");
        assert!(
            lines.iter().all(|l| l[6].parse::<u64>().unwrap() > 0),
            "{name}"
        );
    }
}

#[test]
fn an_iolog_has_the_writes_and_the_flushes() {
    let text = text("delete", "iolog", &["--target", "/mnt/x"]);
    let mut lines = text.lines();
    let head: Vec<&str> = lines.by_ref().take(3).collect();
    assert_eq!(
        head,
        ["fio version 3 iolog", "0 /mnt/x add", "0 /mnt/x open"]
    );
    let actions: Vec<Vec<&str>> = lines.map(|line| line.split(' ').collect()).collect();
    let of = |word: &str| actions.iter().filter(|a| a[2] == word).count() as u64;
    assert_eq!(of("write"), total("delete", "writes"));
    assert_eq!(of("sync"), total("delete", "flushes"));
    assert_eq!(of("close"), 1);
    let bytes: u64 = actions
        .iter()
        .filter(|a| a[2] == "write")
        .map(|a| a[4].parse::<u64>().unwrap())
        .sum();
    assert_eq!(bytes, total("delete", "write_bytes"));
    let times: Vec<u64> = actions.iter().map(|a| a[0].parse().unwrap()).collect();
    assert!(times.is_sorted());
}

#[test]
fn an_oracle_knows_the_next_access() {
    let bytes = export("wal", "oracle-general", &[]);
    let records: Vec<(u64, u32, i64)> = bytes
        .chunks_exact(24)
        .map(|r| {
            let block = u64::from_le_bytes(r[4..12].try_into().unwrap());
            let size = u32::from_le_bytes(r[12..16].try_into().unwrap());
            (
                block,
                size,
                i64::from_le_bytes(r[16..24].try_into().unwrap()),
            )
        })
        .collect();
    assert_eq!(records.len() * 24, bytes.len());
    // Every request of this trace is of whole blocks.
    let moved: u64 = records.iter().map(|(_, size, _)| u64::from(*size)).sum();
    assert_eq!(
        moved,
        total("wal", "write_bytes") + total("wal", "read_bytes")
    );
    let mut last: HashMap<u64, usize> = HashMap::new();
    for (at, (block, ..)) in records.iter().enumerate() {
        if let Some(before) = last.insert(*block, at) {
            assert_eq!(records[before].2, at as i64);
        }
    }
    assert!(last.values().all(|&at| records[at].2 == -1));
}

/// The fields of a message of Protocol Buffers: number, and value if it is one, and bytes if it has some.
fn fields(mut message: &[u8]) -> Vec<(u32, u64, Vec<u8>)> {
    use prost::encoding::{WireType, decode_key, decode_varint};
    let mut fields = Vec::new();
    while !message.is_empty() {
        let (number, kind) = decode_key(&mut message).unwrap();
        let (mut value, mut bytes) = (0, Vec::new());
        match kind {
            WireType::Varint => value = decode_varint(&mut message).unwrap(),
            WireType::LengthDelimited => {
                let len = decode_varint(&mut message).unwrap() as usize;
                bytes = message[..len].into();
                message = &message[len..];
            }
            WireType::SixtyFourBit => {
                value = u64::from_le_bytes(message[..8].try_into().unwrap());
                message = &message[8..];
            }
            other => panic!("{other:?}"),
        }
        fields.push((number, value, bytes));
    }
    fields
}

#[test]
fn perfettos_slices_have_every_byte_and_end() {
    let trace = export("wal", "perfetto", &[]);
    let (mut begun, mut ended, mut bytes) = (0, 0, HashMap::new());
    let mut last_ns = 0;
    for (_, _, packet) in fields(&trace) {
        let packet = fields(&packet);
        let Some((.., event)) = packet.iter().find(|field| field.0 == 11) else {
            continue;
        };
        let time_ns = packet.iter().find(|field| field.0 == 8).unwrap().1;
        assert!(time_ns >= last_ns);
        last_ns = time_ns;
        let event = fields(event);
        let kind = event.iter().find(|field| field.0 == 9).unwrap().1;
        begun += u64::from(kind == 1);
        ended += u64::from(kind == 2);
        let category = event.iter().find(|field| field.0 == 22);
        for (.., argument) in event.iter().filter(|field| field.0 == 4) {
            let argument = fields(argument);
            if argument
                .iter()
                .any(|field| field.0 == 10 && field.2 == b"bytes")
            {
                let value = argument.iter().find(|field| field.0 == 4).unwrap().1;
                *bytes.entry(category.unwrap().2.clone()).or_insert(0) += value;
            }
        }
    }
    let moved = total("wal", "write_bytes") + total("wal", "read_bytes");
    assert_eq!(bytes.get(&b"row"[..]), Some(&moved));
    assert_eq!(bytes.get(&b"request"[..]), Some(&moved));
    assert!(begun > 0 && begun == ended, "{begun} {ended}");
}

fn parquet(folder: &Path, table: &str) -> DataFrame {
    parquet_of("wal", folder, table)
}

fn parquet_of(bundle: &str, folder: &Path, table: &str) -> DataFrame {
    let path = folder.join(table);
    let path = path.join(format!("bundle={bundle}/0.parquet"));
    ParquetReader::new(File::open(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
        .finish()
        .unwrap()
}

fn sum_of(frame: &DataFrame, column: &str) -> i64 {
    frame
        .column(column)
        .unwrap()
        .i64()
        .unwrap()
        .iter()
        .flatten()
        .sum()
}

#[test]
fn a_data_sets_tables_have_the_same_bytes() {
    let tmp = tempfile::tempdir().unwrap();
    let folder = tmp.path().join("traces");
    let folder_name = folder.to_str().unwrap();
    export("wal", "dataset", &["-o", folder_name]);
    let [events, requests, causes] = ["events", "requests", "causes"].map(|t| parquet(&folder, t));
    let bytes = (total("wal", "write_bytes") + total("wal", "read_bytes")) as i64;
    for frame in [&events, &requests, &causes] {
        assert_eq!(sum_of(frame, "bytes"), bytes);
    }
    assert_eq!(requests.height() as u64, total("wal", "requests"));
    assert_eq!(sum_of(&requests, "events"), events.height() as i64);
    assert_eq!(sum_of(&requests, "size_bytes"), bytes);
    let paths = parquet(&folder, "files");
    let paths = paths.column("path").unwrap().str().unwrap();
    assert!(
        paths
            .iter()
            .flatten()
            .any(|path| path.ends_with("test.db-wal"))
    );
    assert!(parquet(&folder, "processes").height() > 1);
    // What is there is not written over.
    let again = Command::new(env!("CARGO_BIN_EXE_mostrace"))
        .args([
            "export",
            sample("wal").to_str().unwrap(),
            "--format",
            "dataset",
            "-o",
            folder_name,
        ])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&again.stderr);
    assert!(
        !again.status.success() && stderr.contains("bundle=wal"),
        "{stderr}"
    );
}

#[test]
fn names_can_be_hidden_and_are_equal_under_one_key() {
    let tmp = tempfile::tempdir().unwrap();
    let key = tmp.path().join("key");
    std::fs::write(&key, [7; 32]).unwrap();
    let with_key = ["--anonymize", "--key", key.to_str().unwrap()];
    let [one, two] = [0, 1].map(|_| text("wal", "folded", &with_key));
    assert_eq!(one, two);
    assert!(
        !one.contains("test.db") && !one.contains("mostrace"),
        "{one}"
    );
    let folder = tmp.path().join("traces");
    export(
        "wal",
        "dataset",
        &[&with_key[..], &["-o", folder.to_str().unwrap()]].concat(),
    );
    let files = parquet(&folder, "files");
    let paths: Vec<String> = files
        .column("path")
        .unwrap()
        .str()
        .unwrap()
        .iter()
        .flatten()
        .map(str::to_owned)
        .collect();
    assert!(
        paths.iter().any(|path| path.ends_with(".db-wal")),
        "{paths:?}"
    );
    assert!(paths.iter().all(|path| !path.contains("test")), "{paths:?}");
}

#[test]
fn apps_can_be_hidden_too() {
    let mut scene = scene::transaction();
    scene.packages = Some("com.example.secret 1000\n");
    let tmp = tempfile::tempdir().unwrap();
    let bundle = scene.save(tmp.path());
    let packages = |options: &[&str]| {
        let folder = tmp.path().join(format!("traces{}", options.len()));
        let common = [
            "export",
            bundle.to_str().unwrap(),
            "--format",
            "dataset",
            "-o",
        ];
        mostrace(&[&common[..], &[folder.to_str().unwrap()], options].concat());
        let events = parquet_of("scene", &folder, "events");
        let packages = events.column("package").unwrap().str().unwrap();
        let known: BTreeSet<String> = packages.iter().flatten().map(str::to_owned).collect();
        known
    };
    assert!(packages(&[]).contains("com.example.secret"));
    let hidden = packages(&["--anonymize"]);
    assert_eq!(hidden.len(), 2);
    assert!(!format!("{hidden:?}").contains("secret"), "{hidden:?}");
}

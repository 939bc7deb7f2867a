// SPDX-License-Identifier: MIT OR Apache-2.0
//! `export`: the sums of every format equal those of `analyze`.

use crate::run;
use crate::scene;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use mostrace_bundle::entry::{CallKind, NONE};
use mostrace_bundle::manifest::{Command as Traced, Filesystem, Kernel, Payload, Sources};
use mostrace_bundle::table::TableWriter;
use mostrace_bundle::{Counters, layout};
use polars::prelude::DataFrame;
use polars_io::SerReader;
use polars_io::parquet::read::ParquetReader;
use run::{bytes as mostrace, json, program, sample, say, succeeds};
use scene::{CallOf, HandleOf, SQLITE, Scene, Thread};

fn export(name: &str, format: &str, more: &[&str]) -> Vec<u8> {
    mostrace(&[&["export", &sample(name), "--format", format], more].concat())
}

fn text(name: &str, format: &str, more: &[&str]) -> String {
    String::from_utf8(export(name, format, more)).unwrap()
}

/// Returns a total over all rows, from `analyze`.
fn total(name: &str, column: &str) -> u64 {
    let summary = json(&["analyze", &sample(name), "--json"]);
    summary["total"][column].as_u64().unwrap()
}

/// Returns the fields of each line.
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

/// A request according to the rows of `events`.
#[derive(Default)]
struct Request {
    arrived_ns: u64,
    op: String,
    device_flush: Option<u64>,
}

/// Returns the requests by the number of the completion.
fn requests(name: &str) -> BTreeMap<u64, Request> {
    let columns = "completion,op,time_ns,q2c_ns,d2c_ns,device_flush";
    let rows = json(&["events", &sample(name), "--columns", columns, "--json"]);
    let mut requests: BTreeMap<u64, Request> = BTreeMap::new();
    for row in rows.as_array().unwrap() {
        let number = |name: &str| row[name].as_u64();
        let waited = number("q2c_ns").or(number("d2c_ns")).unwrap_or(0);
        let arrived_ns = number("time_ns").unwrap() - waited;
        let request = requests
            .entry(number("completion").unwrap())
            .or_insert(Request {
                arrived_ns,
                ..Request::default()
            });
        request.arrived_ns = request.arrived_ns.min(arrived_ns);
        request.op = row["op"].as_str().unwrap().to_owned();
        request.device_flush = number("device_flush");
    }
    requests
}

#[test]
fn an_iolog_has_the_writes_and_the_flushes() {
    for name in ["delete", "wal", "f2fs-delete", "fat32-delete"] {
        let text = text(name, "iolog", &["--target", "/mnt/x"]);
        let mut lines = text.lines();
        let head: Vec<&str> = lines.by_ref().take(3).collect();
        assert_eq!(
            head,
            ["fio version 3 iolog", "0 /mnt/x add", "0 /mnt/x open"]
        );
        let actions: Vec<Vec<&str>> = lines.map(|line| line.split(' ').collect()).collect();
        let of = |word: &str| actions.iter().filter(|a| a[2] == word).count() as u64;
        assert_eq!(of("write"), total(name, "writes"), "{name}");
        assert_eq!(of("sync"), total(name, "device_flushes"), "{name}");
        assert_eq!(of("close"), 1);
        let bytes: u64 = actions
            .iter()
            .filter(|a| a[2] == "write")
            .map(|a| a[4].parse::<u64>().unwrap())
            .sum();
        assert_eq!(bytes, total(name, "write_bytes"), "{name}");
        let times: Vec<u64> = actions.iter().map(|a| a[0].parse().unwrap()).collect();
        assert!(times.is_sorted(), "{name}");
    }
}

/// Times are µs since the first request, plus one; a flush stands where it was asked for.
#[test]
fn an_iologs_times_are_those_of_the_requests() {
    for name in ["delete", "wal", "f2fs-delete", "fat32-delete"] {
        let text = text(name, "iolog", &[]);
        let actions: Vec<Vec<&str>> = text
            .lines()
            .skip(3)
            .map(|l| l.split(' ').collect())
            .collect();
        let requests = requests(name);
        let arrivals = || requests.values().map(|request| request.arrived_ns);
        let first_ns = arrivals().min().unwrap();
        let time = |request: &Request| (request.arrived_ns - first_ns) / 1000 + 1;
        let times = |is: &dyn Fn(&str) -> bool| {
            let some = actions.iter().filter(|action| is(action[2]));
            let times = some.map(|action| action[0].parse::<u64>().unwrap());
            times.collect::<Vec<_>>()
        };
        let last_us = (arrivals().max().unwrap() - first_ns) / 1000 + 1;
        assert_eq!(times(&|word| word == "close"), [last_us], "{name}");
        let of = |op: &str| {
            let some = requests.values().filter(|request| request.op == op);
            let mut times: Vec<u64> = some.map(time).collect();
            times.sort_unstable();
            times
        };
        assert_eq!(times(&|word| word == "write"), of("write"), "{name}");
        // For each of the device's flushes, the time when the first request that waited for it arrived.
        let mut flushed: BTreeMap<u64, u64> = BTreeMap::new();
        for (number, request) in &requests {
            let own = (request.op == "device_flush").then_some(*number);
            if let Some(flush) = request.device_flush.or(own) {
                let first = flushed.entry(flush).or_insert(u64::MAX);
                *first = time(request).min(*first);
            }
        }
        let mut expected: Vec<u64> = flushed.into_values().collect();
        expected.sort_unstable();
        assert_eq!(times(&|word| word == "sync"), expected, "{name}");
    }
    // jbd2's commit block has a flush before it and, on a device without FUA, one after it.
    let text = text("delete", "iolog", &[]);
    let words: Vec<[&str; 2]> = text
        .lines()
        .skip(3)
        .map(|line| {
            let fields: Vec<&str> = line.split(' ').collect();
            [fields[0], fields[2]]
        })
        .collect();
    let is_commit = |words: &&[[&str; 2]]| {
        let same_time = words[0][0] == words[1][0] && words[1][0] == words[2][0];
        same_time && [words[0][1], words[1][1], words[2][1]] == ["sync", "write", "sync"]
    };
    let commits = words.windows(3).filter(is_commit).count();
    assert!(commits > 100, "{commits}");
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
    // Every request of this trace consists of whole blocks.
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

/// Decodes a Protocol Buffers message: each field's number, its value if it is a number, and its bytes if it has some.
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

/// Returns name and file of each call, in their order.
fn calls_in(trace: &[u8]) -> Vec<(String, String)> {
    let mut calls = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    for (_, _, packet) in fields(trace) {
        let packet = fields(&packet);
        let Some((.., event)) = packet.iter().find(|field| field.0 == 11) else {
            continue;
        };
        let event = fields(event);
        let of = |number: u32| event.iter().find(|field| field.0 == number);
        if of(22).is_none_or(|category| category.2 != b"call") {
            continue;
        }
        let arguments = event.iter().filter(|field| field.0 == 4);
        let arguments: Vec<_> = arguments.map(|argument| fields(&argument.2)).collect();
        let file = arguments.iter().find(|argument| {
            let name = argument.iter().find(|field| field.0 == 10);
            name.is_some_and(|name| name.2 == b"file")
        });
        let file = file.and_then(|file| file.iter().find(|field| field.0 == 6));
        let file = file.map_or(String::new(), |file| text(&file.2));
        calls.push((text(&of(23).unwrap().2), file));
    }
    calls
}

/// In DELETE mode, an inode number passes from one database's journal to the other's.
#[test]
fn perfettos_calls_are_on_the_file_that_had_the_inode_then() {
    let mut scene = Scene::new();
    let mut expected = Vec::new();
    for round in 0..6 {
        let name = ["a.db-journal", "b.db-journal"][round % 2];
        scene.generation = 10 + round as u32;
        let call = |kind, offset, bytes| CallOf {
            thread: SQLITE,
            kind,
            inode: 20,
            offset,
            bytes,
            first_bytes: None,
            lasted_us: 10,
        };
        scene.call(call(CallKind::Write, 0, 512));
        scene.write_file(800, 4096, 20, name.as_bytes());
        scene.call(call(CallKind::Unlink, NONE, 0));
        expected.extend(["write", "unlink"].map(|call| (call.to_owned(), name.to_owned())));
    }
    let tmp = tempfile::tempdir().unwrap();
    let bundle = scene.save(tmp.path());
    let trace = mostrace(&["export", bundle.to_str().unwrap(), "--format", "perfetto"]);
    assert_eq!(calls_in(&trace), expected);
}

/// Returns what is below a folder of a data set's table, days and files alike.
fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    let inner: Vec<PathBuf> = all.iter().filter(|path| path.is_dir()).cloned().collect();
    all.extend(inner.iter().flat_map(|folder| below(folder)));
    all.sort();
    all
}

/// Reads a table of the only recording of a data set.
fn parquet(folder: &Path, table: &str) -> DataFrame {
    let all = below(&folder.join(table));
    let [_, path] = &all[..] else {
        panic!("{all:?}");
    };
    ParquetReader::new(File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
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
    // 1,000 insertions, and what made the table.
    let transactions = parquet(&folder, "transactions").height();
    assert!((1000..1004).contains(&transactions), "{transactions}");
    let recordings = parquet(&folder, "recordings");
    assert_eq!(recordings.height(), 1);
    let written = total("wal", "write_bytes") as i64;
    assert_eq!(sum_of(&recordings, "write_bytes"), written);
    assert_eq!(
        texts_in(&recordings, "filesystem"),
        BTreeSet::from(["ext4".to_owned()])
    );
    // The calls are those that the summary counts.
    let summary = json(&["analyze", &sample("wal"), "--json"]);
    let levels = summary["amplification"].as_array().unwrap();
    let asked = levels
        .iter()
        .find(|level| level["level"] == "file")
        .unwrap();
    let asked = asked["bytes"].as_i64().unwrap();
    let calls = parquet(&folder, "calls");
    assert!(asked > 0);
    assert_eq!(sum_of(&calls, "bytes"), asked);
    assert!(sum_of(&calls, "duration_ns") > 0);
}

fn texts_in(frame: &DataFrame, column: &str) -> BTreeSet<String> {
    let column = frame.column(column).unwrap().str().unwrap();
    column.iter().flatten().map(str::to_owned).collect()
}

/// Returns the files of a data set with their contents.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = below(folder).into_iter().filter(|path| path.is_file());
    files
        .map(|path| {
            let bytes = std::fs::read(&path).unwrap();
            (path, bytes)
        })
        .collect()
}

#[test]
fn a_recording_is_in_a_data_set_once() {
    let tmp = tempfile::tempdir().unwrap();
    let folder = tmp.path().join("traces");
    let folder_name = folder.to_str().unwrap();
    let export = |bundle: &str| {
        let args = ["export", bundle, "--format", "dataset", "-o", folder_name];
        say(program().args(args))
    };
    let add = |bundle: &str| {
        let said = export(bundle).ended(0);
        said.err
    };
    // A copy of another name, as a folder instead of an archive.
    let copy = tmp.path().join("copy.most");
    std::fs::create_dir(&copy).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(&copy).args(["--zstd", "-xf"]);
    succeeds(tar.arg(sample("f2fs-wal")));
    let manifest = copy.join("manifest.json");
    let copy = copy.to_str().unwrap();
    // Both at once: each writes the whole, and one is there.
    std::thread::scope(|scope| {
        scope.spawn(|| add(&sample("f2fs-wal")));
        scope.spawn(|| add(copy));
    });
    let once = contents(&folder);
    assert_eq!(once.len(), 8, "{:?}", once.keys());
    assert!(add(copy).contains("the data set has it already"));
    assert_eq!(contents(&folder), once);
    // Another recording lies beside it.
    add(&sample("wal"));
    assert_eq!(contents(&folder).len(), 16);
    let identity = |bundle: &str| {
        let args = ["export", bundle, "--format", "identity"];
        let line = String::from_utf8(mostrace(&args)).unwrap();
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let [id, day, _] = <[String; 3]>::try_from(words).unwrap();
        (id, day)
    };
    assert_eq!(identity(copy), identity(&sample("f2fs-wal")));
    let (id, day) = identity(&sample("wal"));
    let path = folder.join(format!("events/day={day}/{id}.parquet"));
    assert!(path.is_file(), "{}", path.display());
    // Of a broken upload, the rest would be taken for another recording.
    let whole = std::fs::read(sample("f2fs-wal")).unwrap();
    let cut = tmp.path().join("cut.most.tar.zst");
    std::fs::write(&cut, &whole[..whole.len() - 1000]).unwrap();
    let said = export(cut.to_str().unwrap()).err;
    assert!(
        said.contains("a part of a recording has no identity"),
        "{said}"
    );
    assert_eq!(contents(&folder).len(), 16);
    // The contents count: one byte makes another recording.
    let text = std::fs::read_to_string(&manifest).unwrap();
    std::fs::write(&manifest, text + "\n").unwrap();
    assert_ne!(identity(copy).0, identity(&sample("f2fs-wal")).0);
}

#[test]
fn what_a_killed_writer_leaves_is_no_part_of_a_data_set() {
    let tmp = tempfile::tempdir().unwrap();
    let folder = tmp.path().join("traces");
    let folder_name = folder.to_str().unwrap();
    export("f2fs-wal", "dataset", &["-o", folder_name]);
    let whole = contents(&folder);
    // It was killed before it named its last files.
    for path in whole.keys() {
        if ["recordings", "files"]
            .iter()
            .any(|table| path.starts_with(folder.join(table)))
        {
            let name = path.file_name().unwrap().to_str().unwrap();
            let aside = path.with_file_name(format!(".{name}.1.1.tmp"));
            std::fs::rename(path, &aside).unwrap();
            std::fs::write(&aside, "half").unwrap();
        }
    }
    export("f2fs-wal", "dataset", &["-o", folder_name]);
    let mut again = contents(&folder);
    again.retain(|path, _| path.extension().is_some_and(|e| e == "parquet"));
    assert_eq!(again, whole);
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
    // The databases are found by their names, before these are hidden.
    let transactions = parquet(&folder, "transactions");
    assert!(transactions.height() >= 1000);
    for column in ["database", "path", "process"] {
        let names = transactions.column(column).unwrap().str().unwrap();
        let hidden = |name: &str| !name.contains("test") && !name.contains("mostrace");
        assert!(names.iter().flatten().all(hidden), "{column}: {names:?}");
    }
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
        let events = parquet(&folder, "events");
        let packages = events.column("package").unwrap().str().unwrap();
        let known: BTreeSet<String> = packages.iter().flatten().map(str::to_owned).collect();
        known
    };
    assert!(packages(&[]).contains("com.example.secret"));
    let hidden = packages(&["--anonymize"]);
    assert_eq!(hidden.len(), 2);
    assert!(!format!("{hidden:?}").contains("secret"), "{hidden:?}");
}

/// The prefix of every text of the made-up bundle; no word of an export begins with it.
const MADE_UP: &str = "zyq";

/// Makes a recording in which every text is made up.
fn made_up(dir: &Path) -> PathBuf {
    let word = |what: &str| format!("{MADE_UP}{what}");
    let thread = |comm| Thread { comm, ..SQLITE };
    let app = thread("zyqcomm");
    let mut scene = Scene::new();
    scene.note(thread("zyqnote"));
    scene.message("zyqmessage");
    for (sector, inode, name) in [
        (800, 20, "zyqa.db-journal"),
        (900, 21, "zyqa.db"),
        (1000, 22, "com.zyqapp"),
        (1100, 23, "zyq@zyqmail.zyq"),
        (1200, 24, "zyqtext.zyqext"),
        (1300, 25, "zyqa.db-mj0123ABCDE"),
    ] {
        scene.owned(
            scene::WRITE | scene::SYNC,
            sector,
            4096,
            app,
            mostrace_bundle::entry::Origin::FILE,
        );
        scene.file(sector, 4096, inode, 0, name.as_bytes());
        scene.dirtier(sector, 4096, thread("zyqdirtier"));
        let call = |kind, offset, bytes| CallOf {
            thread: thread("zyqcaller"),
            kind,
            inode,
            offset,
            bytes,
            first_bytes: None,
            lasted_us: 10,
        };
        scene.call(call(CallKind::Write, 0, 512));
        scene.call(call(CallKind::Fsync, NONE, 0));
        scene.call(call(CallKind::Unlink, NONE, 0));
    }
    for function in ["zyqfunction", "__ext4_unlink"] {
        let handle = HandleOf {
            thread: thread("zyqhandle"),
            function,
            inode: 24,
            call: CallKind::Unlink,
            lasted_us: 50,
            overlaps: false,
            s_dev: scene::DEVICE,
        };
        scene.handle(handle, &[8]);
        scene.commit(2000, &[8]);
    }
    scene.packages = Some("com.zyqpackage 1000\n");
    let manifest = &mut scene.manifest;
    manifest.tool = word("tool");
    manifest.label = Some(word("label"));
    manifest.kernel = Kernel {
        release: format!("6.1.2-{}", word("release")),
        version: word("version"),
        machine: word("machine"),
        ..Kernel::default()
    };
    let device = &mut manifest.device;
    device.path = word("path");
    device.name = word("name");
    device.disk = word("disk");
    device.scheduler = word("scheduler");
    device.write_cache = word("cache");
    device.backing_file = Some(word("backing"));
    manifest.filesystem = Some(Filesystem {
        kind: word("kind"),
        mount_point: Some(word("mount")),
        mount_options: Some(word("options")),
        features: Some(vec![word("feature")]),
        device: Some(word("mapped")),
        dev: None,
    });
    manifest.clock.start_mono_ns = 1;
    manifest.clock.start_unix_ns = 1_700_000_000_000_000_000;
    manifest.sources = Sources {
        events: word("events"),
        entries: word("entries"),
        files: word("glob"),
        causes: word("causes"),
    };
    manifest.losses = [(word("loss"), 3)].into();
    manifest.counts = [(word("count"), 3)].into();
    manifest.interference = vec![word("interference")];
    manifest.counters = Some(Counters::NotCompared(word("counters")));
    manifest.files = [(word("file"), 3)].into();
    manifest.command = Some(Traced {
        argv: vec![word("program"), word("argument")],
        exit_status: Some(1),
        ..Traced::default()
    });
    manifest.payload = Some(Payload {
        workload: word("workload"),
        payload_bytes: 300,
        file_bytes: 3000,
        transactions: 3,
        elapsed_ns: 1000,
        settings: [(word("setting"), word("value"))].into(),
    });
    manifest.notes = vec![word("remark")];
    manifest.passed_over = vec![word("passed")];
    let bundle = scene.save(dir);
    let mut tree = Scene::new();
    tree.file(0, 0, 26, 0, b"/zyqfolder/com.zyqother/zyqleaf.zyqtail");
    let mut table = TableWriter::create(&bundle.join(layout::NAMES)).unwrap();
    table.push(&tree.files[0]).unwrap();
    table.flush().unwrap();
    let named = dir.join(format!("{}.most", word("bundle")));
    std::fs::rename(bundle, &named).unwrap();
    named
}

/// Returns all texts in the files of a folder: their names, and the texts of a data set's tables.
fn texts_of(folder: &Path) -> String {
    let mut texts = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        texts += &format!("{}\n", path.file_name().unwrap().to_string_lossy());
        if path.is_dir() {
            texts += &texts_of(&path);
            continue;
        }
        let frame = ParquetReader::new(File::open(&path).unwrap())
            .finish()
            .unwrap();
        for column in frame
            .columns()
            .iter()
            .filter_map(|column| column.str().ok())
        {
            column.iter().flatten().for_each(|text| texts += text);
        }
    }
    texts
}

#[test]
fn no_word_of_a_recording_is_told_where_names_are_hidden() {
    let tmp = tempfile::tempdir().unwrap();
    let bundle = made_up(tmp.path());
    let bundle = bundle.to_str().unwrap();
    let said = |format: &str, hide: &[&str]| {
        if format == "report" {
            return mostrace(&[&["report", bundle][..], hide].concat());
        }
        let common = ["export", bundle, "--format", format];
        if format != "dataset" {
            return mostrace(&[&common[..], hide].concat());
        }
        let folder = tmp.path().join(format!("traces{}", hide.len()));
        let to = ["-o", folder.to_str().unwrap()];
        mostrace(&[&common[..], &to, hide].concat());
        texts_of(&folder).into_bytes()
    };
    let tells = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let at = text.find(MADE_UP);
        at.map(|at| text[at..].chars().take(40).collect::<String>())
    };
    for format in [
        "folded",
        "iolog",
        "alibaba",
        "msr",
        "oracle-general",
        "perfetto",
        "blkparse",
        "dataset",
        "report",
    ] {
        let hidden = said(format, &["--anonymize"]);
        assert!(!hidden.is_empty(), "{format}");
        assert_eq!(tells(&hidden), None, "{format}");
        // Otherwise the test would prove nothing.
        let has_names = !["iolog", "alibaba", "msr", "oracle-general"].contains(&format);
        assert_eq!(tells(&said(format, &[])).is_some(), has_names, "{format}");
    }
}

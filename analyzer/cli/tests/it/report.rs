// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page: its figures add up, and every text of a trace is text in it.

use crate::run;
use crate::scene;

use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::process::Command;

use base64::prelude::{BASE64_STANDARD, Engine};
use mostrace_bundle::entry::{CallKind, NONE, Origin};
use mostrace_bundle::{Counter, Counters};
use mostrace_tables::analysis::{Analysis, Options};
use mostrace_tables::facts::Column;
use mostrace_tables::tables::{Grouping, summed};
use mostrace_trace::causes::Sharing;
use run::{mostrace, sample};
use scene::{CallOf, JBD2, SQLITE, SYNC, Scene, Thread, WRITE, saved};
use serde_json::Value;
use sha2::{Digest, Sha256};

fn page(bundles: &[&str]) -> String {
    mostrace(&[&["report"], bundles].concat())
}

fn page_of(scene: &Scene) -> String {
    let (_tmp, path) = saved(scene);
    page(&[&path])
}

/// Returns the text between the first occurrences of two texts.
fn between<'p>(page: &'p str, from: &str, to: &str) -> &'p str {
    let start = page.find(from).unwrap_or_else(|| panic!("no {from}")) + from.len();
    &page[start..start + page[start..].find(to).unwrap()]
}

fn data(page: &str) -> Value {
    let json = between(
        page,
        r#"<script type="application/json" id="data">"#,
        "</script>",
    );
    serde_json::from_str(json).unwrap()
}

/// The words and the tables of a trace, read by the format's description.
struct Packed {
    words: Value,
    tables: HashMap<String, HashMap<String, Vec<i64>>>,
}

impl Packed {
    /// Reads those of the trace at index `nth`.
    fn of(page: &str, nth: usize) -> Packed {
        let from = format!(r#"<script type="text/plain" id="pack-{nth}">"#);
        let packed = BASE64_STANDARD
            .decode(between(page, &from, "</script>"))
            .unwrap();
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&packed[..])
            .read_to_end(&mut bytes)
            .unwrap();
        let (length, rest) = bytes.split_at(4);
        let length = u32::from_le_bytes(length.try_into().unwrap()) as usize;
        let (head, rest) = rest.split_at(length);
        let head: Value = serde_json::from_slice(head).unwrap();
        let mut numbers = numbers(rest);
        let mut tables = HashMap::new();
        for table in head["tables"].as_array().unwrap() {
            let rows = table["rows"].as_u64().unwrap() as usize;
            let columns = table["columns"].as_array().unwrap().iter().map(|column| {
                let scale = column["scale"].as_i64().unwrap();
                let is_delta = column["coding"] == "delta";
                let mut before = 0;
                let values = numbers.by_ref().take(rows).map(|number| {
                    before = number + if is_delta { before } else { 0 };
                    before * scale
                });
                (text(&column["name"]), values.collect())
            });
            tables.insert(text(&table["name"]), columns.collect());
        }
        assert!(numbers.next().is_none());
        Packed {
            words: head["words"].clone(),
            tables,
        }
    }

    fn column(&self, table: &str, name: &str) -> &[i64] {
        &self.tables[table][name]
    }

    /// Returns the word that a row's cell has in a column.
    fn word(&self, row: usize, column: &str, words: &str) -> Value {
        let cell = self.column("rows", "cell")[row] as usize;
        self.words[words][self.column("cells", column)[cell] as usize].clone()
    }

    /// Adds up the bytes of the rows with this operation, by a word of each.
    fn bytes(
        &self,
        op: &str,
        word: impl Fn(usize) -> Option<String>,
    ) -> HashMap<Option<String>, u64> {
        let mut sums = HashMap::new();
        for (row, bytes) in self.column("rows", "bytes").iter().enumerate() {
            if self.word(row, "op", "ops") == op {
                *sums.entry(word(row)).or_default() += *bytes as u64;
            }
        }
        sums
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Reads LEB128 numbers whose lowest bit is the sign.
fn numbers(mut bytes: &[u8]) -> impl Iterator<Item = i64> {
    std::iter::from_fn(move || {
        let mut code = 0_u64;
        for at in 0.. {
            let (byte, rest) = bytes.split_first()?;
            bytes = rest;
            code |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                break;
            }
        }
        Some((code >> 1) as i64 ^ -((code & 1) as i64))
    })
}

fn open(path: &str) -> Analysis {
    let options = Options {
        causes: Some(Sharing::Equal),
        ..Options::default()
    };
    Analysis::open(Path::new(path), &options).unwrap()
}

/// Checks that the page has each byte once, and as much for each process and file as the tables by shares say.
fn has_every_byte_once(path: &str) {
    let page = page(&[path]);
    let packed = Packed::of(&page, 0);
    let facts = open(path).facts;
    let all = packed
        .column("rows", "flags")
        .iter()
        .filter(|flags| *flags & 1 != 0);
    assert_eq!(all.count() as u64, facts.requests());
    for (column, of, words) in [
        ("cause_or_submitter", "who", "whos"),
        ("cause_or_file", "file", "files"),
        ("cause_op", "why", "whys"),
    ] {
        let by = vec![Column::find(column).unwrap()];
        let grouping = Grouping {
            by,
            top: None,
            every: None,
        };
        let groups = summed(&facts, grouping, None).unwrap();
        let word = |row| {
            let word = packed.word(row, of, words);
            let word = if of == "who" {
                word["name"].clone()
            } else {
                word
            };
            word.as_str().map(str::to_owned)
        };
        for (op, wanted) in [("write", true), ("read", false)] {
            let mut sums = packed.bytes(op, word);
            for (labels, totals) in &groups.groups {
                let bytes = match wanted {
                    true => totals.write_bytes,
                    false => totals.read_bytes,
                };
                let sum = sums.remove(&labels[0].text()).unwrap_or_default();
                assert_eq!(sum, bytes, "{path:?} {op} {labels:?}");
            }
            assert!(sums.is_empty(), "{path:?} {op} {sums:?}");
        }
        assert!(groups.total.write_bytes > 0);
    }
}

#[test]
fn the_page_has_every_byte_once() {
    for name in ["delete", "wal", "f2fs-wal", "fat32-delete"] {
        has_every_byte_once(&sample(name));
    }
    // Without the tables of causes, the causes of jbd2's writes are unknown.
    let mut untold = Scene::new();
    untold.owned(WRITE | SYNC, 800, 8192, JBD2, Origin::JOURNAL);
    let (_tmp, path) = saved(&untold);
    has_every_byte_once(&path);
    let who = Packed::of(&page(&[&path]), 0).word(0, "who", "whos");
    assert!(text(&who["name"]).ends_with(" (submitter)"), "{who}");
    let (_tmp, path) = saved(&shared_blocks());
    has_every_byte_once(&path);
}

/// The page's scripts have their own tests, which node's runner runs.
#[test]
fn the_scripts_pass_their_tests() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/report/page/test");
    let run = Command::new("node")
        .arg("--test")
        .current_dir(folder)
        .output();
    match run {
        Ok(run) => assert!(
            run.status.success(),
            "{}",
            String::from_utf8_lossy(&run.stdout)
        ),
        Err(error) => eprintln!("skipped: node cannot be started: {error}"),
    }
}

/// A block that three tasks have changed, so that each gets a third of 4096 bytes; and many files, some of which are summed
/// up.
fn shared_blocks() -> Scene {
    let mut s = Scene::new();
    let thread = |pid| Thread {
        pid,
        tgid: pid,
        comm: "one",
    };
    for pid in 200..260 {
        s.request(WRITE | SYNC, u64::from(pid) * 8, 4096, thread(pid));
        s.process(u64::from(pid) * 8, 4096, thread(pid), Origin::FILE);
        s.file(
            u64::from(pid) * 8,
            4096,
            100 + u64::from(pid),
            0,
            format!("{pid}.db").as_bytes(),
        );
        s.dirtier(u64::from(pid) * 8, 4096, thread(pid));
    }
    for inode in 1000..1100_u64 {
        s.write_file(inode * 8, 4096, inode, format!("many-{inode}").as_bytes());
        s.dirtier(inode * 8, 4096, SQLITE);
    }
    s.request(WRITE, 100_000, 12_288, JBD2);
    s
}

#[test]
fn a_hostile_name_is_text() {
    const NAME: &str = "<img src=x onerror=alert(1)>.db-journal";
    let mut s = Scene::new();
    s.manifest.label = Some("</title></script><script>alert(2)</script>".into());
    s.manifest.notes.push("<!--<script>alert(3)".into());
    s.manifest.device.name = "\"><b onclick=x>".into();
    s.manifest.filesystem.as_mut().unwrap().kind = "<i>ext4</i>".into();
    let comm = Thread {
        comm: "<svg/onload=x>",
        ..SQLITE
    };
    s.owned(WRITE | SYNC, 800, 4096, comm, Origin::FILE);
    s.file(800, 4096, 12, 0, NAME.as_bytes());
    s.dirtier(800, 4096, comm);
    let page = page_of(&s);
    let words = Packed::of(&page, 0).words.to_string();
    assert!(
        words.contains(NAME) && words.contains("<svg/onload=x>"),
        "{words}"
    );
    // Our own scripts are removed, because they name some of these elements.
    let script = between(&page, "<script>", "</script>");
    let rest = page.replace(script, "").to_lowercase();
    for tag in [
        "<img",
        "<svg",
        "<b ",
        "<i>",
        "<!--",
        "alert(2)</script>",
        "</title></script>",
    ] {
        assert!(!rest.contains(tag), "{tag}");
    }
    assert_eq!(rest.matches("<script").count(), 3);
    assert_eq!(rest.matches("</title>").count(), 1);
}

#[test]
fn the_policy_allows_the_pages_own_script_and_style_alone() {
    let page = page(&[&sample("wal")]);
    let hash = |text: &str| format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text)));
    let script = hash(between(&page, "<script>", "</script>"));
    let style = hash(between(&page, "<style>", "</style>"));
    let policy = between(
        &page,
        r#"http-equiv="Content-Security-Policy" content=""#,
        "\"",
    );
    let policy = policy.replace("&#x27;", "'").replace("&#x2f;", "/");
    assert_eq!(
        policy,
        format!(
            "default-src 'none'; img-src data:; script-src {script}; style-src {style}; base-uri 'none'; form-action 'none'"
        )
    );
    for asks in [" src=", "<link", "url(", "@import", " style="] {
        assert!(!page.contains(asks), "{asks}");
    }
}

#[test]
fn what_is_missing_comes_first() {
    let mut s = scene::transaction();
    let lossless = |page: &str| page.contains("Lossless");
    assert!(page_of(&s).contains("Not checked"));
    let counter = |traced, at_least| Counter {
        traced,
        at_least,
        at_most: Some(at_least),
        ..Counter::default()
    };
    let compared = |c| Some(Counters::Compared([("writes".to_owned(), c)].into()));
    s.manifest.counters = compared(counter(4, 4));
    assert!(lossless(&page_of(&s)));
    s.manifest.counters = compared(counter(4, 5));
    let page = page_of(&s);
    assert!(!lossless(&page) && page.contains("DIFFERS: "));
    // It goes with every picture.
    let missing = text(&data(&page)["sheets"][0]["missing"][0]);
    assert!(missing.starts_with("DIFFERS: "), "{missing}");
}

#[test]
fn the_ladder_has_the_bases_of_the_headline() {
    let ladder = |page: &str| data(page)["sheets"][0]["ladder"].clone();
    let wal = ladder(&page(&[&sample("wal")]));
    for (name, value) in [
        ("each", 1_000),
        ("stored", 108_000),
        ("passed", 4_643_432),
        ("written", 30_650_368),
    ] {
        assert_eq!(wal[name], value, "{name}");
    }
    // A headline that is not about transactions: nothing is divided by them.
    let mut s = Scene::new();
    s.write_file(800, 8192, 12, b"a.txt");
    s.call(CallOf {
        thread: SQLITE,
        kind: CallKind::Write,
        inode: 12,
        offset: 0,
        bytes: 6000,
        first_bytes: None,
        lasted_us: 100,
    });
    let other = ladder(&page_of(&s));
    assert!(other["each"].is_null() && other["stored"].is_null());
    assert_eq!(
        (&other["passed"], &other["written"]),
        (&6000.into(), &8192.into())
    );
}

#[test]
fn transactions_last_from_their_first_call_to_their_last_sync() {
    const JOURNAL: u64 = 12;
    const DATABASE: u64 = 13;
    /// The first bytes of a rollback journal.
    const MAGIC: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    let mut s = scene::transaction();
    s.write_file(4096, 4096, JOURNAL, b"a.db-journal");
    s.write_file(8192, 4096, DATABASE, b"a.db");
    let call = |kind, inode, bytes| CallOf {
        thread: SQLITE,
        kind,
        inode,
        offset: if bytes > 0 { 0 } else { NONE },
        bytes,
        first_bytes: (inode == JOURNAL).then_some(MAGIC),
        lasted_us: 100,
    };
    for _ in 0..2 {
        s.call(call(CallKind::Write, JOURNAL, 512));
        s.call(call(CallKind::Fdatasync, JOURNAL, 0));
        s.call(call(CallKind::Write, DATABASE, 4096));
        s.call(call(CallKind::Fdatasync, DATABASE, 0));
        s.call(call(CallKind::Unlink, JOURNAL, 0));
        // This call syncs the folder.
        s.call(call(CallKind::Fsync, 2, 0));
    }
    let packed = Packed::of(&page_of(&s), 0);
    // There is a call every millisecond: the time is from the beginning of the first to the end of the sixth.
    assert_eq!(packed.column("transactions", "took"), [5100, 5100]);
    let database = packed.column("transactions", "database")[0] as usize;
    assert_eq!(packed.words["about"]["databases"][database], "a.db");
    let start = packed.column("transactions", "start");
    assert_eq!(start[1] - start[0], 6000);
    let durable = packed.words["about"]["durable"].as_array().unwrap();
    let calls = packed.column("calls", "call").iter();
    let syncs = calls.filter(|call| durable.iter().any(|word| word == *call));
    assert_eq!(syncs.count(), 6);
    assert_eq!(packed.column("calls", "took").len(), 12);
}

#[test]
fn several_traces_are_compared() {
    let page = page(&[&sample("delete"), &sample("wal")]);
    let data = data(&page);
    Packed::of(&page, 1);
    assert_eq!(data["sheets"].as_array().unwrap().len(), 2);
    let sentence = data["compared"][0].as_str().unwrap();
    assert!(
        sentence.starts_with("wal writes ") && sentence.contains("\u{a0}% less than the "),
        "{sentence}"
    );
    assert!(page.contains("<button type=\"button\">Compared</button>"));
}

#[test]
fn an_empty_trace_has_a_page() {
    let page = page_of(&Scene::new());
    assert!(page.contains("No IO was seen: was this the device?"));
    assert_eq!(data(&page)["sheets"][0]["is_empty"], true);
    assert!(Packed::of(&page, 0).column("rows", "time").is_empty());
    assert!(page.len() <= 200_000, "{} bytes", page.len());
}

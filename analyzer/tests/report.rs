// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page: its figures add up, and every text of a trace is text in it.
#![cfg(feature = "analyze")]

mod scene;

use std::path::{Path, PathBuf};
use std::process::Command;

use base64::prelude::{BASE64_STANDARD, Engine};
use mostrace::analysis::{Analysis, Options};
use mostrace::causes::Sharing;
use mostrace::report::{Basis, Icicle};
use mostrace::tables::{Grouping, Groups};
use mostrace_bundle::entry::{CallKind, NONE, Origin};
use mostrace_bundle::{Counter, Counters};
use scene::{CallOf, JBD2, SQLITE, SYNC, Scene, Thread, WRITE};
use serde_json::Value;
use sha2::{Digest, Sha256};

fn page(bundles: &[&Path]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_mostrace"))
        .arg("report")
        .args(bundles)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{bundles:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

fn page_of(scene: &Scene) -> String {
    let tmp = tempfile::tempdir().unwrap();
    page(&[&scene.save(tmp.path())])
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
    let mut data: Value = serde_json::from_str(json).unwrap();
    data["sheets"].take()
}

fn sample(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sample-traces");
    folder.join(format!("{name}.most.tar.zst"))
}

fn open(path: &Path) -> Analysis {
    let options = Options {
        causes: Some(Sharing::Equal),
        ..Options::default()
    };
    Analysis::open(path, &options).unwrap()
}

/// Returns the icicle's basis; checks that the icicle has each byte that the device completed once.
fn whole_icicle(analysis: &Analysis) -> Basis {
    let icicle = Icicle::new(&analysis.facts, "ext4").unwrap();
    let everything = Grouping {
        by: Vec::new(),
        top: None,
        every: None,
    };
    let total = Groups::new(&analysis.facts, everything, None)
        .unwrap()
        .total;
    assert_eq!(icicle.written.leaves(), total.write_bytes);
    assert_eq!(icicle.written.bytes, total.write_bytes);
    assert_eq!(icicle.read.leaves(), total.read_bytes);
    assert!(total.write_bytes > 0);
    icicle.basis
}

#[test]
fn the_icicle_has_every_byte_once() {
    for name in ["delete", "wal", "f2fs-wal", "fat32-delete"] {
        whole_icicle(&open(&sample(name)));
    }
    // Without the tables of causes, the causes of jbd2's writes are unknown.
    let mut untold = Scene::new();
    untold.request(WRITE | SYNC, 800, 8192, JBD2);
    untold.process(800, 8192, JBD2, Origin::JOURNAL);
    let (_tmp, path) = saved(&untold);
    assert_eq!(whole_icicle(&open(&path)), Basis::Submitted);
    let (_tmp, path) = saved(&shared_blocks());
    assert_eq!(whole_icicle(&open(&path)), Basis::Caused);
}

fn saved(scene: &Scene) -> (tempfile::TempDir, PathBuf) {
    let tmp = tempfile::tempdir().unwrap();
    let path = scene.save(tmp.path());
    (tmp, path)
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
    s.request(WRITE | SYNC, 800, 4096, comm);
    s.process(800, 4096, comm, Origin::FILE);
    s.file(800, 4096, 12, 0, NAME.as_bytes());
    s.dirtier(800, 4096, comm);
    let page = page_of(&s);
    let json = data(&page);
    let text = json.to_string();
    assert!(
        text.contains(NAME) && text.contains("<svg/onload=x>"),
        "{text}"
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
    assert_eq!(rest.matches("<script").count(), 2);
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
            "default-src 'none'; script-src {script}; style-src {style}; base-uri 'none'; form-action 'none'"
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
    let data = data(&page_of(&s));
    let waterfall = &data[0]["waterfall"];
    assert_eq!(waterfall["times"]["count"], 2);
    let first = &waterfall["shown"][0];
    // There is a call every millisecond: the time is from the beginning of the first to the end of the sixth.
    assert_eq!(first["ns"], 5_100_000);
    assert_eq!(first["calls_all"], 6);
    assert_eq!(first["database"].as_str().unwrap(), "a.db");
    let syncs = data[0]["syncs"]["rows"].as_array().unwrap();
    let calls = |row: &Value| row.as_array().unwrap().iter().any(|cell| cell == 2);
    assert_eq!(syncs.len(), 3, "{syncs:?}");
    assert!(syncs.iter().all(calls), "{syncs:?}");
}

#[test]
fn several_traces_are_compared() {
    let page = page(&[&sample("delete"), &sample("wal")]);
    let json = between(
        &page,
        r#"<script type="application/json" id="data">"#,
        "</script>",
    );
    let data: Value = serde_json::from_str(json).unwrap();
    assert_eq!(data["sheets"].as_array().unwrap().len(), 2);
    let sentence = data["compared"][0]["sentence"].as_str().unwrap();
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
    assert!(data(&page)[0]["density"].is_null());
}

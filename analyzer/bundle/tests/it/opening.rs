// SPDX-License-Identifier: MIT OR Apache-2.0
//! Opening bundles: sound, unfinished, foreign and newer ones.

use crate::common;

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use mostrace_bundle::manifest::{Payload, Segment, State};
use mostrace_bundle::{Bundle, Manifest, Writer, layout};

fn error(path: &Path) -> String {
    let text = Bundle::open(path).expect_err("an error").to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

#[test]
fn what_is_no_bundle_says_so() {
    let tmp = tempfile::tempdir().unwrap();
    assert!(error(&tmp.path().join("none.tar.zst")).contains("none.tar.zst: "));
    assert!(error(tmp.path()).contains("no manifest.json in it: not a mostrace bundle"));
    let folder = common::bundle(tmp.path());
    let manifest = folder.join(layout::MANIFEST);
    for (text, says) in [
        ("", "EOF while parsing"),
        ("{", "EOF while parsing"),
        ("[]", "no schema version"),
        (r#"{"schema": "1"}"#, "no schema version"),
        (
            r#"{"schema": 3, "state": {"new": "shape"}}"#,
            "a newer mostrace is needed",
        ),
        (r#"{"schema": 1, "state": "complete"}"#, "missing field"),
        (r#"{"schema": 1, "tool": 3}"#, "invalid type"),
    ] {
        fs::write(&manifest, text).unwrap();
        let error = error(&folder);
        assert!(
            error.contains("manifest.json: ") && error.contains(says),
            "{text}: {error}"
        );
    }
}

#[test]
fn a_field_of_a_later_program_is_ignored() {
    let tmp = tempfile::tempdir().unwrap();
    let folder = common::bundle(tmp.path());
    let path = folder.join(layout::MANIFEST);
    let mut manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    manifest["later"] = "x".into();
    fs::write(&path, manifest.to_string()).unwrap();
    Bundle::open(&folder).unwrap();
}

#[test]
fn a_manifest_comes_back_as_it_was() {
    let tmp = tempfile::tempdir().unwrap();
    let writer = Writer::create(&tmp.path().join("y.most")).unwrap();
    let mut manifest = Manifest {
        schema: 1,
        tool: "a \"b\" ü".into(),
        ..Manifest::default()
    };
    writer.put_manifest(&manifest).unwrap();
    let opened = Bundle::open(writer.dir()).unwrap();
    assert!(opened.is_cut());
    assert_eq!(opened.manifest(), &manifest);

    manifest.state = State::Complete;
    manifest.losses.insert("entries_ring".into(), u64::MAX);
    manifest.payload = Some(Payload {
        payload_bytes: 1 << 60,
        ..Payload::default()
    });
    writer.put_manifest(&manifest).unwrap();
    let opened = Bundle::open(writer.dir()).unwrap();
    assert!(!opened.is_cut());
    assert_eq!(opened.manifest(), &manifest);
    assert!(
        Writer::create(writer.dir()).is_err(),
        "an existing folder is not written into"
    );
}

#[test]
fn parts_may_be_missing_or_damaged() {
    let tmp = tempfile::tempdir().unwrap();
    let folder = common::bundle(tmp.path());
    fs::remove_file(folder.join(layout::FILE)).unwrap();
    fs::write(folder.join(layout::SNAPSHOT), "no snapshot").unwrap();
    let bundle = Bundle::open(&folder).unwrap();
    assert!(bundle.table(layout::FILE, false).unwrap().is_none());
    let error = bundle.snapshot().expect_err("damaged").to_string();
    assert!(error.contains(layout::SNAPSHOT), "{error}");
    fs::remove_file(folder.join(layout::SNAPSHOT)).unwrap();
    assert!(bundle.snapshot().unwrap().is_none());
}

#[test]
fn a_bundle_is_known_before_it_is_opened() {
    let tmp = tempfile::tempdir().unwrap();
    let folder = common::bundle(tmp.path());
    let archive = tmp.path().join("packed");
    mostrace_bundle::archive::pack(&folder, &archive).unwrap();
    let other = tmp.path().join("other");
    fs::write(&other, "text").unwrap();
    let damaged = tmp.path().join("cut.zst");
    for (path, is) in [
        (&folder, true),
        (&archive, true),
        (&damaged, true),
        (&other, false),
    ] {
        assert_eq!(Bundle::is_bundle(path), is, "{}", path.display());
    }
}

#[test]
fn only_files_that_are_there_have_a_place() {
    let tmp = tempfile::tempdir().unwrap();
    let folder = common::bundle(tmp.path());
    fs::write(folder.join(layout::PACKAGES), "org.a 10001\n").unwrap();
    fs::write(folder.join("stranger"), "").unwrap();
    let bundle = Bundle::open(&folder).unwrap();
    let manifest = folder.join(layout::MANIFEST);
    assert_eq!(bundle.place(layout::MANIFEST), Some((manifest, 0)));
    assert_eq!(bundle.place(layout::OPERATION), None);
    assert_eq!(bundle.place("stranger"), None);
    let packages = bundle.packages().unwrap().unwrap();
    let apps: Vec<_> = packages.apps().collect();
    assert_eq!(apps, [(10_001, &b"org.a"[..])]);
}

#[test]
fn a_segments_own_records_begin_behind_those_it_repeats() {
    let tmp = tempfile::tempdir().unwrap();
    let name = layout::trace_of_cpu(0);
    let writer = Writer::create(&tmp.path().join("s.most")).unwrap();
    fs::write(writer.path(&name), "repeated own").unwrap();
    let segment = Segment {
        own_from: [(name.clone(), 9)].into(),
        ..Segment::default()
    };
    let manifest = Manifest {
        schema: 1,
        segment: Some(segment),
        ..Manifest::default()
    };
    writer.put_manifest(&manifest).unwrap();
    let bundle = Bundle::open(writer.dir()).unwrap();
    let text = |(path, mut file): (PathBuf, fs::File)| {
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        (path, text)
    };
    let path = writer.path(&name);
    let [own, whole] =
        [bundle.own(&name), bundle.whole(&name)].map(|file| text(file.unwrap().unwrap()));
    assert_eq!(own, (path.clone(), "own".into()));
    assert_eq!(whole, (path, "repeated own".into()));
    let missing = layout::trace_of_cpu(1);
    assert!(bundle.own(&missing).unwrap().is_none() && bundle.whole(&missing).unwrap().is_none());
}

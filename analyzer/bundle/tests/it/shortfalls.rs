// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bundles of which something is missing report it.

use crate::common;

use std::fs::{self, File};
use std::path::Path;

use mostrace_bundle::archive::{self, Cut};
use mostrace_bundle::manifest::{SCHEMA, Snapshot, State};
use mostrace_bundle::{Bundle, Manifest, Shortfall, Writer, layout};
use proptest::prelude::*;

fn said(bundle: &Path) -> Vec<String> {
    let bundle = Bundle::open(bundle).unwrap();
    bundle
        .shortfalls()
        .iter()
        .map(Shortfall::to_string)
        .collect()
}

fn cut_file(path: &Path, len: u64) {
    File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_len(len)
        .unwrap();
}

#[test]
fn listed_files_are_missed() {
    let tmp = tempfile::tempdir().unwrap();
    let folder = common::bundle(tmp.path());
    assert_eq!(said(&folder), [""; 0]);
    fs::remove_file(folder.join("trace.blktrace.0")).unwrap();
    cut_file(&folder.join("trace.blktrace.10"), 48);
    fs::remove_file(folder.join(layout::PROCESS)).unwrap();
    assert_eq!(
        said(&folder),
        [
            "process.entries is missing",
            "trace.blktrace.0 is missing",
            "trace.blktrace.10 is cut short: 48 of 100 bytes",
        ]
    );
}

/// A manifest without `files`, as older recorders wrote it; it has only counts.
fn counting(events: u64) -> Manifest {
    let counts = [
        ("events", events),
        ("process_entries", 2),
        ("file_entries", 1),
    ];
    Manifest {
        schema: SCHEMA,
        state: State::Complete,
        counts: counts.map(|(name, count)| (name.to_owned(), count)).into(),
        snapshot: Some(Snapshot::default()),
        ..Manifest::default()
    }
}

#[test]
fn counted_records_are_missed_in_older_bundles() {
    let tmp = tempfile::tempdir().unwrap();
    let folder = common::bundle(tmp.path());
    let put = |manifest: &Manifest| {
        let text = serde_json::to_vec(manifest).unwrap();
        fs::write(folder.join(layout::MANIFEST), text).unwrap();
    };
    // The files have room for two records each, and four bytes more.
    put(&counting(6));
    assert_eq!(said(&folder), [""; 0]);
    put(&counting(7));
    assert_eq!(
        said(&folder),
        [
            "at most 6 of the 7 block events that were counted are there; there is no \
          trace.blktrace.1, trace.blktrace.3, trace.blktrace.4, trace.blktrace.5, trace.blktrace.6, \
          trace.blktrace.7, trace.blktrace.8, trace.blktrace.9"
        ]
    );
    for cpu in [2, 10] {
        fs::remove_file(folder.join(layout::trace_of_cpu(cpu))).unwrap();
    }
    cut_file(&folder.join(layout::PROCESS), 100);
    fs::remove_file(folder.join(layout::FILE)).unwrap();
    fs::remove_file(folder.join(layout::SNAPSHOT)).unwrap();
    assert_eq!(
        said(&folder),
        [
            "at most 2 of the 7 block events that were counted are there",
            "process.entries: at most 0 of the 2 entries that were counted are there",
            "file.entries is missing",
            "snapshot.sparse.zst is missing",
        ]
    );
}

/// The samples cover every source of events.
#[test]
fn samples_are_whole() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sample-traces");
    let mut samples = 0;
    for sample in fs::read_dir(folder).unwrap() {
        let path = sample.unwrap().path();
        if path.to_str().unwrap().ends_with(".most.tar.zst") {
            assert_eq!(said(&path), [""; 0], "{}", path.display());
            samples += 1;
        }
    }
    assert!(samples >= 7, "{samples}");
}

/// The bundle is of a recorder that did not yet list files in the manifest.
#[test]
fn half_of_the_events_is_missed_without_a_list_too() {
    let sample = "../cli/tests/before/wal.most.tar.zst";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(sample);
    assert_eq!(said(&path), [""; 0]);
    let unpacked = archive::unpack(&path).unwrap();
    fs::remove_file(unpacked.dir.path().join("trace.blktrace.0")).unwrap();
    let said = said(unpacked.dir.path());
    assert_eq!(said.len(), 1, "{said:?}");
    let says = ["at most ", "; there is no trace.blktrace.0"];
    assert!(
        said[0].starts_with(says[0]) && said[0].ends_with(says[1]),
        "{said:?}"
    );
}

#[test]
fn no_other_file_is_looked_at() {
    let tmp = tempfile::tempdir().unwrap();
    let folder = common::bundle(tmp.path());
    let mut manifest = Bundle::open(&folder).unwrap().manifest().clone();
    manifest.files.insert("../secret".into(), 1);
    manifest.files.insert("\u{1b}[2J".into(), 1);
    let text = serde_json::to_vec(&manifest).unwrap();
    fs::write(folder.join(layout::MANIFEST), text).unwrap();
    assert_eq!(said(&folder), [""; 0]);
}

#[test]
fn no_io_is_no_shortfall() {
    for empty in [true, false] {
        let tmp = tempfile::tempdir().unwrap();
        let writer = Writer::create(&tmp.path().join("x.most")).unwrap();
        if empty {
            fs::write(writer.path("trace.blktrace.0"), "").unwrap();
            fs::write(writer.path("trace.blktrace.1"), "").unwrap();
        }
        let manifest = Manifest {
            schema: SCHEMA,
            state: State::Complete,
            counts: [("events".to_owned(), 0)].into(),
            ..Manifest::default()
        };
        for manifest in [manifest.clone(), common::listing(&writer, manifest)] {
            writer.put_manifest(&manifest).unwrap();
            let bundle = Bundle::open(writer.dir()).unwrap();
            assert_eq!(bundle.event_files().len(), if empty { 2 } else { 0 });
            assert!(bundle.shortfalls().is_empty() && !bundle.is_cut());
        }
    }
}

#[test]
fn an_unfinished_bundle_says_nothing_of_files() {
    let tmp = tempfile::tempdir().unwrap();
    let writer = Writer::create(&tmp.path().join("x.most")).unwrap();
    let manifest = Manifest {
        schema: SCHEMA,
        ..Manifest::default()
    };
    writer.put_manifest(&manifest).unwrap();
    let bundle = Bundle::open(writer.dir()).unwrap();
    assert!(bundle.is_cut() && bundle.shortfalls().is_empty());
}

/// Checks that an archive of `folder` that was cut to these bytes is read up to the cut and says so, unless its
/// manifest is cut too; and that each file holds the beginning of what was packed.
fn check_cut(bytes: &[u8], folder: &Path, scratch: &Path) -> Result<(), TestCaseError> {
    let path = scratch.join("cut.tar.zst");
    fs::write(&path, bytes).unwrap();
    let at = bytes.len() as u64;
    let bundle = match Bundle::open(&path) {
        Ok(bundle) => bundle,
        Err(e) => {
            let text = e.to_string();
            let says =
                format!("cut.tar.zst: cut short at byte {at}, before the end of its manifest");
            prop_assert!(text.ends_with(&says), "{}", text);
            return Ok(());
        }
    };
    prop_assert!(bundle.is_cut());
    let shortfalls = bundle.shortfalls();
    let Some(Shortfall::Cut(cut)) = shortfalls.first() else {
        return Err(TestCaseError::fail(format!("{shortfalls:?}")));
    };
    prop_assert_eq!(cut.at, at);
    let unpacked = archive::unpack(&path).unwrap();
    for name in layout::files_in(folder).unwrap() {
        let whole = fs::read(folder.join(&name)).unwrap();
        let got = fs::read(unpacked.dir.path().join(&name)).ok();
        let told = shortfalls.iter().any(|s| match s {
            Shortfall::Missing { name: missing } => *missing == name && got.is_none(),
            Shortfall::Short {
                name: short,
                bytes,
                of,
            } => {
                *short == name
                    && got.as_ref().is_some_and(|got| got.len() as u64 == *bytes)
                    && *of == whole.len() as u64
            }
            _ => false,
        });
        prop_assert_eq!(told, got.as_ref() != Some(&whole), "{}", name);
        prop_assert!(whole.starts_with(&got.unwrap_or_default()), "{}", name);
    }
    for name in layout::TABLES {
        if let Some(table) = bundle.table(name, true).unwrap() {
            table.for_each(|entry| drop(entry.unwrap()));
        }
    }
    let is_whole = |name: &str| !shortfalls.iter().any(|s| s.to_string().starts_with(name));
    prop_assert_eq!(
        bundle.snapshot().unwrap().is_some(),
        is_whole(layout::SNAPSHOT)
    );
    Ok(())
}

/// Cuts the compressed stream, and the tar before compression.
#[test]
fn a_small_archive_cut_anywhere() {
    let tmp = tempfile::tempdir().unwrap();
    let folder = common::bundle(tmp.path());
    let whole = tmp.path().join("whole.tar.zst");
    archive::pack(&folder, &whole).unwrap();
    let whole = fs::read(whole).unwrap();
    for len in 0..whole.len() {
        check_cut(&whole[..len], &folder, tmp.path()).unwrap();
    }
    let tar = zstd::decode_all(&whole[..]).unwrap();
    // The end mark is two blocks of zeros, of which the first is enough.
    for len in (0..tar.len() - 512).step_by(128) {
        let bytes = zstd::encode_all(&tar[..len], 1).unwrap();
        check_cut(&bytes, &folder, tmp.path()).unwrap();
    }
}

#[test]
fn a_cut_is_told_with_its_file() {
    let cut = |within: Option<&str>| {
        Shortfall::Cut(Cut {
            at: 7,
            within: within.map(str::to_owned),
        })
    };
    assert_eq!(cut(None).to_string(), "the archive is cut short at byte 7");
    assert_eq!(
        cut(Some("file.entries")).to_string(),
        "the archive is cut short at byte 7, within file.entries"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// An archive of many compressed blocks, made large by incompressible data.
    #[test]
    fn a_large_archive_cut_anywhere(seed: u64, part in 0.0..1.0f64) {
        let tmp = tempfile::tempdir().unwrap();
        let folder = common::bundle(tmp.path());
        let mut state = seed | 1;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        })
        .take(400_000)
        .collect();
        fs::write(folder.join("trace.blktrace.0"), &noise).unwrap();
        common::table(
            &folder.join(layout::FILE),
            &noise.chunks(96).take(1000).map(|name| common::file(8, name)).collect::<Vec<_>>(),
        );
        let mut listed = Bundle::open(&folder).unwrap().manifest().clone();
        for (name, size) in &mut listed.files {
            *size = fs::metadata(folder.join(name)).unwrap().len();
        }
        fs::write(folder.join(layout::MANIFEST), serde_json::to_vec(&listed).unwrap()).unwrap();
        let whole = tmp.path().join("whole.tar.zst");
        archive::pack(&folder, &whole).unwrap();
        let whole = fs::read(whole).unwrap();
        let len = (whole.len() as f64 * part) as usize;
        check_cut(&whole[..len], &folder, tmp.path())?;
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which files make a trace, and the messages about files that are not a trace or are incomplete.

use crate::support;

use mostrace_trace::blktrace::{Error, Partial, Trace, find};
use std::fs;
use std::path::{Path, PathBuf};
use support::{completions, events, oracle, real};
use tempfile::TempDir;

fn folder(files: &[(&str, &[u8])]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).expect("written");
    }
    folder
}

fn names(found: Vec<PathBuf>) -> Vec<String> {
    let name = |p: PathBuf| {
        p.file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned()
    };
    found.into_iter().map(name).collect()
}

fn one_file() -> Vec<u8> {
    fs::read(real("ext4-fsync.blktrace.0")).expect("the trace")
}

/// Returns the number of events, and the error at the end if there is one.
fn read(path: &Path, partial: Partial) -> (usize, Option<String>, Vec<String>) {
    let mut trace = Trace::open_with(&[path.to_owned()], partial).expect("opens");
    let (mut events, mut error) = (0, None);
    loop {
        match trace.next() {
            Ok(Some(_)) => events += 1,
            Ok(None) => break,
            Err(e) => assert!(error.replace(e.to_string()).is_none(), "two errors"),
        }
    }
    let notices = trace.notices().iter().map(ToString::to_string).collect();
    (events, error, notices)
}

#[test]
fn a_basename_is_all_its_files_in_order() {
    let files = [
        "x.blktrace.0",
        "x.blktrace.2",
        "x.blktrace.10",
        "xy.blktrace.1",
        "x.blktrace.a",
    ];
    let folder = folder(&files.map(|name| (name, &[][..])));
    let expected = &["x.blktrace.0", "x.blktrace.2", "x.blktrace.10"];
    for name in ["x", "x.blktrace.2"] {
        assert_eq!(names(find(&folder.path().join(name)).unwrap()), expected);
    }
    assert_eq!(
        names(find(&folder.path().join("x.blktrace.a")).unwrap()),
        ["x.blktrace.a"]
    );
    let missing = folder.path().join("z");
    let error = find(&missing).unwrap_err();
    assert!(matches!(error, Error::NotFound(_)));
    let z = missing.display();
    assert_eq!(
        error.to_string(),
        format!("{z}: no such trace (looked for it and for {z}.blktrace.N)")
    );
}

/// `blkparse -d` writes all CPUs into one file, which yields the same events.
#[test]
fn a_merged_dump_is_read_as_one_file() {
    let folder = folder(&[]);
    let dump = oracle::dump(&real("ext4-fsync"), folder.path());
    let of = |paths: &[PathBuf]| completions(Trace::open(paths).unwrap()).0;
    let mut merged = of(&find(&dump).unwrap());
    let separate = of(&find(&real("ext4-fsync")).unwrap());
    // blkparse shifts all times so that they start at 0.
    let shift = separate[0].time_ns - merged[0].time_ns;
    assert!(shift > 0);
    let shifted = |ns: &mut Option<u64>| *ns = ns.map(|ns| ns + shift);
    for c in &mut merged {
        c.time_ns += shift;
        shifted(&mut c.d_ns);
        shifted(&mut c.i_ns);
        shifted(&mut c.g_ns);
        let mut parts = c.parts.to_vec();
        parts.iter_mut().for_each(|p| shifted(&mut p.q_ns));
        c.parts = parts.leak();
    }
    assert_eq!(merged, separate);
}

#[test]
fn empty_files_are_fine() {
    let folder = folder(&[("x.blktrace.0", &[]), ("x.blktrace.1", &one_file())]);
    let files = find(&folder.path().join("x")).unwrap();
    assert!(events(&mut Trace::open(&files).unwrap()).len() > 500);
    assert_eq!(read(&files[0], Partial::Refused), (0, None, vec![]));
}

#[test]
fn a_foreign_file_is_named_as_such() {
    let folder = folder(&[("x", b"SQLite format 3\0")]);
    let path = folder.path().join("x");
    for partial in [Partial::Refused, Partial::Allowed] {
        let (events, error, notices) = read(&path, partial);
        let expected = format!(
            "{}: not a blktrace file (bad magic 0x694c5153 at byte 0)",
            path.display()
        );
        assert_eq!((events, error, notices), (0, Some(expected), vec![]));
    }
}

#[test]
fn an_unknown_version_is_named() {
    let mut bytes = one_file();
    bytes[0] = 9;
    let folder = folder(&[("x", &bytes)]);
    let (_, error, _) = read(&folder.path().join("x"), Partial::Refused);
    let error = error.expect("an error");
    assert!(
        error.ends_with("blktrace records of version 9 at byte 0, only 7 and 8 are known"),
        "{error}"
    );
}

#[test]
fn a_cut_file_is_refused_or_read_up_to_the_cut() {
    let mut bytes = one_file();
    bytes.truncate(48 * 3 + 20);
    let folder = folder(&[("x", &bytes)]);
    let path = folder.path().join("x");
    let (_, whole, _) = read(&path, Partial::Refused);
    let offset = 48 * 3;
    let problem = format!(
        "{}: the last record, at byte {offset}, is cut off (20 of at least 48 bytes)",
        path.display()
    );
    assert_eq!(whole, Some(problem.clone()));
    let told = vec![format!("{problem}; left out 20 bytes")];
    assert_eq!(read(&path, Partial::Allowed), (3, None, told));
}

#[test]
fn garbage_in_the_middle_is_refused_or_left_out() {
    let mut bytes = one_file();
    let all = bytes.len();
    bytes[96] ^= 0x10;
    let folder = folder(&[("x", &bytes)]);
    let path = folder.path().join("x");
    let (_, error, _) = read(&path, Partial::Refused);
    // The lowest byte of the magic number is the version.
    let problem = format!(
        "{}: blktrace records of version 23 at byte 96, only 7 and 8 are known",
        path.display()
    );
    assert_eq!(error, Some(problem.clone()));
    let told = vec![format!("{problem}; left out {} bytes", all - 96)];
    assert_eq!(read(&path, Partial::Allowed), (2, None, told));

    bytes[97] ^= 0x10;
    fs::write(&path, &bytes).unwrap();
    let (_, error, _) = read(&path, Partial::Refused);
    let expected = format!(
        "{}: no blktrace record at byte 96 (bad magic 0x65616417)",
        path.display()
    );
    assert_eq!(error, Some(expected));
}

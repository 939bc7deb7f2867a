// SPDX-License-Identifier: MIT OR Apache-2.0
//! A program under strace: its calls are counted against what the program says of itself, and made again in another
//! folder, where the same files must come to be.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use mostrace_replay::{
    Call, Contents, FileCall, Name, Recorded, Settings, StraceSettings, Timing, read_strace, replay,
};
use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags, fallocate, linkat, openat};
use test_support::{Need, Suite, at_once, tests};

/// With this variable the test's own binary is the traced program, in the folder that it names.
pub const PROGRAM: &str = "MOSTRACE_REPLAY_PROGRAM";
const STRACE: [Need; 2] = [Need::Tool("strace", "strace"), Need::Ptrace];

pub fn suite() -> Suite {
    at_once(tests![
        calls_are_those_that_the_program_made needs STRACE,
        the_same_files_come_to_be needs STRACE,
        without_y_and_t_it_is_the_same needs STRACE,
        with_any_options_each_call_is_counted_once needs STRACE,
        several_files_without_times_are_refused needs STRACE,
        a_text_that_is_cut_off_is_read_up_to_there needs STRACE,
    ])
}

/// Makes the files that the program finds.
fn before(folder: &Path) {
    fs::create_dir_all(folder.join("old/sub")).unwrap();
    fs::write(folder.join("old/log"), vec![b'l'; 10_000]).unwrap();
    fs::write(folder.join("old/sub/gone"), vec![b'g'; 3_000]).unwrap();
    // strace does not tell the size of a file that is never opened nor looked up.
    fs::write(folder.join("old/moved"), "").unwrap();
}

/// The traced program: two threads that work at once, then one that does the rest.
pub fn program(folder: &Path) {
    let writer = |name: &str| {
        let mut file = File::create(folder.join(name)).unwrap();
        for n in 0..20_u8 {
            file.write_all(&vec![n; 700]).unwrap();
            if n % 5 == 4 {
                file.sync_data().unwrap();
            }
        }
        file.sync_all().unwrap();
    };
    std::thread::scope(|scope| {
        scope.spawn(|| writer("a"));
        scope.spawn(|| writer("b"));
    });
    // By a relative path, appended to, through a duplicate.
    env::set_current_dir(folder).unwrap();
    let log = OpenOptions::new().append(true).open("old/log").unwrap();
    assert_eq!(log.metadata().unwrap().len(), 10_000);
    (&log).write_all(b"one").unwrap();
    log.try_clone().unwrap().write_all(b"two").unwrap();
    drop(log);
    // Written in places, made longer, cut.
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    let mut place = options.open("place").unwrap();
    place.write_all_at(b"there", 5_000).unwrap();
    place.seek(SeekFrom::Start(100)).unwrap();
    place.write_all(b"here").unwrap();
    place.read_exact(&mut [0; 10]).unwrap();
    place.write_all(b"behind").unwrap();
    fallocate(&place, FallocateFlags::KEEP_SIZE, 0, 65_536).unwrap();
    place.set_len(9_000).unwrap();
    drop(place);
    // Names.
    fs::create_dir("new").unwrap();
    fs::rename("old/moved", "new/moved").unwrap();
    fs::hard_link("a", "new/linked").unwrap();
    std::os::unix::fs::symlink("../b", "new/to-b").unwrap();
    fs::remove_file("old/sub/gone").unwrap();
    fs::remove_dir("old/sub").unwrap();
    fs::rename("new", "newer").unwrap();
    File::create("newer/late")
        .unwrap()
        .write_all(b"late")
        .unwrap();
    fs::set_permissions("b", fs::Permissions::from_mode(0o600)).unwrap();
    // Files that get their names later.
    let flags = OFlags::RDWR | OFlags::TMPFILE;
    for (bytes, to) in [(777, "newer/by descriptor"), (77, "newer/by path")] {
        let file = openat(CWD, "newer", flags, Mode::from_raw_mode(0o600)).unwrap();
        File::from(file.try_clone().unwrap())
            .write_all(&vec![7; bytes])
            .unwrap();
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        match bytes {
            777 => linkat(&file, "", CWD, to, AtFlags::EMPTY_PATH),
            _ => linkat(CWD, path, CWD, to, AtFlags::SYMLINK_FOLLOW),
        }
        .unwrap();
    }
    // What fails fails again.
    assert!(fs::remove_file("nothing").is_err());
    assert!(fs::create_dir("newer").is_err());
    let twice = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open("a");
    assert!(twice.is_err());
}

/// The number of calls of each kind in [`program`] that change something.
const CALLS: [(&str, usize); 14] = [
    ("chmod", 1),
    ("close", 7),
    ("fallocate", 1),
    ("fdatasync", 8),
    ("fsync", 2),
    ("link", 3),
    ("mkdir", 2),
    ("open", 8),
    ("rename", 2),
    ("rmdir", 1),
    ("symlink", 1),
    ("truncate", 1),
    ("unlink", 2),
    ("write", 40 + 2 + 3 + 1 + 2),
];

/// Runs the program under strace in `folder`; returns the texts. Without `-o`, the text is what strace says on its standard error.
fn texts(folder: &Path, options: &[&str]) -> Vec<(PathBuf, String)> {
    before(folder);
    let aside = folder.with_extension("straces");
    fs::create_dir(&aside).unwrap();
    let text = aside.join("text");
    let mut strace = Command::new("strace");
    strace.args(options.iter().filter(|option| **option != TO_STDERR));
    if !options.contains(&TO_STDERR) {
        strace.arg("-o").arg(&text);
    }
    let program = strace.arg(env::current_exe().unwrap());
    let ran = program.env(PROGRAM, folder).output().unwrap();
    assert!(ran.status.success(), "{options:?}: {ran:?}");
    if options.contains(&TO_STDERR) {
        return vec![(text, String::from_utf8(ran.stderr).unwrap())];
    }
    let paths = fs::read_dir(&aside).unwrap();
    let paths = paths.map(|entry| entry.unwrap().path());
    paths
        .map(|path| (path.clone(), fs::read_to_string(&path).unwrap()))
        .collect()
}

const TO_STDERR: &str = "to stderr";

fn read(folder: &Path, texts: &[(PathBuf, String)]) -> mostrace_replay::Result<Recorded> {
    let root = Name::new(folder.as_os_str().as_bytes()).unwrap();
    read_strace(texts, &StraceSettings { root, folder: None })
}

fn traced(folder: &Path, options: &[&str]) -> Recorded {
    let options = [&["-f", "-ttt"], options].concat();
    read(folder, &texts(folder, &options)).unwrap()
}

fn counts(recorded: &Recorded) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for operation in &recorded.operations {
        *counts.entry(operation.call.kind()).or_default() += 1;
    }
    counts
}

fn calls_are_those_that_the_program_made() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = traced(&folder.path().join("app"), &["-y", "-T"]);
    assert_eq!(counts(&recorded), BTreeMap::from(CALLS));
    let why: Vec<&str> = recorded.left_out.into_keys().collect();
    let outside = "it is on something outside of the replayed folder";
    assert_eq!(why, ["it changes no file", outside]);
    let threads: BTreeSet<u32> = recorded.operations.iter().map(|o| o.thread).collect();
    assert_eq!(threads.len(), 3);
    let writes = recorded
        .operations
        .iter()
        .filter_map(|operation| match operation.call {
            Call::Of(_, FileCall::Write { offset, bytes }) if bytes < 700 => Some((offset, bytes)),
            _ => None,
        });
    let writes: Vec<(Option<u64>, u64)> = writes.collect();
    let places = [Some(5_000), Some(100), Some(114), Some(0), Some(0)];
    let lengths = [5, 4, 6, 4, 77];
    assert_eq!(writes[..2], [(None, 3), (None, 3)]);
    assert_eq!(
        writes[2..],
        std::array::from_fn::<_, 5, _>(|n| (places[n], lengths[n]))
    );
}

/// What a tree is made of: for each path its type and permissions, its size, and where a link leads.
fn tree(folder: &Path) -> BTreeMap<String, (u32, u64, String)> {
    let mut all = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let size = if meta.is_file() { meta.len() } else { 0 };
            let target = fs::read_link(&path).unwrap_or_default();
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            all.insert(name, (meta.mode(), size, target.display().to_string()));
            if meta.is_dir() {
                open.push(path);
            }
        }
    }
    all
}

fn played_again(recorded: &Recorded, folder: &Path) {
    fs::create_dir(folder).unwrap();
    let settings = Settings {
        root: folder.to_owned(),
        timing: Timing::Fast,
        contents: Contents::Random,
    };
    let outcome = replay(recorded, &settings, |_| {}).unwrap();
    let other: u64 = outcome
        .calls
        .values()
        .map(|tally| tally.made - tally.same)
        .sum();
    assert_eq!(other, 0, "{outcome}");
}

fn the_same_files_come_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let [app, again] = ["app", "again"].map(|name| folder.path().join(name));
    let recorded = traced(&app, &["-y", "-T"]);
    played_again(&recorded, &again);
    assert_eq!(tree(&again), tree(&app));
}

/// Without -y, paths are followed by the calls alone, and without -T a call ends when it begins.
fn without_y_and_t_it_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let [app, again] = ["app", "again"].map(|name| folder.path().join(name));
    let recorded = traced(&app, &[]);
    assert_eq!(counts(&recorded), BTreeMap::from(CALLS));
    played_again(&recorded, &again);
    assert_eq!(tree(&again), tree(&app));
}

/// Options of strace, as people have them.
const OPTIONS: &[&[&str]] = &[
    &["-f"],
    &["-f", "-y"],
    &["-f", "-T"],
    &["-f", "-t"],
    &["-f", "-t", "-T", "-y"],
    &["-f", "-tt"],
    &["-f", "-tt", "-T", "-yy"],
    &["-f", "-ttt"],
    &["-f", "-ttt", "-T", "-s", "0"],
    &["-f", "-ttt", "-T", "-s", "100000", "-v", "-yy"],
    &["-f", "-r"],
    &["-f", "-r", "-T"],
    &["-f", "-r", "-ttt"],
    &["-f", "-r", "-tt", "-T"],
    &["-ff", "-ttt"],
    &["-ff", "-ttt", "-T", "-y"],
    &["-ff", "-tt", "-T", "-yy"],
    &["-f", "-X", "raw"],
    &["-f", "-X", "raw", "-y", "-tt"],
    &["-f", "-X", "verbose", "-y"],
    &["-f", "-x", "-y"],
    &["-f", "-xx", "-yy", "-ttt"],
    &["-f", "-v"],
    &["-f", "-i", "-ttt"],
    &["-f", "-n", "-tt"],
    &["-f", "-k", "-y"],
    &["-f", "-a", "1", "-ttt"],
    &["-f", "-C", "-ttt"],
    &["-f", "-qq", "-tt"],
    &["-f", "-D", "-ttt", "-T"],
    &["-f", "-e", "trace=all", "-e", "signal=none"],
    &["-f", "-e", "trace=%file,%desc,%process,%memory", "-ttt"],
    &[
        "-f",
        "--absolute-timestamps=format:unix,precision:ns",
        "--syscall-times=ns",
    ],
    &["-f", "--absolute-timestamps=format:unix,precision:s"],
    &["-f", TO_STDERR],
    &["-f", "-ttt", "-T", "-y", TO_STDERR],
    &["-f", "-qq", "-tt", TO_STDERR],
];

/// Each line with the end of a call is one call, and it is made again or counted.
fn calls_in(texts: &[(PathBuf, String)]) -> u64 {
    let lines = texts.iter().flat_map(|(_, text)| {
        let lines = text.lines().map(str::trim);
        lines.take_while(|line| !line.starts_with("% time"))
    });
    let ends = lines.filter(|line| {
        let said = ["> /", "> [", "> (", "strace: "];
        !(line.is_empty()
            || line.ends_with("<unfinished ...>")
            || line.contains("+++ exited")
            || said.iter().any(|said| line.starts_with(said)))
    });
    // What strace says in the middle of a line is a line too many, unless its end is an unfinished call's.
    ends.filter(|line| !line.ends_with(" attached")).count() as u64
}

fn with_any_options_each_call_is_counted_once() {
    for options in OPTIONS {
        let folder = tempfile::tempdir().unwrap();
        let [app, again] = ["app", "again"].map(|name| folder.path().join(name));
        let texts = texts(&app, options);
        let recorded = read(&app, &texts).unwrap();
        assert_eq!(counts(&recorded), BTreeMap::from(CALLS), "{options:?}");
        let left_out: u64 = recorded.left_out.values().sum();
        let made = recorded.operations.len() as u64;
        assert_eq!(
            made + left_out,
            calls_in(&texts),
            "{options:?} {:?}",
            recorded.left_out
        );
        let has = |option: &str| options.iter().any(|given| given.contains(option));
        let durations = has("-T") || has("syscall-times");
        assert_eq!(recorded.unknown.durations, !durations, "{options:?}");
        let times = has("-tt") || has("-r") || has("precision:ns");
        assert_eq!(recorded.unknown.times, !times, "{options:?}");
        played_again(&recorded, &again);
        assert_eq!(tree(&again), tree(&app), "{options:?}");
    }
}

fn several_files_without_times_are_refused() {
    for options in [&["-ff"][..], &["-ff", "-r"], &["-ff", "-t"]] {
        let folder = tempfile::tempdir().unwrap();
        let app = folder.path().join("app");
        let refused = read(&app, &texts(&app, options)).unwrap_err().to_string();
        assert!(refused.contains("cannot be put in order"), "{refused}");
    }
}

fn a_text_that_is_cut_off_is_read_up_to_there() {
    let folder = tempfile::tempdir().unwrap();
    let app = folder.path().join("app");
    let mut texts = texts(&app, &["-f", "-y", "-ttt", "-T"]);
    let whole = read(&app, &texts).unwrap();
    let text = texts[0].1.clone();
    for end in (0..text.len()).step_by(997).skip(1) {
        texts[0].1 = text.chars().take(end).collect();
        let cut = read(&app, &texts).unwrap();
        let kept = cut.operations.len();
        assert!(kept <= whole.operations.len());
        let left_out: u64 = cut.left_out.values().sum();
        // What is unfinished at the end is counted too.
        assert!(kept as u64 + left_out >= calls_in(&texts), "{end}");
    }
}

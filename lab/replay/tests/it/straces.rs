// SPDX-License-Identifier: MIT OR Apache-2.0
//! Small texts of strace, each with what must come of it: the calls that are made, and how many are left out for which reason.

use std::collections::BTreeMap;

use mostrace_replay::{Call, FileCall, Name, Recorded, Start, StraceSettings, Target, read_strace};
use proptest::prelude::*;

fn read(texts: &[(&str, &str)]) -> Recorded {
    let root = Name::new(b"/r").unwrap();
    let folder = Some(root.clone());
    let texts = texts
        .iter()
        .map(|(path, text)| (path.into(), (*text).to_owned()));
    let texts: Vec<_> = texts.collect();
    read_strace(&texts, &StraceSettings { root, folder }).unwrap()
}

fn one(text: &str) -> Recorded {
    read(&[("x", text)])
}

fn kinds(recorded: &Recorded) -> Vec<&'static str> {
    let operations = recorded.operations.iter();
    operations.map(|operation| operation.call.kind()).collect()
}

fn left_out(recorded: &Recorded) -> BTreeMap<&'static str, u64> {
    let left_out = recorded.left_out.iter();
    left_out
        .map(|(why, calls)| (why.split([';', '(']).next().unwrap().trim(), *calls))
        .collect()
}

const HARMLESS: &str = "it changes no file";
const NO_FILE: &str = "it is not known which file its descriptor leads to";

#[test]
fn programs_of_32_bits_have_other_names() {
    let recorded = one(r#"6 1.1 open("f", O_RDWR|O_CREAT|O_LARGEFILE, 0644) = 3
6 1.2 _llseek(3, 5000, [5000], SEEK_SET) = 0
6 1.3 write(3, ""..., 1000) = 1000
6 1.4 ftruncate64(3, 10000) = 0
6 1.5 truncate64("f", 9000) = 0
6 1.6 fcntl64(3, F_DUPFD, 10) = 10
6 1.7 sendfile64(3, 10, [0] => [500], 500) = 500
6 1.8 fadvise64_64(3, 0, 4096, POSIX_FADV_DONTNEED) = 0
6 1.9 sync_file_range2(3, SYNC_FILE_RANGE_WRITE, 0, 4096) = 0
6 2.0 fchown32(3, 5, -1) = 0
6 2.1 chown32("f", 5, 6) = 0
6 2.2 utimensat_time64(AT_FDCWD, "f", NULL, 0) = 0
6 2.3 mmap2(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 3, 0) = 0xf7d0a000
6 2.4 stat64("f", {st_mode=S_IFREG|0644, st_size=9000, ...}) = 0
6 2.5 close(3) = 0
6 2.6 close(10) = 0
"#);
    let expected = [
        "open",
        "write",
        "truncate",
        "truncate",
        "copy",
        "fadvise",
        "sync_range",
        "chown",
        "chown",
        "utimes",
        "close",
    ];
    assert_eq!(kinds(&recorded), expected);
    let offset = |n: usize| match &recorded.operations[n].call {
        Call::Of(_, FileCall::Write { offset, .. } | FileCall::Copy { offset, .. }) => *offset,
        _ => None,
    };
    assert_eq!((offset(1), offset(4)), (Some(5000), Some(6000)));
    // The copy of the descriptor, the seek, stat64 and the first close.
    let stores = "strace sees no stores to this mapping";
    assert_eq!(
        left_out(&recorded),
        BTreeMap::from([(HARMLESS, 4), (stores, 1)])
    );
}

#[test]
fn what_strace_does_not_show_is_counted() {
    let recorded = one(r#"1 1.1 openat(AT_FDCWD, "/r/f", O_RDWR|O_CREAT, 0644) = 3
1 1.2 io_uring_enter(4, 1, 1, IORING_ENTER_GETEVENTS, NULL, 8) = 1
1 1.3 io_uring_enter(4, 0, 1, IORING_ENTER_GETEVENTS, NULL, 8) = 0
1 1.4 io_submit(0x7f0000000000, 1, [{aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=3}]) = 1
1 1.5 write(7, ""..., 1000) = 1000
2 1.6 write(3, ""..., 1000) = 1000
1 1.7 bind(5, {sa_family=AF_UNIX, sun_path="/r/s"}, 110) = 0
1 1.8 bind(5, {sa_family=AF_INET, sin_port=htons(0)}, 16) = 0
1 1.9 newcall(3) = 0
1 2.0 ioctl(3, FS_IOC_SETFLAGS, [FS_NODUMP_FL]) = 0
1 2.1 ioctl(3, FS_IOC_GETFLAGS, [0]) = 0
1 2.2 fsync(3) = 0 (INJECTED)
1 2.3 pipe2([8, 9], 0) = 0
1 2.4 write(9, "x", 1) = 1
1 2.5 write(3, ""..., 1000) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)
1 2.6 fdatasync(3 <detached ...>
"#);
    assert_eq!(kinds(&recorded), ["open"]);
    let expected = [
        (HARMLESS, 4),
        (NO_FILE, 2),
        ("a replay does not make this ioctl", 1),
        ("a replay has no such call", 1),
        (
            "it had not returned when the trace ended, or was begun again",
            2,
        ),
        ("it is not known what this call does", 1),
        ("it is on something outside of the replayed folder", 1),
        ("strace does not show what its requests are", 2),
        ("strace injected its result", 1),
    ];
    assert_eq!(left_out(&recorded), BTreeMap::from(expected));
}

#[test]
fn a_recording_without_a_call_to_replay_is_empty() {
    let recorded = one("7 1.1 write(3, \"\"..., 1000) = 1000\n7 1.2 fdatasync(3) = 0\n");
    assert!(recorded.is_empty());
    assert_eq!(left_out(&recorded), BTreeMap::from([(NO_FILE, 2)]));
}

/// strace was told to leave out clone, so a thread appears from nowhere; -y shows that its file is that of another one.
#[test]
fn a_thread_without_a_beginning_shares_files() {
    let recorded = one(
        r#"1 1.1 openat(AT_FDCWD</r>, "f", O_RDWR|O_CREAT, 0644) = 3</r/f>
1 1.2 write(3</r/f>, ""..., 1000) = 1000
2 1.3 write(3</r/f>, ""..., 500) = 500
1 1.4 write(3</r/f>, ""..., 20) = 20
"#,
    );
    let writes = recorded.operations.iter().filter_map(|o| match o.call {
        Call::Of(file, FileCall::Write { offset, .. }) => Some((file.0, offset)),
        _ => None,
    });
    let writes: Vec<_> = writes.collect();
    assert_eq!(writes, [(1, Some(0)), (1, Some(1000)), (1, Some(1500))]);
}

/// The child's lines come before the line in which clone returns, and a number is free before close returns.
#[test]
fn children_and_closes_count_from_their_beginning() {
    let recorded = one(r#"1 1.1 open("f", O_RDWR|O_CREAT, 0644) = 3
1 1.2 vfork( <unfinished ...>
2 1.3 write(3, "x", 1) = 1
2 1.4 close(3 <unfinished ...>
2 1.5 <... close resumed>) = 0
1 1.6 <... vfork resumed>) = 2
1 1.7 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD, child_tid=0x7} => {parent_tid=[3]}, 88) = 3
1 1.8 close(3 <unfinished ...>
3 1.9 open("g", O_RDWR|O_CREAT, 0644) = 3
1 2.0 <... close resumed>) = 0
1 2.1 write(3, "yy", 2) = 2
1 2.2 fork() = 4
4 2.3 execve("/bin/sh", ["sh"], 0x7 /* 1 var */) = 0
4 2.4 write(3, "zzz", 3) = 3
"#);
    let expected = ["open", "write", "close", "open", "write", "write"];
    assert_eq!(kinds(&recorded), expected);
    let of = recorded.operations.iter().map(|o| match &o.call {
        Call::Open(opened) => opened.file.unwrap().0,
        Call::Of(file, _) => file.0,
        other => panic!("{other:?}"),
    });
    let of: Vec<u64> = of.collect();
    assert_eq!(of, [1, 1, 1, 2, 2, 2]);
    assert_eq!(left_out(&recorded), BTreeMap::from([(HARMLESS, 5)]));
}

#[test]
fn descriptors_end_when_a_program_is_executed() {
    let recorded = one(r#"1 open("f", O_RDWR|O_CREAT|O_CLOEXEC, 0644) = 3
1 open("g", O_RDWR|O_CREAT, 0644) = 4
1 dup3(4, 5, O_CLOEXEC) = 5
1 fcntl(5, F_SETFD, 0) = 0
1 execve("/bin/sh", ["sh"], 0x7 /* 1 var */) = 0
1 write(3, "x", 1) = -1 EBADF (Bad file descriptor)
1 write(5, "x", 1) = 1
"#);
    assert_eq!(kinds(&recorded), ["open", "open", "close", "write"]);
    assert_eq!(
        left_out(&recorded),
        BTreeMap::from([(HARMLESS, 3), (NO_FILE, 1)])
    );
}

/// A file without a name gets one by its descriptor, in each of the forms that programs use.
#[test]
fn a_file_gets_its_name_later() {
    for link in [
        r#"linkat(AT_FDCWD, "/proc/self/fd/3", AT_FDCWD, "n", AT_SYMLINK_FOLLOW)"#,
        r#"linkat(-100, "/proc/9/fd/3", -100, "n", 0x400)"#,
        r#"linkat(AT_FDCWD</r>, "/dev/fd/3", AT_FDCWD</r>, "n", AT_SYMLINK_FOLLOW)"#,
        r#"linkat(3</r/#12>(deleted), "", AT_FDCWD</r>, "n", AT_EMPTY_PATH)"#,
        r#"linkat(3</r/#12 (deleted)>, "", AT_FDCWD</r>, "n", AT_EMPTY_PATH)"#,
    ] {
        for opened in ["3", "3</r/#12>(deleted)", "3</r/#12 (deleted)>"] {
            let recorded = one(&format!(
                "9 openat(AT_FDCWD, \".\", O_RDWR|O_TMPFILE, 0600) = {opened}\n9 write({opened}, \"\"..., 777) = 777\n\
                 9 {link} = 0\n9 fchmodat({opened}, \"\", 0644, AT_EMPTY_PATH) = 0\n9 close({opened}) = 0\n"
            ));
            assert_eq!(
                kinds(&recorded),
                ["open", "write", "link", "chmod", "close"]
            );
            let from = match &recorded.operations[2].call {
                Call::Link { from, to, .. } => (from.clone(), to.clone()),
                other => panic!("{other:?}"),
            };
            let Call::Open(unnamed) = &recorded.operations[0].call else {
                panic!("{recorded:?}")
            };
            let file = unnamed.file.unwrap();
            assert_eq!(
                from,
                (Target::File(file), Name::new(b"n").unwrap()),
                "{link}"
            );
            assert_eq!(Start::of(&recorded), Start::default(), "{link} {opened}");
        }
    }
}

/// A name that ends like a deleted file's is no reason to make one of this name.
#[test]
fn a_file_whose_name_is_gone_is_left_out() {
    let recorded =
        one("1 write(3</r/f (deleted)>, \"\"..., 777) = 777\n1 fsync(4</r/g>(deleted)) = 0\n");
    let gone = "its file had no name any more when it was first seen";
    assert_eq!(left_out(&recorded), BTreeMap::from([(gone, 2)]));
    assert!(recorded.is_empty());
}

#[test]
fn files_of_several_threads_are_one_recording() {
    let recorded = read(&[
        (
            "t.12",
            "17.2 write(3</r/f>, ..., 5) = 5\n17.4 +++ exited with 0 +++\n",
        ),
        (
            "t.7",
            "17.1 openat(AT_FDCWD, \"f\", O_RDWR|O_CREAT, 0644) = 3</r/f>\n17.15 fork() = 12\n17.3 close(3</r/f>) = 0\n",
        ),
    ]);
    let of = recorded.operations.iter();
    let of: Vec<_> = of.map(|o| (o.thread, o.call.kind())).collect();
    assert_eq!(of, [(7, "open"), (12, "write")]);
    assert_eq!(recorded.operations[1].process, 12);
}

#[test]
fn what_is_no_strace_is_refused_with_its_place() {
    let root = Name::new(b"/r").unwrap();
    let settings = StraceSettings { root, folder: None };
    let refused = |text: &str| {
        let texts = [("some/x".into(), text.to_owned())];
        read_strace(&texts, &settings).unwrap_err().to_string()
    };
    let why = "some/x:1: it is not a line of strace's output";
    assert_eq!(refused("hello\nworld\n"), why);
    assert_eq!(refused("fsync(3"), why);
}

/// Lines of every form.
const LINES: &[&str] = &[
    "1 1.1 openat(AT_FDCWD</r>, \"f\", O_RDWR|O_CREAT, 0644) = 3</r/f>\n",
    "[pid 2] 12:00:01.5 write(3, \"abc\"..., 1000) = 1000 <0.000010>\n",
    "     0.000100 linkat(3</r/#12>(deleted), \"\", AT_FDCWD, \"n\", AT_EMPTY_PATH) = 0\n",
    "1 clone3({flags=CLONE_VM|CLONE_FILES} => {parent_tid=[3]}, 88) = 2\n",
    "1 1.2 fsync(3 <unfinished ...>\n",
    "1 1.3 <... fsync resumed>) = 0\n",
    "strace: Process 2 attached\n",
    "2 1.4 mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, 3, 0) = 0x7f0000000000\n",
    "2 1.5 msync(0x7f0000000000, 4096, MS_SYNC) = 0\n",
    "2 1.6 close_range(3, 4294967295, 0) = 0\n",
    "2 1.7 +++ superseded by execve in pid 1 +++\n",
    "2 1.8 copy_file_range(3, [1], 4</r/g>, NULL, 18446744073709551615, 0) = 9223372036854775807\n",
    "2 1.9 _llseek(3, 18446744073709551615, [18446744073709551615], SEEK_SET) = 0\n",
    "2 2.0 write(3, \"\", 1) = 9223372036854775807\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    /// Changed texts are read or refused, and what is read is in order.
    #[test]
    fn whatever_was_changed_is_read_or_refused(
        lines in proptest::collection::vec(0..LINES.len(), 1..20),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), "[0-9(){}<>\\[\\]\",=\\\\ /a-]{0,3}"), 0..6),
    ) {
        let mut text: Vec<char> = lines.iter().flat_map(|n| LINES[*n].chars()).collect();
        for (place, new) in &changes {
            let at = place.index(text.len());
            text.splice(at..(at + 1).min(text.len()), new.chars());
            text.push(' ');
        }
        let text: String = text.iter().collect();
        let (first, second) = text.split_at(text.char_indices().nth(text.chars().count() / 2).map_or(0, |(at, _)| at));
        for texts in [vec![("x.1", text.as_str())], vec![("x.1", first), ("x.2", second)]] {
            let root = Name::new(b"/r").unwrap();
            let folder = Some(root.clone());
            let texts = texts.into_iter().map(|(path, text)| (path.into(), text.to_owned()));
            let texts: Vec<_> = texts.collect();
            let Ok(recorded) = read_strace(&texts, &StraceSettings { root, folder }) else {
                continue;
            };
            prop_assert!(recorded.operations.is_sorted_by_key(|o| o.begin_ns));
            prop_assert!(recorded.operations.iter().all(|o| o.begin_ns <= o.end_ns));
            Start::of(&recorded);
        }
    }
}

/// Texts whose reading must not take time that grows with the square of their length.
#[test]
fn long_texts_are_read_at_once() {
    let many = |line: &dyn Fn(usize) -> String| (0..5_000).map(line).collect::<String>();
    let long = "1<".repeat(400_000);
    for (text, calls) in [
        (format!("1 write({long}) = 1\n1 fsync(3) = 0\n"), 2),
        (
            format!("1 write({}) = 1\n1 fsync(3) = 0\n", "(\"".repeat(400_000)),
            2,
        ),
        (
            many(&|n| format!("{n} write(3</r/f{n}>, \"\", 1) = 1\n")),
            5_000,
        ),
        (many(&|n| format!("1 fork() = {n}\n")), 5_000),
        (
            many(&|n| format!("1 {n}.5 open(\"/r/f{n}\", O_RDWR) = {n}\n")),
            5_000,
        ),
        (
            many(&|_| "1 write(strace: Process 5 attached\n".to_owned()) + "3) = 1\n",
            5_000,
        ),
    ] {
        let recorded = one(&text);
        let made = kinds(&recorded)
            .into_iter()
            .filter(|kind| *kind != "opened");
        let left_out: u64 = recorded.left_out.values().sum();
        assert_eq!(
            made.count() as u64 + left_out,
            calls,
            "{:?}",
            recorded.left_out
        );
    }
}

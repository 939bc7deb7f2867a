// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors are one line that names the file, with the right exit status.

use crate::run;
use crate::scene;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use mostrace_bundle::manifest::State;
use mostrace_bundle::{layout, table};
use run::program;

fn run(args: &[&str]) -> Output {
    program().args(args).stdin(Stdio::null()).output().unwrap()
}

/// Returns status, stdout and stderr.
fn outcome(args: &[&str]) -> (i32, String, String) {
    let output = run(args);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Makes bundles and files that are each wrong in one way; returns them by name.
fn make_wrong_ones(dir: &Path) {
    let bundle = |name: &str, change: &dyn Fn(&Path)| {
        let folder = scene::transaction().save(dir);
        change(&folder);
        fs::rename(folder, dir.join(name)).unwrap();
    };
    let truncate = |path: &Path, by: u64| {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_len(file.metadata().unwrap().len() - by).unwrap();
    };
    fs::write(
        dir.join("foreign"),
        "hello, I am a text of some length, and no trace\n",
    )
    .unwrap();
    fs::write(dir.join("foreign.tar.zst"), "hello").unwrap();
    fs::write(dir.join("empty.img"), vec![0; 4096]).unwrap();
    let mut f2fs = vec![0; 4096];
    f2fs[1024..1028].copy_from_slice(&0xF2F5_2010_u32.to_le_bytes());
    fs::write(dir.join("f2fs.img"), f2fs).unwrap();
    fs::create_dir(dir.join("folder")).unwrap();
    bundle("good.most", &|_| ());
    bundle("cut.most", &|b| truncate(&b.join("trace.blktrace.0"), 7));
    bundle("cut-entries.most", &|b| {
        truncate(&b.join(layout::PROCESS), 7)
    });
    bundle("no-events.most", &|b| {
        fs::remove_file(b.join("trace.blktrace.0")).unwrap()
    });
    bundle("snapshot.most", &|b| {
        fs::write(b.join(layout::SNAPSHOT), "hello").unwrap()
    });
    bundle("newer.most", &|b| {
        fs::write(b.join(layout::MANIFEST), r#"{"schema": 7}"#).unwrap();
    });
    bundle("damaged.most", &|b| {
        fs::write(b.join(layout::MANIFEST), "{").unwrap()
    });
}

#[test]
fn errors_are_one_line_that_names_the_file() {
    let tmp = tempfile::tempdir().unwrap();
    make_wrong_ones(tmp.path());
    // The exit status, the arguments, and the beginning of what is said.
    let cases = "\
1 analyze @/none => @/none: no such trace
1 analyze @/none.tar.zst => @/none.tar.zst: No such file
1 analyze @/foreign => @/foreign: not a blktrace file (bad magic
1 analyze @/foreign.tar.zst => @/foreign.tar.zst:
1 analyze @/folder => @/folder: no manifest.json in it
1 analyze @/newer.most => @/newer.most/manifest.json: schema version 7
1 analyze @/damaged.most => @/damaged.most/manifest.json: EOF
1 analyze @/cut.most => @/cut.most/trace.blktrace.0: the last record, at byte
1 analyze @/cut-entries.most => @/cut-entries.most/process.entries: entry at byte
1 analyze @/no-events.most => @/no-events.most: no block events in it
1 analyze @/snapshot.most => @/snapshot.most/snapshot.sparse.zst:
1 analyze @/good.most --image @/none.img => @/none.img: open: No such file
1 analyze @/good.most --image @/empty.img => @/empty.img: first blocks: no filesystem recognised
1 analyze @/good.most -o @/none/out.json => @/none/out.json: No such file
1 events @/good.most -o @/folder => @/folder: Is a directory
1 map @/none.img => @/none.img: open: No such file
1 map @/folder => @/folder: no manifest.json in it
1 map @/empty.img => @/empty.img: first blocks: no filesystem recognised
1 map @/f2fs.img => @/f2fs.img: superblock at byte 1024: block,
1 map @/good.most => @/good.most: no snapshot
1 map /dev/null => /dev/null: open: neither an image file nor a block device
2 analyze @/good.most --format csv => csv and parquet hold one table: choose
2 analyze @/good.most -o @/x.parquet => csv and parquet hold one table: choose
2 analyze @/good.most --by class,kind,role,pid,tgid => --by takes at most 4";
    for case in cases.lines() {
        let (args, says) = case.split_once(" => ").unwrap();
        let (status, args) = args.split_once(' ').unwrap();
        let dir = tmp.path().to_str().unwrap();
        let args: Vec<String> = args.split(' ').map(|arg| arg.replace('@', dir)).collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (code, stdout, stderr) = outcome(&args);
        let ended = (code.to_string(), stdout.as_str());
        assert_eq!(ended, (status.to_owned(), ""), "{args:?}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
        let says = format!("mostrace: {}", says.replace('@', dir));
        assert!(stderr.starts_with(&says), "{args:?}: {stderr}");
    }
}

#[test]
fn wrong_usage_is_status_2() {
    for args in [
        &["--nonsense"][..],
        &[],
        &["analyze"],
        &["analyze", "x", "--by", "nonsense"],
        &["analyze", "x", "--top", "3"],
        &["analyze", "x", "--format", "xml"],
        &["analyze", "x", "--json", "--format", "csv"],
        &["analyze", "x", "--start-sector", "3"],
        &["events", "x", "--columns", "nonsense"],
        &["map", "x", "--sector", "-1"],
    ] {
        assert_eq!(outcome(args).0, 2, "{args:?}");
    }
    for args in [
        &["--help"][..],
        &["--version"],
        &["analyze", "--help"],
        &["map", "-h"],
    ] {
        let (code, stdout, _) = outcome(args);
        assert_eq!((code, stdout.is_empty()), (0, false), "{args:?}");
    }
}

#[test]
fn a_damaged_snapshot_can_be_done_without() {
    let tmp = tempfile::tempdir().unwrap();
    make_wrong_ones(tmp.path());
    let path = tmp.path().join("snapshot.most");
    let (code, stdout, _) = outcome(&["analyze", path.to_str().unwrap(), "--no-map"]);
    assert_eq!(code, 0);
    assert!(stdout.contains("no map of the filesystem"), "{stdout}");
}

/// A bare trace does not say whether its recorder ended properly: its contents are read and reported as incomplete.
#[test]
fn a_bare_trace_whose_last_record_is_cut_is_read_up_to_there() {
    let tmp = tempfile::tempdir().unwrap();
    let mut events = scene::transaction().events;
    let whole = |name: &str, events: &[u8]| {
        let path = tmp.path().join(format!("{name}.blktrace.0"));
        fs::write(&path, events).unwrap();
        let name = tmp.path().join(name);
        outcome(&["analyze", name.to_str().unwrap(), "--by", "op", "--json"])
    };
    let (code, all, stderr) = whole("whole", &events);
    assert_eq!((code, stderr.as_str()), (0, ""));
    // The last record is a note, which no table shows.
    events.extend(scene::record(9_000_000_000, 1 << 26, 0, 0, 7, b"name\0"));
    events.truncate(events.len() - 4);
    let (code, cut, stderr) = whole("cut", &events);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(cut, all);
    assert!(
        stderr.contains("INCOMPLETE: ")
            && stderr.contains("cut.blktrace.0: the last record, at byte")
            && stderr.contains("left out 49 bytes"),
        "{stderr}"
    );
    let path = tmp.path().join("cut");
    let (code, stdout, _) = outcome(&["analyze", path.to_str().unwrap()]);
    assert_eq!(code, 0);
    assert!(stdout.starts_with("INCOMPLETE: "), "{stdout}");
    let (code, _, stderr) = outcome(&["events", path.to_str().unwrap()]);
    assert!(code == 0 && stderr.contains("INCOMPLETE: "), "{stderr}");
    // A damaged file is not treated like one that was cut off.
    let middle = events.len() / 2 / 48 * 48;
    events[middle..middle + 4].copy_from_slice(b"....");
    let (code, _, stderr) = whole("damaged", &events);
    assert_eq!(code, 1);
    assert!(stderr.contains("no blktrace record at byte"), "{stderr}");
    let (code, _, stderr) = whole("short", b"hi");
    assert_eq!(code, 1, "{stderr}");
}

/// The rows are held in a frame of the named columns only; the message is about the whole table.
#[test]
fn a_queries_error_is_of_the_columns_of_events() {
    let tmp = tempfile::tempdir().unwrap();
    let path = scene::transaction().save(tmp.path());
    let path = path.to_str().unwrap();
    for (sql, says) in [
        ("SELECT nosuch FROM events", "no column nosuch"),
        (
            "SELECT cause_com FROM events",
            "; the nearest: cause_comm, ",
        ),
        (
            "SELECT class, nosuch FROM events GROUP BY class",
            "no column nosuch",
        ),
        (
            "SELECT class FROM events WHERE nosuch = 1",
            "no column nosuch",
        ),
        ("SELECT events.nosuch FROM events", "nosuch"),
    ] {
        let (code, _, stderr) = outcome(&["query", path, sql]);
        assert_eq!(code, 2, "{sql}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{sql}: {stderr}");
        assert!(stderr.contains(says), "{sql}: {stderr}");
        assert!(
            stderr.contains("mostrace schema lists all"),
            "{sql}: {stderr}"
        );
    }
    let sql = "SELECT bytes + comm FROM events";
    let (code, _, stderr) = outcome(&["query", path, sql]);
    assert_eq!(code, 2, "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    // An option may stand anywhere; without a query, the recording is not taken for one.
    let sql = "SELECT count(*) AS n FROM events";
    let (code, stdout, stderr) = outcome(&["query", path, "--format", "csv", sql]);
    assert_eq!((code, stdout.lines().next()), (0, Some("n")), "{stderr}");
    let (code, _, stderr) = outcome(&["query", path]);
    assert_eq!((code, stderr.lines().count()), (2, 1), "{stderr}");
    assert!(stderr.contains("no query"), "{stderr}");
}

/// Polars would find no row for a value that none can have, take a sum for true, or repeat it on each row.
#[test]
fn what_cannot_be_is_one_line_with_what_can() {
    let tmp = tempfile::tempdir().unwrap();
    let path = scene::transaction().save(tmp.path());
    let path = path.to_str().unwrap();
    for (condition, says) in [
        ("role = 'wall'", "role is never 'wall'; the nearest: wal"),
        (
            "role IN ('wal', 'dbb')",
            "role is never 'dbb'; the nearest: db",
        ),
        ("'Write' <> op", "op is never 'Write'; the nearest: write"),
        ("cause_op = 'wrote'", "the nearest: write"),
        ("sum(bytes) > 4096", "sum(bytes) is of many rows"),
        ("count(*) > 3", "count(*) is of many rows"),
        ("median(bytes) > 3", "median(bytes) is of many rows"),
        ("bytes > 'x'", "bytes is a number, and 'x' is text"),
        ("bytes BETWEEN 1 AND 'x'", "bytes is a number"),
        ("role > 3", "role is text: write '3'"),
        ("sync = 'yes'", "sync is true or false"),
        ("time_utc > '2026-01-01'", "write TIMESTAMP"),
        ("bytes", "a condition is true or false"),
        ("bytes + 1", "a condition is true or false"),
        ("bytes > 1 garbage", "garbage does not belong"),
        ("rol = 'wal'", "no column rol; the nearest: role"),
    ] {
        for verb in [&["events"][..], &["analyze", "--by", "role"]] {
            let (code, _, stderr) = outcome(&[verb, &[path, "--where", condition]].concat());
            assert_eq!(
                (code, stderr.lines().count()),
                (2, 1),
                "{condition}: {stderr}"
            );
            assert!(stderr.contains(says), "{condition}: {stderr}");
        }
    }
    for (sql, says) in [
        ("SELECT role, count(*) FROM events", "add GROUP BY role"),
        (
            "SELECT role, op, max(bytes) FROM events GROUP BY role",
            "add GROUP BY role, op",
        ),
        (
            "SELECT role, bytes*2 FROM events GROUP BY role",
            "add GROUP BY role, bytes",
        ),
        (
            "SELECT *, count(*) FROM events",
            "name the columns to GROUP BY",
        ),
        (
            "SELECT role FROM events HAVING count(*) > 3",
            "there is no GROUP BY",
        ),
        (
            "SELECT role FROM events WHERE sum(bytes) > 3 GROUP BY role",
            "put it into HAVING",
        ),
        (
            "SELECT bytes FROM events WHERE role = 'wall'",
            "the nearest: wal",
        ),
        (
            "SELECT path FROM files WHERE role = 'wall'",
            "the nearest: wal",
        ),
        (
            "SELECT e.op FROM events e JOIN requests r ON e.completion = r.completion WHERE r.op = 'wrte'",
            "the nearest: write",
        ),
        (
            "SELECT call FROM calls WHERE call = 'fsink'",
            "the nearest: fsync",
        ),
        (
            "SELECT bytes, bytes FROM events",
            "two columns are called bytes",
        ),
        (
            "SELECT op FROM evens",
            "no table evens; the nearest: events",
        ),
    ] {
        let (code, _, stderr) = outcome(&["query", path, sql]);
        assert_eq!((code, stderr.lines().count()), (2, 1), "{sql}: {stderr}");
        assert!(stderr.contains(says), "{sql}: {stderr}");
    }
    for (arguments, says) in [
        (
            &["analyze", path, "--by", "bytes"][..],
            "bytes are summed; --by size",
        ),
        (
            &["analyze", path, "--by", "role,role"],
            "--by names role twice",
        ),
        (
            &["analyze", path, "--by", "role", "--columns", "rol"],
            "the nearest: role",
        ),
        (
            &["events", path, "--columns", "role,role"],
            "--columns names role twice",
        ),
        (
            &["events", path, "--columns", "tim_utc"],
            "no column tim_utc; the nearest: time_utc, time_ns",
        ),
        (
            &["analyze", path, "--by", "comand"],
            "; mostrace schema lists all",
        ),
        (&["anaylze", path], "no verb anaylze; the nearest: analyze"),
        (&["frobnicate"], "; mostrace --help lists all"),
        (
            &["ledger", "shw", path],
            "no verb shw; the nearest: show; mostrace ledger --help lists all",
        ),
    ] {
        let (code, _, stderr) = outcome(arguments);
        assert_eq!(
            (code, stderr.lines().count()),
            (2, 1),
            "{arguments:?}: {stderr}"
        );
        assert!(stderr.contains(says), "{arguments:?}: {stderr}");
    }
}

/// The names are those that SQLite gives, and the values are those of the rows.
#[test]
fn columns_without_names_are_called_by_their_text() {
    let tmp = tempfile::tempdir().unwrap();
    let path = scene::transaction().save(tmp.path());
    let path = path.to_str().unwrap();
    let answer = |arguments: &[&str]| {
        let (code, stdout, stderr) = outcome(&[arguments, &["--format", "csv"]].concat());
        assert_eq!(code, 0, "{arguments:?}: {stderr}");
        stdout
    };
    let rows = answer(&["events", path, "--columns", "bytes"]);
    let bytes: Vec<u64> = rows
        .lines()
        .skip(1)
        .map(|line| line.parse().unwrap())
        .collect();
    let (least, most, all) = (
        bytes.iter().min().unwrap(),
        bytes.iter().max().unwrap(),
        bytes.len(),
    );
    let sql = "SELECT min(bytes), max(bytes), count(*) FROM events";
    let expected = format!("min(bytes),max(bytes),count(*)\n{least},{most},{all}\n");
    assert_eq!(answer(&["query", path, sql]), expected);
    let sorted =
        "SELECT op, count(*) FROM events GROUP BY op HAVING count(*) > 0 ORDER BY count(*) DESC";
    let sorted = answer(&["query", path, sorted]);
    let counts: Vec<u64> = sorted
        .lines()
        .skip(1)
        .map(|l| l.split(',').nth(1).unwrap().parse().unwrap())
        .collect();
    assert!(counts.is_sorted_by(|a, b| a >= b), "{sorted}");
    assert_eq!(counts.iter().sum::<u64>(), all as u64, "{sorted}");
    // What a query makes itself may be called as one of our columns.
    let made = "WITH e AS (SELECT path AS role FROM events) SELECT count(*) AS n FROM e WHERE role = 'wall'";
    assert_eq!(answer(&["query", path, made]), "n\n0\n");
}

#[test]
fn cut_files_are_read_when_asked_for_or_when_the_recorder_was_killed() {
    let tmp = tempfile::tempdir().unwrap();
    make_wrong_ones(tmp.path());
    for name in ["cut.most", "cut-entries.most"] {
        let path = tmp.path().join(name);
        let (code, stdout, stderr) = outcome(&["analyze", path.to_str().unwrap(), "--partial"]);
        assert_eq!(code, 0, "{stderr}");
        assert!(
            stderr.contains("left out") && stdout.contains("left out"),
            "{stderr}{stdout}"
        );
    }
    let mut scene = scene::transaction();
    scene.manifest.state = State::Recording;
    scene.events.truncate(scene.events.len() - 7);
    let path = scene.save(tmp.path());
    let (code, stdout, stderr) = outcome(&["analyze", path.to_str().unwrap()]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.starts_with("CUT SHORT"), "{stdout}");
    assert!(
        stderr.lines().next().unwrap().contains("CUT SHORT"),
        "{stderr}"
    );
    assert!(stderr.contains("left out"), "{stderr}");
    // The last C was cut off, so the discard is missing.
    let (_, table, _) = outcome(&["analyze", path.to_str().unwrap(), "--by", "op", "--json"]);
    assert!(
        table.contains("device_flush") && !table.contains("\"discard\""),
        "{table}"
    );
}

/// A part of a table would look like the whole. A file that existed before must not be removed.
#[test]
fn of_an_output_that_fails_nothing_is_left() {
    let tmp = tempfile::tempdir().unwrap();
    make_wrong_ones(tmp.path());
    let bundle = tmp.path().join("damaged.most");
    let bundle = bundle.to_str().unwrap();
    for (verb, name) in [("events", "new.csv"), ("report", "new.html")] {
        let out = tmp.path().join(name);
        let (code, _, _) = outcome(&[verb, bundle, "-o", out.to_str().unwrap()]);
        assert_eq!((code, out.exists()), (1, false), "{verb}");
        fs::write(&out, "old").unwrap();
        let (code, _, _) = outcome(&[verb, bundle, "-o", out.to_str().unwrap()]);
        assert_eq!((code, out.exists()), (1, true), "{verb}");
    }
}

#[test]
fn a_report_is_a_page() {
    let tmp = tempfile::tempdir().unwrap();
    let bundle = scene::transaction().save(tmp.path());
    let bundle = bundle.to_str().unwrap();
    let out = tmp.path().join("x.pdf");
    let (code, _, stderr) = outcome(&["report", bundle, "-o", out.to_str().unwrap()]);
    assert_eq!((code, out.exists()), (2, false), "{stderr}");
    assert!(stderr.contains("name it .html, not .pdf"), "{stderr}");
    let out = tmp.path().join("x.html");
    let (code, _, stderr) = outcome(&["report", bundle, "-o", out.to_str().unwrap()]);
    assert_eq!((code, out.exists()), (0, true), "{stderr}");
    assert!(stderr.contains("x.html: open it in a browser"), "{stderr}");
}

#[test]
fn a_full_disk_is_an_error_that_names_it() {
    let tmp = tempfile::tempdir().unwrap();
    let path = scene::transaction().save(tmp.path());
    let path = path.to_str().unwrap();
    for args in [
        vec!["analyze", path, "-o", "/dev/full"],
        vec!["analyze", path, "--json", "-o", "/dev/full"],
        vec![
            "analyze",
            path,
            "--by",
            "class",
            "--format",
            "csv",
            "-o",
            "/dev/full",
        ],
        vec!["events", path, "--format", "parquet", "-o", "/dev/full"],
        vec!["events", path, "--format", "json", "-o", "/dev/full"],
    ] {
        let (code, _, stderr) = outcome(&args);
        assert_eq!(code, 1, "{args:?}");
        assert!(
            stderr.starts_with("mostrace: /dev/full: No space left on device"),
            "{stderr}"
        );
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = program()
        .args(["events", path])
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.starts_with("mostrace: standard output: No space left"),
        "{stderr}"
    );
}

#[test]
fn a_closed_pipe_is_no_error() {
    let tmp = tempfile::tempdir().unwrap();
    let mut scene = scene::Scene::new();
    for n in 0..20_000 {
        scene.request(scene::WRITE, n * 8, 4096, scene::SQLITE);
    }
    let path = scene.save(tmp.path());
    for format in ["table", "csv", "json", "parquet"] {
        let mut child = program()
            .args(["events", path.to_str().unwrap(), "--format", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*stderr), (Some(0), ""), "{format}");
    }
}

#[test]
fn parquet_is_not_for_terminals() {
    let tmp = tempfile::tempdir().unwrap();
    let path = scene::transaction().save(tmp.path());
    let command = format!(
        "{} events {} --format parquet; echo status $?",
        env!("CARGO_BIN_EXE_mostrace"),
        path.display()
    );
    let output = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("parquet is not for terminals") && text.contains("status 2"),
        "{text}"
    );
}

#[test]
fn hostile_names_cannot_break_a_table() {
    let tmp = tempfile::tempdir().unwrap();
    let mut scene = scene::Scene::new();
    scene.write_file(0, 4096, 12, b"a\nb\x1b[2J\xff,\"c\"\\");
    scene
        .manifest
        .notes
        .push("evil\x1b]0;title\x07\nnote".into());
    scene.manifest.device.name = "\x1b[31m".into();
    let path = scene.save(tmp.path());
    let path = path.to_str().unwrap();
    let shown = "a\\x0ab\\x1b[2J\\xff,\"c\"\\\\";
    for args in [
        vec!["analyze", path],
        vec!["analyze", path, "--json"],
        vec!["analyze", path, "--by", "file"],
        vec!["events", path],
        vec!["events", path, "--format", "csv"],
    ] {
        let (code, stdout, _) = outcome(&args);
        assert_eq!(code, 0, "{args:?}");
        let stray = stdout.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(stray, None, "{args:?}: {stdout}");
    }
    let (_, stdout, _) = outcome(&["events", path, "--columns", "path"]);
    assert_eq!(stdout.lines().nth(1).unwrap().trim(), shown);
    let (_, stdout, _) = outcome(&["events", path, "--columns", "path", "--format", "csv"]);
    assert_eq!(
        stdout,
        format!("path\n\"{}\"\n", shown.replace('"', "\"\""))
    );
}

/// One character of each kind: C1, DEL, direction marks, and invisible ones.
const DECEPTIVE: &str =
    "\u{9b}31m\u{7f}\u{202e}\u{2066}\u{ad}\u{180e}\u{2800}\u{3164}\u{e0041}\u{200b}\u{fe0f}\u{a0}";

#[test]
fn no_name_and_no_word_deceives_who_reads_it() {
    let tmp = tempfile::tempdir().unwrap();
    let mut scene = scene::Scene::new();
    scene.write_file(0, 4096, 12, DECEPTIVE.as_bytes());
    scene.manifest.notes.push(DECEPTIVE.into());
    scene.manifest.label = Some(DECEPTIVE.into());
    scene.manifest.losses.insert(DECEPTIVE.into(), 1);
    scene.manifest.functions.push(DECEPTIVE.into());
    let saved = scene.save(tmp.path());
    let path = tmp.path().join(format!("{DECEPTIVE}.most"));
    fs::rename(saved, &path).unwrap();
    let path = path.to_str().unwrap();
    let query = format!("SELECT '{DECEPTIVE}' AS word FROM events LIMIT 1");
    for args in [
        vec!["analyze", path],
        vec!["analyze", path, "--json"],
        vec!["analyze", path, "--by", "file"],
        vec!["analyze", path, "--tree"],
        vec!["events", path],
        vec!["events", path, "--format", "csv"],
        vec!["events", path, "--json"],
        vec!["query", path, &query],
        vec!["query", path, &query, "--json"],
        vec!["diff", path, path],
        vec!["diff", path, path, "--json"],
        vec![
            "check",
            path,
            "--max-write-bytes",
            "1",
            "--junit",
            "/dev/stdout",
        ],
        vec!["map", path],
        vec!["export", path, "--format", "folded"],
        vec!["export", path, "--format", "blkparse"],
    ] {
        let (_, stdout, stderr) = outcome(&args);
        for text in [stdout, stderr] {
            let stray = text
                .chars()
                .find(|c| DECEPTIVE.contains(*c) && !c.is_ascii_graphic());
            assert_eq!(stray, None, "{args:?}: {text}");
        }
    }
    // Programs read the text unchanged.
    let (_, json, _) = outcome(&["analyze", path, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["manifest"]["notes"], serde_json::json!([DECEPTIVE]));
    let (_, json, _) = outcome(&["query", path, &query, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["word"], DECEPTIVE);
}

#[test]
fn a_file_is_no_formula_in_a_spreadsheet() {
    let tmp = tempfile::tempdir().unwrap();
    let mut scene = scene::Scene::new();
    scene.write_file(0, 4096, 12, b"=cmd|' /C calc'!A0");
    let path = scene.save(tmp.path());
    let path = path.to_str().unwrap();
    let csv = |format| outcome(&["events", path, "--columns", "path", "--format", format]).1;
    assert_eq!(csv("csv"), "path\n=cmd|' /C calc'!A0\n");
    assert_eq!(csv("csv-safe"), "path\n'=cmd|' /C calc'!A0\n");
}

/// A block at sector 0 without a length, and 500 times 4 GiB of blocks: neither causes an error nor takes memory.
#[test]
fn blocks_that_were_given_back_are_bounded() {
    let mut scene = scene::transaction();
    scene.manifest.sources.entries = "bpf".into();
    for (sector, bytes, times) in [(0u64, 0u32, 1usize), (1, u32::MAX, 500)] {
        let tmp = tempfile::tempdir().unwrap();
        let path = scene.save(tmp.path());
        let mut entry = [0; 56];
        entry[..4].copy_from_slice(&[8, 0, 56, 0]);
        entry[16..24].copy_from_slice(&sector.to_le_bytes());
        entry[24..28].copy_from_slice(&bytes.to_le_bytes());
        entry[32] = 12;
        let freed = [&table::header()[..], &entry.repeat(times)].concat();
        fs::write(path.join(layout::FREED), freed).unwrap();
        let (status, _, stderr) = outcome(&["analyze", path.to_str().unwrap()]);
        assert_eq!(status, 0, "{stderr}");
    }
}

/// A bundle with a missing part is read, and the first line says what is missing.
#[test]
fn what_is_missing_of_a_bundle_comes_first() {
    let sample = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../sample-traces/wal.most.tar.zst"
    );
    let tmp = tempfile::tempdir().unwrap();
    let whole = std::fs::read(sample).unwrap();
    let cut = tmp.path().join("cut.most.tar.zst");
    std::fs::write(&cut, &whole[..whole.len() * 3 / 4]).unwrap();
    let folder = tmp.path().join("folder.most");
    std::fs::create_dir(&folder).unwrap();
    let mut tar = Command::new("tar");
    tar.args(["--zstd", "-xf", sample, "-C"]).arg(&folder);
    assert!(tar.status().unwrap().success());
    std::fs::remove_file(folder.join("trace.blktrace.0")).unwrap();
    for (bundle, why) in [
        (&cut, "the archive is cut short at byte"),
        (&folder, "trace.blktrace.0 is missing"),
    ] {
        let (status, stdout, _) = outcome(&["analyze", bundle.to_str().unwrap()]);
        let first = stdout.lines().next().unwrap_or_default();
        assert_eq!(status, 0, "{first}");
        assert!(
            first.starts_with("INCOMPLETE: ") && first.contains(why),
            "{first}"
        );
        let path = bundle.to_str().unwrap();
        let (status, _, stderr) = outcome(&["check", path, "--max-write-bytes", "1"]);
        let says =
            format!("mostrace: {path}: this trace cannot be compared with limits: INCOMPLETE");
        assert!(status == 1 && stderr.starts_with(&says), "{stderr}");
    }
}

/// polars walks a chain of operators by recursion, and plans each SELECT anew wherever it is named.
#[test]
fn a_query_is_no_deeper_than_can_be_run() {
    let (_tmp, path) = scene::saved(&scene::transaction());
    let chain = |length: usize| format!("SELECT {}", vec!["1"; length].join("+"));
    let (status, out, _) = outcome(&["query", &path, &chain(2000), "--format", "csv"]);
    assert_eq!((status, &*out), (0, "literal\n2000\n"));
    let selects = vec!["SELECT 1"; 101].join(" UNION ALL ");
    for (sql, why) in [
        (chain(20_000), "the query has 40006 bytes, at most 8192"),
        (selects, "the query has 101 SELECTs, at most 100"),
        // polars panics over it.
        (
            "SELECT INTERVAL '1 foo'".to_owned(),
            "SELECT INTERVAL '1 foo': ",
        ),
    ] {
        let (status, _, said) = outcome(&["query", &path, &sql]);
        assert_eq!((status, said.lines().count()), (2, 1), "{said}");
        assert!(said.starts_with(&format!("mostrace: {why}")), "{said}");
    }
}

/// A file that was written is named, with what opens it.
#[test]
fn what_was_written_is_said() {
    let tmp = tempfile::tempdir().unwrap();
    let path = scene::transaction().save(tmp.path());
    let path = path.to_str().unwrap();
    let at = |name: &str| tmp.path().join(name).display().to_string();
    let (csv, parquet, folded, page) = (at("x.csv"), at("x.parquet"), at("x.folded"), at("x.html"));
    for (arguments, file, how) in [
        (&["events", path, "-o", &csv][..], &csv, "spreadsheet"),
        (&["events", path, "-o", &parquet], &parquet, "DuckDB"),
        (
            &["export", path, "--format", "folded", "-o", &folded],
            &folded,
            "flamegraph.pl ",
        ),
        (&["report", path, "-o", &page], &page, "in a browser"),
        (
            &["analyze", path, "--by", "role", "-o", &csv],
            &csv,
            "spreadsheet",
        ),
        (&["diff", path, path, "-o", &folded], &folded, "less"),
    ] {
        let (code, stdout, stderr) = outcome(arguments);
        assert_eq!((code, &*stdout), (0, ""), "{stderr}");
        let last = stderr.lines().last().unwrap_or_default();
        assert!(
            last.starts_with(&format!("mostrace: {file}: ")) && last.contains(how),
            "{arguments:?}: {stderr}"
        );
    }
    let (code, _, stderr) = outcome(&["events", path, "--format", "csv", "-o", "-"]);
    assert_eq!((code, &*stderr), (0, ""));
    let pdf = at("x.pdf");
    let (code, _, stderr) = outcome(&["report", path, "-o", &pdf]);
    assert!(code == 2 && stderr.contains("not .pdf"), "{stderr}");
}

/// Layers have colours on a terminal alone, and NO_COLOR takes them away.
#[test]
fn colours_are_for_terminals() {
    let tmp = tempfile::tempdir().unwrap();
    let path = scene::transaction().save(tmp.path());
    let shown = |columns: u32, environment: &str| {
        let line = format!(
            "stty rows 24 cols {columns}; {environment} {} analyze {}",
            env!("CARGO_BIN_EXE_mostrace"),
            path.display()
        );
        let mut script = Command::new("script");
        let script = script.args(["-qec", &line, "/dev/null"]);
        let script = script.stdin(Stdio::null()).env("TERM", "xterm");
        let output = script.env_remove("NO_COLOR").output().unwrap();
        String::from_utf8(output.stdout).unwrap().replace('\r', "")
    };
    let wide = shown(100, "");
    assert!(
        wide.contains("\u{1b}[31m") && wide.contains("'s journal\u{1b}[0m"),
        "{wide:?}"
    );
    assert!(wide.contains("\u{1b}[31m█"), "{wide:?}");
    let plain = shown(100, "NO_COLOR=1");
    assert!(
        plain.contains("█") && !plain.contains('\u{1b}'),
        "{plain:?}"
    );
    // At 40 columns the numbers stay and the bars go; nothing of the tree is wrapped.
    let narrow = shown(40, "NO_COLOR=1");
    assert!(!narrow.contains('█') && narrow.contains(" %"), "{narrow}");
    let (_, tree) = narrow.split_once("   written").unwrap();
    let (tree, _) = tree.split_once("\n\n").unwrap();
    assert!(
        tree.lines().skip(1).all(|line| line.chars().count() <= 40),
        "{tree}"
    );
    let (code, piped, _) = outcome(&["analyze", path.to_str().unwrap()]);
    assert!(code == 0 && !piped.contains('\u{1b}'), "{piped}");
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Replays: Mobibench, MobiGen's scripts, an application's SQL; and another SQLite than the built-in one.

use crate::common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::sqlite3;
use mostrace_workload::{
    Journal, Mobibench, MobigenSettings, Outcome, Progress, Settings, SqlSettings, Sync, run,
    run_mobibench, run_mobigen, run_sql,
};
use test_support::{Suite, tests};

pub fn suite() -> Suite {
    test_support::at_once(tests![
        mobibenchs_rows_are_there needs [common::SQLITE3],
        a_transaction_of_several_databases_touches_all needs [common::SQLITE3],
        mobibenchs_deletions_leave_nothing,
        mobibenchs_files_are_divided_among_threads,
        a_script_is_replayed_below_its_folder,
        a_script_makes_its_calls_and_no_others needs common::STRACE,
        a_log_is_replayed_with_its_times needs [common::SQLITE3],
        a_statement_that_is_refused_is_named,
        the_systems_own_sqlite_writes_the_same needs [common::SQLITE3],
        what_is_no_sqlite_is_refused,
        a_log_is_run_as_the_shell_runs_it needs [common::SQLITE3],
        a_log_that_bails_stops needs [common::SQLITE3],
    ])
}

fn mobibench(folder: &Path) -> Mobibench {
    Mobibench {
        path: folder.join("bench"),
        database: Some(0),
        transactions: 20,
        synchronous: 0,
        ..Mobibench::default()
    }
}

fn bench(options: &Mobibench) -> Outcome {
    run_mobibench(options, &Progress::default()).unwrap()
}

fn mobibenchs_rows_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let options = mobibench(folder.path());
    for journal in 0..6 {
        let outcome = bench(&Mobibench {
            journal,
            ..options.clone()
        });
        assert_eq!(outcome.payload.transactions, 20);
        assert_eq!(outcome.payload.payload_bytes, 20 * 3 * 100);
        let told = sqlite3(
            &options.path.join("test.db0_0"),
            "PRAGMA integrity_check; PRAGMA auto_vacuum; SELECT count(*), min(id), max(id), min(length(Value)), count(creation_date) FROM tblMyList2",
        );
        assert_eq!(told, ["ok", "1", "20|0|19|100|0"], "{journal}");
    }
    bench(&Mobibench {
        database: Some(1),
        ..options.clone()
    });
    // Rows are added until there are enough to choose from; 20 updates change at most 20 rows.
    let told = sqlite3(
        &options.path.join("test.db0_0"),
        "SELECT count(*), max(id), sum(Value LIKE 'f%') BETWEEN 1 AND 20 FROM tblMyList1",
    );
    assert_eq!(told, ["296|295|1"]);
}

fn a_transaction_of_several_databases_touches_all() {
    let folder = tempfile::tempdir().unwrap();
    let options = Mobibench {
        databases: 3,
        tables: 2,
        random_insert: Some("word".into()),
        ..mobibench(folder.path())
    };
    bench(&options);
    for database in 0..3 {
        let told = sqlite3(
            &options.path.join(format!("test.db0_{database}")),
            "SELECT count(*) FROM tblMyList0; SELECT count(*) FROM tblMyList1; SELECT count(*) FROM sqlite_master WHERE type='table'",
        );
        assert_eq!(told, ["20", "20", "2"], "{database}");
    }
}

fn mobibenchs_deletions_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = Mobibench {
        database: Some(2),
        databases: 2,
        threads: 2,
        ..mobibench(folder.path())
    };
    let outcome = bench(&options);
    assert_eq!(
        (outcome.payload.transactions, outcome.payload.payload_bytes),
        (20, 0)
    );
    assert_eq!(fs::read_dir(&options.path).unwrap().count(), 0);
}

fn mobibenchs_files_are_divided_among_threads() {
    let folder = tempfile::tempdir().unwrap();
    let options = Mobibench {
        database: None,
        threads: 2,
        file_kib: 64,
        access: 4,
        ..mobibench(folder.path())
    };
    let outcome = bench(&options);
    assert_eq!(
        (
            outcome.payload.workload.as_str(),
            outcome.payload.transactions
        ),
        ("file", 16)
    );
    for n in 0..2 {
        let file = options.path.join(format!("test.dat{n}"));
        assert_eq!(fs::metadata(file).unwrap().len(), 32 << 10);
    }
}

/// The shell runs the same logs.
fn a_log_is_run_as_the_shell_runs_it() {
    let logs = [
        (
            "CREATE TABLE t(a INTEGER PRIMARY KEY);\nINSERT INTO t VALUES(1);\nINSERT INTO t VALUES(1);\nINSERT INTO t VALUES(2);\n",
            1,
            0,
        ),
        // The rest of a line is skipped, in a transaction too.
        (
            "CREATE TABLE t(a UNIQUE);\nBEGIN; INSERT INTO t VALUES(1); INSERT INTO t VALUES(1); COMMIT;\nINSERT INTO t VALUES(3); COMMIT;\nINSERT INTO t VALUES(4);\n",
            2,
            0,
        ),
        (
            "#a\n.mode csv\nCREATE TABLE t(a);\nNONSENSE;\nINSERT INTO t /* ;\n.x */ VALUES(1); -- x\nINSERT INTO t VALUES('\n.y');\n.quit\nINSERT INTO t VALUES(9);\n",
            1,
            0,
        ),
        (
            "CREATE TABLE t(a); INSERT INTO nothing VALUES(1); /* x\n */ INSERT INTO t VALUES(1);\n.tables\nINSERT INTO t VALUES(2)",
            2,
            0,
        ),
        (
            "CREATE TABLE t(a);\n.vacuumed\n.once x\nINSERT INTO t VALUES(1);\n",
            0,
            1,
        ),
    ];
    for (text, failed, left_out) in logs {
        let folder = tempfile::tempdir().unwrap();
        let [log, own, theirs] = ["log", "own", "theirs"].map(|name| folder.path().join(name));
        fs::write(&log, text).unwrap();
        let settings = SqlSettings {
            log: log.clone(),
            database: own.clone(),
            timing: false,
            library: None,
        };
        let outcome = run_sql(&settings, &Progress::default()).unwrap();
        let told = |name: &str| outcome.payload.settings[name].clone();
        assert_eq!(told("statements_failed"), failed.to_string(), "{text}");
        let commands = outcome
            .heading
            .contains("commands left out, the first is .vacuumed in line 2");
        assert_eq!(commands, left_out > 0, "{}", outcome.heading);
        let shell = Command::new("sqlite3")
            .arg(&theirs)
            .stdin(fs::File::open(&log).unwrap())
            .current_dir(folder.path())
            .output();
        shell.unwrap();
        let rows = |path| sqlite3(path, "SELECT rowid, a FROM t");
        assert_eq!(rows(&own), rows(&theirs), "{text}");
    }
}

/// The shell ends at once, and so does the run.
fn a_log_that_bails_stops() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let settings = SqlSettings {
        log: log.clone(),
        database: folder.path().join("db"),
        timing: false,
        library: None,
    };
    for text in [
        "CREATE TABLE t(a);\n.bail on\nNONSENSE;\nDROP TABLE t;\n",
        "\n\nNONSENSE;\n",
    ] {
        fs::write(&log, text).unwrap();
        let refused = run_sql(&settings, &Progress::default()).unwrap_err();
        assert!(refused.to_string().contains("log:3: "), "{refused}");
    }
    assert_eq!(sqlite3(&settings.database, "SELECT count(*) FROM t"), ["0"]);
}

fn a_script_is_replayed_below_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let outside = folder.path().join("outside");
    fs::write(&outside, "theirs").unwrap();
    let script = folder.path().join("script");
    let quoted = outside.display();
    // A file of the thread's own; one with a name; one that the application could not open; one that was open before.
    let lines = format!(
        "1 0 open data/data O_RDWR|O_CREAT 5\n1 10 write 5 100\n1 20 pwrite 5 1000 24\n1 30 fsync 5\n1 40 close 5\n\
         2 0 open \"{quoted}\" O_RDWR|O_CREAT|O_TRUNC 6\n2 15 write 6 3\n2 25 fdatasync 6\n\
         2 30 open \"/data/no\" O_RDWR -1\n2 35 write 99 5\n2 40 unlink \"/data/none\"\n2 41 stat64 \"{quoted}\" 0\n"
    );
    fs::write(&script, lines).unwrap();
    let settings = MobigenSettings {
        script,
        path: folder.path().join("root"),
        timing: false,
    };
    let outcome = run_mobigen(&settings, &Progress::default()).unwrap();
    assert_eq!(outcome.payload.transactions, 12);
    // A descriptor that was never opened, and a file that does not exist.
    assert_eq!(outcome.payload.settings["other_result"], "2");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "theirs");
    let below = settings.path.join(outside.strip_prefix("/").unwrap());
    assert_eq!(fs::metadata(below).unwrap().len(), 3);
    assert_eq!(
        fs::metadata(settings.path.join("temp_1_0.dat"))
            .unwrap()
            .len(),
        1024
    );
    assert!(!settings.path.join("data/no").exists());
}

/// Cases from Mobibench's own scripts: calls that failed, descriptors that were never opened, a number that is opened
/// twice.
const HARD: &str = "1 0 open data/data O_WRONLY|O_CREAT|O_TRUNC|O_LARGEFILE 36\n1 1 write 36 4\n1 2 open data/data O_RDWR|O_CREAT|O_LARGEFILE 36\n\
    1 3 pwrite 36 4096 100\n1 4 pread 36 4096 100\n1 5 read 173 -1\n1 6 fsync 36 0\n1 7 fsync 99 0\n1 8 fdatasync 36 0\n1 9 fstat64 36 0\n\
    1 10 close 36 0\n1 11 close 36 0\n1 12 write 36 5\n2 0 access \"/data/app/a.apk\" 0\n2 1 open \"/data/app/a.apk\" O_RDONLY|O_LARGEFILE 7\n\
    2 2 read 7 1000\n2 3 close 7 0\n2 4 stat64 \"/data/app\" 0\n2 5 lstat64 \"/data/none\" -1\n2 6 unlink \"/data/app/a.apk\" 0\n\
    2 7 access \"/data/app/a.apk\" -1\n2 8 open \"/data/app/a.apk\" O_RDONLY|O_LARGEFILE -1\n2 9 open \"/data/app\" O_RDONLY|O_DIRECTORY 7\n\
    2 10 open x/y O_RDWR|O_CREAT|O_EXCL -1\n";

/// Returns the kind of call for a name in a script or in strace's output.
fn kind(name: &str) -> &str {
    match name {
        "openat" => "open",
        "pread64" => "pread",
        "pwrite64" => "pwrite",
        "faccessat" | "faccessat2" => "access",
        "unlinkat" => "unlink",
        "newfstatat" | "statx" | "fstat" | "fstat64" | "stat64" | "lstat" | "lstat64" => "stat",
        other => other,
    }
}

fn count<'n>(names: impl Iterator<Item = &'n str>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(kind(name).to_owned()).or_default() += 1;
    }
    counts
}

fn a_script_makes_its_calls_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let [script, root] = ["script", "root"].map(|name| folder.path().join(name));
    fs::write(&script, HARD).unwrap();
    let traces = tempfile::tempdir().unwrap();
    let set = "open,openat,close,read,write,pread64,pwrite64,fsync,fdatasync,fstat,stat,lstat,newfstatat,statx,access,\
               faccessat,faccessat2,unlink,unlinkat,execve";
    let output = Command::new("strace")
        .args(["-ff", "-y", "-qq", "-s", "0", "-e", "signal=none", "-e"])
        .arg(format!("trace={set}"))
        .arg("-o")
        .arg(traces.path().join("trace"))
        .args([&common::example("mobigen"), &script, &root])
        .output()
        .unwrap();
    let outcome = common::outcome(output);
    let threads = fs::read_dir(traces.path()).unwrap();
    let threads = threads.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
    // The first thread prepares; each of the others reads the kernel's counters of what it wrote.
    let of_script: String = threads.filter(|text| !text.contains("execve(")).collect();
    let calls = of_script.lines().filter(|line| !line.contains("/proc/"));
    let made = count(calls.filter_map(|line| line.split_once('(').map(|(name, _)| name)));
    let wanted = count(HARD.lines().filter_map(|line| line.split(' ').nth(2)));
    assert_eq!(made, wanted, "{of_script}");
    let settings = &outcome.payload.settings;
    let told = |prefix: &str| -> BTreeMap<String, u64> {
        let told = settings.iter().filter_map(|(key, value)| {
            Some((key.strip_prefix(prefix)?.to_owned(), value.parse().unwrap()))
        });
        told.collect()
    };
    let by_kind: Vec<String> = told("calls_")
        .iter()
        .flat_map(|(name, calls)| vec![name.clone(); usize::try_from(*calls).unwrap()])
        .collect();
    assert_eq!(count(by_kind.iter().map(String::as_str)), wanted);
    // These are the fsync and the write of a descriptor that is not open; its second close succeeds, as in the
    // application.
    let others = BTreeMap::from([("fsync".to_owned(), 1), ("write".to_owned(), 1)]);
    assert_eq!(told("other_result_"), others);
}

fn sql(folder: &Path, log: &str, timing: bool) -> SqlSettings {
    fs::write(folder.join("log.sql"), log).unwrap();
    SqlSettings {
        log: folder.join("log.sql"),
        database: folder.join("x.db"),
        timing,
        library: None,
    }
}

fn a_log_is_replayed_with_its_times() {
    let folder = tempfile::tempdir().unwrap();
    let log = "CREATE TABLE a (b);\n--@ 0.05\nINSERT INTO a VALUES ('x; y');\nBEGIN; INSERT INTO a VALUES (2);\n--@ 0.2\nCOMMIT;\n";
    let outcome = run_sql(&sql(folder.path(), log, true), &Progress::default()).unwrap();
    assert_eq!(
        (outcome.payload.transactions, outcome.operations.len()),
        (3, 5)
    );
    // The statement cannot have run before its time.
    assert!(outcome.operations[4].ended_ns >= 190_000_000);
    assert_eq!(
        sqlite3(&folder.path().join("x.db"), "SELECT b FROM a"),
        ["x; y", "2"]
    );
}

fn a_statement_that_is_refused_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let settings = sql(
        folder.path(),
        "CREATE TABLE a (b);\n\nINSERT INTO c VALUES (1);\n",
        false,
    );
    let told = run_sql(&settings, &Progress::default()).unwrap().heading;
    let place = format!("{}:3: no such table: c", settings.log.display());
    assert!(told.contains(&place), "{told}");
}

/// Returns the library with which the sqlite3 command is linked.
fn library() -> PathBuf {
    PathBuf::from("libsqlite3.so.0")
}

fn the_systems_own_sqlite_writes_the_same() {
    let said = Command::new("sqlite3").arg("--version").output().unwrap();
    let version = String::from_utf8(said.stdout).unwrap();
    let version = version.split(' ').next().unwrap();
    for journal in [Journal::Delete, Journal::Wal] {
        let bytes = |library: Option<PathBuf>| {
            let folder = tempfile::tempdir().unwrap();
            let settings = Settings {
                path: folder.path().join("x.db"),
                journal,
                sync: Sync::Off,
                transactions: 50,
                library,
                ..Settings::default()
            };
            let outcome = run(&settings, &Progress::default()).unwrap();
            let told = sqlite3(
                &settings.path,
                "PRAGMA integrity_check; SELECT count(*), min(length(Value)) FROM item",
            );
            assert_eq!(told, ["ok", "50|100"]);
            outcome
        };
        let (ours, theirs) = (bytes(None), bytes(Some(library())));
        let told = &theirs.payload.settings;
        assert_eq!(told["sqlite_version"], version);
        assert!(
            told["sqlite_compile_options"].contains("THREADSAFE="),
            "{told:?}"
        );
        assert_eq!(
            ours.transactions.written.unwrap().bytes,
            theirs.transactions.written.unwrap().bytes,
            "{journal:?}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    for operation in [0, 1, 2] {
        bench(&Mobibench {
            library: Some(library()),
            database: Some(operation),
            ..mobibench(folder.path())
        });
    }
}

fn what_is_no_sqlite_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let settings = |library: &str| Settings {
        path: folder.path().join("x.db"),
        library: Some(PathBuf::from(library)),
        ..Settings::default()
    };
    let error = |library| {
        run(&settings(library), &Progress::default())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        error("libc.so.6"),
        "libc.so.6: is not SQLite: it lacks open_v2"
    );
    let missing = error("/no/such/library.so");
    assert!(
        missing.starts_with("/no/such/library.so: ") && missing.lines().count() == 1,
        "{missing}"
    );
    assert!(!folder.path().join("x.db").exists());
}

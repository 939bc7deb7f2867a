// SPDX-License-Identifier: MIT OR Apache-2.0
//! Transactions of databases.

use super::*;

/// A task that took part in a transaction without being the first to change a block may have changed any: no other process has
/// the descriptor and the commit block for itself.
#[test]
fn a_process_that_changed_no_block_first_took_part() {
    let mut s = Scene::begun();
    s.handle(CREATE, &[8]);
    s.handle(UNLINK.by(OTHER), &[]);
    s.commit(2000, &[8]);
    let columns = "kind,cause_comm,cause_known,cause_process_known";
    let rows = run(
        &s,
        &["events", "--columns", columns, "--where", "op = 'write'"],
    );
    let words = |row: &Value| format!("{} {}", row["kind"], row["cause_process_known"]);
    let known: Vec<_> = rows.iter().map(|row| words(row).replace('"', "")).collect();
    let expected = [
        "descriptor proportional",
        "metadata_copy exact",
        "commit proportional",
    ];
    assert_eq!(known, expected);
}

/// Calls are not rows: if a filter selects rows, no transactions are reported and nothing is divided by them.
#[test]
fn a_tree_of_some_rows_has_no_transactions() {
    let (_tmp, path) = saved(&two_databases());
    let some = ["analyze", "--tree", "--where", "bytes > 0", &path];
    let tree = json(&[&some[..], &["--json"]].concat());
    assert_eq!(tree["device_bytes"], 4 * 4096);
    assert!(tree["transactions"].is_null(), "{tree}");
    for owner in tree["owners"].as_array().unwrap() {
        assert!(owner["transactions"].is_null(), "{owner}");
        assert_eq!(owner["write_calls"].as_array().unwrap().len(), 0);
    }
    let text = mostrace(&some);
    assert!(
        text.contains("the database") && !text.contains("write()"),
        "{text}"
    );
    let of_database = text.lines().find(|line| line.contains("the database"));
    // The fields are name, bytes and percent, without bytes per transaction.
    let figures = of_database.unwrap().split_once("the database").unwrap().1;
    assert_eq!(figures.split_whitespace().count(), 2, "{text}");
}

/// Writes a page of a file, so that the file has a name.
fn named(s: &mut Scene, sector: u64, inode: u64, name: &[u8]) {
    s.owned(WRITE | SYNC, sector, 4096, SQLITE, Origin::FILE);
    s.file(sector, 4096, inode, 0, name);
    s.dirtier(sector, 4096, SQLITE);
}

/// Returns the offset of a WAL's frame.
fn frame(nth: u64) -> u64 {
    32 + nth * (24 + 4096)
}

/// A transaction in DELETE mode of `thread` in a.db (inode 21, its journal 20), with one in WAL mode of another process in
/// b.db (32, its WAL 31) between its calls.
fn two_databases() -> Scene {
    let mut s = Scene::begun();
    for (sector, inode, name) in [
        (800, 20, &b"a.db-journal"[..]),
        (900, 21, b"a.db"),
        (1000, 31, b"b.db-wal"),
        (1100, 32, b"b.db"),
    ] {
        named(&mut s, sector, inode, name);
    }
    let write = |thread, inode, bytes| CallOf {
        thread,
        kind: CallKind::Write,
        inode,
        offset: 0,
        bytes,
        first_bytes: None,
        lasted_us: 10,
    };
    let sync = |thread, inode| CallOf {
        thread,
        inode,
        kind: CallKind::Fdatasync,
        ..FSYNC
    };
    for nth in 0..3 {
        s.call(CallOf {
            first_bytes: Some([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]),
            ..write(SQLITE, 20, 512)
        });
        let offset = frame(nth);
        s.call(CallOf {
            offset,
            first_bytes: Some([0, 0, 0, 2, 0, 0, 0, 9]),
            ..write(OTHER, 31, 24)
        });
        s.call(sync(SQLITE, 20));
        s.call(CallOf {
            offset: offset + 24,
            ..write(OTHER, 31, 4096)
        });
        s.call(write(SQLITE, 21, 4096));
        s.call(sync(OTHER, 31));
        s.call(sync(SQLITE, 21));
        s.call(CallOf {
            kind: CallKind::Unlink,
            inode: 20,
            ..FSYNC
        });
    }
    // This call is on a file that belongs to no database.
    s.call(write(OTHER, 77, 100));
    s
}

#[test]
fn transactions_are_told_apart_by_process_and_database() {
    let s = two_databases();
    let (_tmp, path) = saved(&s);
    let tree = json(&["analyze", "--tree", &path, "--json"]);
    let owners = tree["owners"].as_array().unwrap();
    let owner = |process: &str, database: Value| {
        let is_it = |owner: &&Value| owner["process"] == process && owner["database"] == database;
        owners.iter().find(is_it).unwrap().clone()
    };
    let a = owner("sqlite3:100", "a.db".into());
    assert_eq!(a["transactions"], 3);
    let calls = |role: &str, calls: u64, bytes: u64, syncs: u64| serde_json::json!({ "role": role, "calls": calls, "bytes": bytes, "syncs": syncs });
    assert_eq!(
        a["write_calls"].as_array().unwrap()[..],
        [
            calls("rollback_journal", 3, 1536, 3),
            calls("db", 3, 12288, 3)
        ]
    );
    assert_eq!(a["device"]["bytes"], 8192);
    let journal = &a["device"]["parts"].as_array().unwrap()[..];
    let part = |name: &str| serde_json::json!({ "name": name, "bytes": 4096, "parts": [] });
    assert_eq!(
        journal,
        [part("the database"), part("SQLite's rollback journal")]
    );
    assert_eq!(tree["device_bytes"], 4 * 4096);
    assert_eq!(tree["transactions"], 6);
    assert_eq!(owner("other:200", "b.db".into())["device"]["bytes"], 0);
    // Another process wrote to the device: what was asked and what was written are reported for those who did it.
    let options = mostrace_tables::analysis::Options::default();
    let analysis = mostrace_tables::analysis::Analysis::open(path.as_ref(), &options).unwrap();
    let databases = analysis.databases;
    let found: Vec<_> = databases
        .iter()
        .map(|d| {
            (
                d.tgid,
                d.path.as_deref(),
                d.transactions().least,
                d.total().bytes,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (100, Some(&b"a.db"[..]), 3, 13824),
            (200, Some(&b"b.db"[..]), 3, 3 * 4120),
            (200, None, 0, 100),
        ]
    );
}

#[test]
fn an_analysis_begins_with_what_it_found() {
    let finding = |s: &Scene| {
        let (_tmp, path) = saved(s);
        let path = path.as_str();
        let text = mostrace(&["analyze", path]);
        let finding = json(&["analyze", path, "--json"])["finding"].take();
        let headline = finding["headline"].as_str().unwrap();
        let parts = finding["parts"].as_array().unwrap().iter();
        let part = |part: &Value| {
            let because = part["because"].as_str().map(|why| format!(", {why}"));
            let because = because.unwrap_or_default();
            format!(
                "{:>5} %  {}{because}",
                part["percent"].as_u64().unwrap(),
                part["layer"].as_str().unwrap()
            )
        };
        let lines: Vec<String> = std::iter::once(headline.to_owned())
            .chain(parts.map(part))
            .collect();
        assert!(text.starts_with(&(lines.join("\n") + "\n")), "{text}");
        lines
    };
    let mut s = two_databases();
    assert_eq!(
        finding(&s),
        [
            "Each of 6 SQLite transactions wrote 2.7 kB: 0.6 × what was passed to write().",
            "   50 %  the database",
            "   25 %  SQLite's rollback journal",
            "   25 %  SQLite's WAL",
        ]
    );
    s.manifest.payload = Some(mostrace_bundle::manifest::Payload {
        payload_bytes: 300,
        transactions: 6,
        ..Default::default()
    });
    s.handle(
        HandleOf {
            inode: 20,
            ..UNLINK
        },
        &[8],
    );
    s.commit(2000, &[8]);
    assert_eq!(
        finding(&s),
        [
            "Each of 6 transactions stored 50 B and wrote 4.8 kB: 95.6 × what was stored, 1.1 × what was passed to write().",
            "   43 %  ext4's journal, because the rollback journal was deleted",
            "   29 %  the database",
            "   14 %  SQLite's rollback journal",
            "   14 %  others",
        ]
    );
    // Others have written too, so what the workload stored is not everything.
    let mut busy = two_databases();
    for at in 0..20 {
        let commit = CallOf {
            kind: CallKind::Write,
            inode: 31,
            bytes: 24,
            ..FSYNC.by(OTHER)
        };
        busy.call(CallOf {
            offset: frame(3 + at),
            first_bytes: Some([1; 8]),
            ..commit
        });
    }
    busy.manifest.payload.clone_from(&s.manifest.payload);
    assert_eq!(
        finding(&busy)[0],
        "Each of 26 SQLite transactions wrote 630 B: 0.6 × what was passed to write()."
    );
    one_number_of_transactions(&busy, 26);
    one_number_of_transactions(&s, 6);
    let mut quiet = Scene::new();
    quiet.owned(READ, 800, 4096, SQLITE, Origin::FILE);
    let (_tmp, path) = saved(&quiet);
    assert_eq!(
        json(&["analyze", &path, "--json"])["finding"]["headline"],
        "Nothing was written, and 4.1 kB were read, 100 % by sqlite3."
    );
    assert_eq!(
        finding(&Scene::new()),
        ["No IO was seen: was this the device?"]
    );
}

/// The tree, a comparison, a limit and the page have the same number.
fn one_number_of_transactions(s: &Scene, transactions: u64) {
    let (tmp, path) = saved(s);
    let path = path.as_str();
    let tree = json(&["analyze", "--tree", path, "--json"]);
    let diff = json(&["diff", path, path, "--json"]);
    for side in [&tree, &diff["a"]] {
        assert_eq!(side["transactions"], transactions);
        assert_eq!(side["transactions_sure"], "exact");
    }
    let written = tree["device_bytes"].as_f64().unwrap();
    let each = (written / transactions as f64).ceil();
    let check = |limit: f64| {
        let limit = format!("{limit:.0}");
        let check = ["check", path, "--max-bytes-per-transaction", &limit];
        say(program().args(check)).status == Some(0)
    };
    assert_eq!([check(each), check(each - 1.0)], [true, false]);
    let page = tmp.path().join("page.html");
    mostrace(&["report", path, "-o", page.to_str().unwrap()]);
    let page = std::fs::read_to_string(page).unwrap();
    let number = format!(r#""transactions":{transactions},"#);
    assert!(page.contains(&number), "{number}");
}

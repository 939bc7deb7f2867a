// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every way to ask for durability is a call for durability: `durability/ask.py` asks in each of them, and knows how often. The
//! kernel's counters say how many transactions were committed and how many flushes the device executed.

use crate::run;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mostrace_bundle::counters::Counters;
use run::json;
use serde_json::Value;
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, one_by_one, tests};

/// The rounds of each way: the finding tells of calls for durability from ten on.
const ROUNDS: u64 = 20;
/// A recording during which the timer committed, or another program called sync(), is made again.
const TRIES: u32 = 3;

pub fn suite() -> Suite {
    one_by_one(tests![
        all_ways_count_and_have_their_flushes needs [Need::Loop, Need::Btf, Need::Tool("python3", "python3")],
    ])
}

/// A way to ask.
struct Way {
    name: String,
    mount: String,
    /// Calls for durability in each round, and ahead of the first one.
    asks: u64,
    ahead: u64,
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/durability/ask.py")
}

fn ways() -> Vec<Way> {
    let said = Command::new("python3").arg(script()).output().unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    let way = |line: &str| {
        let fields: Vec<&str> = line.split('|').collect();
        Way {
            name: fields[0].to_owned(),
            mount: fields[1].to_owned(),
            asks: fields[2].parse().unwrap(),
            ahead: fields[3].parse().unwrap(),
        }
    };
    text.lines().map(way).collect()
}

/// Returns how many transactions a disk's journal has committed.
fn transactions(disk: &LoopExt4) -> u64 {
    let name = disk.device().file_name().unwrap().to_str().unwrap();
    let info = fs::read_to_string(format!("/proc/fs/jbd2/{name}-8/info")).unwrap();
    let first = info.split_ascii_whitespace().next();
    first.unwrap().parse().unwrap()
}

fn all_ways_count_and_have_their_flushes() {
    let ways = ways();
    assert!(ways.len() > 30);
    let faults: Vec<String> = ways
        .iter()
        .filter_map(|way| {
            let mut said = asked_in(way);
            for _ in 1..TRIES {
                said = said.or_else(|_| asked_in(way));
            }
            said.err().map(|e| format!("{}: {e}", way.name))
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Records a way; returns what the recording says otherwise than the script and the kernel.
fn asked_in(way: &Way) -> Result<(), String> {
    let lazy = ["-E", "lazy_itable_init=0,lazy_journal_init=0"];
    let disk = LoopExt4::new(&LoopOptions {
        mount_options: way.mount.clone(),
        mkfs: lazy.map(str::to_owned).to_vec(),
        ..LoopOptions::default()
    });
    let disk = disk.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("run.most");
    let mut sync = Command::new("sync");
    run::succeeds(sync.arg("-f").arg(disk.mount_point()));
    let before = transactions(&disk);
    let mut record = run::record(disk.disk(), &bundle);
    record
        .current_dir(disk.mount_point())
        .args(["--sync", "--", "python3"]);
    let rounds = ROUNDS.to_string();
    run::succeeds(record.arg(script()).args([&way.name, &rounds]));
    let committed = transactions(&disk) - before;
    check(way, bundle.to_str().unwrap(), committed)
}

fn same(what: &str, said: u64, is: u64) -> Result<(), String> {
    match said == is {
        true => Ok(()),
        false => Err(format!("{what}: said {said}, is {is}")),
    }
}

fn number(row: &Value, column: &str) -> u64 {
    row[column].as_u64().unwrap_or_default()
}

fn check(way: &Way, bundle: &str, committed: u64) -> Result<(), String> {
    let asks = way.asks * ROUNDS + way.ahead;
    let query = |sql: &str| json(&["query", bundle, sql, "--json"]);
    // sync() by other programs of the machine counts too.
    let scripts = "SELECT tgid, count(*) AS n FROM calls WHERE comm LIKE 'python3%' GROUP BY tgid ORDER BY n DESC LIMIT 1";
    let tgid = number(&query(scripts)[0], "tgid");
    let label = format!("python3:{tgid}");
    let is_scripts = |row: &Value, column: &str| row[column] == *label;

    // Calls: in the tree, and in the table with what each waited for. Of a call that is recorded for that alone, such as the open
    // that makes a file, the duration is not known.
    let tree = json(&["analyze", bundle, "--tree", "--json"]);
    let owners = tree["owners"].as_array().unwrap();
    let owners = owners.iter().filter(|row| is_scripts(row, "process"));
    let calls = owners.flat_map(|owner| owner["write_calls"].as_array().unwrap());
    same("syncs", calls.map(|call| number(call, "syncs")).sum(), asks)?;
    let waited = query(&format!(
        "SELECT count(wait_other_ns) AS waited, count(*) FILTER (WHERE call = 'open') AS opens FROM calls WHERE tgid = {tgid}"
    ));
    let waited = number(&waited[0], "waited") + number(&waited[0], "opens");
    same("calls with a time", waited, asks)?;

    // Flushes that were asked for: each has its cause, and the time since it was asked for.
    let flushes = query(
        "SELECT cause_process, cause_op, count(*) AS n, count(cause_latency_ns) AS timed FROM events WHERE op = 'flush' \
         GROUP BY cause_process, cause_op",
    );
    let flushes = flushes.as_array().unwrap();
    for row in flushes {
        // FITHAW writes the superblock, and asks for nothing.
        let is_thaw = way.name == "freeze" && row["cause_op"] == "other";
        let is_known = row["cause_process"].is_string();
        let is_timed = row["cause_op"] == "fsync" && row["n"] == row["timed"];
        if !is_known || !is_timed && !is_thaw {
            return Err(format!("flushes: {row}"));
        }
    }
    let answer = run::mostrace(&["analyze", bundle]);
    let headline = answer.lines().next().unwrap_or_default();
    let calls = format!("for each of {asks} calls for durability");
    // It is told of a program that wrote nearly all.
    if asks >= 10 && headline.contains("for each of") && !headline.contains(&calls) {
        return Err(format!("{calls}: {headline}"));
    }

    // Flushes that were executed, and commits: the kernel's counters.
    let executed = query("SELECT count(*) AS n FROM requests WHERE op = 'device_flush'");
    let opened = mostrace_bundle::Bundle::open(Path::new(bundle)).unwrap();
    let Some(Counters::Compared(counters)) = opened.manifest().counters.clone() else {
        return Err("the kernel's counters are not compared".into());
    };
    let counter = counters["flushes"];
    same(
        "flushes executed",
        number(&executed[0], "n"),
        counter.traced,
    )?;
    if !counter.agrees() {
        return Err(format!("flushes executed: {counter:?}"));
    }
    let commits = query("SELECT count(*) AS n FROM events WHERE kind = 'commit'");
    same("commits", number(&commits[0], "n"), committed)
}

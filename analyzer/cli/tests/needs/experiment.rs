// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab/experiments/experiment.py` as a user runs it: claims against measurements, and interruptions. The tests run one at a
//! time, because each makes its own load.

use crate::run;

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use run::{say, succeeds};
use test_support::running::Running;
use test_support::{Need, Suite, one_by_one, tests, wait};

const PYTHON: Need = Need::Tool("python3", "python3");
const LIVE: [Need; 3] = [Need::Loop, Need::Btf, PYTHON];

pub fn suite() -> Suite {
    one_by_one(tests![
        syncs_are_those_that_were_published needs LIVE,
        the_trace_of_updates_holds_them_alone needs LIVE,
        what_is_killed_goes_on_where_it_was needs LIVE,
        a_cell_that_cannot_be_measured_stops_no_other needs LIVE,
        a_guest_has_what_this_kernel_lacks needs [
            Need::Minutes,
            PYTHON,
            Need::Tool("qemu-system-x86_64", "qemu-system-x86"),
            Need::Tool("busybox", "busybox-static"),
        ],
        results_are_one_experiments needs [PYTHON],
        what_is_no_file_of_results_stays_as_it_is needs [PYTHON],
        results_go_where_no_link_leads needs [PYTHON],
        what_is_kept_takes_the_place_of_a_bundle_alone needs LIVE,
        the_shipped_ones_are_sound needs [PYTHON],
        parts_of_shipped_results_are_the_whole needs [PYTHON],
        what_it_calculates_is_right needs [PYTHON],
    ])
}

fn experiment(file: &Path) -> Command {
    let mut command = Command::new("python3");
    command
        .arg("-B")
        .arg(shipped().join("experiment.py"))
        .arg(file)
        .env("MOSTRACE", env!("CARGO_BIN_EXE_mostrace"));
    command
}

/// The module's own tests.
fn what_it_calculates_is_right() {
    let mut tests = Command::new("python3");
    tests
        .args(["-B", "-m", "unittest", "discover"])
        .arg(shipped().join("tests"));
    succeeds(&mut tests);
}

fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/experiments")
}

/// lab/experiments/ext4-matrix.toml is the whole matrix; this is the part of it in which SQLite syncs most.
fn syncs_are_those_that_were_published() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.toml");
    let text = fs::read_to_string(shipped().join("ext4-matrix.toml")).unwrap();
    let small = text
        .replace("transactions = 1000", "transactions = 8")
        .replace("most = 20", "most = 1");
    fs::write(&file, small).unwrap();
    let kept = folder.path().join("kept");
    let options = [
        // 1,000 insertions would include a checkpoint.
        "--only=op=update",
        "--only=sync=full",
        "--only=journal=delete",
        "--only=journal=truncate",
        "--only=journal=persist",
        "--only=journal=wal",
        "--claims",
        "--format=json",
        "--keep",
    ];
    // The syncs of others do not count.
    let mut other = Command::new("sh");
    other.args(["-c", "while :; do sync; sleep 0.05; done"]);
    let other = Running(other.spawn().unwrap());
    let said = succeeds(experiment(&file).args(options).arg(&kept));
    drop(other);
    let claims: Vec<BTreeMap<String, serde_json::Value>> = serde_json::from_str(&said.out).unwrap();
    let syncs: Vec<_> = claims.iter().filter(|c| c["figure"] == "syncs").collect();
    let of = |c: &&BTreeMap<String, serde_json::Value>| {
        (c["ours"].as_f64().unwrap(), c["verdict"] == "agrees")
    };
    let ours: Vec<(f64, bool)> = syncs.iter().map(of).collect();
    assert_eq!(
        ours,
        [(4.0, true), (5.0, true), (5.0, true), (1.0, true)],
        "{}",
        said.out
    );
    let wal = mostrace_bundle::Bundle::open(&kept.join("journal=wal_sync=full_op=update.most"));
    let payload = wal.unwrap().manifest().payload.clone().unwrap();
    assert_eq!(
        (payload.settings["journal"].as_str(), payload.transactions),
        ("wal", 8)
    );
}

/// Returns the largest requests that the queues of loop devices take.
fn largest_requests() -> BTreeMap<PathBuf, String> {
    let blocks = fs::read_dir("/sys/block").unwrap();
    let settings = blocks.map(|block| block.unwrap().path().join("queue/max_sectors_kb"));
    let loops = settings.filter(|path| path.to_string_lossy().contains("/loop"));
    let read = loops.map(|path| (path.clone(), fs::read_to_string(path).unwrap()));
    read.collect()
}

/// The set-up of tables and rows does not count. The control cell merges no blocks.
fn the_trace_of_updates_holds_them_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("small.toml");
    let text = fs::read_to_string(shipped().join("shares.toml")).unwrap();
    let small = text
        .replace("transactions = 200", "transactions = 8")
        .replace("most = 20", "most = 1");
    fs::write(&file, small).unwrap();
    let before = largest_requests();
    let only = ["--only=tables=3", "--only=op=1", "--format=json"];
    let said = succeeds(experiment(&file).args(only));
    assert_eq!(largest_requests(), before);
    let cells: Vec<BTreeMap<String, serde_json::Value>> = serde_json::from_str(&said.out).unwrap();
    let of = |name: &str| -> Vec<f64> {
        cells
            .iter()
            .map(|cell| cell[name].as_f64().unwrap())
            .collect()
    };
    assert_eq!(cells[0]["control"], serde_json::Value::Null);
    assert_eq!(cells[1]["control"], "max_sectors_kb=4");
    assert_eq!(of("transactions"), [8.0, 8.0]);
    assert_eq!(of("syncs"), [5.0, 5.0], "TRUNCATE and FULL");
    assert_eq!(of("payload_bytes"), [300.0, 300.0]);
    let bytes = of("write_bytes");
    // The names of the answer's layers are those that the columns have.
    let layers = ["journal", "metadata", "rollback_journal", "db"]
        .map(|layer| of(&format!("{layer}_bytes")));
    assert!(
        layers.iter().flatten().all(|bytes| *bytes > 0.0),
        "{layers:?}"
    );
    assert_eq!(of("writes")[1], bytes[1] / 4096.0);
    assert!(of("writes")[0] < bytes[0] / 4096.0);
    let claims = say(experiment(&file).args(only).args(["--no-run", "--claims"])).out;
    let claims: Vec<BTreeMap<String, serde_json::Value>> = serde_json::from_str(&claims).unwrap();
    let writes = claims.iter().find(|c| c["figure"] == "writes").unwrap();
    assert_eq!(writes["control_ours"], of("writes")[1]);
    let kinds: Vec<_> = claims.iter().map(|c| c["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["published", "published", "published", "ours"]);
}

const CELLS: usize = 4;
const RUNS: usize = 2;

/// Makes an experiment whose cells take no time, and are measured twice each.
fn cheap(folder: &Path) -> PathBuf {
    let file = folder.join("cheap.toml");
    let text = format!(
        "name = 'cheap'\nbefore = ['touch', 'ready']\ncommand = ['sh', '-c', 'cat ready; echo {{n}} >f; sync f']\n\
         [matrix]\nn = [1, 2, 3, 4]\n[repeat]\nwithin_percent = 0\nmost = {RUNS}\n"
    );
    // The bytes of two runs may be equal by chance; then one measurement less is needed.
    fs::write(
        &file,
        text.replace("within_percent = 0", "within_percent = -1"),
    )
    .unwrap();
    file
}

fn lines(results: &Path) -> Vec<String> {
    let text = fs::read_to_string(results).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn what_is_killed_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let file = cheap(folder.path());
    let results = file.with_extension("jsonl");
    let mut killed = Vec::new();
    // It is interrupted after the first measurement, and again later.
    for at_least in [2, 4] {
        let mut running = experiment(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait::until("some are measured", || {
            lines(&results).len() >= at_least || running.try_wait().unwrap().is_some()
        });
        running.kill().unwrap();
        running.wait().unwrap();
        let before = lines(&results);
        assert!(before.starts_with(&killed));
        killed = before;
        // This is a line as a power failure may leave it.
        let mut end = OpenOptions::new().append(true).open(&results).unwrap();
        end.write_all(b"{\"cell\":\"n=").unwrap();
    }
    let said = succeeds(&mut experiment(&file));
    let all = lines(&results);
    assert!(all.starts_with(&killed));
    let mut seen: Vec<(String, u64)> = Vec::new();
    for line in &all[1..] {
        let run: serde_json::Value = serde_json::from_str(line).unwrap();
        seen.push((
            run["cell"].as_str().unwrap().to_owned(),
            run["run"].as_u64().unwrap(),
        ));
    }
    let each = |cell: usize| (0..RUNS as u64).map(move |run| (format!("n={}", cell + 1), run));
    assert_eq!(seen, (0..CELLS).flat_map(each).collect::<Vec<_>>());
    let columns = ["--columns", "n,runs", "--format", "csv"];
    let twice = say(experiment(&file).args(columns)).out;
    assert_eq!(twice, "n,runs\n1,2\n2,2\n3,2\n4,2\n");
    let again = say(&mut experiment(&file));
    assert_eq!((again.status, &again.out), (Some(0), &said.out));
    again.complains("measured 0 cells now (0 runs), read 4 cells from ");
    assert_eq!(lines(&results), all);
}

fn a_cell_that_cannot_be_measured_stops_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.toml");
    let text = "name = 'x'\ncommand = 'touch f'\n[matrix]\nmkfs = ['-b 77', '-b 4096']\n[repeat]\nmost = 1\n";
    fs::write(&file, text).unwrap();
    let said = say(experiment(&file).args(["--format", "csv"])).ended(1);
    said.complains("measured 1 cell now (1 run), read 0 cells from ");
    let rows: Vec<&str> = said.out.lines().skip(1).collect();
    assert!(
        rows.len() == 1 && rows[0].starts_with("-b 4096,1,"),
        "{}",
        said.out
    );
    said.complains("experiment: error: mkfs=-b 77: mke2fs: ");
    said.complains("experiment: 1 cell could not be measured");
}

/// The results continue from guest to guest, and what cannot be measured there is reported.
fn a_guest_has_what_this_kernel_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.toml");
    let text = "name = 'x'\ncommand = 'mostrace workload sqlite --transactions 5 x.db'\n\
         [fixed]\nsize = '64M'\n[matrix]\nfilesystem = ['f2fs', 'vfat']\nmkfs = ['', '--no-such']\n[repeat]\nmost = 1\n";
    fs::write(&file, text).unwrap();
    let guest = [
        "--guest",
        "6.12",
        "--format",
        "csv",
        "--columns",
        "filesystem,mkfs,runs",
    ];
    for (only, rows) in [
        ("filesystem=f2fs", "filesystem,mkfs,runs\nf2fs,,1\n"),
        ("filesystem=vfat", "filesystem,mkfs,runs\nvfat,,1\n"),
    ] {
        let said = say(experiment(&file).args(guest).args(["--only", only]));
        assert_eq!((said.status, &*said.out), (Some(1), rows), "{}", said.err);
        let told = format!(
            "experiment: error: {only} mkfs=--no-such: in the guest: failed: mostrace: mkfs."
        );
        said.complains(&told);
    }
    let results = lines(&folder.path().join("x.6.12.jsonl"));
    assert_eq!(results.len(), 3, "{results:?}");
    let list = say(experiment(&file).args(["--guest", "6.12", "--list"]));
    let counts: Vec<_> = list.out.lines().map(|line| &line[..1]).collect();
    assert_eq!(counts, ["1", "0", "1", "0"]);
}

/// Returns the first line of results of the cheap experiment.
fn header() -> String {
    let parts = serde_json::json!([
        ["sh", "-c", "cat ready; echo {n} >f; sync f"],
        ["touch", "ready"],
        {},
        ["n"]
    ]);
    serde_json::json!({"experiment": "cheap", "identity": parts.to_string()}).to_string()
}

fn results_are_one_experiments() {
    let folder = tempfile::tempdir().unwrap();
    let file = cheap(folder.path());
    let results = file.with_extension("jsonl");
    let list = || say(experiment(&file).arg("--list"));
    assert_eq!(list().out, "0 n=1\n0 n=2\n0 n=3\n0 n=4\n");
    assert!(!results.exists(), "looking leaves nothing");
    fs::write(&results, header() + "\n").unwrap();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("[1, 2, 3, 4]", "[1, 2, 3, 4, 5]")).unwrap();
    assert_eq!(
        list().out,
        "0 n=1\n0 n=2\n0 n=3\n0 n=4\n0 n=5\n",
        "more cells"
    );
    fs::write(&file, text.replace("sync f", "")).unwrap();
    let said = list();
    let name = results.display();
    assert_eq!(said.status, Some(1));
    assert_eq!(
        said.err,
        format!(
            "experiment: {name}: belongs to another experiment, or what is measured has changed: move it away\n"
        )
    );
    fs::write(&file, text).unwrap();
    let mut end = OpenOptions::new().append(true).open(&results).unwrap();
    end.write_all(b"{}\n").unwrap();
    assert!(
        list()
            .err
            .starts_with(&format!("experiment: {name}: line 2: is not a measurement"))
    );
    fs::write(&results, "nothing\n").unwrap();
    assert_eq!(
        list().err,
        format!("experiment: {name}: is not a file of an experiment's results\n")
    );
    fs::remove_file(&results).unwrap();
    let held = fs::File::create(&results).unwrap();
    held.lock().unwrap();
    let said = say(&mut experiment(&file));
    let busy = format!("experiment: {name}: another experiment writes to it\n");
    assert_eq!((said.status, said.err), (Some(1), busy));
    assert_eq!(list().status, Some(0), "looking is free");
    let unknown = say(experiment(&file).args(["--only", "m=1"]));
    assert_eq!(
        (unknown.status, unknown.err.as_str()),
        (Some(2), "experiment: --only m: the parameters are n\n")
    );
    let never = say(experiment(&file).args(["--only", "n=nosuch"]));
    assert_eq!((never.status, never.err.lines().count()), (Some(2), 1));
    never.complains("--only n=nosuch: the values are ");
}

/// The file is something else, with a whole last line or not, or is not text.
fn what_is_no_file_of_results_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let file = cheap(folder.path());
    let notes = folder.path().join("notes.txt");
    let other = format!(
        "{{\"experiment\":\"other\",\"identity\":\"\"}}\n{}",
        header()
    );
    for text in [
        &b"one line"[..],
        b"first\nsecond",
        b"{\"experiment\":\"other\"",
        other.as_bytes(),
        b"\xff\xfe",
        b"\xff\n",
    ] {
        fs::write(&notes, text).unwrap();
        let said = say(experiment(&file).arg("--results").arg(&notes));
        assert_eq!((said.status, said.out.as_str()), (Some(1), ""));
        let name = format!("experiment: {}: ", notes.display());
        assert!(said.err.starts_with(&name), "{}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
        assert_eq!(fs::read(&notes).unwrap(), text);
        let listed = say(experiment(&file).arg("--list").arg("--results").arg(&notes));
        assert_eq!((listed.status, listed.err), (Some(1), said.err));
    }
    // This is what a process leaves that was killed while writing its first line.
    fs::write(&notes, &header()[..20]).unwrap();
    succeeds(experiment(&file).arg("--list").arg("--results").arg(&notes));
}

/// Root measures in folders of others, who can plant a link.
fn results_go_where_no_link_leads() {
    let folder = tempfile::tempdir().unwrap();
    let file = cheap(folder.path());
    let victim = folder.path().join("victim");
    let named = folder.path().join("r.jsonl");
    let refused = |says: &str| {
        let said = say(experiment(&file).arg("--results").arg(&named));
        let line = format!("experiment: {}: {says}\n", named.display());
        assert_eq!((said.status, said.out.as_str()), (Some(1), ""));
        assert_eq!(said.err, line);
    };
    symlink(&victim, &named).unwrap();
    refused("Too many levels of symbolic links");
    assert!(!victim.exists());
    fs::remove_file(&named).unwrap();
    fs::write(&victim, "").unwrap();
    fs::hard_link(&victim, &named).unwrap();
    refused("is not a file, or has another name too");
    assert_eq!(fs::read(&victim).unwrap(), b"");
}

fn what_is_kept_takes_the_place_of_a_bundle_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = cheap(folder.path());
    let kept = folder.path().join("kept");
    let victim = folder.path().join("victim");
    fs::create_dir_all(kept.join("n=2.most")).unwrap();
    fs::create_dir_all(&victim).unwrap();
    for folder in [&victim, &kept.join("n=2.most")] {
        fs::write(folder.join("process.entries"), "precious").unwrap();
    }
    symlink(&victim, kept.join("n=1.most")).unwrap();
    let only = ["--only=n=1", "--only=n=2", "--only=n=3", "--keep"];
    let said = say(experiment(&file).args(only).arg(&kept)).ended(1);
    said.complains("n=2.most: is not a bundle, and is not overwritten");
    said.complains("2 cells could not be measured");
    for folder in [&victim, &kept.join("n=2.most")] {
        let text = fs::read_to_string(folder.join("process.entries"));
        assert_eq!(text.unwrap(), "precious");
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
    }
    // The cell was measured twice.
    assert!(mostrace_bundle::Bundle::open(&kept.join("n=3.most")).is_ok());
}

fn the_shipped_ones_are_sound() {
    let folder = tempfile::tempdir().unwrap();
    let mut count = 0;
    for entry in fs::read_dir(shipped()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let results = folder.path().join(path.file_name().unwrap());
        say(experiment(&path)
            .arg("--list")
            .arg("--results")
            .arg(&results))
        .ended(0);
        // Earlier results still belong to the definition.
        let kept = path.with_extension("jsonl");
        if kept.exists() {
            let copy = folder.path().join("copy");
            fs::copy(&kept, &copy).unwrap();
            let said = say(experiment(&path).arg("--list").arg("--results").arg(&copy));
            assert!(
                !said.out.contains("\n0 ") && said.status == Some(0),
                "{}: {}{}",
                path.display(),
                said.out,
                said.err
            );
        }
        count += 1;
    }
    assert!(count >= 4, "{count}");
}

/// Every byte of every run belongs to one layer, and the table has a column for each layer, or for the rest.
fn parts_of_shipped_results_are_the_whole() {
    let parts = [
        "journal_bytes",
        "metadata_bytes",
        "db_bytes",
        "rollback_journal_bytes",
        "wal_bytes",
        "other_bytes",
        "rest_bytes",
        "unknown_bytes",
    ];
    let mut rows = 0;
    for entry in fs::read_dir(shipped()).unwrap() {
        let results = entry.unwrap().path();
        if results
            .extension()
            .is_none_or(|extension| extension != "jsonl")
        {
            continue;
        }
        let name = results.file_name().unwrap().to_string_lossy();
        let (stem, _) = name.split_once('.').unwrap();
        for line in lines(&results).iter().skip(1) {
            let run: serde_json::Value = serde_json::from_str(line).unwrap();
            let layers = run["figures"]["layers"].as_object().unwrap();
            let sum: u64 = layers.values().map(|bytes| bytes.as_u64().unwrap()).sum();
            assert_eq!(
                run["figures"]["write_bytes"], sum,
                "{name}: {}",
                run["cell"]
            );
        }
        let definition = shipped().join(stem).with_extension("toml");
        let said = say(experiment(&definition)
            .args(["--no-run", "--format=json", "--results"])
            .arg(&results));
        let table: Vec<BTreeMap<String, serde_json::Value>> =
            serde_json::from_str(&said.out).unwrap();
        for row in table {
            let of = |name: &str| row[name].as_f64().unwrap();
            let sum: f64 = parts.iter().map(|part| of(part)).sum();
            let slack = of("write_bytes") * 1e-12;
            assert!((sum - of("write_bytes")).abs() <= slack, "{name}: {row:?}");
            rows += 1;
        }
    }
    assert!(rows >= 100, "{rows}");
}

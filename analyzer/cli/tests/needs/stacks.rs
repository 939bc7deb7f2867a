// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stacks of a recorded program (`record --stacks`): the functions are those that the program itself finds by another rule, and each
//! has the bytes that it wrote.

use crate::run;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, one_by_one, tests, tool};

const LIVE: [Need; 3] = [Need::Loop, Need::Btf, Need::Tool("gcc", "gcc")];

/// The two ways of the program, with the bytes that it writes by each.
const WAYS: [(&str, u64); 2] = [("save_letter", 3 * 8192), ("save_picture", 3 * 65536)];

pub fn suite() -> Suite {
    one_by_one(tests![
        each_function_has_the_bytes_that_it_wrote needs LIVE,
        functions_are_those_of_a_file_with_the_same_build_id needs LIVE,
        without_the_option_there_are_no_stacks needs LIVE,
    ])
}

/// A recording of the program.
struct Recorded {
    folder: TempDir,
    program: PathBuf,
    /// The lines that the program printed: for each write its bytes, and the functions from the innermost one out.
    told: String,
}

impl Recorded {
    fn new(options: &[&str]) -> Recorded {
        let folder = tempfile::tempdir().unwrap();
        let program = compile(&folder.path().join("program"), "");
        let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
        let mut record = run::record(disk.disk(), folder.path().join("run.most"));
        record.arg("-q").args(options).arg("--").arg(&program);
        record.args(["letter", "picture", "diary"].map(|name| disk.mount_point().join(name)));
        Recorded {
            told: tool::text(&mut record),
            folder,
            program,
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn folded(&self, options: &[&str]) -> Vec<(Vec<String>, u64)> {
        let bundle = self.path("run.most");
        let args = [&["export", &bundle, "--format", "folded"], options].concat();
        let line = |line: &str| {
            let (frames, bytes) = line.rsplit_once(' ').unwrap();
            let frames = frames.split(';').map(str::to_owned).collect();
            (frames, bytes.parse().unwrap())
        };
        run::mostrace(&args).lines().map(line).collect()
    }

    fn query(&self, sql: &str, options: &[&str]) -> Vec<Value> {
        let bundle = self.path("run.most");
        let args = [&["query", &bundle, sql, "--json"], options].concat();
        run::json(&args).as_array().unwrap().clone()
    }
}

/// Compiles the program; another `id` makes another build id.
fn compile(to: &Path, id: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stacks/program.c");
    let mut gcc = tool::command("gcc");
    gcc.args([
        "-O1",
        "-fno-omit-frame-pointer",
        "-fno-optimize-sibling-calls",
        "-rdynamic",
    ]);
    gcc.arg(format!("-Wl,--build-id{id}"));
    tool::run(gcc.arg("-o").arg(to).arg(source));
    to.to_owned()
}

/// Sums the bytes of the stacks that have all of these frames.
fn bytes_with(folded: &[(Vec<String>, u64)], frames: &[&str]) -> u64 {
    let has = |stack: &Vec<String>| frames.iter().all(|f| stack.iter().any(|own| own == f));
    let with = folded.iter().filter(|(stack, _)| has(stack));
    with.map(|(_, bytes)| bytes).sum()
}

/// Returns the bytes by the functions from `main` on that led to contents of files.
fn ways(folded: &[(Vec<String>, u64)]) -> BTreeMap<Vec<String>, u64> {
    let mut ways = BTreeMap::new();
    for (stack, bytes) in folded
        .iter()
        .filter(|(s, _)| s.contains(&"data".to_owned()))
    {
        let begin = stack.iter().position(|frame| frame == "main");
        // Behind the stack are the file, its role, the class and the kind.
        let frames = begin.map_or(&[][..], |begin| &stack[begin..stack.len() - 4]);
        *ways.entry(frames.to_vec()).or_insert(0) += bytes;
    }
    ways
}

fn each_function_has_the_bytes_that_it_wrote() {
    let recorded = Recorded::new(&["--stacks"]);
    let folded = recorded.folded(&[]);
    // What the program found, from main in.
    let mut theirs = BTreeMap::new();
    for line in recorded.told.lines() {
        let mut words = line.split(' ');
        let bytes: u64 = words.next().unwrap().parse().unwrap();
        let mut frames: Vec<String> = words.map(str::to_owned).collect();
        frames.reverse();
        let begin = frames.iter().position(|frame| frame == "main").unwrap();
        *theirs.entry(frames.split_off(begin)).or_insert(0) += bytes;
    }
    assert_eq!(theirs.len(), 4, "{}", recorded.told);
    // Names of folders are data of the filesystem's own, which the program did not write from there.
    let mut ours = ways(&folded);
    ours.remove(&[][..]);
    assert_eq!(ours, theirs);
    // The journal's blocks are of the same functions.
    for (function, bytes) in WAYS {
        assert_eq!(
            bytes_with(&folded, &["main", function, "store", "data"]),
            bytes
        );
        let journal = bytes_with(&folded, &["main", function, "store", "journal"]);
        let kernels = bytes_with(&folded, &["main", function, "ext4_dirty_inode_[k]"]);
        assert!(journal > 0 && kernels > 0, "{function}: {folded:?}");
    }
    // The C library may have no frame pointers: what is found behind its functions is no frame, unless it is code. A stack that is
    // not known stands alone between the process and the file, its role, the class, the kind and what a copy is a copy of.
    let is_whole = |stack: &[String]| stack.len() <= 7 || !stack.contains(&"[unknown]".to_owned());
    assert!(
        folded.iter().all(|(stack, _)| is_whole(stack)),
        "{folded:?}"
    );
    // Every byte is in one stack.
    let sql = "SELECT sum(bytes) AS bytes FROM events WHERE op = 'write'";
    let whole = recorded.query(sql, &[])[0]["bytes"].as_u64().unwrap();
    assert_eq!(bytes_with(&folded, &[]), whole);
    // The column has the same frames, and groups by them.
    let rows = run::json(&[
        "analyze",
        &recorded.path("run.most"),
        "--by",
        "cause_stack",
        "--json",
    ]);
    let rows = rows.as_array().unwrap().iter();
    let sum: u64 = rows.map(|row| row["write_bytes"].as_u64().unwrap()).sum();
    assert_eq!(sum, whole);
    let sql = "SELECT cause_stack, cause_op, sum(bytes) AS bytes FROM events WHERE class = 'data' \
               AND cause_op = 'write' AND path <> '/diary' GROUP BY cause_stack, cause_op ORDER BY bytes";
    let rows = recorded.query(sql, &[]);
    for (row, (function, bytes)) in rows.iter().zip(WAYS) {
        let stack = row["cause_stack"].as_str().unwrap();
        assert!(
            stack.ends_with(&format!("main;{function};store")),
            "{stack}"
        );
        assert_eq!(row["bytes"], bytes);
    }
    assert_eq!(rows.len(), 2, "{rows:?}");
}

fn functions_are_those_of_a_file_with_the_same_build_id() {
    let recorded = Recorded::new(&["--stacks"]);
    let named = |options: &[&str]| {
        let folded = recorded.folded(options);
        WAYS.map(|(function, bytes)| bytes_with(&folded, &["main", function, "data"]) == bytes)
    };
    assert_eq!(named(&[]), [true, true]);
    // Another program is at its place now: its functions would lie elsewhere.
    let away = recorded.folder.path().join("away");
    fs::create_dir(&away).unwrap();
    fs::rename(&recorded.program, away.join("program")).unwrap();
    compile(&recorded.program, "=0x1234");
    assert_eq!(named(&[]), [false, false]);
    let folded = recorded.folded(&[]);
    let begins = |frame: &String| frame.starts_with("program+0x");
    assert!(folded.iter().any(|(stack, _)| stack.iter().any(begins)));
    let folder = away.to_str().unwrap();
    assert_eq!(named(&["--symbols", folder]), [true, true]);
    // Hidden names hide the program's functions, and not the kernel's.
    let hidden = recorded.folded(&["--symbols", folder, "--anonymize"]);
    let has = |begin: &str| {
        let mut frames = hidden.iter().flat_map(|(stack, _)| stack);
        frames.any(|frame| frame.starts_with(begin))
    };
    assert!(has("ext4_dirty_inode_[k]"), "{hidden:?}");
    for word in ["main", "save_", "store", "program", "libc"] {
        assert!(!has(word), "{word}: {hidden:?}");
    }
    let bytes = |folded: &[(Vec<String>, u64)]| bytes_with(folded, &[]);
    assert_eq!(bytes(&hidden), bytes(&folded));
}

fn without_the_option_there_are_no_stacks() {
    let recorded = Recorded::new(&[]);
    let bundle = recorded.folder.path().join("run.most");
    assert!(!bundle.join("stack.entries").exists());
    let folded = recorded.folded(&[]);
    assert!(!folded.is_empty());
    // Process, file, role, class, kind, and what a copy is a copy of.
    assert!(
        folded
            .iter()
            .all(|(stack, _)| (5..=6).contains(&stack.len()))
    );
    let sql = "SELECT count(*) AS rows FROM events WHERE cause_stack IS NOT NULL";
    assert_eq!(recorded.query(sql, &[])[0]["rows"], 0);
    // There are none without causes, which is said at once.
    for options in [
        ["--causes", "none"],
        ["--causes", "kernel"],
        ["--entries", "none"],
    ] {
        let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
        let mut record = run::record(disk.disk(), recorded.path("no.most"));
        record.arg("--stacks").args(options);
        let said = run::say(record.args(["--", "true"])).ended(1);
        said.complains("--stacks: ");
        assert!(
            !Path::new(&recorded.path("no.most")).exists(),
            "{options:?}"
        );
    }
}

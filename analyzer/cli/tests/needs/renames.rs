// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names that files were renamed to: a script that saves files as editors do says what it wrote to which inode and what the file
//! was called in the end.

use crate::run;

use std::collections::BTreeMap;
use std::path::Path;

use run::{json, program, record, succeeds};
use serde_json::Value;
use test_support::loopdev::{LoopExt4, LoopOptions};
use test_support::{Need, Suite, one_by_one, tests};

const LIVE: [Need; 2] = [Need::Loop, Need::Btf];
/// Ten saves of one file, each to a temporary file; a log that is rotated; a file that is moved and then removed; and one that keeps
/// its name. It prints the inode, the name that was written, and the name at the end.
const SCRIPT: &str = r#"
say() { echo "$(stat -c %i "$1") $1 $2"; }
put() { dd if=/dev/zero of="$1" bs=4096 count="$2" conv=fsync 2>/dev/null; }
for n in 1 2 3 4 5 6 7 8 9 10; do
    put tmp$n $n
    say tmp$n data.json
    mv -f tmp$n data.json
done
put log 3; say log log.2; mv log log.1
put log 5; say log log.1; mv log.1 log.2; mv log log.1
put kept 2; say kept kept
put gone 6; say gone ?; mv gone moved; rm moved
mkdir old; put old/same 4; say old/same new/same; mv old new
"#;

pub fn suite() -> Suite {
    one_by_one(tests![files_have_the_names_of_the_end needs LIVE])
}

fn rows(bundle: &Path, sql: &str) -> Vec<Value> {
    let said = json(&["query", bundle.to_str().unwrap(), sql, "--json"]);
    said.as_array().unwrap().clone()
}

fn files_have_the_names_of_the_end() {
    let disk = LoopExt4::new(&LoopOptions::default()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("x.most");
    let mut recording = record(disk.mount_point(), &out);
    recording
        .current_dir(disk.mount_point())
        .args(["--", "sh", "-c", SCRIPT]);
    let told = succeeds(&mut recording).out;
    // The names of the script, by what was written.
    let mut truth: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut log = Vec::new();
    for line in told.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let &[inode, name, last] = &words[..] else {
            continue;
        };
        let last = (last != "?").then(|| format!("/{last}"));
        truth.insert(format!("{inode} /{name}"), last.clone());
        log.extend(last.filter(|_| name == "log"));
    }
    assert_eq!((truth.len(), log.len()), (15, 2), "{told}");
    let sql = "SELECT inode, path, final_path, sum(bytes) AS n FROM events WHERE class = 'data' AND kind = 'regular' AND op = 'write' \
               GROUP BY inode, path, final_path";
    let text = |row: &Value, name: &str| row[name].as_str().map(str::to_owned);
    let mut found = BTreeMap::new();
    for row in rows(&out, sql) {
        let file = format!(
            "{} {}",
            row["inode"],
            text(&row, "path").unwrap_or_default()
        );
        found.insert(file, text(&row, "final_path"));
    }
    assert_eq!(found, truth);
    // The sums of the ten saves are those of one name.
    let bytes = 4096 * (1..=10).sum::<u64>();
    let sql = "SELECT sum(bytes) AS n FROM events WHERE final_path = '/data.json' AND class = 'data' AND op = 'write'";
    assert_eq!(rows(&out, sql)[0]["n"].as_u64(), Some(bytes));
    let path = out.to_str().unwrap();
    let said = succeeds(program().args(["analyze", path]));
    said.prints("/data.json (10 files renamed to it)");
    let sums = succeeds(program().args(["analyze", path, "--by", "final_path", "--format", "csv"]));
    sums.prints("\n/data.json,");
}

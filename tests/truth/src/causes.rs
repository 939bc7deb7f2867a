// SPDX-License-Identifier: MIT OR Apache-2.0
//! Asks mostrace for the causes of rows of files' contents.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::judge::Said;

/// A row of a file that is written to its place: a copy in the journal has no place in the file.
const ROWS: &str = "SELECT completion, sector, bytes, time_ns, d2c_ns, q2d_ns, inode, generation, file_offset, cause_known, \
                    cause_tgid FROM events WHERE op = 'write' AND class IN ('data', 'unknown') \
                    AND coalesce(kind, '') <> 'directory'";
const CAUSES: &str = "SELECT completion, sector, cause_tgid FROM causes WHERE op = 'write' AND cause_tgid IS NOT NULL";

#[derive(Deserialize)]
struct Row {
    completion: u64,
    sector: u64,
    bytes: u64,
    time_ns: u64,
    d2c_ns: Option<u64>,
    q2d_ns: Option<u64>,
    inode: Option<u64>,
    generation: Option<u32>,
    file_offset: Option<u64>,
    cause_known: String,
    cause_tgid: Option<u32>,
}

#[derive(Deserialize)]
struct Share {
    completion: u64,
    sector: u64,
    cause_tgid: u32,
}

/// Returns what mostrace says of the rows of a bundle whose place in a file it knows, in the order in which they were
/// queued, and the number of the other rows.
pub fn said(mostrace: &Path, bundle: &Path) -> Result<(Vec<Said>, u64)> {
    let mut causers: HashMap<(u64, u64), BTreeSet<u32>> = HashMap::new();
    // By default a row's bytes may all be charged to one of its causers.
    for share in query::<Share>(mostrace, bundle, CAUSES, &["--share", "equal"])? {
        let of_row = causers.entry((share.completion, share.sector));
        of_row.or_default().insert(share.cause_tgid);
    }
    let said = |row: Row| {
        let issued_ns = row.time_ns - row.d2c_ns.unwrap_or(0);
        Some(Said {
            queued_ns: issued_ns - row.q2d_ns.unwrap_or(0),
            issued_ns,
            inode: (row.inode?, row.generation.unwrap_or(0)),
            offset: row.file_offset?,
            bytes: row.bytes,
            known: row.cause_known,
            named: row.cause_tgid,
            causers: causers
                .remove(&(row.completion, row.sector))
                .unwrap_or_default(),
        })
    };
    let rows: Vec<Row> = query(mostrace, bundle, ROWS, &[])?;
    let all = rows.len();
    let mut rows: Vec<Said> = rows.into_iter().filter_map(said).collect();
    rows.sort_by_key(|row| row.queued_ns);
    let others = (all - rows.len()) as u64;
    Ok((rows, others))
}

fn query<T: DeserializeOwned>(
    mostrace: &Path,
    bundle: &Path,
    sql: &str,
    options: &[&str],
) -> Result<Vec<T>> {
    let mut command = Command::new(mostrace);
    command.args(["query", "--format", "csv"]).args(options);
    let answer = command.arg(bundle).arg(sql).output()?;
    let said = String::from_utf8_lossy(&answer.stderr);
    ensure!(answer.status.success(), "{said}");
    let rows: Result<Vec<T>, _> = csv::Reader::from_reader(&answer.stdout[..])
        .deserialize()
        .collect();
    Ok(rows?)
}

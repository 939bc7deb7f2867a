// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came of a run: for people, as JSON, and as the payload that `record` puts into the bundle.

use std::fmt;
use std::path::Path;

use mostrace_bundle::manifest::Payload;
use serde::{Deserialize, Serialize};

use crate::{Error, Latency, Op, Result, Settings, Written, sqlite_version, sync_call};

/// Bytes of a creation_date, whatever width SQLite packs it into.
const DATE_BYTES: u64 = 8;

/// One phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phase {
    /// Wall time, ns.
    pub elapsed_ns: u64,
    /// What was written; None where the kernel does not count it.
    pub written: Option<Written>,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Version of this record's shape.
    pub schema: u32,
    /// What the bundle's manifest keeps; see [`Outcome::new`] for what each figure covers.
    pub payload: Payload,
    /// Transactions of all threads in a second of the transactions phase. None when there were none.
    pub transactions_per_second: Option<f64>,
    /// None when there were no transactions.
    pub latency: Option<Latency>,
    /// Opening the databases and making them.
    pub setup: Phase,
    /// The transactions.
    pub transactions: Phase,
    /// The checkpoint of WAL, and closing.
    pub finish: Phase,
    /// The latency of each transaction, thread after thread, ns; not in the JSON.
    #[serde(skip)]
    pub latencies_ns: Vec<u64>,
}

impl Outcome {
    /// `asked` is what the user asked for, `done` what was run in its place when only preparing.
    ///
    /// - `payload_bytes`: bytes of the column values that were handed over to be stored: for an insertion or an
    ///   update the Value's bytes and 8 for the creation_date. The id is not counted: SQLite chooses it. A deletion
    ///   stores nothing, so its payload is 0 and no amplification can be stated.
    /// - `file_bytes`: bytes passed to write() in all three phases, as a trace of the command covers all three.
    ///   0 means not counted, and then `syscw` is not among the settings.
    /// - `elapsed_ns`: the transactions phase alone.
    pub(crate) fn new(
        asked: &Settings,
        done: &Settings,
        phases: [Phase; 3],
        latencies_ns: Vec<u64>,
    ) -> Self {
        let [setup, transactions, finish] = phases;
        let count = done.transactions.saturating_mul(u64::from(done.threads));
        let row_bytes = match done.op {
            Op::Insert | Op::Update => DATE_BYTES.saturating_add(u64::from(done.value_size)),
            Op::Delete => 0,
        };
        let mut settings = asked.table();
        settings.insert("sqlite_version".into(), sqlite_version().into());
        settings.insert("sync_call".into(), sync_call().into());
        for (name, phase) in [
            ("setup", setup),
            ("transactions", transactions),
            ("finish", finish),
        ] {
            if let Some(written) = phase.written {
                settings.insert(format!("{name}_file_bytes"), written.bytes.to_string());
            }
        }
        let written = total(&phases);
        if let Some(written) = written {
            settings.insert("syscw".into(), written.calls.to_string());
        }
        let payload = Payload {
            workload: "sqlite".into(),
            payload_bytes: count
                .saturating_mul(done.per_transaction)
                .saturating_mul(row_bytes),
            file_bytes: written.map_or(0, |written| written.bytes),
            transactions: count,
            elapsed_ns: transactions.elapsed_ns,
            settings,
        };
        Self {
            schema: 1,
            payload,
            transactions_per_second: per_second(count, transactions.elapsed_ns),
            latency: Latency::of(&latencies_ns),
            setup,
            transactions,
            finish,
            latencies_ns,
        }
    }

    fn setting(&self, name: &str) -> &str {
        self.payload.settings.get(name).map_or("", String::as_str)
    }
}

fn total(phases: &[Phase]) -> Option<Written> {
    phases.iter().try_fold(Written::default(), |sum, phase| {
        let written = phase.written?;
        Some(Written {
            bytes: sum.bytes.saturating_add(written.bytes),
            calls: sum.calls.saturating_add(written.calls),
        })
    })
}

fn per_second(count: u64, elapsed_ns: u64) -> Option<f64> {
    (count > 0 && elapsed_ns > 0).then(|| count as f64 * 1e9 / elapsed_ns as f64)
}

fn milliseconds(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// A few lines, without a newline at the end.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let payload = &self.payload;
        let what = if self.setting("prepare") == "true" {
            "prepare"
        } else {
            self.setting("op")
        };
        let [version, call, journal, sync] =
            ["sqlite_version", "sync_call", "journal", "sync"].map(|name| self.setting(name));
        writeln!(
            f,
            "SQLite {version} ({call}), {what}, journal {journal}, synchronous {sync}"
        )?;
        let elapsed = milliseconds(payload.elapsed_ns);
        match self.transactions_per_second {
            Some(rate) => {
                writeln!(
                    f,
                    "transactions   {} in {elapsed:.1} ms, {rate:.1} a second",
                    payload.transactions
                )?;
            }
            None => writeln!(f, "transactions   none")?,
        }
        if let Some(latency) = self.latency {
            let [p50, p90, p99, max] = [
                latency.p50_ns,
                latency.p90_ns,
                latency.p99_ns,
                latency.max_ns,
            ]
            .map(milliseconds);
            writeln!(
                f,
                "latency        p50 {p50:.3} ms, p90 {p90:.3} ms, p99 {p99:.3} ms, max {max:.3} ms"
            )?;
        }
        writeln!(f, "payload bytes  {}", payload.payload_bytes)?;
        match [self.setup, self.transactions, self.finish].map(|phase| phase.written) {
            [Some(setup), Some(work), Some(finish)] => write!(
                f,
                "file bytes     {} (setup {}, transactions {}, finish {})",
                payload.file_bytes, setup.bytes, work.bytes, finish.bytes
            ),
            _ => write!(f, "file bytes     not counted: no /proc/self/io here"),
        }
    }
}

/// Writes the payload as JSON, whole or not at all: a reader never sees half of it.
///
/// # Errors
///
/// The folder is missing or not writable, or the disk is full.
pub fn write_payload(payload: &Payload, path: &Path) -> Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(Error::io(path))?;
    serde_json::to_writer_pretty(&mut file, payload)
        .map_err(|error| Error::io(path)(error.into()))?;
    file.persist(path)
        .map_err(|error| Error::io(path)(error.error))?;
    Ok(())
}

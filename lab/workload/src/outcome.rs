// SPDX-License-Identifier: MIT OR Apache-2.0
//! The outcome of a run: as text, as JSON, and as the payload that `record` puts into the bundle.

use std::collections::BTreeMap;
use std::fmt;

use mostrace_bundle::manifest::Payload;
use serde::{Deserialize, Serialize};

use crate::measure::milliseconds;
use crate::{Cpu, Latency, Measured, Operation, Phase, Switches, Written};

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Version of this record's format.
    pub schema: u32,
    /// The payload that the bundle's manifest stores; see [`Task`] for what each number covers.
    pub payload: Payload,
    /// Transactions (or operations on files) of all threads per second of the measured phase. None if there were none.
    pub transactions_per_second: Option<f64>,
    /// Latency; None if there were no transactions.
    pub latency: Option<Latency>,
    /// The phase in which files are opened and filled.
    pub setup: Phase,
    /// The measured phase with the transactions or operations.
    pub transactions: Phase,
    /// The final phase: for example the checkpoint of the WAL, and closing.
    pub finish: Phase,
    /// Use of the machine's CPUs during the measured phase.
    pub cpu: Option<Cpu>,
    /// Context switches of the threads during the measured phase.
    pub switches: Option<Switches>,
    /// All operations, thread after thread; not part of the JSON.
    #[serde(skip)]
    pub operations: Vec<Operation>,
    /// A description of the run for the text; not part of the JSON.
    #[serde(skip)]
    pub heading: String,
}

/// A description of the work that was done.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// Name of the workload, for example `sqlite`.
    pub workload: &'static str,
    /// The work in words.
    pub heading: String,
    /// Number of bytes in the values to be stored; 0 if there were none, and then no amplification can be given.
    pub payload_bytes: u64,
    /// Number of SQLite transactions, or of operations on files.
    pub count: u64,
    /// Settings by name, as stored in the manifest.
    pub settings: BTreeMap<String, String>,
}

impl Outcome {
    /// - `file_bytes` counts bytes passed to write() in all three phases, because a trace of the command covers all
    ///   three. 0 means that they were not counted; then `syscw` is missing from the settings.
    /// - `elapsed_ns` covers the measured phase alone.
    pub(crate) fn new(task: Task, [setup, finish]: [Phase; 2], measured: Measured) -> Self {
        let transactions = measured.phase;
        let mut settings = task.settings;
        for (name, phase) in [
            ("setup", setup),
            ("transactions", transactions),
            ("finish", finish),
        ] {
            if let Some(written) = phase.written {
                settings.insert(format!("{name}_file_bytes"), written.bytes.to_string());
            }
        }
        let written = total(&[setup, transactions, finish]);
        if let Some(written) = written {
            settings.insert("syscw".into(), written.calls.to_string());
        }
        let payload = Payload {
            workload: task.workload.into(),
            payload_bytes: task.payload_bytes,
            file_bytes: written.map_or(0, |written| written.bytes),
            transactions: task.count,
            elapsed_ns: transactions.elapsed_ns,
            settings,
        };
        Self {
            schema: 1,
            transactions_per_second: per_second(task.count, transactions.elapsed_ns),
            payload,
            latency: Latency::of(&measured.operations),
            setup,
            transactions,
            finish,
            cpu: measured.cpu,
            switches: measured.switches,
            operations: measured.operations,
            heading: task.heading,
        }
    }

    /// Returns the unit that is counted: SQLite transactions, or operations.
    fn unit(&self) -> &'static str {
        match self.payload.counts_operations() {
            true => "operations    ",
            false => "transactions  ",
        }
    }
}

fn total(phases: &[Phase]) -> Option<Written> {
    let sum = |sum: Written, phase: &Phase| Some(sum.and(phase.written?));
    phases.iter().try_fold(Written::default(), sum)
}

pub(crate) fn per_second(count: u64, elapsed_ns: u64) -> Option<f64> {
    (count > 0 && elapsed_ns > 0).then(|| count as f64 * 1e9 / elapsed_ns as f64)
}

/// Displays a few lines, without a newline at the end.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let payload = &self.payload;
        let unit = self.unit();
        writeln!(f, "{}", self.heading)?;
        let elapsed = milliseconds(payload.elapsed_ns);
        match self.transactions_per_second {
            Some(rate) => {
                let count = payload.transactions;
                writeln!(f, "{unit} {count} in {elapsed:.1} ms, {rate:.1} a second")?;
            }
            None => writeln!(f, "{unit} none")?,
        }
        if let Some(latency) = self.latency {
            writeln!(f, "latency        {latency}")?;
        }
        if let Some(cpu) = self.cpu {
            let [active, idle, iowait] = [cpu.active_percent, cpu.idle_percent, cpu.iowait_percent];
            writeln!(
                f,
                "CPU            active {active:.1} %, idle {idle:.1} %, iowait {iowait:.1} %"
            )?;
        }
        if let Some(switches) = self.switches {
            let (voluntary, involuntary) = (switches.voluntary, switches.involuntary);
            writeln!(
                f,
                "switches       {voluntary} voluntary, {involuntary} involuntary"
            )?;
        }
        writeln!(f, "payload bytes  {}", payload.payload_bytes)?;
        match [self.setup, self.transactions, self.finish].map(|phase| phase.written) {
            [Some(setup), Some(work), Some(finish)] => write!(
                f,
                "file bytes     {} (setup {}, {} {}, finish {})",
                payload.file_bytes,
                setup.bytes,
                unit.trim_end(),
                work.bytes,
                finish.bytes
            ),
            _ => write!(f, "file bytes     not counted: no /proc/PID/io here"),
        }
    }
}

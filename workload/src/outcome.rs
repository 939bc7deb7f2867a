// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came of a run: for people, as JSON, and as the payload that `record` puts into the bundle.

use std::collections::BTreeMap;
use std::fmt;

use mostrace_bundle::manifest::Payload;
use serde::{Deserialize, Serialize};

use crate::{Cpu, Latency, Measured, Operation, Phase, Switches, Written};

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Version of this record's shape.
    pub schema: u32,
    /// What the bundle's manifest keeps; see [`Task`] for what each figure covers.
    pub payload: Payload,
    /// Transactions, or operations on files, of all threads in a second of their phase. None when there were none.
    pub transactions_per_second: Option<f64>,
    /// None when there were no transactions.
    pub latency: Option<Latency>,
    /// Opening the files and making what is in them.
    pub setup: Phase,
    /// The transactions, or operations.
    pub transactions: Phase,
    /// What a workload ends with, as the checkpoint of WAL; and closing.
    pub finish: Phase,
    /// The machine's CPUs during the transactions.
    #[serde(default)]
    pub cpu: Option<Cpu>,
    /// Context switches of the threads during the transactions.
    #[serde(default)]
    pub switches: Option<Switches>,
    /// Each transaction, thread after thread; not in the JSON.
    #[serde(skip)]
    pub operations: Vec<Operation>,
    /// What was done, for people; not in the JSON.
    #[serde(skip)]
    pub heading: String,
}

/// What was to be done.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// Name of the workload, as `sqlite`.
    pub workload: &'static str,
    /// In words.
    pub heading: String,
    /// Bytes of the values that were handed over to be stored; 0 if none were, and then no amplification can be stated.
    pub payload_bytes: u64,
    /// Transactions of SQLite, or operations on files, that were done.
    pub count: u64,
    /// By name, as a manifest keeps them.
    pub settings: BTreeMap<String, String>,
}

impl Outcome {
    /// - `file_bytes`: bytes passed to write() in all three phases, as a trace of the command covers all three.
    ///   0 means not counted, and then `syscw` is not among the settings.
    /// - `elapsed_ns`: the transactions phase alone.
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

    /// What is counted: transactions of SQLite, else operations.
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

pub(crate) fn milliseconds(ns: u64) -> f64 {
    ns as f64 / 1e6
}

/// A few lines, without a newline at the end.
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

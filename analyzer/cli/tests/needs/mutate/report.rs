// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of all runs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::limits::Outcome;

/// Time between two progress reports.
const TELL: Duration = Duration::from_secs(60);

/// The counts, and one fault of each kind.
#[derive(Default)]
pub struct Report {
    seed: u64,
    pub runs: u64,
    pub bundles: u64,
    elapsed: Duration,
    /// Number of runs by how they ended.
    ends: BTreeMap<String, u64>,
    most_memory: u64,
    most_cpu: Duration,
    pub faults: BTreeMap<String, Fault>,
}

/// The first fault of its kind.
pub struct Fault {
    times: u64,
    bundle: u64,
    kept: PathBuf,
    command: String,
}

impl Report {
    pub fn of(seed: u64) -> Report {
        Report {
            seed,
            ..Report::default()
        }
    }

    /// Reports the results so far once a minute.
    pub fn tell(&mut self, elapsed: Duration) {
        if elapsed.saturating_sub(self.elapsed) >= TELL {
            self.elapsed = elapsed;
            eprintln!("{self}");
        }
    }

    /// Returns the report with the elapsed time.
    pub fn at(self, elapsed: Duration) -> Report {
        Report { elapsed, ..self }
    }

    /// Returns how many runs ended so.
    pub fn ends(&self, end: &str) -> u64 {
        self.ends.get(end).copied().unwrap_or(0)
    }

    pub fn ended(&mut self, end: String) {
        self.runs += 1;
        *self.ends.entry(end).or_default() += 1;
    }

    pub fn count(&mut self, outcome: &Outcome) {
        self.ended(match (outcome.status, outcome.signal) {
            (Some(status), _) => format!("status {status}"),
            (_, signal) => format!("signal {}", signal.unwrap_or_default()),
        });
        self.most_memory = self.most_memory.max(outcome.memory);
        self.most_cpu = self.most_cpu.max(outcome.cpu);
    }

    /// Adds a fault; `keep` is called for the first of its kind, and returns where the bundle is kept.
    pub fn fault(
        &mut self,
        what: String,
        bundle: u64,
        command: String,
        keep: impl FnOnce() -> PathBuf,
    ) {
        let fault = self.faults.entry(what).or_insert_with(|| Fault {
            times: 0,
            bundle,
            kept: keep(),
            command,
        });
        fault.times += 1;
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report {
            seed,
            runs,
            bundles,
            elapsed,
            ends,
            most_memory,
            most_cpu,
            faults,
        } = self;
        let (seconds, memory, cpu) = (elapsed.as_secs(), most_memory >> 20, most_cpu.as_secs_f64());
        writeln!(
            f,
            "seed {seed}: {runs} runs on {bundles} bundles in {seconds} s, {ends:?}"
        )?;
        writeln!(
            f,
            "at most {memory} MiB of memory and {cpu:.1} s of CPU time; {} kinds of faults",
            faults.len()
        )?;
        for (
            what,
            Fault {
                times,
                bundle,
                kept,
                command,
            },
        ) in faults
        {
            writeln!(f, "{times} times: {what}")?;
            writeln!(f, "    {command}\n    kept in {}", kept.display())?;
            writeln!(
                f,
                "    again: MOSTRACE_MUTATIONS_SEED={seed} MOSTRACE_MUTATIONS_BUNDLE={bundle}"
            )?;
        }
        Ok(())
    }
}

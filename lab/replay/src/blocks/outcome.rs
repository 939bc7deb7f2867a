// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of replaying requests.

use std::collections::BTreeMap;
use std::{fmt, io};

use serde::Serialize;
use strum::VariantArray;

use super::request::{Op, Request};
use crate::outcome::{Latencies, StartError, ms};

/// The results of replaying requests.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BlocksOutcome {
    /// The requests by what the device was asked for.
    pub requests: BTreeMap<Op, Requests>,
    /// The number of requests that failed, by the error.
    pub failed: BTreeMap<String, u64>,
    /// The time from the start of the first request to the end of the last one, ns.
    pub elapsed_ns: u64,
    /// The same time in the recording, ns.
    pub recorded_elapsed_ns: u64,
    /// The delay with which requests were started.
    pub start_error: StartError,
}

/// The requests of one operation.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Requests {
    /// Their number.
    pub requests: u64,
    /// The number of bytes that they read, wrote, discarded or zeroed.
    pub bytes: u64,
    /// The number of those with FUA.
    pub fua: u64,
    /// The number of those with a flush ahead.
    pub preflush: u64,
    /// The times from queueing to completion in the recording.
    pub recorded: Latencies,
    /// The times from queueing to completion in the replay, of the requests that succeeded.
    pub replayed: Latencies,
}

/// A request that was made.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// The time at which it was to start, ns from the start of the replay.
    pub due_ns: u64,
    pub begun_ns: u64,
    ended_ns: u64,
    failed: Option<io::Error>,
}

impl Made {
    pub fn end(&mut self, now_ns: u64, result: io::Result<()>) {
        self.ended_ns = now_ns;
        self.failed = result.err();
    }
}

impl BlocksOutcome {
    /// Counts the requests, all of which were made.
    pub(super) fn new(requests: &[Request], made: Vec<Made>) -> BlocksOutcome {
        let first = requests.iter().map(|request| request.queued_ns).min();
        let last = requests.iter().map(|request| request.completed_ns).max();
        let mut outcome = BlocksOutcome {
            elapsed_ns: made.iter().map(|made| made.ended_ns).max().unwrap_or(0),
            recorded_elapsed_ns: last.unwrap_or(0).saturating_sub(first.unwrap_or(0)),
            ..BlocksOutcome::default()
        };
        for op in Op::VARIANTS {
            let of = || {
                let pairs = requests.iter().zip(&made);
                pairs.filter(|(request, _)| request.op == *op)
            };
            let count = |is: fn(&Request) -> bool| of().filter(|(r, _)| is(r)).count() as u64;
            if of().next().is_none() {
                continue;
            }
            let recorded = |(request, _): (&Request, &Made)| {
                request.completed_ns.saturating_sub(request.queued_ns)
            };
            let replayed = |(_, made): (&Request, &Made)| {
                let lasted = made.ended_ns.saturating_sub(made.begun_ns);
                made.failed.is_none().then_some(lasted)
            };
            let all = Requests {
                requests: count(|_| true),
                bytes: of().map(|(request, _)| u64::from(request.bytes)).sum(),
                fua: count(|request| request.fua),
                preflush: count(|request| request.preflush),
                recorded: of().map(recorded).collect(),
                replayed: of().filter_map(replayed).collect(),
            };
            outcome.requests.insert(*op, all);
        }
        for made in made {
            outcome.start_error.note(made.due_ns, made.begun_ns);
            if let Some(error) = made.failed {
                let count = outcome.failed.entry(error.to_string()).or_default();
                *count = count.saturating_add(1);
            }
        }
        outcome
    }
}

impl fmt::Display for BlocksOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<14}{:>10}{:>16}{:>10}{:>10}{:>21}{:>21}",
            "request",
            "number",
            "bytes",
            "FUA",
            "preflush",
            "recorded p50, p99",
            "replayed p50, p99"
        )?;
        for (op, requests) in &self.requests {
            let name: &str = op.into();
            write!(f, "{name:<14}{:>10}", requests.requests)?;
            write!(f, "{:>16}{:>10}", requests.bytes, requests.fua)?;
            write!(f, "{:>10}", requests.preflush)?;
            for latencies in [&requests.recorded, &requests.replayed] {
                let quantiles = latencies.quantiles();
                let both = format!(
                    "{:.3}, {:.3} ms",
                    ms(quantiles.p50_ns),
                    ms(quantiles.p99_ns)
                );
                write!(f, "{both:>21}")?;
            }
            writeln!(f)?;
        }
        for (error, requests) in &self.failed {
            writeln!(f, "{requests} requests failed: {error}")?;
        }
        let (replayed, recorded) = (ms(self.elapsed_ns), ms(self.recorded_elapsed_ns));
        writeln!(f, "elapsed {replayed:.3} ms, recorded {recorded:.3} ms")?;
        let late = &self.start_error;
        let (mean, most) = (ms(late.mean_ns), ms(late.max_ns));
        write!(
            f,
            "requests began {mean:.3} ms late on average, at most {most:.3} ms"
        )
    }
}

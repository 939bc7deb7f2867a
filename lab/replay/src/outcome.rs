// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of replaying operations.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::ended::Ended;
use crate::flags;
use crate::operation::{Call, FileCall, Operation, Unknown};

/// The results of replaying operations.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// The calls that were made, by kind. [`Call::Opened`] and stores are counted too, although they are no calls of the
    /// application.
    pub calls: BTreeMap<String, Tally>,
    /// The number of operations that were left out, by reason: those that could not be read, and those that a replay does not make.
    pub left_out: BTreeMap<String, u64>,
    /// The time from the start of the replay to the end of its last operation, ns.
    pub elapsed_ns: u64,
    /// The time from the start of the first operation in the recording to the end of the last one, ns; None if it is unknown.
    pub recorded_elapsed_ns: Option<u64>,
    /// The differences between the operations' start times in the replay and in the recording; None if those are unknown.
    pub start_error: Option<StartError>,
    /// The durations, in the recording, of calls that wait for the storage and that succeeded both times; None if they are unknown.
    pub durable_recorded: Option<Latencies>,
    /// The durations of these calls in the replay.
    pub durable_replayed: Latencies,
}

/// The calls of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// The number of calls that were made.
    pub made: u64,
    /// The number of those that returned the same result as in the recording.
    pub same: u64,
    /// The number of the others, by their two results.
    pub others: BTreeMap<Difference, u64>,
}

/// Two results that differ; serialised as `ENOENT -> ok`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Difference {
    /// The result in the recording.
    pub recorded: Ended,
    /// The result in the replay.
    pub replayed: Ended,
}

/// The differences between the operations' start times in the replay and in the recording, both counted from the first operation's
/// start. The figures in percent are relative to the time that had passed in the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct StartError {
    /// The number of operations.
    pub operations: u64,
    /// The mean, ns.
    pub mean_ns: u64,
    /// The greatest, ns.
    pub max_ns: u64,
    /// The mean, percent. Operations that started together with the first one do not count.
    pub mean_percent: f64,
    /// The greatest, percent.
    pub max_percent: f64,
}

/// The durations of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(into = "Quantiles")]
pub struct Latencies {
    ns: Vec<u64>,
}

/// The percentiles that tables show for latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Quantiles {
    /// The number of calls.
    pub calls: u64,
    /// Half of the calls took at most this long, ns.
    pub p50_ns: u64,
    /// 99 % of the calls took at most this long, ns.
    pub p99_ns: u64,
    /// The longest one, ns.
    pub max_ns: u64,
}

impl From<Latencies> for Quantiles {
    fn from(latencies: Latencies) -> Quantiles {
        latencies.quantiles()
    }
}

impl FromIterator<u64> for Latencies {
    fn from_iter<I: IntoIterator<Item = u64>>(ns: I) -> Latencies {
        let mut ns: Vec<u64> = ns.into_iter().collect();
        ns.sort_unstable();
        Latencies { ns }
    }
}

impl Latencies {
    /// Returns all durations, ns; they are sorted once the replay has ended.
    pub fn all(&self) -> &[u64] {
        &self.ns
    }

    /// Returns the percentiles of sorted latencies; 0 if there are none.
    pub fn quantiles(&self) -> Quantiles {
        // This is the nearest rank: the least value that this percentage of the values does not exceed.
        let at = |percent: usize| {
            let rank = self.ns.len().saturating_mul(percent).div_ceil(100);
            self.ns.get(rank.saturating_sub(1)).copied().unwrap_or(0)
        };
        Quantiles {
            calls: self.ns.len() as u64,
            p50_ns: at(50),
            p99_ns: at(99),
            max_ns: at(100),
        }
    }
}

/// The start and end of a replayed operation, ns after the start of the replay.
pub(crate) struct Times {
    /// The start of the first operation in the recording, ns of its clock.
    pub(crate) first: u64,
    pub(crate) began: u64,
    pub(crate) ended: u64,
}

impl Outcome {
    /// Counts an operation.
    pub(crate) fn note(
        &mut self,
        operation: &Operation,
        made: Result<i64, &'static str>,
        times: &Times,
    ) {
        let recorded = operation.begin_ns.saturating_sub(times.first);
        let error = self.start_error.get_or_insert_default();
        error.note(recorded, times.began);
        self.elapsed_ns = self.elapsed_ns.max(times.ended);
        let result = match made {
            Ok(result) => result,
            Err(why) => {
                self.leave_out(why, 1);
                return;
            }
        };
        let kind = operation.call.kind();
        match self.calls.get_mut(kind) {
            Some(tally) => tally.note(operation.result, result),
            None => {
                let mut tally = Tally::default();
                tally.note(operation.result, result);
                self.calls.insert(kind.to_owned(), tally);
            }
        }
        if is_durable(&operation.call) && operation.result >= 0 && result >= 0 {
            let lasted = operation.end_ns.saturating_sub(operation.begin_ns);
            let recorded = self.durable_recorded.get_or_insert_default();
            recorded.ns.push(lasted);
            let lasted = times.ended.saturating_sub(times.began);
            self.durable_replayed.ns.push(lasted);
        }
    }

    pub(crate) fn leave_out(&mut self, why: &str, operations: u64) {
        let count = self.left_out.entry(why.to_owned()).or_default();
        *count = count.saturating_add(operations);
    }

    /// Adds the operations of another thread.
    pub(crate) fn add(&mut self, other: Outcome) {
        for (kind, tally) in other.calls {
            self.calls.entry(kind).or_default().add(tally);
        }
        for (why, operations) in other.left_out {
            self.leave_out(&why, operations);
        }
        self.elapsed_ns = self.elapsed_ns.max(other.elapsed_ns);
        if let Some(error) = other.start_error {
            self.start_error.get_or_insert_default().add(error);
        }
        if let Some(latencies) = other.durable_recorded {
            let all = self.durable_recorded.get_or_insert_default();
            all.ns.extend(latencies.ns);
        }
        self.durable_replayed.ns.extend(other.durable_replayed.ns);
    }

    /// Sorts the durations, and drops the figures that would come from what the recording does not tell.
    pub(crate) fn finish(&mut self, unknown: Unknown) {
        if unknown.times {
            (self.recorded_elapsed_ns, self.start_error) = (None, None);
        }
        let recorded = self.durable_recorded.take();
        self.durable_recorded = match unknown.durations {
            true => None,
            false => Some(recorded.unwrap_or_default().ns.into_iter().collect()),
        };
        self.durable_replayed.ns.sort_unstable();
    }

    /// Returns the number of calls that were made, and the number of those that returned the same as in the recording.
    pub fn made_and_same(&self) -> (u64, u64) {
        let calls = self.calls.values();
        calls.fold((0, 0), |(made, same), tally| {
            (
                made.saturating_add(tally.made),
                same.saturating_add(tally.same),
            )
        })
    }
}

/// Returns true for calls that return only when the storage has what was written.
fn is_durable(call: &Call) -> bool {
    const MS_SYNC: u32 = 4;
    match call {
        Call::Of(_, call) => match call {
            FileCall::Fsync | FileCall::Fdatasync | FileCall::Syncfs | FileCall::AtomicCommit => {
                true
            }
            FileCall::Msync(_, flags) => flags & MS_SYNC != 0,
            FileCall::SyncRange(_, flags) => flags & flags::SYNC_FILE_RANGE_WAIT_AFTER != 0,
            _ => false,
        },
        call => *call == Call::Sync,
    }
}

impl Tally {
    fn note(&mut self, recorded: i64, replayed: i64) {
        self.made = self.made.saturating_add(1);
        if recorded == replayed {
            self.same = self.same.saturating_add(1);
            return;
        }
        let difference = Difference {
            recorded: Ended::of(recorded, replayed),
            replayed: Ended::of(replayed, recorded),
        };
        let count = self.others.entry(difference).or_default();
        *count = count.saturating_add(1);
    }

    fn add(&mut self, other: Tally) {
        self.made = self.made.saturating_add(other.made);
        self.same = self.same.saturating_add(other.same);
        for (difference, calls) in other.others {
            let count = self.others.entry(difference).or_default();
            *count = count.saturating_add(calls);
        }
    }
}

impl StartError {
    pub(crate) fn note(&mut self, recorded: u64, replayed: u64) {
        let error = replayed.abs_diff(recorded);
        let percent = match recorded {
            0 => 0.0,
            recorded => error as f64 / recorded as f64 * 100.0,
        };
        self.add(StartError {
            operations: 1,
            mean_ns: error,
            max_ns: error,
            mean_percent: percent,
            max_percent: percent,
        });
    }

    fn add(&mut self, other: StartError) {
        let all = self.operations.saturating_add(other.operations);
        if all == 0 {
            return;
        }
        let part = other.operations as f64 / all as f64;
        let mean = |own: f64, others: f64| own + (others - own) * part;
        *self = StartError {
            operations: all,
            mean_ns: mean(self.mean_ns as f64, other.mean_ns as f64) as u64,
            max_ns: self.max_ns.max(other.max_ns),
            mean_percent: mean(self.mean_percent, other.mean_percent),
            max_percent: self.max_percent.max(other.max_percent),
        };
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.recorded, self.replayed)
    }
}

impl Serialize for Difference {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

pub(crate) fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<14}{:>12}{:>12}  other results",
            "call", "made", "same"
        )?;
        for (kind, tally) in &self.calls {
            write!(f, "{kind:<14}{:>12}{:>12}", tally.made, tally.same)?;
            for (nth, (difference, calls)) in tally.others.iter().enumerate() {
                let before = if nth == 0 { " " } else { "," };
                write!(f, "{before} {difference}: {calls}")?;
            }
            writeln!(f)?;
        }
        for (why, operations) in &self.left_out {
            writeln!(f, "{operations} operations were left out: {why}")?;
        }
        write!(f, "elapsed {:.3} ms", ms(self.elapsed_ns))?;
        match self.recorded_elapsed_ns {
            Some(recorded) => writeln!(f, ", recorded {:.3} ms", ms(recorded))?,
            None => writeln!(f, ", recorded not known")?,
        }
        match &self.start_error {
            Some(error) => writeln!(
                f,
                "start error {:.3} ms on average ({:.2} %), at most {:.3} ms ({:.2} %)",
                ms(error.mean_ns),
                error.mean_percent,
                ms(error.max_ns),
                error.max_percent
            )?,
            None => writeln!(f, "start error not known, for the recording has no times")?,
        }
        let recorded = self.durable_recorded.as_ref();
        for (when, latencies) in [
            ("replayed", Some(&self.durable_replayed)),
            ("recorded", recorded),
        ] {
            let calls = self.durable_replayed.ns.len();
            write!(f, "{calls} durable calls, {when}: ")?;
            let latencies = latencies.map(Latencies::quantiles);
            match latencies {
                Some(latencies) if latencies.calls > 0 => writeln!(
                    f,
                    "p50 {:.3} ms, p99 {:.3} ms, max {:.3} ms",
                    ms(latencies.p50_ns),
                    ms(latencies.p99_ns),
                    ms(latencies.max_ns)
                )?,
                Some(_) => writeln!(f, "no times")?,
                None => writeln!(f, "not known how long they took")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_nearest_ranks() {
        let ns: Vec<u64> = (1..=200).collect();
        let figures = Latencies { ns }.quantiles();
        assert_eq!(
            (figures.p50_ns, figures.p99_ns, figures.max_ns),
            (100, 198, 200)
        );
        assert_eq!(Latencies::default().quantiles(), Quantiles::default());
    }

    #[test]
    fn what_the_recording_does_not_tell_is_not_known() {
        let finished = |unknown| {
            let mut outcome = Outcome {
                recorded_elapsed_ns: Some(5),
                start_error: Some(StartError::default()),
                durable_replayed: Latencies {
                    ns: vec![3_000_000, 1_000_000],
                },
                ..Outcome::default()
            };
            outcome.finish(unknown);
            outcome
        };
        let known = finished(Unknown::default());
        assert_eq!(known.recorded_elapsed_ns, Some(5));
        assert_eq!(known.durable_replayed.all(), [1_000_000, 3_000_000]);
        let text = known.to_string();
        assert!(
            text.contains("2 durable calls, replayed: p50 1.000 ms, p99 3.000 ms, max 3.000 ms\n")
                && text.contains("2 durable calls, recorded: no times\n"),
            "{text}"
        );
        let unknown = finished(Unknown {
            times: true,
            durations: true,
        });
        assert_eq!(
            (unknown.recorded_elapsed_ns, unknown.start_error),
            (None, None)
        );
        let text = unknown.to_string();
        assert!(
            text.contains("recorded: not known how long they took\n"),
            "{text}"
        );
    }

    #[test]
    fn start_errors_are_relative_to_the_recorded_time() {
        let mut error = StartError::default();
        for (recorded, replayed) in [(0, 10), (100, 150), (200, 190)] {
            error.note(recorded, replayed);
        }
        assert_eq!(
            (error.operations, error.max_ns, error.max_percent),
            (3, 50, 50.0)
        );
        assert!((error.mean_percent - 55.0 / 3.0).abs() < 1e-9);
        assert!((22..=24).contains(&error.mean_ns), "{}", error.mean_ns);
    }
}

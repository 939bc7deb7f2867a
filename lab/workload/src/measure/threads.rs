// SPDX-License-Identifier: MIT OR Apache-2.0
//! The measured phase of a run: the same work in several threads at once.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use super::cpu::Ticks;
use super::phase::since;
use super::{Cpu, Operation, Phase, Progress, Switches, Written};
use crate::{Error, Result};

/// Measurements of the measured phase.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The time from the start of the first thread to the end of the last one, and what the threads wrote.
    pub phase: Phase,
    /// Use of the machine's CPUs during the phase; None if the kernel does not report it, or if no clock tick passed.
    pub cpu: Option<Cpu>,
    /// Context switches of all threads; None if the kernel does not report them.
    pub switches: Option<Switches>,
    /// All operations, thread after thread.
    pub operations: Vec<Operation>,
}

/// Measures the operations of one thread.
pub(crate) struct Stopwatch<'p> {
    began: Instant,
    progress: &'p Progress,
    operations: Vec<Operation>,
}

impl Stopwatch<'_> {
    /// Runs one operation and records its time.
    pub(crate) fn time(&mut self, operation: impl FnOnce() -> Result<()>) -> Result<()> {
        let start = Instant::now();
        operation()?;
        self.operations.push(Operation {
            took_ns: since(start),
            ended_ns: since(self.began),
        });
        self.progress.step();
        Ok(())
    }
}

/// The measurements of one thread.
struct Share {
    began: Instant,
    ended: Instant,
    operations: Vec<Operation>,
    written: Option<Written>,
    switches: Option<Switches>,
}

/// Lets every worker do its work in a thread of its own, all starting at once. Returns the workers.
///
/// # Errors
/// Returns the first error of any thread; the other threads finish their work.
pub(crate) fn in_threads<W: Send>(
    mut workers: Vec<W>,
    progress: &Progress,
    work: impl Fn(&mut W, &mut Stopwatch<'_>) -> Result<()> + Sync,
) -> Result<(Vec<W>, Measured)> {
    let ready = Barrier::new(workers.len());
    let ticks = Ticks::now();
    let shares: Vec<Result<Share>> = std::thread::scope(|scope| {
        let threads: Vec<_> = workers
            .iter_mut()
            .map(|worker| scope.spawn(|| share(worker, progress, &ready, &work)))
            .collect();
        let panicked = || Error::Setting("a thread of the workload panicked".to_owned());
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err(panicked())))
            .collect()
    });
    let cpu = Ticks::now()
        .zip(ticks)
        .and_then(|(now, before)| now.since(before));
    let shares = shares.into_iter().collect::<Result<Vec<_>>>()?;
    let sum = |all: Option<Written>, share: &Share| Some(all?.and(share.written?));
    let written = shares.iter().fold(Some(Written::default()), sum);
    let sum = |all: Option<Switches>, share: &Share| Some(all?.and(share.switches?));
    let switches = shares.iter().fold(Some(Switches::default()), sum);
    // The threads' own clock readings are used, because the waiting thread may be woken up late.
    let began = shares.iter().map(|share| share.began).min();
    let ended = shares.iter().map(|share| share.ended).max();
    let elapsed = ended
        .zip(began)
        .map_or(Duration::ZERO, |(end, begin)| end - begin);
    let measured = Measured {
        phase: Phase {
            elapsed_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
            written,
        },
        cpu,
        switches,
        operations: shares.into_iter().flat_map(|s| s.operations).collect(),
    };
    Ok((workers, measured))
}

fn share<W>(
    worker: &mut W,
    progress: &Progress,
    ready: &Barrier,
    work: impl Fn(&mut W, &mut Stopwatch<'_>) -> Result<()>,
) -> Result<Share> {
    ready.wait();
    let (written, switches) = (Written::of_this_thread(), Switches::of_this_thread());
    let mut stopwatch = Stopwatch {
        began: Instant::now(),
        progress,
        operations: Vec::new(),
    };
    work(worker, &mut stopwatch)?;
    Ok(Share {
        began: stopwatch.began,
        ended: Instant::now(),
        operations: stopwatch.operations,
        written: Written::since(written),
        switches: Switches::since(switches),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The thread that waits for the others may be woken up long after they have ended.
    #[test]
    fn the_time_holds_all_operations() {
        let progress = Progress::default();
        let work = |_: &mut u32, stopwatch: &mut Stopwatch<'_>| {
            (0..20).try_for_each(|_| {
                stopwatch.time(|| {
                    std::thread::sleep(Duration::from_micros(100));
                    Ok(())
                })
            })
        };
        for _ in 0..50 {
            let (_, measured) = in_threads(vec![1, 2], &progress, work).unwrap();
            let ends = measured.operations.iter().map(|o| o.ended_ns);
            assert!(measured.phase.elapsed_ns >= ends.max().unwrap());
        }
        assert_eq!(progress.done(), 50 * 40);
    }
}

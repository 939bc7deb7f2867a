// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs threads that make the operations; each operation waits until those that it depends on have ended.

use std::num::NonZeroU64;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};

use rustix::thread::futex;

use crate::call::Caller;
use crate::operation::Operation;
use crate::order::{At, Order};
use crate::outcome::{Outcome, Times};

/// How the replay times its operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// Each operation waits for those that it depends on, and then as long as the application did. The time between operations is
    /// that of the application, and the time within them that of the storage.
    #[default]
    Kept,
    /// Each operation begins as soon as those that it depends on have ended.
    Fast,
}

/// The progress of a thread.
#[derive(Debug, Default)]
struct Progress {
    /// The number of operations that it has made. It is a futex.
    made: AtomicU32,
    /// The number of threads that sleep until it changes.
    sleepers: AtomicU32,
}

/// The number of times that a thread checks whether an operation has ended before it sleeps; this takes a few microseconds.
const LOOKS: u32 = 200;
/// A sleep ends about this much too late, so the end of a wait is spent polling the clock.
const OVERSLEPT: Duration = Duration::from_micros(15);
/// The number of operations after which the caller is told how many were made.
const PROGRESS_EVERY: u64 = 256;
/// The stack size of a thread, bytes; a player needs little.
const STACK: usize = 256 << 10;

/// A running replay.
pub(crate) struct Player<'a, P> {
    caller: &'a Caller,
    operations: &'a [Operation],
    order: &'a Order,
    timing: Timing,
    progress: &'a P,
    threads: Vec<Progress>,
    /// The end of each operation, ns after the start. It is set before the progress of its thread.
    ended: Vec<AtomicU64>,
    /// True if another thread waits for the operation.
    awaited: Vec<bool>,
    made: AtomicU64,
}

/// Marks all of a thread's operations as made when it is dropped, even after a panic, so that no thread waits for it forever.
struct Finish<'a>(&'a Progress);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.set(u32::MAX, true);
    }
}

impl Progress {
    fn set(&self, made: u32, awaited: bool) {
        // Either the sleeper sees the new number when it checks once more, or this thread sees the sleeper.
        self.made.store(made, Ordering::SeqCst);
        if awaited && self.sleepers.load(Ordering::SeqCst) > 0 {
            let _ = futex::wake(&self.made, futex::Flags::PRIVATE, i32::MAX as u32);
        }
    }

    /// Waits until the thread has made more than `index` operations.
    fn wait(&self, index: u32) {
        for _ in 0..LOOKS {
            if self.made.load(Ordering::Acquire) > index {
                return;
            }
            std::hint::spin_loop();
        }
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        loop {
            let made = self.made.load(Ordering::SeqCst);
            if made > index {
                break;
            }
            let _ = futex::wait(&self.made, futex::Flags::PRIVATE, made, None);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

impl<'a, P: Fn(u64) + Sync> Player<'a, P> {
    pub(crate) fn new(
        caller: &'a Caller,
        operations: &'a [Operation],
        order: &'a Order,
        timing: Timing,
        progress: &'a P,
    ) -> Player<'a, P> {
        let mut awaited = vec![false; operations.len()];
        for number in 0..operations.len() as u32 {
            for needed in order.dependencies(number) {
                awaited[*needed as usize] = true;
            }
        }
        Player {
            caller,
            operations,
            order,
            timing,
            progress,
            threads: order
                .threads()
                .iter()
                .map(|_| Progress::default())
                .collect(),
            ended: operations.iter().map(|_| AtomicU64::new(0)).collect(),
            awaited,
            made: AtomicU64::new(0),
        }
    }

    /// Makes all operations and returns the results.
    ///
    /// # Errors
    /// Returns an error if the system has no room for the threads; no operation was made then.
    pub(crate) fn play(self) -> std::io::Result<Outcome> {
        // All threads start when this is set: to the start time, or to None if there is no room for all of them.
        let begin: OnceLock<Option<Instant>> = OnceLock::new();
        let play = |thread| match begin.wait() {
            Some(begin) => self.thread(thread, *begin),
            None => Outcome::default(),
        };
        let play = &play;
        std::thread::scope(|scope| {
            let threads = (0..self.threads.len()).map(|thread| {
                let builder = Builder::new().stack_size(STACK);
                builder.spawn_scoped(scope, move || play(thread))
            });
            let threads: std::io::Result<Vec<_>> = threads.collect();
            let _ = begin.set(threads.is_ok().then(Instant::now));
            let mut all = Outcome::default();
            for thread in threads? {
                match thread.join() {
                    Ok(outcome) => all.add(outcome),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            Ok(all)
        })
    }

    /// Makes the operations of one thread.
    fn thread(&self, thread: usize, begin: Instant) -> Outcome {
        let own = &self.threads[thread];
        let _finish = Finish(own);
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut outcome = Outcome::default();
        let mut ended = 0;
        for (index, number) in (1u32..).zip(&self.order.threads()[thread]) {
            let ready = self.wait(*number).max(ended);
            if self.timing == Timing::Kept {
                sleep_until(begin, ready.saturating_add(self.order.gap(*number)));
            }
            let operation = &self.operations[*number as usize];
            let began = since(begin);
            let made = self.caller.make(*number, operation);
            ended = since(begin);
            self.ended[*number as usize].store(ended, Ordering::Relaxed);
            own.set(index, self.awaited[*number as usize]);
            let first = self.operations[0].begin_ns;
            outcome.note(
                operation,
                made,
                &Times {
                    first,
                    began,
                    ended,
                },
            );
            self.tell();
        }
        outcome
    }

    /// Waits until the operations that this one depends on have ended. Returns the time at which the last one ended; 0 if there is
    /// none.
    fn wait(&self, number: u32) -> u64 {
        let mut last = 0;
        for needed in self.order.dependencies(number) {
            let At { thread, index } = self.order.place(*needed);
            self.threads[thread as usize].wait(index);
            last = last.max(self.ended[*needed as usize].load(Ordering::Relaxed));
        }
        last
    }

    fn tell(&self) {
        let before = self.made.fetch_add(1, Ordering::Relaxed);
        let all = before.saturating_add(1);
        if all.is_multiple_of(PROGRESS_EVERY) || all == self.operations.len() as u64 {
            (self.progress)(all);
        }
    }
}

/// Returns the time since the start, ns.
fn since(begin: Instant) -> u64 {
    u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Waits until this many ns after the start.
fn sleep_until(begin: Instant, ns: u64) {
    let at = Duration::from_nanos(ns);
    let left = at.saturating_sub(begin.elapsed());
    if left > OVERSLEPT {
        std::thread::sleep(left.saturating_sub(OVERSLEPT));
    }
    while begin.elapsed() < at {
        std::hint::spin_loop();
    }
}

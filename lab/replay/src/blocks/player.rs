// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes the requests of a trace again.

use std::time::{Duration, Instant};

use super::outcome::{BlocksOutcome, Made};
use super::request::Request;
use super::ring::Ring;
use super::schedule::{Schedule, Speed};
use super::target::BlockTarget;
use crate::bytes::Contents;
use crate::error::Result;

/// Makes the requests on a target: each at its time, and after those that it waited for in the recording.
///
/// # Errors
/// Returns an error if io_uring cannot be used. A request that fails is counted in the outcome.
pub fn play(
    requests: &[Request],
    target: BlockTarget,
    speed: Speed,
    contents: Contents,
) -> Result<BlocksOutcome> {
    let mut schedule = Schedule::new(requests, speed);
    let mut ring = Ring::new(target, contents)?;
    let mut made: Vec<Made> = Vec::new();
    made.resize_with(requests.len(), Made::default);
    let begin = Instant::now();
    let now_ns = || u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
    loop {
        while !ring.is_full()
            && let Some(index) = schedule.next(now_ns())
        {
            made[index].due_ns = schedule.due_ns(index);
            made[index].begun_ns = now_ns();
            if let Some((index, result)) = ring.start(index, &requests[index])? {
                made[index].end(now_ns(), result);
                schedule.complete(index);
            }
        }
        let next = schedule.next_due_ns().filter(|_| !ring.is_full());
        if ring.is_empty() && next.is_none() {
            break;
        }
        let timeout = next.map(|due| Duration::from_nanos(due.saturating_sub(now_ns())));
        for (index, result) in ring.wait(requests, timeout)? {
            made[index].end(now_ns(), result);
            schedule.complete(index);
        }
    }
    Ok(BlocksOutcome::new(requests, made))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Chooses the request that goes next: one whose time has come and that waits for nothing.

use std::collections::{BTreeMap, VecDeque};

use super::order::{LanePlace, Order};
use super::request::Request;

/// How the replay uses the recorded times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// Requests are made at the recorded times, divided by this factor.
    Times(f64),
    /// Requests are made as soon as they need not wait for others.
    Fast,
}

/// The requests that were not made yet.
pub(super) struct Schedule {
    order: Order,
    /// The earliest time for each request, by its index, ns from the start.
    due_ns: Vec<u64>,
    /// The number of `order.starts` that were admitted.
    admitted: usize,
    lanes: Vec<Lane>,
    ready: VecDeque<usize>,
}

/// The requests of a lane that have been completed, and those that wait for some of its requests.
#[derive(Default)]
struct Lane {
    done: Vec<bool>,
    /// The number of requests at the beginning of the lane that are all done.
    prefix: usize,
    /// The requests that wait, by the length of the prefix for which they wait.
    waiting: BTreeMap<usize, Vec<usize>>,
}

impl Lane {
    /// Notes that a request is done, and returns those that no longer need to wait for this lane.
    fn finish(&mut self, nth: usize) -> Vec<usize> {
        self.done[nth] = true;
        let more = self.done[self.prefix..].iter().take_while(|done| **done);
        self.prefix += more.count();
        let waiting = self.waiting.split_off(&(self.prefix + 1));
        let freed = std::mem::replace(&mut self.waiting, waiting);
        freed.into_values().flatten().collect()
    }
}

impl Schedule {
    pub fn new(requests: &[Request], speed: Speed) -> Schedule {
        let order = Order::new(requests);
        let first = order
            .starts
            .first()
            .map_or(0, |&index| requests[index].queued_ns);
        let due = |request: &Request| match speed {
            Speed::Times(factor) => ((request.queued_ns - first) as f64 / factor) as u64,
            Speed::Fast => 0,
        };
        let lanes = order.lanes.iter().map(|&length| Lane {
            done: vec![false; length],
            ..Lane::default()
        });
        Schedule {
            due_ns: requests.iter().map(due).collect(),
            admitted: 0,
            lanes: lanes.collect(),
            ready: VecDeque::new(),
            order,
        }
    }

    /// Returns the earliest time for a request, ns from the start.
    pub fn due_ns(&self, index: usize) -> u64 {
        self.due_ns[index]
    }

    /// Returns the next request that can be made now.
    pub fn next(&mut self, now_ns: u64) -> Option<usize> {
        while let Some(&index) = self.order.starts.get(self.admitted)
            && self.due_ns[index] <= now_ns
        {
            self.admitted += 1;
            self.admit(index);
        }
        self.ready.pop_front()
    }

    /// Returns the time of the next request; None if the times of all have come.
    pub fn next_due_ns(&self) -> Option<u64> {
        let next = self.order.starts.get(self.admitted)?;
        Some(self.due_ns[*next])
    }

    /// Notes that a request was completed.
    pub fn complete(&mut self, index: usize) {
        for LanePlace { lane, nth } in std::mem::take(&mut self.order.places[index]) {
            for freed in self.lanes[lane].finish(nth) {
                self.admit(freed);
            }
        }
    }

    /// Makes a request ready, or lets it wait for the first lane in which too few requests are done.
    fn admit(&mut self, index: usize) {
        let behind = |wait: &&LanePlace| self.lanes[wait.lane].prefix < wait.nth;
        match self.order.waits[index].iter().find(behind).copied() {
            Some(LanePlace { lane, nth }) => {
                let waiting = &mut self.lanes[lane].waiting;
                waiting.entry(nth).or_default().push(index);
            }
            None => self.ready.push_back(index),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::blocks::order::tests::{any_request, must_wait};

    proptest! {
        /// Each request is made once, and after those that it waits for, in whatever order the device completes them.
        #[test]
        fn each_request_is_made_once_and_in_order(
            requests in prop::collection::vec(any_request(), 0..60),
            picks in prop::collection::vec(any::<prop::sample::Index>(), 1..60),
            fast: bool,
        ) {
            let speed = if fast { Speed::Fast } else { Speed::Times(2.0) };
            let mut schedule = Schedule::new(&requests, speed);
            let (mut flying, mut done, mut now) = (Vec::new(), Vec::new(), 0);
            for pick in picks.iter().cycle() {
                while let Some(index) = schedule.next(now) {
                    for earlier in 0..requests.len() {
                        let waits = must_wait(&requests[index], &requests[earlier]);
                        prop_assert!(!waits || done.contains(&earlier));
                    }
                    flying.push(index);
                }
                if flying.is_empty() {
                    let Some(due) = schedule.next_due_ns() else { break };
                    now = due;
                    continue;
                }
                let index = flying.swap_remove(pick.index(flying.len()));
                schedule.complete(index);
                done.push(index);
            }
            done.sort_unstable();
            prop_assert_eq!(done, (0..requests.len()).collect::<Vec<_>>());
        }
    }
}

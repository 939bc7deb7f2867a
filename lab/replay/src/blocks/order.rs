// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the requests that each request must wait for: those that had been completed before it was queued, and whose completion may
//! have been the reason for queueing it.
//!
//! These are the requests of its own thread, flushes and commits, and those that share a sector with it; a flush or a commit waits
//! for all. The requests of a *lane* (of a thread, of the barriers, or of all) are numbered in the order of their completion. The
//! ones that had been completed before some moment are then the first `n` of the lane, so three numbers are enough for a request,
//! however many others it waits for.

use std::collections::HashMap;

use super::request::Request;

/// The lane of all requests.
const ALL: usize = 0;
/// The lane of flushes and commits.
const BARRIERS: usize = 1;

/// A number of requests of a lane: those ahead of a request, or those that it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LanePlace {
    pub lane: usize,
    pub nth: usize,
}

/// The order of requests. Each vector has an item for each of them.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The requests' indices by the time when they were queued.
    pub starts: Vec<usize>,
    /// The place of each request in the lanes that it belongs to.
    pub places: Vec<Vec<LanePlace>>,
    /// The lanes that each request waits for, and for how many of their requests.
    pub waits: Vec<[LanePlace; 3]>,
    /// The number of requests in each lane.
    pub lanes: Vec<usize>,
}

/// Returns the time when a request was completed. It is always after the time when it was queued, even in a damaged trace, so that
/// no request waits for itself.
fn completed_ns(request: &Request) -> u64 {
    request
        .completed_ns
        .max(request.queued_ns.saturating_add(1))
}

impl Order {
    /// Finds the order in O(n log n).
    pub fn new(requests: &[Request]) -> Order {
        let mut starts: Vec<usize> = (0..requests.len()).collect();
        let mut ends = starts.clone();
        starts.sort_by_key(|&index| requests[index].queued_ns);
        ends.sort_by_key(|&index| completed_ns(&requests[index]));
        let mut order = Order {
            places: vec![Vec::new(); requests.len()],
            waits: vec![[LanePlace { lane: ALL, nth: 0 }; 3]; requests.len()],
            lanes: vec![0; 2],
            starts: Vec::new(),
        };
        let mut threads: HashMap<Option<u32>, usize> = HashMap::new();
        let mut touched = Touched::new(requests);
        let mut ends = ends.into_iter().peekable();
        for &start in &starts {
            let request = &requests[start];
            let before = |&end: &usize| completed_ns(&requests[end]) <= request.queued_ns;
            while let Some(end) = ends.next_if(before) {
                order.complete(end, &requests[end], &mut threads);
                touched.set(end, order.lanes[ALL]);
            }
            let own = order.lane(request.thread, &mut threads);
            let of_all = match request.is_barrier() {
                true => order.lanes[ALL],
                false => touched.last(start),
            };
            let wait = |lane, nth| LanePlace { lane, nth };
            order.waits[start] = [
                wait(ALL, of_all),
                wait(BARRIERS, order.lanes[BARRIERS]),
                wait(own, order.lanes[own]),
            ];
        }
        for end in ends {
            order.complete(end, &requests[end], &mut threads);
        }
        order.starts = starts;
        order
    }

    fn lane(&mut self, thread: Option<u32>, threads: &mut HashMap<Option<u32>, usize>) -> usize {
        *threads.entry(thread).or_insert_with(|| {
            self.lanes.push(0);
            self.lanes.len() - 1
        })
    }

    fn complete(
        &mut self,
        index: usize,
        request: &Request,
        threads: &mut HashMap<Option<u32>, usize>,
    ) {
        let own = self.lane(request.thread, threads);
        let barrier = request.is_barrier().then_some(BARRIERS);
        for lane in [ALL, own].into_iter().chain(barrier) {
            let nth = self.lanes[lane];
            self.places[index].push(LanePlace { lane, nth });
            self.lanes[lane] += 1;
        }
    }
}

/// A segment tree over the bounds of the requests' ranges. It holds for each sector how many requests had been completed when the
/// sector was last touched. These numbers only grow, so a number that was set for a whole node need not be passed down.
struct Touched {
    /// The first leaf of each request, and the one behind its last.
    leaves: Vec<(usize, usize)>,
    /// The largest number below each node; the leaves are the second half.
    most: Vec<usize>,
    /// The number that was last set for the whole of each node.
    whole: Vec<usize>,
}

impl Touched {
    fn new(requests: &[Request]) -> Touched {
        let ranges = requests
            .iter()
            .map(|request| request.range().unwrap_or_default());
        let ranges: Vec<(u64, u64)> = ranges.collect();
        let mut bounds: Vec<u64> = ranges.iter().flat_map(|&(from, to)| [from, to]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let leaf = |bound| bounds.partition_point(|&other| other < bound);
        Touched {
            leaves: ranges
                .iter()
                .map(|&(from, to)| (leaf(from), leaf(to)))
                .collect(),
            most: vec![0; 2 * bounds.len()],
            whole: vec![0; 2 * bounds.len()],
        }
    }

    /// Returns the nodes that together cover a request's leaves, and the nodes above them.
    fn nodes(&self, index: usize) -> (Vec<usize>, Vec<usize>) {
        let half = self.most.len() / 2;
        let (from, to) = self.leaves[index];
        let (mut of, mut above) = (Vec::new(), Vec::new());
        if from == to {
            return (of, above);
        }
        let (mut left, mut right) = (from + half, to + half);
        while left < right {
            if left % 2 == 1 {
                of.push(left);
                left += 1;
            }
            if right % 2 == 1 {
                right -= 1;
                of.push(right);
            }
            (left, right) = (left / 2, right / 2);
        }
        for mut node in [from + half, to - 1 + half] {
            while node > 1 {
                node /= 2;
                above.push(node);
            }
        }
        (of, above)
    }

    fn set(&mut self, index: usize, number: usize) {
        let (of, above) = self.nodes(index);
        for node in of {
            self.whole[node] = number;
            self.most[node] = number;
        }
        for node in above {
            self.most[node] = number;
        }
    }

    fn last(&self, index: usize) -> usize {
        let (of, above) = self.nodes(index);
        let of = of.into_iter().map(|node| self.most[node]);
        let above = above.into_iter().map(|node| self.whole[node]);
        of.chain(above).max().unwrap_or(0)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::blocks::request::Op;

    prop_compose! {
        pub(crate) fn any_request()(
            op in prop_oneof![Just(Op::Read), Just(Op::Write), Just(Op::Flush)],
            (sector, sectors) in (0..40_u64, 1..12_u32),
            (fua, preflush) in (proptest::bool::weighted(0.1), proptest::bool::weighted(0.1)),
            thread in proptest::option::of(0..4_u32),
            (queued_ns, took_ns) in (0..300_u64, 0..60_u64),
        ) -> Request {
            let writes = op == Op::Write;
            Request {
                op,
                sector,
                bytes: if op == Op::Flush { 0 } else { sectors * 512 },
                fua: writes && fua,
                preflush: writes && preflush,
                thread,
                queued_ns,
                // A damaged trace may have a request that is completed before it is queued.
                completed_ns: (queued_ns + took_ns).saturating_sub(3),
            }
        }
    }

    /// Returns true by the definition of the order: `earlier` was completed before, and is of the same thread, is a barrier, comes
    /// before a barrier, or shares a sector.
    pub(crate) fn must_wait(later: &Request, earlier: &Request) -> bool {
        let overlap = match (later.range(), earlier.range()) {
            (Some((a, b)), Some((c, d))) => a < d && c < b,
            _ => false,
        };
        completed_ns(earlier) <= later.queued_ns
            && (later.thread == earlier.thread
                || earlier.is_barrier()
                || later.is_barrier()
                || overlap)
    }

    proptest! {
        #[test]
        fn a_request_waits_for_what_the_definition_says(
            requests in prop::collection::vec(any_request(), 0..60),
        ) {
            let order = Order::new(&requests);
            let waits = |later: usize, earlier: usize| {
                order.waits[later].iter().any(|wait| {
                    let within = |place: &LanePlace| place.lane == wait.lane && place.nth < wait.nth;
                    order.places[earlier].iter().any(within)
                })
            };
            for later in 0..requests.len() {
                for earlier in 0..requests.len() {
                    if must_wait(&requests[later], &requests[earlier]) {
                        prop_assert!(waits(later, earlier), "{later} does not wait for {earlier}");
                    }
                    // Nothing waits for a request that had not been completed by then.
                    if waits(later, earlier) {
                        prop_assert!(completed_ns(&requests[earlier]) <= requests[later].queued_ns);
                    }
                }
            }
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Divides a call's time among what it waited for, so that every moment belongs to one part.

use strum::{IntoStaticStr, VariantArray};

use mostrace_trace::tally::Tally;

/// A part of what a call waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Wait {
    /// Contents of files that were written for it.
    Data,
    /// Metadata that it read or wrote itself.
    Metadata,
    /// The beginning of the journal's commit, or of f2fs's checkpoint, that it needed.
    CommitStart,
    /// That commit or checkpoint, without its cache flushes.
    Commit,
    /// Cache flushes: its own, those of its writes and those of the commit.
    Flush,
    /// Everything else, and what the recording does not tell.
    Other,
}

impl Wait {
    /// Every part, in the order of the columns.
    pub const ALL: &[Wait] = Wait::VARIANTS;

    /// The word used in tables.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The time that a call waited for each [`Wait`], ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts([u64; Wait::VARIANTS.len()]);

impl Parts {
    /// Returns one part, ns.
    pub fn get(&self, wait: Wait) -> u64 {
        self.0.get(wait as usize).copied().unwrap_or(0)
    }

    /// Returns the sum of all parts, ns.
    pub fn sum(&self) -> u64 {
        mostrace_trace::tally::sum(self.0)
    }

    fn add(&mut self, wait: Wait, ns: u64) {
        if let Some(part) = self.0.get_mut(wait as usize) {
            part.tally(ns);
        }
    }
}

impl Tally for Parts {
    fn tally(&mut self, more: Parts) {
        self.0.tally(more.0);
    }
}

/// The kinds of intervals in which something was in progress for a call. A caller writes data, then metadata, and then waits for a
/// commit; a moment in which several are in progress therefore belongs to the first of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, VariantArray)]
pub(super) enum Layer {
    /// The caller's own flush, or one that its own writes need.
    OwnFlush,
    Data,
    Metadata,
    CommitFlush,
    Commit,
    CommitStart,
}

impl Layer {
    fn wait(self) -> Wait {
        match self {
            Layer::OwnFlush | Layer::CommitFlush => Wait::Flush,
            Layer::Data => Wait::Data,
            Layer::Metadata => Wait::Metadata,
            Layer::Commit => Wait::Commit,
            Layer::CommitStart => Wait::CommitStart,
        }
    }
}

/// An interval of time, ns: the layer, its beginning and its end.
pub(super) type Interval = (Layer, u64, u64);

/// Divides the time from `from` to `to`, ns. The parts sum to it, whatever the intervals are.
pub(super) fn divide(from: u64, to: u64, intervals: &[Interval]) -> Parts {
    let mut edges: Vec<(u64, Layer, bool)> = Vec::new();
    for &(layer, begin, end) in intervals {
        let (begin, end) = (begin.max(from), end.min(to));
        if begin < end {
            edges.extend([(begin, layer, true), (end, layer, false)]);
        }
    }
    edges.sort_by_key(|&(at, ..)| at);
    let mut under_way = [0_usize; Layer::VARIANTS.len()];
    let mut parts = Parts::default();
    let mut until = from;
    let mut advance = |to: u64, under_way: &[usize]| {
        let first = under_way.iter().position(|&number| number > 0);
        let layer = first.and_then(|at| Layer::VARIANTS.get(at));
        let wait = layer.map_or(Wait::Other, |layer| layer.wait());
        parts.add(wait, to.saturating_sub(until));
        until = to;
    };
    for (at, layer, begins) in edges {
        advance(at, &under_way);
        if let Some(number) = under_way.get_mut(layer as usize) {
            *number = match begins {
                true => number.saturating_add(1),
                false => number.saturating_sub(1),
            };
        }
    }
    advance(to.max(from), &under_way);
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_layer_that_is_under_way_has_the_moment() {
        let parts = divide(
            100,
            200,
            &[
                (Layer::Commit, 120, 190),
                (Layer::CommitFlush, 150, 180),
                (Layer::Data, 50, 130),
                (Layer::CommitStart, 130, 135),
                (Layer::OwnFlush, 195, 300),
            ],
        );
        let told = Wait::ALL.iter().map(|&wait| parts.get(wait));
        assert_eq!(told.collect::<Vec<_>>(), [30, 0, 0, 30, 35, 5]);
        assert_eq!(parts.sum(), 100);
    }

    fn interval() -> impl Strategy<Value = Interval> {
        (0..Layer::VARIANTS.len(), 0..80_u64, 0..80_u64)
            .prop_map(|(layer, a, b)| (Layer::VARIANTS[layer], a, b))
    }

    proptest! {
        /// Held against what each single moment is, looked up without sweeping.
        #[test]
        fn every_moment_belongs_to_one_part(
            from in 0..40_u64,
            length in 0..40_u64,
            intervals in proptest::collection::vec(interval(), 0..12),
        ) {
            let to = from + length;
            let mut expected = [0; Wait::VARIANTS.len()];
            for at in from..to {
                let here = intervals.iter().filter(|(_, begin, end)| (*begin..*end).contains(&at));
                let layer = here.map(|(layer, ..)| *layer).min();
                expected[layer.map_or(Wait::Other, Layer::wait) as usize] += 1;
            }
            let parts = divide(from, to, &intervals);
            prop_assert_eq!(parts.0, expected);
            prop_assert_eq!(parts.sum(), length);
        }

        #[test]
        fn the_parts_sum_to_the_time_for_any_numbers(
            from: u64,
            length in 0..u64::MAX / 2,
            intervals in proptest::collection::vec((0..6_usize, any::<u64>(), any::<u64>()), 0..12),
        ) {
            let to = from.saturating_add(length);
            let intervals: Vec<Interval> = intervals
                .into_iter()
                .map(|(layer, a, b)| (Layer::VARIANTS[layer], a, b))
                .collect();
            prop_assert_eq!(divide(from, to, &intervals).sum(), to - from);
        }
    }
}

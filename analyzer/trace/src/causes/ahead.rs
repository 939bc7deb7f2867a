// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls that last long, by their beginnings: the entry of a call is made only when it returns, and blocks that it changed may
//! be written out before.

use std::collections::BTreeMap;

use mostrace_bundle::entry::RawCall;

use crate::tally::Tally;

/// The longest duration of a call, ns, that is found by reading its table a little ahead. Longer ones are known from a reading of
/// the whole table.
pub(super) const LONG_NS: u64 = 500_000_000;
/// The most calls that wait for their beginning; beyond it, calls are left out, and nothing is `exact` any more.
const LIMIT: usize = 1 << 19;

/// Returns true if a call lasted long.
pub(super) fn is_long(raw: &RawCall) -> bool {
    raw.head.time_ns.get().saturating_sub(raw.start_ns.get()) > LONG_NS
}

/// Calls that last long and have not begun yet, by their beginning and the order of their entries.
#[derive(Default)]
pub(super) struct Ahead {
    waiting: BTreeMap<(u64, u64), RawCall>,
    taken: u64,
    cut_short: usize,
}

impl Ahead {
    /// Takes a call that lasts long.
    pub fn push(&mut self, raw: RawCall) {
        if self.waiting.len() >= LIMIT {
            self.cut_short.tally(1);
            return;
        }
        self.taken.tally(1);
        self.waiting.insert((raw.start_ns.get(), self.taken), raw);
    }

    /// Returns the next call that began by `time_ns`.
    pub fn next(&mut self, time_ns: u64) -> Option<RawCall> {
        let first = self.waiting.first_entry()?;
        (first.key().0 <= time_ns).then(|| first.remove())
    }

    /// Returns the number of calls for which there was no room.
    pub fn cut_short(&self) -> usize {
        self.cut_short
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(start_ns: u64) -> RawCall {
        RawCall {
            start_ns: start_ns.into(),
            ..RawCall::default()
        }
    }

    #[test]
    fn calls_come_when_they_begin() {
        let mut ahead = Ahead::default();
        for start_ns in [30, 10, 20] {
            ahead.push(call(start_ns));
        }
        let mut begun = |time_ns| {
            let next = std::iter::from_fn(|| ahead.next(time_ns));
            next.map(|raw| raw.start_ns.get()).collect::<Vec<_>>()
        };
        assert_eq!(
            [begun(20), begun(29), begun(30)],
            [vec![10, 20], vec![], vec![30]]
        );
    }

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        let mut ahead = Ahead::default();
        (0..LIMIT as u64 + 3).for_each(|start_ns| ahead.push(call(start_ns)));
        assert_eq!(ahead.cut_short(), 3);
    }
}

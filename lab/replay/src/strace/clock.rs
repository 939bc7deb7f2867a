// SPDX-License-Identifier: MIT OR Apache-2.0
//! The clock of a text: what the times of its lines mean.

use super::line::Stamp;

/// The times that a text has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// None, so that the clock counts lines.
    None,
    /// Whole seconds; within one, the clock counts lines.
    Whole,
    /// The time since the line before (`-r`).
    Since,
    /// The time of the day.
    OfDay,
    /// The time since the epoch.
    Epoch,
}

impl Kind {
    /// Returns true if the lines' order is known, but not their times.
    pub fn is_made_up(self) -> bool {
        matches!(self, Kind::None | Kind::Whole)
    }

    /// Returns true if the times of several texts can be compared.
    pub fn is_common(self) -> bool {
        matches!(self, Kind::OfDay | Kind::Epoch)
    }

    /// Returns the kind of these times, which are in the order of lines.
    pub fn of(stamps: impl Iterator<Item = Stamp>) -> Kind {
        let mut stamps = stamps.peekable();
        match stamps.peek() {
            None => Kind::None,
            Some(Stamp::Whole(_)) => Kind::Whole,
            Some(Stamp::OfDay(_)) => Kind::OfDay,
            Some(Stamp::Seconds(0)) => Kind::Since,
            // Times since the epoch grow from line to line, times since the line before do not.
            Some(Stamp::Seconds(_)) => {
                let seconds = stamps.filter_map(|stamp| match stamp {
                    Stamp::Seconds(ns) => Some(ns),
                    _ => None,
                });
                let seconds: Vec<u64> = seconds.collect();
                let is_small = seconds.iter().all(|ns| *ns < LONG_AGO);
                match is_small && !seconds.is_sorted() {
                    true => Kind::Since,
                    false => Kind::Epoch,
                }
            }
        }
    }
}

/// A day of 1973, ns since the epoch: no strace is as old, and no line comes three years after the one before.
const LONG_AGO: u64 = 100_000_000_000_000_000;
const DAY: u64 = 86_400_000_000_000;

/// The clock of a text.
#[derive(Debug)]
pub(super) struct Clock {
    kind: Kind,
    now: u64,
    days: u64,
}

impl Clock {
    pub fn new(kind: Kind) -> Clock {
        Clock {
            kind,
            now: 0,
            days: 0,
        }
    }

    /// Returns the time of the next line, ns.
    pub fn at(&mut self, stamp: Option<Stamp>) -> u64 {
        let next = self.now.saturating_add(1);
        self.now = match (self.kind, stamp) {
            (Kind::Since, Some(Stamp::Seconds(ns))) => self.now.saturating_add(ns),
            (Kind::Epoch, Some(Stamp::Seconds(ns))) => ns,
            (Kind::OfDay, Some(Stamp::OfDay(ns))) => {
                let today = ns.saturating_add(self.days);
                // Midnight passed, unless lines are out of order by a moment.
                if self.now.saturating_sub(today) > DAY / 2 {
                    self.days = self.days.saturating_add(DAY);
                }
                ns.saturating_add(self.days)
            }
            (Kind::Whole, Some(Stamp::Whole(ns))) => next.max(ns),
            (Kind::None | Kind::Whole, _) => next,
            _ => self.now,
        };
        self.now
    }

    /// Returns the end of a call, given its begin and its duration if that is known; `line` is the time of the line with the result.
    pub fn end(&mut self, begin: u64, line: u64, duration: Option<u64>) -> u64 {
        let end = duration.map_or(line, |ns| begin.saturating_add(ns));
        if self.kind.is_made_up() {
            // The calls of other threads that come behind it in the text began later.
            self.now = self.now.max(end);
            return self.now;
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(stamps: &[Stamp]) -> (Kind, Vec<u64>) {
        let kind = Kind::of(stamps.iter().copied());
        let mut clock = Clock::new(kind);
        (
            kind,
            stamps.iter().map(|stamp| clock.at(Some(*stamp))).collect(),
        )
    }

    #[test]
    fn times_since_the_line_before_are_added_up() {
        use Stamp::{OfDay, Seconds, Whole};
        let since = [Seconds(0), Seconds(900), Seconds(100)];
        assert_eq!(times(&since), (Kind::Since, vec![0, 900, 1000]));
        let without_a_beginning = [Seconds(70), Seconds(900), Seconds(100)];
        assert_eq!(
            times(&without_a_beginning),
            (Kind::Since, vec![70, 970, 1070])
        );
        let epoch = [
            Seconds(LONG_AGO + 5),
            Seconds(LONG_AGO + 9),
            Seconds(LONG_AGO + 7),
        ];
        assert_eq!(times(&epoch).0, Kind::Epoch);
        assert_eq!(
            times(&[Whole(5), Whole(5), Whole(9)]),
            (Kind::Whole, vec![5, 6, 9])
        );
        let midnight = [OfDay(DAY - 5), OfDay(3), OfDay(2)];
        assert_eq!(
            times(&midnight),
            (Kind::OfDay, vec![DAY - 5, DAY + 3, DAY + 2])
        );
        assert_eq!(times(&[]), (Kind::None, vec![]));
    }
}

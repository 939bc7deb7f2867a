// SPDX-License-Identifier: MIT OR Apache-2.0
//! An hour of a ledger, or a shorter time if `--every` says so.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use mostrace_bundle::Total;
use mostrace_bundle::health::Gauges;

use super::Latencies;
use mostrace_trace::tally::{Tally, sum, tallied_by_field};

/// What a row sums up. A field is None if it is unknown or does not apply.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The user of the process that caused it.
    pub uid: Option<u32>,
    /// The Android app of that user.
    pub package: Option<String>,
    /// The process's name, escaped for a terminal; None if nobody is known to have caused it.
    pub command: Option<String>,
    /// The process's cgroup (v2), escaped for a terminal.
    pub cgroup: Option<String>,
    /// What the process did; for rows of calls the kind of call.
    pub operation: Option<&'static str>,
    /// The class of the blocks; None for flushes, discards and calls.
    pub class: Option<&'static str>,
    /// The role of a regular file.
    pub role: Option<&'static str>,
    /// The layer's name.
    pub layer: Option<String>,
}

/// The figures of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Bytes that the device wrote.
    pub write_bytes: u64,
    /// Requests that wrote. A request counts for the cause with the largest share of its first sectors.
    pub writes: u64,
    /// Bytes that the device read.
    pub read_bytes: u64,
    /// Requests that read.
    pub reads: u64,
    /// Bytes that the device zeroed without being sent zeros; the kernel counts them as written.
    pub zeroed_bytes: u64,
    /// Bytes discarded.
    pub discard_bytes: u64,
    /// Flushes that were asked for.
    pub flushes: u64,
    /// Bytes that system calls wrote.
    pub asked_bytes: u64,
    /// Bytes that an Android kernel charged to the user meanwhile, in rows that have nothing else.
    pub charged_bytes: u64,
    /// How long the calls took that wait for the storage.
    pub durable: Latencies,
}

/// The most rows of an hour. Programs can give their threads any names, so without a bound one program could fill the memory.
pub const MOST_ROWS: usize = 1 << 13;
/// The command of rows that sum up others. No thread has such a long name.
pub const OTHERS: &str = "(all other names)";

impl Key {
    /// Returns the key of the row that sums up this one and others of the same user.
    fn others_of_user(self) -> Key {
        Key {
            command: Some(OTHERS.into()),
            cgroup: None,
            ..self
        }
    }

    /// Returns the key of the row that sums up this one and others of any user. There are few of these: the fields that it keeps have
    /// few values.
    fn others(self) -> Key {
        Key {
            uid: None,
            package: None,
            ..self.others_of_user()
        }
    }

    fn is_others(&self) -> bool {
        self.command.as_deref() == Some(OTHERS)
    }
}

impl Figures {
    /// Returns the bytes of all kinds, by which the rows are chosen that stay.
    fn bytes(&self) -> u64 {
        let all = [
            self.write_bytes,
            self.read_bytes,
            self.zeroed_bytes,
            self.discard_bytes,
            self.asked_bytes,
            self.charged_bytes,
        ];
        sum(all)
    }
}

tallied_by_field! {
    Figures: write_bytes, writes, read_bytes, reads, zeroed_bytes, discard_bytes, flushes, asked_bytes, charged_bytes, durable
}

/// A column of figures that are sums.
pub(super) struct Summed {
    /// The column's name.
    pub name: &'static str,
    /// Its figure of a row.
    pub of: fn(&Figures) -> u64,
    /// The place of its figure.
    pub place: fn(&mut Figures) -> &mut u64,
}

/// Declares the columns of figures, each of which has its field's name.
macro_rules! summed {
    ($($field:ident),+ $(,)?) => {
        /// The columns of figures that are sums.
        pub(super) const SUMMED: &[Summed] = &[$(Summed {
            name: stringify!($field),
            of: |figures| figures.$field,
            place: |figures| &mut figures.$field,
        }),+];
    };
}

summed! {
    write_bytes, writes, read_bytes, reads, zeroed_bytes, discard_bytes, flushes, asked_bytes, charged_bytes
}

/// The facts about an hour as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// The time for which the device was watched, ns.
    pub ns: u64,
    /// The kernel's count of that time; None if its counters cannot be compared.
    pub kernel: Option<Total>,
    /// Number of records that were lost.
    pub lost: u64,
    /// Number of times that a row was summed up with others, because there were more than [`MOST_ROWS`].
    pub summed_up: u64,
    /// The state at the end; the next recorder compares it with what it finds.
    pub end: Reading,
    /// The gap before, if this is a recorder's first hour and an earlier one's end is known.
    pub gap: Option<Gap>,
    /// The drive's own counters when the hour was over; empty if it has none.
    pub drive: Gauges,
}

/// The kernel's counters at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The moment, ms since 1970.
    pub unix_ms: u64,
    /// The kernel's count since `epoch` began; None if its counters cannot be compared.
    pub total: Option<Total>,
    /// The boot, and the disk within that boot; totals of different epochs are unrelated. None if there is no total.
    pub epoch: Option<String>,
}

/// A time in which nobody watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    /// Its length by the wall clock, ms; 0 if the clock was set back.
    pub ms: u64,
    /// The kernel's count of that time; None if its counters cannot be compared.
    pub kernel: Option<Total>,
    /// The counters began anew meanwhile (the machine was started again, or the disk is another one): what was written until then
    /// is not known, and `kernel` is what was written since.
    pub is_new_epoch: bool,
}

impl Gap {
    /// Returns the gap between a recorder's first hour and the hours before it, which ended at these readings; None if there is none.
    /// The last of them is the one with the highest totals of this epoch, because totals only grow; the wall clock may have been set
    /// back.
    pub fn before(begin: &Reading, ends: impl IntoIterator<Item = Reading>) -> Option<Gap> {
        let order = |end: &Reading| {
            let total = end.total.filter(|_| end.epoch == begin.epoch);
            let total = total.map(|total| (total.write_bytes, total.read_bytes));
            (total, end.unix_ms)
        };
        let end = ends.into_iter().max_by_key(order)?;
        let is_new_epoch = end.epoch.is_some() && begin.epoch.is_some() && end.epoch != begin.epoch;
        let kernel = match is_new_epoch {
            true => begin.total,
            false => begin
                .total
                .zip(end.total)
                .map(|(now, then)| since(then, now)),
        };
        Some(Gap {
            ms: begin.unix_ms.saturating_sub(end.unix_ms),
            kernel,
            is_new_epoch,
        })
    }
}

/// Returns what the kernel counted between two readings.
#[must_use]
pub fn since(then: Total, now: Total) -> Total {
    Total {
        read_bytes: now.read_bytes.saturating_sub(then.read_bytes),
        write_bytes: now.write_bytes.saturating_sub(then.write_bytes),
    }
}

/// The rows of an hour.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hour {
    /// The time when it begins, seconds since 1970.
    pub begin: u64,
    /// `major:minor` of the disk.
    pub device: String,
    /// The hour as a whole.
    pub watched: Watched,
    /// The rows.
    pub rows: BTreeMap<Key, Figures>,
}

impl Hour {
    /// Adds figures to a row. If there are too many rows, those with the fewest bytes are summed up.
    pub fn add(&mut self, key: Key, figures: Figures) {
        self.rows.entry(key).or_default().tally(figures);
        if self.rows.len() > MOST_ROWS {
            self.sum_up();
        }
    }

    /// Adds a later hour of the same device, so that this one lasts until its end.
    pub fn absorb(&mut self, later: Hour) {
        for (key, figures) in later.rows {
            self.add(key, figures);
        }
        let kernel = self.watched.kernel.zip(later.watched.kernel);
        self.watched = Watched {
            ns: self.watched.ns.saturating_add(later.watched.ns),
            kernel: kernel.map(|(one, other)| Total {
                read_bytes: one.read_bytes.saturating_add(other.read_bytes),
                write_bytes: one.write_bytes.saturating_add(other.write_bytes),
            }),
            lost: self.watched.lost.saturating_add(later.watched.lost),
            summed_up: self
                .watched
                .summed_up
                .saturating_add(later.watched.summed_up),
            gap: self.watched.gap.or(later.watched.gap),
            ..later.watched
        };
    }

    /// Sums up the rows with the fewest bytes, by user, so that half as many are left; and those sums too, if there are many users.
    fn sum_up(&mut self) {
        let mut rows: Vec<(Key, Figures)> = std::mem::take(&mut self.rows).into_iter().collect();
        rows.sort_by_key(|(_, figures)| Reverse(figures.bytes()));
        for (at, (key, figures)) in rows.into_iter().enumerate() {
            let stays = at < MOST_ROWS / 2 || key.is_others();
            self.watched.summed_up.tally(u64::from(!stays));
            let key = if stays { key } else { key.others_of_user() };
            self.rows.entry(key).or_default().tally(figures);
        }
        if self.rows.len() > MOST_ROWS / 4 * 3 {
            for (key, figures) in std::mem::take(&mut self.rows) {
                let key = if key.is_others() { key.others() } else { key };
                self.rows.entry(key).or_default().tally(figures);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(unix_ms: u64, write_bytes: u64, epoch: &str) -> Reading {
        Reading {
            unix_ms,
            total: Some(Total {
                read_bytes: 1,
                write_bytes,
            }),
            epoch: Some(epoch.into()),
        }
    }

    fn gap(begin: &Reading, ends: &[Reading]) -> (u64, Option<u64>, bool) {
        let gap = Gap::before(begin, ends.to_vec()).unwrap();
        let written = gap.kernel.map(|total| total.write_bytes);
        (gap.ms, written, gap.is_new_epoch)
    }

    /// An hour to which as many rows are added, of which the first is the largest and the rest have one byte each.
    fn crowded(rows: u32, uid: impl Fn(u32) -> u32) -> Hour {
        let mut hour = Hour::default();
        for n in 0..rows {
            let key = Key {
                uid: Some(uid(n)),
                command: Some(format!("z{n}")),
                class: Some(if n % 2 == 0 { "data" } else { "journal" }),
                ..Key::default()
            };
            let write_bytes = if n == 0 { 1 << 20 } else { 1 };
            let figures = Figures {
                write_bytes,
                ..Figures::default()
            };
            hour.add(key, figures);
        }
        hour
    }

    #[test]
    fn too_many_rows_are_summed_up_and_no_byte_is_lost() {
        const ROWS: u32 = 100_000;
        for users in [1, ROWS] {
            let hour = crowded(ROWS, |n| n % users);
            assert!(hour.rows.len() <= MOST_ROWS, "{}", hour.rows.len());
            let bytes = hour.rows.values().map(|figures| figures.write_bytes);
            assert_eq!(bytes.sum::<u64>(), (1 << 20) + u64::from(ROWS) - 1);
            assert!(
                hour.rows
                    .keys()
                    .any(|key| key.command.as_deref() == Some("z0"))
            );
            let others = |class: &str| {
                let mut of_class = hour.rows.iter();
                let found = of_class.find(|(key, _)| key.is_others() && key.class == Some(class));
                found
                    .map(|(key, figures)| (key.uid, figures.write_bytes))
                    .unwrap()
            };
            assert_eq!(others("data").0, (users == 1).then_some(0));
            assert!(others("data").1 > 40_000 && others("journal").1 > 40_000);
            assert!(hour.watched.summed_up >= u64::from(ROWS) - MOST_ROWS as u64);
        }
    }

    #[test]
    fn an_absorbed_hour_keeps_its_figures() {
        let hour = |ns, end: Reading| Hour {
            watched: Watched {
                ns,
                lost: ns,
                kernel: end.total,
                end,
                ..Watched::default()
            },
            ..crowded(2, |_| 7)
        };
        let mut first = hour(3, reading(1_000, 5, "a"));
        first.absorb(hour(4, reading(2_000, 6, "a")));
        let watched = &first.watched;
        assert_eq!(
            (watched.ns, watched.lost, watched.end.unix_ms),
            (7, 7, 2_000)
        );
        assert_eq!(watched.kernel.unwrap().write_bytes, 11);
        let bytes = first.rows.values().map(|figures| figures.write_bytes);
        assert_eq!(bytes.sum::<u64>(), 2 * ((1 << 20) + 1));
    }

    #[test]
    fn rows_that_fit_stay() {
        let rows = u32::try_from(MOST_ROWS).unwrap();
        let hour = crowded(rows, |n| n);
        assert_eq!((hour.rows.len(), hour.watched.summed_up), (MOST_ROWS, 0));
    }

    #[test]
    fn a_gap_has_what_the_kernel_counted() {
        let ends = [reading(1_000, 500, "a"), reading(2_000, 90, "b")];
        let begin = reading(4_000, 800, "a");
        assert_eq!(gap(&begin, &ends), (3_000, Some(300), false));
        assert_eq!(Gap::before(&begin, []), None);
    }

    #[test]
    fn the_clock_may_have_been_set_back() {
        let ends = [reading(9_000, 500, "a"), reading(2_000, 700, "a")];
        let begin = reading(3_000, 800, "a");
        assert_eq!(gap(&begin, &ends), (1_000, Some(100), false));
    }

    #[test]
    fn after_a_restart_only_what_was_written_since_is_known() {
        let ends = [reading(1_000, 500, "a")];
        assert_eq!(gap(&reading(500, 80, "b"), &ends), (0, Some(80), true));
    }

    #[test]
    fn without_counters_nothing_is_said_of_bytes() {
        let begin = Reading {
            unix_ms: 3_000,
            ..Reading::default()
        };
        let ends = [reading(1_000, 500, "a")];
        assert_eq!(gap(&begin, &ends), (2_000, None, false));
    }
}

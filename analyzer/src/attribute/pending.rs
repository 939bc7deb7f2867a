// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entries that wait for their completion, found by sector.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use mostrace_bundle::entry::{RawHead, Stage};

use crate::blktrace::{Completion, Part};

/// How far an entry's time may lie before the Q of its bio, ns. Both are CLOCK_MONOTONIC, but the
/// fast reading of it that tracers use may differ a little from the exact one.
const SLACK_NS: u64 = 50_000;
/// The same before I or D, where the trace has no Q (7.x drops that of FUA writes): the probe at the
/// same event runs before the tracer, and under emulation takes its time.
const SLACK_UNQUEUED_NS: u64 = 1_000_000_000;
/// An entry without a completion for so long belongs to a request that the trace lost, ns. The
/// kernel's own timeout for a request is 30 s.
const HORIZON_NS: u64 = 60_000_000_000;
/// More entries than can be in flight: only a trace that lost its completions comes here.
const LIMIT: usize = 1 << 18;
/// Below this many there is nothing to gain by looking for old ones.
const FEW: usize = 4096;

/// The times between which an entry of a part was made, and those it was made at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    from_ns: u64,
    to_ns: u64,
    i_ns: Option<u64>,
    d_ns: Option<u64>,
}

impl Window {
    pub fn of(completion: &Completion<'_>, part: &Part) -> Window {
        let Completion {
            time_ns,
            i_ns,
            d_ns,
            ..
        } = *completion;
        // Without Q the request's own first event has to do.
        let from_ns = match (part.q_ns, i_ns.or(d_ns)) {
            (Some(q), _) => q.saturating_sub(SLACK_NS),
            (None, Some(first)) => first.saturating_sub(SLACK_UNQUEUED_NS),
            (None, None) => time_ns.saturating_sub(HORIZON_NS),
        };
        Window {
            from_ns,
            to_ns: time_ns,
            i_ns,
            d_ns,
        }
    }

    /// How far an entry lies from the event that it was made at; None if it is another request's.
    fn distance<T>(&self, entry: &Waiting<T>) -> Option<u64> {
        if !(self.from_ns..=self.to_ns).contains(&entry.time_ns) {
            return None;
        }
        let event = match entry.stage {
            Stage::INSERT => self.i_ns.or(self.d_ns),
            _ => self.d_ns.or(self.i_ns),
        };
        Some(event.unwrap_or(self.to_ns).abs_diff(entry.time_ns))
    }
}

#[derive(Clone, Copy, Debug)]
struct Waiting<T> {
    sectors: u64,
    /// Sectors of the entry that lay before this piece of it.
    skipped: u64,
    time_ns: u64,
    stage: Stage,
    item: T,
}

/// A piece of an entry that belongs to the range asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Match<T> {
    sector: u64,
    end: u64,
    /// Sectors of the entry that lie before this piece.
    skipped: u64,
    item: T,
}

impl<T> Match<T> {
    /// Sectors of the entry that lie before `sector`.
    pub fn skipped_at(&self, sector: u64) -> u64 {
        self.skipped + sector.saturating_sub(self.sector)
    }
}

impl<T> std::ops::Deref for Match<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.item
    }
}

/// The match at `sector`, if any, and where it ends or the next one begins, at most `end`.
pub(super) fn at<T>(matches: &[Match<T>], sector: u64, end: u64) -> (Option<&Match<T>>, u64) {
    match matches.iter().find(|m| m.end > sector) {
        Some(m) if m.sector <= sector => (Some(m), m.end.min(end)),
        Some(m) => (None, m.sector.min(end)),
        None => (None, end),
    }
}

/// First sector, and a number that keeps entries of the same sector apart.
type Key = (u64, u64);

/// Buckets by length: up to 16 sectors, up to 256, and so on.
const BUCKETS: usize = 6;

/// The bucket of entries that are so long.
fn bucket_of(sectors: u64) -> Option<usize> {
    sectors.checked_ilog2().map(|log| log as usize / 4)
}

/// The waiting entries. Entries of about the same length share a bucket, so that a lookup by
/// sector need not reach back by the length of the longest discard.
pub(super) struct Pending<T> {
    buckets: [BTreeMap<Key, Waiting<T>>; BUCKETS],
    serial: u64,
    len: usize,
    sweep_at: usize,
    dropped: u64,
    newest_ns: u64,
    /// Kept between lookups for its memory.
    found: Vec<(u64, Reverse<u64>, usize, Key)>,
}

impl<T: Copy> Pending<T> {
    pub fn new() -> Self {
        Pending {
            buckets: Default::default(),
            serial: 0,
            len: 0,
            sweep_at: FEW,
            dropped: 0,
            newest_ns: 0,
            found: Vec::new(),
        }
    }

    /// Entries that wait.
    pub fn len(&self) -> u64 {
        self.len as u64
    }

    /// Entries that no completion came for.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    pub fn insert(&mut self, head: &RawHead, item: T) {
        let entry = Waiting {
            sectors: u64::from(head.bytes.get()).div_ceil(512),
            skipped: 0,
            time_ns: head.time_ns.get(),
            stage: head.stage,
            item,
        };
        self.newest_ns = self.newest_ns.max(entry.time_ns);
        if self.len >= self.sweep_at {
            self.sweep();
        }
        self.serial += 1;
        self.put((head.sector.get(), self.serial), entry);
    }

    fn put(&mut self, key: Key, entry: Waiting<T>) {
        let bucket = bucket_of(entry.sectors);
        if let Some(bucket) = bucket.and_then(|b| self.buckets.get_mut(b)) {
            bucket.insert(key, entry);
            self.len += 1;
        }
    }

    /// Moves what belongs to `sector..end` into `out`, in the order of sectors, disjoint. Where
    /// several entries fit, the one nearest to its event is taken.
    pub fn take(&mut self, sector: u64, end: u64, window: &Window, out: &mut Vec<Match<T>>) {
        out.clear();
        if self.len == 0 {
            return;
        }
        let mut found = std::mem::take(&mut self.found);
        self.find(sector, end, window, &mut found);
        for &(_, _, bucket, key) in &found {
            self.claim(bucket, key, sector..end, out);
        }
        found.clear();
        self.found = found;
        out.sort_unstable_by_key(|m| m.sector);
    }

    /// Entries that overlap, the nearest to its event first, of equal ones the latest.
    fn find(
        &self,
        sector: u64,
        end: u64,
        window: &Window,
        found: &mut Vec<(u64, Reverse<u64>, usize, Key)>,
    ) {
        for (b, bucket) in self
            .buckets
            .iter()
            .enumerate()
            .filter(|(_, b)| !b.is_empty())
        {
            let reach = 16 << (4 * b);
            let keys = (sector.saturating_sub(reach), 0)..(end, 0);
            for (&key, entry) in bucket.range(keys) {
                if key.0.saturating_add(entry.sectors) > sector
                    && let Some(distance) = window.distance(entry)
                {
                    found.push((distance, Reverse(entry.time_ns), b, key));
                }
            }
        }
        found.sort_unstable();
    }

    /// Takes of one entry what lies in `range` and was not taken from another before; what lies
    /// outside goes on waiting.
    fn claim(
        &mut self,
        bucket: usize,
        key: Key,
        range: std::ops::Range<u64>,
        out: &mut Vec<Match<T>>,
    ) {
        let Some(&entry) = self.buckets.get(bucket).and_then(|b| b.get(&key)) else {
            return;
        };
        let (start, entry_end) = (key.0, key.0.saturating_add(entry.sectors));
        let (from, to) = (start.max(range.start), entry_end.min(range.end));
        let before = out.len();
        let mut at = from;
        while at < to {
            let taken = out
                .iter()
                .filter(|m| m.end > at && m.sector < to)
                .min_by_key(|m| m.sector);
            let (free_to, next) = taken.map_or((to, to), |m| (m.sector.max(at), m.end));
            if at < free_to {
                let skipped = entry.skipped + (at - start);
                out.push(Match {
                    sector: at,
                    end: free_to,
                    skipped,
                    item: entry.item,
                });
            }
            at = next;
        }
        if out.len() == before {
            return;
        }
        if let Some(b) = self.buckets.get_mut(bucket) {
            b.remove(&key);
            self.len -= 1;
        }
        if start < from {
            self.put(
                key,
                Waiting {
                    sectors: from - start,
                    ..entry
                },
            );
        }
        if to < entry_end {
            let skipped = entry.skipped + (to - start);
            self.put(
                (to, key.1),
                Waiting {
                    sectors: entry_end - to,
                    skipped,
                    ..entry
                },
            );
        }
    }

    /// Drops what is too old, and all if that does not help.
    fn sweep(&mut self) {
        let before = self.len;
        let oldest = self.newest_ns.saturating_sub(HORIZON_NS);
        for bucket in &mut self.buckets {
            bucket.retain(|_, entry| entry.time_ns >= oldest);
        }
        self.len = self.buckets.iter().map(BTreeMap::len).sum();
        if self.len > LIMIT {
            self.buckets = Default::default();
            self.len = 0;
        }
        self.dropped += (before - self.len) as u64;
        self.sweep_at = FEW.max(2 * self.len);
    }
}

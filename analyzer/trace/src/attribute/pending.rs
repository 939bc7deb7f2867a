// SPDX-License-Identifier: MIT OR Apache-2.0
//! Entries that wait for their completion and are found by sector.
//!
//! The probe makes an entry at the same Q, I or D as the tracer makes its event, on the same CPU and right before it. So
//! among several requests for the same place, which may differ in length, each finds its own entry. If it is unknown which
//! of several Qs a part had, because their bios were in flight for the same sectors at once, any of the entries there may be
//! its own. These entries then keep only what they have in common.

use std::cmp::Reverse;
use std::ops::Range;

use mostrace_bundle::entry::{RawHead, Stage};

use super::cells::{Cells, Place};
use crate::blktrace::{Completion, Part};
use crate::tally::Tally;
use crate::timeline::Timeline;

/// The longest time from an entry to the Q of its bio, ns. Both times are CLOCK_MONOTONIC, but the fast clock that tracers
/// read may differ a little from the exact one.
const SLACK_NS: u64 = 50_000;
/// The same limit for an entry that was made at Q itself. The probe runs before the tracer or, on 5.10, behind blktrace; its thread may
/// be preempted in between, and so may its whole CPU if that is virtual (529 ms were seen).
const SLACK_AT_Q_NS: u64 = 1_000_000_000;
/// The same limit before I or D if the trace has no Q (7.x drops the Q of FUA writes): the probe at the same event runs
/// before the tracer, and is slow under emulation.
const SLACK_UNQUEUED_NS: u64 = 1_000_000_000;
/// An entry that waits longer than this belongs to a request that the trace lost, ns. The kernel's own timeout for a request
/// is 30 s.
const HORIZON_NS: u64 = 60_000_000_000;
/// More entries than can be in flight or are read ahead. Only a trace that lost its completions has so many.
const LIMIT: usize = 1 << 18;
/// The most entries that are compared with each other for one completion.
const TWINS: usize = 256;
/// The most entries that one lookup examines, and how many more for each sector that it covers. A complete trace has a few
/// entries for a place; one that lost completions would have thousands for a place that is written over and over.
const CROWD: usize = 1024;
const CROWD_PER_SECTOR: usize = 4;
/// With fewer entries than this, looking for old ones gains nothing.
const FEW: usize = 4096;

/// The time and place of an event that the tracer saw; the CPU is None if unknown.
#[derive(Clone, Copy, Debug)]
struct Moment {
    ns: u64,
    cpu: Option<u32>,
}

/// When, and at which events, an entry of a part can have been made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    from_ns: u64,
    to_ns: u64,
    /// The thread that the tracer saw at Q.
    pid: Option<u32>,
    /// True if other bios, appends to a zone, may have been queued for the same sector, whose entries are not its own.
    begins_zone: bool,
    /// The time and CPU of the bio's process entry, if that was found: its other entries have the same.
    made: Option<Made>,
    q: Option<Moment>,
    i: Option<Moment>,
    d: Option<Moment>,
    /// The sectors (first and end) for which the request was queued if it has a twin, whose entries are then found there too.
    twin: Option<(u64, u64)>,
}

/// The time (ns) and the CPU of an entry that was made at Q: all entries of a bio have the same.
pub(super) type Made = (u64, u16);

/// The distance of an entry from its event: entries before the event on the same CPU sort first, then by ns.
type Distance = (bool, u64);

impl Window {
    pub fn of(completion: &Completion<'_>, part: &Part) -> Window {
        let moment = |ns: Option<u64>, cpu| ns.map(|ns| Moment { ns, cpu });
        let q = moment(part.q_ns, part.q_cpu);
        let i = moment(completion.i_ns, completion.i_cpu);
        let d = moment(completion.d_ns, completion.d_cpu);
        // Without Q, the request's own first event takes its place.
        let from_ns = match (q, i.or(d)) {
            (Some(q), _) => q.ns.saturating_sub(SLACK_NS),
            (None, Some(first)) => first.ns.saturating_sub(SLACK_UNQUEUED_NS),
            (None, None) => completion.time_ns.saturating_sub(HORIZON_NS),
        };
        let sectors = u64::from(completion.bytes).div_ceil(512);
        let sector = completion.sector.saturating_sub(completion.moved);
        let end = sector.saturating_add(sectors);
        Window {
            from_ns,
            to_ns: completion.time_ns,
            pid: part.pid,
            begins_zone: completion.begins_zone,
            made: None,
            q,
            i,
            d,
            twin: completion.twin.then_some((sector, end)),
        }
    }

    /// Restricts the window to entries of the bio whose process entries were found. If the right Q is unknown, these need not be
    /// the bio's, and the window stays as it is.
    pub fn of_bio(self, notes: &[Match<impl Sized>]) -> Window {
        if self.q.is_none() {
            return self;
        }
        let mut made = notes.iter().map(|note| note.made);
        let first = made.next().flatten();
        let made = first.filter(|first| made.all(|other| other == Some(*first)));
        Window { made, ..self }
    }

    /// Returns true if it is unknown which Q the part had, so that any of several entries made at a Q may be its own.
    fn is_doubtful(&self, stage: Stage) -> bool {
        stage == Stage::QUEUE && self.q.is_none() && self.made.is_none()
    }

    /// Returns true if the item is of a bio that another thread queued than the tracer saw.
    fn is_by_another(&self, item: &impl Blur) -> bool {
        let threads = self.pid.zip(item.thread());
        threads.is_some_and(|(one, two)| one != two)
    }

    /// Returns the entry's distance; None if the entry belongs to another request.
    fn distance<T: Blur>(&self, entry: &Waiting<T>) -> Option<Distance> {
        let (event, from_ns, to_ns) = match (entry.stage, self.q) {
            (Stage::QUEUE, _) if self.made.is_some() => {
                let is_of_bio = self.made == Some((entry.time_ns, entry.cpu));
                return is_of_bio.then_some((false, 0));
            }
            (Stage::QUEUE, _) if self.is_by_another(&entry.item) => return None,
            (Stage::QUEUE, None) if self.begins_zone => return None,
            (Stage::QUEUE, Some(q)) => {
                let from_ns = q.ns.saturating_sub(SLACK_AT_Q_NS);
                (Some(q), from_ns, q.ns.saturating_add(SLACK_AT_Q_NS))
            }
            (Stage::INSERT, _) => (self.i.or(self.d), self.from_ns, self.to_ns),
            _ => (self.d.or(self.i), self.from_ns, self.to_ns),
        };
        if !(from_ns..=to_ns.min(self.to_ns)).contains(&entry.time_ns) {
            return None;
        }
        let Some(Moment { ns, cpu }) = event else {
            return Some((true, self.to_ns.abs_diff(entry.time_ns)));
        };
        let ahead = cpu == Some(entry.cpu.into()) && entry.time_ns <= ns;
        Some((!ahead, ns.abs_diff(entry.time_ns)))
    }
}

/// An item whose twins can be reduced to what they have in common.
pub(super) trait Blur: Copy {
    /// Sets what differs between the two to unknown in both. The other one begins `ahead` bytes after this one, or before
    /// it if `ahead` is negative.
    fn blur(&mut self, other: &mut Self, ahead: i64);

    /// Returns the thread that queued the bio, if the item tells: the tracer saw the same thread at Q.
    fn thread(&self) -> Option<u32> {
        None
    }
}

/// An entry that waits, or a piece of it.
#[derive(Clone, Copy, Debug)]
struct Waiting<T> {
    /// Distinguishes entries of the same time and place.
    serial: u64,
    /// Sectors of the entry that lay before this piece of it.
    skipped: u64,
    time_ns: u64,
    cpu: u16,
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
    /// The time and CPU of the entry if it was made at Q.
    made: Option<Made>,
    item: T,
}

/// Moves the pieces as the disk moved their request ([`Completion::moved`]).
pub(super) fn move_by<T>(matches: &mut [Match<T>], sectors: u64) {
    for piece in matches {
        piece.sector = piece.sector.saturating_add(sectors);
        piece.end = piece.end.saturating_add(sectors);
    }
}

impl<T> Match<T> {
    /// Returns how many sectors of the entry lie before `sector`.
    pub fn skipped_at(&self, sector: u64) -> u64 {
        self.skipped
            .saturating_add(sector.saturating_sub(self.sector))
    }
}

impl<T> std::ops::Deref for Match<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.item
    }
}

/// Returns the match at `sector`, if any, and the sector where it ends or the next one begins, at most `end`.
pub(super) fn at<T>(matches: &[Match<T>], sector: u64, end: u64) -> (Option<&Match<T>>, u64) {
    match matches.get(matches.partition_point(|m| m.end <= sector)) {
        Some(m) if m.sector <= sector => (Some(m), m.end.min(end)),
        Some(m) => (None, m.sector.min(end)),
        None => (None, end),
    }
}

/// An entry that fits. The least one is taken first: the nearest to its event, then the latest; the other fields make the
/// order total.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Found {
    distance: Distance,
    time_ns: Reverse<u64>,
    /// log16 of the entry's sectors.
    magnitude: u32,
    sector: u64,
    serial: u64,
    place: Place,
}

/// Returns the most entries that a lookup of `range` examines; see [`CROWD`].
fn crowd(range: &Range<u64>) -> usize {
    let sectors = range.end.saturating_sub(range.start) as usize;
    CROWD.saturating_add(sectors.saturating_mul(CROWD_PER_SECTOR))
}

/// The entries that wait for their completion.
pub(super) struct Pending<T> {
    /// Entries that were made after the latest completion, with their places. A fast disk makes thousands while a table is read
    /// ahead, and no lookup needs them yet.
    ahead: Timeline<(u64, u32, Waiting<T>)>,
    waiting: Cells<Waiting<T>>,
    serial: u64,
    sweep_at: usize,
    dropped: u64,
    newest_ns: u64,
    /// Kept between lookups to reuse its memory.
    found: Vec<Found>,
}

impl<T: Blur> Pending<T> {
    pub fn new() -> Self {
        Pending {
            ahead: Timeline::default(),
            waiting: Cells::default(),
            serial: 0,
            sweep_at: FEW,
            dropped: 0,
            newest_ns: 0,
            found: Vec::new(),
        }
    }

    /// Returns how many entries wait.
    pub fn len(&self) -> u64 {
        self.waiting.len().saturating_add(self.ahead.len()) as u64
    }

    /// Returns how many entries were dropped before a completion matched them.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns how many entries no completion matched.
    pub fn left(&self) -> u64 {
        self.dropped().saturating_add(self.len())
    }

    pub fn insert(&mut self, head: &RawHead, item: T) {
        let time_ns = head.time_ns.get();
        self.serial.tally(1);
        let entry = Waiting {
            serial: self.serial,
            skipped: 0,
            time_ns,
            cpu: head.cpu.get(),
            stage: head.stage,
            item,
        };
        let sectors = head.bytes.get().div_ceil(512);
        if sectors == 0 {
            return;
        }
        self.ahead
            .push(time_ns, (head.sector.get(), sectors, entry));
        if self.ahead.len() > LIMIT {
            self.dropped.tally(self.ahead.clear());
        }
    }

    /// Adds the entries that were made by `time_ns` to those that are searched.
    fn enter(&mut self, time_ns: u64) {
        while let Some((sector, sectors, entry)) = self.ahead.pop(time_ns) {
            self.newest_ns = self.newest_ns.max(entry.time_ns);
            if self.waiting.len() >= self.sweep_at {
                self.sweep();
            }
            self.put(sector, sectors, entry);
        }
    }

    fn put(&mut self, sector: u64, sectors: u32, waiting: Waiting<T>) {
        if sectors > 0 {
            self.waiting.insert(sector, sectors, waiting);
        }
    }

    /// Moves the pieces that belong to `sector..end` into `out`, disjoint and in the order of sectors. If several entries
    /// fit, the one nearest to its event is taken.
    pub fn take(&mut self, sector: u64, end: u64, window: &Window, out: &mut Vec<Match<T>>) {
        out.clear();
        self.enter(window.to_ns);
        if self.waiting.len() == 0 {
            return;
        }
        let range = sector..end;
        let mut found = std::mem::take(&mut self.found);
        if self.find(&range, window, &mut found) > crowd(&range) {
            self.thin(&range);
            self.find(&range, window, &mut found);
        }
        found.sort_unstable();
        if window.twin.is_some() || found.len() > 1 {
            self.blur(&found, window);
        }
        for Found { place, .. } in found.drain(..) {
            self.claim(place, &range, out);
        }
        self.found = found;
    }

    /// Finds the entries that fit. Returns how many were examined.
    fn find(&self, range: &Range<u64>, window: &Window, found: &mut Vec<Found>) -> usize {
        found.clear();
        self.waiting.overlapping(range, |place| {
            let (sector, sectors, entry) = self.waiting.get(place);
            let distance = window.distance(entry);
            found.extend(distance.map(|distance| Found {
                distance,
                time_ns: Reverse(entry.time_ns),
                magnitude: sectors.max(1).ilog2() / 4,
                sector,
                serial: entry.serial,
                place,
            }));
        })
    }

    /// Drops the oldest entries near a range.
    fn thin(&mut self, range: &Range<u64>) {
        let before = self.waiting.len();
        let order = |entry: &Waiting<T>| (entry.time_ns, entry.serial);
        self.waiting.thin(range, CROWD / 2, order);
        let dropped = before.saturating_sub(self.waiting.len());
        self.dropped.tally(dropped as u64);
    }

    /// Blurs overlapping entries each of which may be the right one: all that were made at a Q if the right Q is unknown, and
    /// those within the twins' sectors.
    fn blur(&mut self, found: &[Found], window: &Window) {
        let run = |found: &Found| {
            let (sector, sectors, entry) = self.waiting.get(found.place);
            let end = sector.saturating_add(sectors.into());
            let is_twin = window
                .twin
                .is_some_and(|(from, to)| from <= sector && end <= to);
            let is_known = window.made.is_some() && entry.stage == Stage::QUEUE;
            let is_doubtful = window.is_doubtful(entry.stage) || is_twin && !is_known;
            is_doubtful.then_some((sector, end, found.place))
        };
        let within: Vec<_> = found.iter().take(TWINS).filter_map(run).collect();
        // The second pass blurs the first entries by what the last one differs in.
        for _ in 0..2 {
            let mut rest = &within[..];
            while let [one, others @ ..] = rest {
                for other in others {
                    if one.0 < other.1 && other.0 < one.1 {
                        let ahead = self.ahead(one.2, other.2);
                        let mut item = self.waiting.item_mut(other.2).item;
                        self.waiting.item_mut(one.2).item.blur(&mut item, ahead);
                        self.waiting.item_mut(other.2).item = item;
                    }
                }
                rest = others;
            }
        }
    }

    /// Returns how many bytes after the beginning of one entry the other one begins.
    fn ahead(&self, one: Place, other: Place) -> i64 {
        let begin = |place| {
            let (sector, _, entry) = self.waiting.get(place);
            sector.saturating_sub(entry.skipped) as i64
        };
        begin(other).saturating_sub(begin(one)).saturating_mul(512)
    }

    /// Takes the sectors of one entry that lie in `range` and were not taken from another entry before; its other sectors go on
    /// waiting. If this entry was made at Q, sectors taken from another entry go on waiting too: another bio is still in flight
    /// there.
    fn claim(&mut self, place: Place, range: &Range<u64>, out: &mut Vec<Match<T>>) {
        let (start, sectors, &entry) = self.waiting.get(place);
        let end = start.saturating_add(sectors.into());
        let whole = Match {
            sector: start,
            end,
            skipped: entry.skipped,
            made: (entry.stage == Stage::QUEUE).then_some((entry.time_ns, entry.cpu)),
            item: entry.item,
        };
        let (from, to) = (start.max(range.start), end.min(range.end));
        let before = out.len();
        let mut others: Vec<Range<u64>> = Vec::new();
        let mut at = from;
        while at < to {
            let next = out.partition_point(|m| m.end <= at);
            let taken = out.get(next).filter(|m| m.sector < to);
            let (free_to, taken_to) = taken.map_or((to, to), |m| (m.sector.max(at), m.end));
            if at < free_to {
                let found = Match {
                    sector: at,
                    end: free_to,
                    skipped: whole.skipped_at(at),
                    ..whole
                };
                out.insert(next, found);
            }
            let taken = free_to..taken_to.min(to);
            match others.last_mut() {
                _ if entry.stage != Stage::QUEUE || taken.is_empty() => {}
                Some(Range { end, .. }) if *end == taken.start => *end = taken.end,
                _ => others.push(taken),
            }
            at = taken_to;
        }
        if out.len() == before {
            return;
        }
        self.waiting.remove(place);
        for piece in others {
            let skipped = whole.skipped_at(piece.start);
            let sectors = piece.end.saturating_sub(piece.start) as u32;
            self.put(piece.start, sectors, Waiting { skipped, ..entry });
        }
        // The remaining pieces are no longer than the whole entry, so that their lengths fit.
        self.put(start, from.saturating_sub(start) as u32, entry);
        let skipped = whole.skipped_at(to);
        let behind = end.saturating_sub(to) as u32;
        self.put(to, behind, Waiting { skipped, ..entry });
    }

    /// Drops entries that are too old, and all entries if that is not enough.
    fn sweep(&mut self) {
        let before = self.waiting.len();
        let oldest = self.newest_ns.saturating_sub(HORIZON_NS);
        self.waiting.retain(|entry| entry.time_ns >= oldest);
        if self.waiting.len() > LIMIT {
            self.waiting = Cells::default();
        }
        let dropped = before.saturating_sub(self.waiting.len());
        self.dropped.tally(dropped as u64);
        self.sweep_at = FEW.max(self.waiting.len().saturating_mul(2));
    }
}

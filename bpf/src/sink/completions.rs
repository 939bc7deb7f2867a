// SPDX-License-Identifier: MIT OR Apache-2.0
//! Completions in a part of a trace, and the records of requests that each of them ended.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use mostrace_bundle::Zones;
use mostrace_bundle::blk_io_trace::action::{BLK_TC_FLUSH, BLK_TC_WRITE, ta};
use mostrace_bundle::blk_io_trace::{Decoded, Event, decode};

/// The fields of a request's record with which its completion is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestRecord {
    /// The kind of the record; a request, or a bio of it, has one of each kind at a sector.
    pub kind: u64,
    /// The time of the record, CLOCK_MONOTONIC.
    pub time_ns: u64,
    /// The first sector.
    pub sector: u64,
    /// The length; 0 for a flush.
    pub bytes: u32,
    /// True for a flush that the device's driver makes for the flushes that were requested.
    pub of_device: bool,
}

impl RequestRecord {
    fn sectors(&self) -> u64 {
        u64::from(self.bytes).div_ceil(512)
    }

    /// Makes the record of an event; None if the event belongs to no request or bio.
    pub fn of(event: &Event<'_>) -> Option<RequestRecord> {
        let is_of_none = matches!(
            event.act(),
            ta::PLUG | ta::UNPLUG_IO | ta::UNPLUG_TIMER | ta::DRV_DATA
        );
        (!event.is_note() && !is_of_none).then(|| RequestRecord {
            kind: event.act(),
            time_ns: event.time_ns,
            sector: event.sector,
            bytes: event.bytes,
            of_device: is_of_device(event),
        })
    }
}

/// Returns true for the driver's own flush. A requested flush belongs to a bio, whose events also have the bit of a write; the
/// completion of its request has lost the bit of a flush.
fn is_of_device(event: &Event<'_>) -> bool {
    event.bytes == 0
        && event.action & BLK_TC_FLUSH != 0
        && matches!(event.act(), ta::ISSUE | ta::COMPLETE | ta::REQUEUE)
        && event.action & BLK_TC_WRITE == 0
}

/// The completions, ordered by first sector and then by time.
#[derive(Debug, Default)]
pub(super) struct Completions {
    since_ns: u64,
    /// The length of the longest completion, in sectors.
    longest: u64,
    of_sectors: Vec<RequestRecord>,
    of_flushes: Vec<RequestRecord>,
    /// The records for which completions were claimed: whether the completion is a flush's, its index, and the record's kind and
    /// first sector.
    claimed: HashSet<(bool, usize, u64, u64), RandomState>,
    zones: Zones,
}

impl Completions {
    /// Takes the completions of a part of a trace that begins at `since_ns`. Earlier records count as completed, because their
    /// completions may be missing.
    pub fn new(since_ns: u64, completions: impl IntoIterator<Item = RequestRecord>) -> Completions {
        let all = completions.into_iter();
        let (mut of_flushes, mut of_sectors): (Vec<_>, Vec<_>) = all.partition(|p| p.bytes == 0);
        of_flushes.sort_by_key(|p| (p.of_device, p.sector, p.time_ns));
        of_sectors.sort_by_key(|p| (p.sector, p.time_ns));
        Completions {
            since_ns,
            longest: of_sectors
                .iter()
                .map(RequestRecord::sectors)
                .max()
                .unwrap_or(0),
            of_sectors,
            of_flushes,
            claimed: HashSet::default(),
            zones: Zones::default(),
        }
    }

    /// Sets the zones of the disk.
    pub fn of_zones(self, zones: Zones) -> Completions {
        Completions { zones, ..self }
    }

    /// Splits the records of a part of a trace into its completions and the events of requests that did not complete, in time
    /// order. The disk has these zones.
    pub fn split(
        since_ns: u64,
        recent: &[u8],
        zones: Zones,
    ) -> (Completions, Vec<(Event<'_>, &[u8])>) {
        let mut events = Vec::new();
        let mut rest = recent;
        while let Decoded::Record(event, len) = decode(rest) {
            let (record, behind) = rest.split_at(len);
            events.push((event, record));
            rest = behind;
        }
        events.sort_by_key(|(event, _)| event.time_ns);
        let is_completion = |event: &Event<'_>| event.act() == ta::COMPLETE;
        let completed = events.iter().filter(|(event, _)| is_completion(event));
        let completed = completed.filter_map(|(event, _)| RequestRecord::of(event));
        let mut completions = Completions::new(since_ns, completed).of_zones(zones);
        events.reverse();
        events.retain(|(event, _)| {
            !is_completion(event)
                && RequestRecord::of(event).is_some_and(|record| !completions.claim(&record))
        });
        events.reverse();
        (completions, events)
    }

    /// Claims the completions of a record. Returns true if all of its sectors were completed; there may be several completions,
    /// because a bio may be split. Each completion can be claimed once for a record of a kind at a sector. Records must be passed
    /// from the newest to the oldest: otherwise a record whose completion is missing would claim that of the next one, and so on.
    pub fn claim(&mut self, part: &RequestRecord) -> bool {
        if part.time_ns < self.since_ns {
            return true;
        }
        if part.bytes == 0 {
            return self.claim_flush(part);
        }
        let behind = part.sector.saturating_add(part.sectors());
        let mut at = *part;
        while at.sector < behind {
            let Some(done) = self.claim_at(&at) else {
                return self.claim_append(part);
            };
            at.sector = done;
        }
        true
    }

    fn claim_flush(&mut self, part: &RequestRecord) -> bool {
        let of = |p: &RequestRecord| (p.of_device, p.sector);
        let first = self
            .of_flushes
            .partition_point(|p| (of(p), p.time_ns) < (of(part), part.time_ns));
        let candidates = self.of_flushes.iter().enumerate().skip(first);
        let mut ends = candidates.take_while(|(_, p)| of(p) == of(part));
        ends.any(|(i, _)| self.claimed.insert((true, i, part.kind, part.sector)))
    }

    /// Claims the completion of an append to a zone, which has another sector than the record.
    fn claim_append(&mut self, part: &RequestRecord) -> bool {
        let first = self.of_sectors.partition_point(|p| p.sector <= part.sector);
        let candidates = self.of_sectors.iter().enumerate().skip(first);
        let of_zone =
            candidates.take_while(|(_, p)| self.zones.append_sector(p.sector) == Some(part.sector));
        let key = |i| (false, i, part.kind, part.sector);
        let end = of_zone
            .filter(|&(i, p)| {
                let fits = p.bytes == part.bytes && p.time_ns >= part.time_ns;
                fits && !self.claimed.contains(&key(i))
            })
            .min_by_key(|(_, p)| p.time_ns);
        let found = end.map(|(i, _)| key(i));
        self.claimed.extend(found);
        found.is_some()
    }

    /// Claims the completion of the record's first sector. Returns the first sector behind it.
    fn claim_at(&mut self, part: &RequestRecord) -> Option<u64> {
        let key = (part.sector, part.time_ns);
        let here = self
            .of_sectors
            .partition_point(|p| (p.sector, p.time_ns) < key);
        let at_once = self.of_sectors.iter().enumerate().skip(here);
        let at_once = at_once.take_while(|(_, p)| p.sector == part.sector);
        // A completion that begins before the record may cover its first sector.
        let ahead = part.sector.saturating_sub(self.longest);
        let first = self.of_sectors.partition_point(|p| p.sector < ahead);
        let covers = |p: &RequestRecord| {
            (p.sector..p.sector + p.sectors()).contains(&part.sector) && p.time_ns >= part.time_ns
        };
        let ahead = self
            .of_sectors
            .iter()
            .enumerate()
            .skip(first)
            .take(here - first);
        let key = |i| (false, i, part.kind, part.sector);
        let both = at_once.chain(ahead.filter(|(_, p)| covers(p)));
        // The sector may be written again by requests that begin elsewhere.
        let end = both
            .filter(|&(i, _)| !self.claimed.contains(&key(i)))
            .min_by_key(|(_, p)| p.time_ns);
        self.claimed.extend(end.map(|(i, _)| key(i)));
        end.map(|(_, p)| p.sector.saturating_add(p.sectors()))
    }
}

#[cfg(test)]
mod tests {
    use mostrace_bundle::manifest::Device;

    use super::*;

    fn part(kind: u64, time_ns: u64, sector: u64, bytes: u32) -> RequestRecord {
        RequestRecord {
            kind,
            time_ns,
            sector,
            bytes,
            of_device: false,
        }
    }

    fn ends(of: &[(u64, u64, u32)]) -> Completions {
        let completions = of.iter();
        let of =
            completions.map(|&(time_ns, sector, bytes)| part(ta::COMPLETE, time_ns, sector, bytes));
        Completions::new(1, of)
    }

    #[test]
    fn what_was_completed_after_it_is_ended() {
        let mut ends = ends(&[(5, 8, 8192)]);
        // Two bios were merged into this request.
        assert!(ends.claim(&part(ta::QUEUE, 1, 8, 4096)));
        assert!(ends.claim(&part(ta::QUEUE, 2, 16, 4096)));
        assert!(ends.claim(&part(ta::ISSUE, 3, 8, 8192)));
        assert!(!ends.claim(&part(ta::QUEUE, 2, 24, 4096)), "beside it");
        assert!(!ends.claim(&part(ta::QUEUE, 6, 8, 4096)), "after it");
        assert!(ends.claim(&part(ta::QUEUE, 0, 24, 4096)), "not known");
    }

    #[test]
    fn of_a_bio_that_was_split_every_part_has_to_be() {
        let whole = part(ta::QUEUE, 1, 8, 12288);
        assert!(!ends(&[(5, 8, 4096)]).claim(&whole));
        assert!(!ends(&[(5, 8, 4096), (6, 24, 4096)]).claim(&whole));
        assert!(ends(&[(5, 8, 4096), (7, 24, 4096), (6, 16, 4096)]).claim(&whole));
        assert!(ends(&[(5, 0, 8192), (6, 16, 16384)]).claim(&whole));
    }

    #[test]
    fn a_place_that_is_written_again_has_an_end_for_each() {
        for times in [[1, 7], [7, 1]] {
            let mut ends = ends(&[(5, 0, 8192), (9, 8, 4096)]);
            for time_ns in times {
                assert!(ends.claim(&part(ta::QUEUE, time_ns, 8, 4096)), "{times:?}");
            }
            assert!(!ends.claim(&part(ta::QUEUE, 4, 8, 4096)), "one each");
        }
    }

    #[test]
    fn of_two_at_one_place_one_end_ends_one() {
        let mut ends = ends(&[(5, 8, 4096)]);
        assert!(ends.claim(&part(ta::ISSUE, 1, 8, 4096)));
        assert!(!ends.claim(&part(ta::ISSUE, 2, 8, 4096)));
        assert!(ends.claim(&part(ta::QUEUE, 1, 8, 4096)));
    }

    #[test]
    fn an_append_is_ended_elsewhere_in_its_zone() {
        let disk = Device {
            zone_sectors: Some(800),
            ..Device::default()
        };
        let mut ends =
            ends(&[(5, 1640, 4096), (9, 1648, 4096), (9, 2408, 4096)]).of_zones(Zones::of(&disk));
        assert!(ends.claim(&part(ta::ISSUE, 4, 1600, 4096)));
        assert!(
            !ends.claim(&part(ta::ISSUE, 3, 1600, 8192)),
            "of another length"
        );
        assert!(ends.claim(&part(ta::ISSUE, 2, 1600, 4096)));
        assert!(!ends.claim(&part(ta::ISSUE, 1, 1600, 4096)), "one each");
        assert!(!ends.claim(&part(ta::ISSUE, 1, 808, 4096)), "no append");
    }

    #[test]
    fn flushes_are_told_apart_from_those_of_the_device() {
        let of_device = |kind, time_ns| RequestRecord {
            of_device: true,
            ..part(kind, time_ns, 0, 0)
        };
        let mut asked = ends(&[(5, 0, 0)]);
        assert!(!asked.claim(&of_device(ta::ISSUE, 1)));
        assert!(asked.claim(&part(ta::QUEUE, 1, 0, 0)));
        assert!(!asked.claim(&part(ta::QUEUE, 2, 0, 0)));
        let mut both =
            Completions::new(1, [part(ta::COMPLETE, 5, 0, 0), of_device(ta::COMPLETE, 7)]);
        assert!(both.claim(&of_device(ta::ISSUE, 1)));
        assert!(!both.claim(&of_device(ta::ISSUE, 6)));
    }
}

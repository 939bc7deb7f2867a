// SPDX-License-Identifier: MIT OR Apache-2.0
//! The completions of a stretch of a trace, and what each of them ended.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use mostrace_bundle::blk_io_trace::Event;
use mostrace_bundle::blk_io_trace::action::{BLK_TC_FLUSH, BLK_TC_WRITE, ta};

/// What is asked about: a record of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Its kind: a request, or a bio of it, has one of each kind at a sector.
    pub kind: u64,
    /// When.
    pub time_ns: u64,
    /// First sector.
    pub sector: u64,
    /// Length; 0 of a flush.
    pub bytes: u32,
    /// Of a flush, whether it is the device's own, made for those that were asked for.
    pub of_device: bool,
}

impl Part {
    fn sectors(&self) -> u64 {
        u64::from(self.bytes).div_ceil(512)
    }

    /// Of an event of a request or bio; None of one that belongs to none.
    pub fn of(event: &Event<'_>) -> Option<Part> {
        let is_of_none = matches!(
            event.act(),
            ta::PLUG | ta::UNPLUG_IO | ta::UNPLUG_TIMER | ta::DRV_DATA
        );
        (!event.is_note() && !is_of_none).then(|| Part {
            kind: event.act(),
            time_ns: event.time_ns,
            sector: event.sector,
            bytes: event.bytes,
            of_device: is_of_device(event),
        })
    }
}

/// Asked for are flushes of bios, whose events have the bit of a write too, and their requests' ends, which have lost that of
/// a flush.
fn is_of_device(event: &Event<'_>) -> bool {
    event.bytes == 0
        && event.action & BLK_TC_FLUSH != 0
        && matches!(event.act(), ta::ISSUE | ta::COMPLETE | ta::REQUEUE)
        && event.action & BLK_TC_WRITE == 0
}

/// Completions, by where they begin and then by time.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    since_ns: u64,
    /// Of the completions, sectors.
    longest: u64,
    of_sectors: Vec<Part>,
    of_flushes: Vec<Part>,
    /// What each of them has ended: whether it is a flush, its place, kind and first sector of the record.
    ended: HashSet<(bool, usize, u64, u64), RandomState>,
}

impl Ends {
    /// Of the completions of a stretch that begins at a time: what was before is taken as ended, since its completion may be
    /// missing.
    pub fn new(since_ns: u64, completions: impl IntoIterator<Item = Part>) -> Ends {
        let all = completions.into_iter();
        let (mut of_flushes, mut of_sectors): (Vec<_>, Vec<_>) = all.partition(|p| p.bytes == 0);
        of_flushes.sort_by_key(|p| (p.of_device, p.sector, p.time_ns));
        of_sectors.sort_by_key(|p| (p.sector, p.time_ns));
        Ends {
            since_ns,
            longest: of_sectors.iter().map(Part::sectors).max().unwrap_or(0),
            of_sectors,
            of_flushes,
            ended: HashSet::default(),
        }
    }

    /// Whether they ended this: all of its sectors, since a bio may be split. Each ends one record of a kind at a sector. To be
    /// asked of the newest record first: one whose completion is missing would else take that of the next, and so on.
    pub fn end(&mut self, part: &Part) -> bool {
        if part.time_ns < self.since_ns {
            return true;
        }
        if part.bytes == 0 {
            return self.end_flush(part);
        }
        let behind = part.sector.saturating_add(part.sectors());
        let mut at = *part;
        while at.sector < behind {
            let Some(done) = self.end_at(&at) else {
                return false;
            };
            at.sector = done;
        }
        true
    }

    fn end_flush(&mut self, part: &Part) -> bool {
        let of = |p: &Part| (p.of_device, p.sector);
        let first = self
            .of_flushes
            .partition_point(|p| (of(p), p.time_ns) < (of(part), part.time_ns));
        let candidates = self.of_flushes.iter().enumerate().skip(first);
        let mut ends = candidates.take_while(|(_, p)| of(p) == of(part));
        ends.any(|(i, _)| self.ended.insert((true, i, part.kind, part.sector)))
    }

    /// The first sector behind the completion of the first one.
    fn end_at(&mut self, part: &Part) -> Option<u64> {
        let key = (part.sector, part.time_ns);
        let here = self
            .of_sectors
            .partition_point(|p| (p.sector, p.time_ns) < key);
        let at_once = self.of_sectors.iter().enumerate().skip(here);
        let at_once = at_once.take_while(|(_, p)| p.sector == part.sector);
        // One that begins ahead of it.
        let ahead = part.sector.saturating_sub(self.longest);
        let first = self.of_sectors.partition_point(|p| p.sector < ahead);
        let covers = |p: &Part| {
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
        // The place may be written again, in requests that begin elsewhere.
        let end = both
            .filter(|&(i, _)| !self.ended.contains(&key(i)))
            .min_by_key(|(_, p)| p.time_ns);
        self.ended.extend(end.map(|(i, _)| key(i)));
        end.map(|(_, p)| p.sector.saturating_add(p.sectors()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(kind: u64, time_ns: u64, sector: u64, bytes: u32) -> Part {
        Part {
            kind,
            time_ns,
            sector,
            bytes,
            of_device: false,
        }
    }

    fn ends(of: &[(u64, u64, u32)]) -> Ends {
        let completions = of.iter();
        let of =
            completions.map(|&(time_ns, sector, bytes)| part(ta::COMPLETE, time_ns, sector, bytes));
        Ends::new(1, of)
    }

    #[test]
    fn what_was_completed_after_it_is_ended() {
        let mut ends = ends(&[(5, 8, 8192)]);
        // Two bios that were merged, and the request that they became.
        assert!(ends.end(&part(ta::QUEUE, 1, 8, 4096)));
        assert!(ends.end(&part(ta::QUEUE, 2, 16, 4096)));
        assert!(ends.end(&part(ta::ISSUE, 3, 8, 8192)));
        assert!(!ends.end(&part(ta::QUEUE, 2, 24, 4096)), "beside it");
        assert!(!ends.end(&part(ta::QUEUE, 6, 8, 4096)), "after it");
        assert!(ends.end(&part(ta::QUEUE, 0, 24, 4096)), "not known");
    }

    #[test]
    fn of_a_bio_that_was_split_every_part_has_to_be() {
        let whole = part(ta::QUEUE, 1, 8, 12288);
        assert!(!ends(&[(5, 8, 4096)]).end(&whole));
        assert!(!ends(&[(5, 8, 4096), (6, 24, 4096)]).end(&whole));
        assert!(ends(&[(5, 8, 4096), (7, 24, 4096), (6, 16, 4096)]).end(&whole));
        assert!(ends(&[(5, 0, 8192), (6, 16, 16384)]).end(&whole));
    }

    #[test]
    fn a_place_that_is_written_again_has_an_end_for_each() {
        for times in [[1, 7], [7, 1]] {
            let mut ends = ends(&[(5, 0, 8192), (9, 8, 4096)]);
            for time_ns in times {
                assert!(ends.end(&part(ta::QUEUE, time_ns, 8, 4096)), "{times:?}");
            }
            assert!(!ends.end(&part(ta::QUEUE, 4, 8, 4096)), "one each");
        }
    }

    #[test]
    fn of_two_at_one_place_one_end_ends_one() {
        let mut ends = ends(&[(5, 8, 4096)]);
        assert!(ends.end(&part(ta::ISSUE, 1, 8, 4096)));
        assert!(!ends.end(&part(ta::ISSUE, 2, 8, 4096)));
        assert!(ends.end(&part(ta::QUEUE, 1, 8, 4096)));
    }

    #[test]
    fn flushes_are_told_apart_from_those_of_the_device() {
        let of_device = |kind, time_ns| Part {
            of_device: true,
            ..part(kind, time_ns, 0, 0)
        };
        let mut asked = ends(&[(5, 0, 0)]);
        assert!(!asked.end(&of_device(ta::ISSUE, 1)));
        assert!(asked.end(&part(ta::QUEUE, 1, 0, 0)));
        assert!(!asked.end(&part(ta::QUEUE, 2, 0, 0)));
        let mut both = Ends::new(1, [part(ta::COMPLETE, 5, 0, 0), of_device(ta::COMPLETE, 7)]);
        assert!(both.end(&of_device(ta::ISSUE, 1)));
        assert!(!both.end(&of_device(ta::ISSUE, 6)));
    }
}

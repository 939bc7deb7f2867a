// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a recording does to a device: which units it writes and discards, and on whose account. It is a fold over the pipeline.

use std::io;
use std::ops::Range;

use mostrace_bundle::Manifest;
use mostrace_bundle::blk_io_trace::action::BLK_TC_FUA;
use mostrace_map::class::Kind;
use mostrace_map::fs::State;
use serde::Serialize;

use crate::answer::{self, filesystem, names_of_owners};
use crate::attribute::{HashMap, Op, Row};
use crate::causes::{CauseId, Share, Verdicts};
use crate::origins::{Base, Origins};
use crate::pipeline::{Fold, Step};
use crate::reading::{Error, map_of_snapshot};
use crate::recording::Recording;
use crate::tally::Tally;

/// The most writes, discards and flushes that are kept, 24 bytes each.
const MOST: usize = 1 << 24;
/// The layer of what nobody wrote in the recording.
const BEFORE: &str = "what was there before";

/// On whose account units were written.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Owner {
    /// The layer.
    pub layer: String,
    /// The program that caused it, or that submitted it if no cause is known.
    pub program: String,
    /// The file that the program worked on.
    pub file: String,
}

/// What is done to units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// They are written on the account of an owner; 0 is nobody's.
    Write(u32),
    /// They are discarded.
    Discard,
    /// All that was written is on the media before anything else is.
    Flush,
}

/// What is done, and the units that it is done to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// What is done.
    pub what: What,
    /// The units.
    pub units: Range<u64>,
}

/// One recording.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// What it does, in the order of completion. Units are counted from the first one that it writes; those between are left out.
    pub acts: Vec<Act>,
    /// Number of different units that it writes.
    pub units: u64,
    /// Number of units that its writes have.
    pub writes: u64,
    /// Number of units that its discards have, of those that it writes.
    pub discards: u64,
    /// Bytes that it writes.
    pub bytes: u64,
    /// The capacity of the device, if it is known.
    pub device_bytes: Option<u64>,
    /// From its first completion to the last, ns.
    pub duration_ns: u64,
    /// The owners by number, some of which are equal.
    pub owners: Vec<Owner>,
    /// Runs of its units that the snapshot at its end says are free.
    pub free: Vec<Range<u64>>,
}

/// Takes a recording's requests.
#[derive(Default)]
pub struct Taking {
    unit: u64,
    /// What was seen, by the units of the disk.
    seen: Vec<Act>,
    /// The accounts, the first of which has the number 1.
    accounts: HashMap<answer::OwnerKey, u32>,
    bytes: u64,
}

impl Fold for Taking {
    // One recording is taken, whose own numbers are those of all.
    fn begin(&mut self, _: Base) {}

    fn step(&mut self, step: &Step<'_, '_>) -> io::Result<()> {
        let request = &step.request;
        match request.op {
            Op::Write => {
                // A unit that two rows share is written once.
                let mut done = 0;
                let mut shares = step.verdicts.into_iter().flat_map(Verdicts::iter);
                for row in step.rows {
                    let shares = shares.next().map_or(&[][..], |(_, shares)| shares);
                    done = self.write(row, shares, done);
                }
                if request.action & BLK_TC_FUA != 0 {
                    self.flush();
                }
            }
            // Drives keep nothing for zeros that no data comes with.
            Op::Discard | Op::WriteZeroes => {
                let end = request.sector.saturating_add((request.bytes / 512).into());
                self.push(What::Discard, self.whole(&(request.sector..end)));
            }
            Op::DeviceFlush => self.flush(),
            _ => {}
        }
        if self.seen.len() > MOST {
            let said = format!("more than {MOST} writes and discards: name fewer segments");
            return Err(io::Error::other(said));
        }
        Ok(())
    }
}

impl Taking {
    /// Takes requests in units of this many bytes.
    pub fn new(unit: u64) -> Taking {
        let unit = unit.max(1);
        Taking {
            unit,
            ..Taking::default()
        }
    }

    /// Takes a row of a request of which the units before `done` are written; returns where its own end.
    fn write(&mut self, row: &Row, shares: &[Share], done: u64) -> u64 {
        self.bytes.tally(row.bytes.into());
        let from = row.sector.saturating_mul(512);
        let end = from.saturating_add(row.bytes.into()).div_ceil(self.unit);
        let first = (from / self.unit).max(done).min(end);
        let (mut at, mut passed) = (first, 0_u64);
        let each = shares.iter().map(|share| (share.cause, share.bytes));
        // A block with several causers is divided among them in whole units.
        for (cause, bytes) in each.chain([(CauseId::UNKNOWN, row.bytes)]) {
            passed.tally(bytes.into());
            let part = (end - first).saturating_mul(passed);
            let to = part.checked_div(row.bytes.into()).unwrap_or(0);
            let to = first.saturating_add(to).min(end);
            if to > at {
                // There are at most as many as shares of writes.
                let next = self.accounts.len() as u32 + 1;
                let owner = answer::OwnerKey::new(Base::default(), row, cause);
                let account = *self.accounts.entry(owner).or_insert(next);
                self.push(What::Write(account), at..to);
                at = to;
            }
        }
        end.max(done)
    }

    fn flush(&mut self) {
        // A flush after a flush finds nothing to do.
        let last = self.seen.last().map(|last| last.what);
        if last.is_some_and(|last| last != What::Flush) {
            let (what, units) = (What::Flush, 0..0);
            self.seen.push(Act { what, units });
        }
    }

    fn push(&mut self, what: What, units: Range<u64>) {
        if !units.is_empty() {
            self.seen.push(Act { what, units });
        }
    }

    /// Returns the units that lie within these sectors: what is discarded in part still has data.
    fn whole(&self, sectors: &Range<u64>) -> Range<u64> {
        let [from, to] = [sectors.start, sectors.end].map(|sector| sector.saturating_mul(512));
        from.div_ceil(self.unit)..to / self.unit
    }

    /// Returns the load, given the names that rows refer to. `free` are the sectors that the snapshot at the end says are free.
    pub fn load(
        mut self,
        origins: &Origins,
        manifest: Option<&Manifest>,
        free: &[Range<u64>],
    ) -> Load {
        let runs = runs(&self.seen);
        let own = |units: &Range<u64>| number(&runs, units.start)..number(&runs, units.end);
        let free = free.iter().map(|sectors| own(&self.whole(sectors)));
        let free = free.filter(|units| !units.is_empty()).collect();
        let (mut writes, mut discards) = (0_u64, 0_u64);
        self.seen.retain_mut(|act| {
            act.units = own(&act.units);
            let units = act.units.end - act.units.start;
            match act.what {
                What::Write(_) => writes.tally(units),
                What::Discard => discards.tally(units),
                What::Flush => return true,
            }
            units > 0
        });
        Load {
            units: number(&runs, u64::MAX),
            writes,
            discards,
            bytes: self.bytes,
            duration_ns: origins.duration_ns(),
            device_bytes: manifest.map(|m| m.device.sectors.saturating_mul(512)),
            owners: owners(self.accounts, origins, &filesystem(manifest)),
            free,
            acts: self.seen,
        }
    }
}

/// Returns the first unit and the end of each run of units that is written, and how many lie before it.
fn runs(seen: &[Act]) -> Vec<(u64, u64, u64)> {
    let writes = seen.iter().filter(|act| matches!(act.what, What::Write(_)));
    let mut all: Vec<(u64, u64)> = writes.map(|act| (act.units.start, act.units.end)).collect();
    all.sort_unstable();
    let mut runs: Vec<(u64, u64, u64)> = Vec::new();
    for (first, end) in all {
        match runs.last_mut() {
            Some(last) if first <= last.1 => last.1 = last.1.max(end),
            _ => runs.push((first, end, number(&runs, u64::MAX))),
        }
    }
    runs
}

/// Returns how many of the units before this one are written.
fn number(runs: &[(u64, u64, u64)], unit: u64) -> u64 {
    let behind = runs.partition_point(|(first, ..)| *first <= unit);
    let run = runs[..behind].last();
    run.map_or(0, |(first, end, before)| before + unit.min(*end) - first)
}

/// Returns the owners by the numbers of accounts.
fn owners(
    accounts: HashMap<answer::OwnerKey, u32>,
    origins: &Origins,
    filesystem: &str,
) -> Vec<Owner> {
    let names = names_of_owners(origins, filesystem);
    let mut owners = vec![Owner::default(); accounts.len() + 1];
    owners[0].layer = BEFORE.into();
    for (owner, number) in accounts {
        let ([program, file], layer) = names(&owner);
        owners[number as usize] = Owner {
            layer: layer.unwrap_or_else(|| "unknown".into()),
            program,
            file,
        };
    }
    owners
}

/// Returns the sectors of the disk that the snapshot at the end of a recording says are free; None if there is no snapshot.
///
/// # Errors
/// Returns an error if the snapshot cannot be read.
pub fn free(recording: &Recording) -> Result<Option<Vec<Range<u64>>>, Error> {
    let Some(bundle) = recording.last() else {
        return Ok(None);
    };
    let map = map_of_snapshot(bundle, None, State::Mounted, &|_| {})?;
    Ok(map.map(|map| {
        let free = map.extents().iter().filter(|e| e.kind == Kind::Free);
        free.map(|extent| extent.sector..extent.end()).collect()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causes::Known;

    fn row(sector: u64, bytes: u32) -> Row {
        Row {
            sector,
            bytes,
            op: Op::Write,
            ..Row::default()
        }
    }

    fn runs(taking: &Taking) -> Vec<(u64, u64)> {
        let units = taking.seen.iter().map(|act| &act.units);
        units.map(|units| (units.start, units.end)).collect()
    }

    #[test]
    fn a_unit_that_two_rows_share_is_written_once() {
        let mut taking = Taking::new(4096);
        let done = taking.write(&row(1, 4096), &[], 0);
        let done = taking.write(&row(9, 512), &[], done);
        let done = taking.write(&row(10, 4096), &[], done);
        assert_eq!((runs(&taking), done), (vec![(0, 2), (2, 3)], 3));
        assert_eq!(taking.bytes, 8704);
    }

    #[test]
    fn causers_share_a_row_in_whole_units() {
        let share = |cause, bytes| Share {
            cause: CauseId(cause),
            known: Known::Shared,
            bytes,
        };
        let mut taking = Taking::new(4096);
        taking.write(&row(0, 16384), &[share(1, 8192), share(2, 4096)], 0);
        taking.write(&row(800, 4096), &[share(1, 2048), share(2, 2048)], 0);
        assert_eq!(runs(&taking), [(0, 2), (2, 3), (3, 4), (100, 101)]);
        let mut causes: Vec<u32> = taking.accounts.keys().map(|owner| owner.cause.0).collect();
        causes.sort_unstable();
        assert_eq!(causes, [0, 1, 2]);
    }

    #[test]
    fn only_units_that_are_written_are_counted() {
        let mut taking = Taking::new(4096);
        taking.write(&row(8 * 1000, 8192), &[], 0);
        taking.push(What::Discard, 0..999);
        taking.push(What::Discard, 1001..5000);
        taking.flush();
        taking.write(&row(8 * 10, 4096), &[], 0);
        let free = [0..8 * 500, 8 * 1001 + 1..8 * 1002 + 1];
        let load = taking.load(&Origins::default(), None, &free);
        let acts = [
            (What::Write(1), 1..3),
            (What::Discard, 0..1),
            (What::Discard, 2..3),
            (What::Flush, 0..0),
            (What::Write(1), 0..1),
        ];
        assert_eq!(load.acts, acts.map(|(what, units)| Act { what, units }));
        assert_eq!(
            (load.units, load.writes, load.discards, load.bytes),
            (3, 3, 2, 12288)
        );
        // The free sectors of unit 1001 are not all of it.
        assert_eq!(load.free, std::iter::once(0..1).collect::<Vec<_>>());
        assert_eq!(load.owners.len(), 2);
    }

    proptest::proptest! {
        #[test]
        fn no_number_in_a_recording_makes_it_panic(
            rows in proptest::collection::vec((proptest::num::u64::ANY, proptest::num::u32::ANY), 0..20),
            unit in 9_u32..20,
        ) {
            let mut taking = Taking::new(1 << unit);
            for &(sector, bytes) in &rows {
                taking.write(&row(sector, bytes), &[], 0);
                taking.push(What::Discard, sector..sector.saturating_add(bytes.into()));
            }
            let load = taking.load(&Origins::default(), None, std::slice::from_ref(&(0..u64::MAX)));
            for act in &load.acts {
                proptest::prop_assert!(act.units.start <= act.units.end && act.units.end <= load.units);
            }
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of a recording is charged to its command. Limits, comparisons and figures per transaction all have this one base: everything
//! but what others are known to have caused. What nobody is known to have caused counts, since the command may have caused it.

// A recording may come from anybody: no number in it may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod counted;
mod groups;

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;

use mostrace_bundle::Manifest;

use crate::answer::{Answer, Key, OwnerKey, Summing, Sums};
use crate::attribute::{HashMap, Op, Process, Request, Row};
use crate::causes::{CauseId, Verdicts};
use crate::labels::{self, By};
use crate::origins::{Base, Origins};
use crate::pipeline::{Fold, Step};
use crate::reading::Reading;
use crate::sums::{Groups, Sort, Totals};
use crate::tally::{Tally, sum};
use crate::transactions::Database;
use crate::tree::{GROUPINGS, Tree};
pub use counted::Counted;

/// Sums up rows by their owners, and counts requests by all owners of their rows.
#[derive(Default)]
pub struct Charging {
    /// One for each recording.
    of_each: Vec<Charges>,
    base: Base,
    /// The owners of the rows of the request at hand.
    owners: Vec<OwnerKey>,
}

/// The sums of one recording.
#[derive(Default)]
struct Charges {
    summing: Summing,
    /// Requests whose rows have one owner.
    alone: HashMap<(Sort, OwnerKey), u64>,
    /// Requests whose rows have several, in order.
    spanning: HashMap<(Sort, Box<[OwnerKey]>), u64>,
    /// The device's flushes, each with the cause of who waited for it; several waiters can share one.
    flushes: Vec<(u32, CauseId)>,
}

impl Fold for Charging {
    fn begin(&mut self, base: Base) {
        self.base = base;
        let mut charges = Charges::default();
        charges.summing.begin(base);
        self.of_each.push(charges);
    }

    fn step(&mut self, step: &Step<'_, '_>) -> io::Result<()> {
        self.push(&step.request, step.rows, step.verdicts);
        Ok(())
    }
}

impl Charging {
    /// Adds a completed request.
    pub fn push(&mut self, request: &Request, rows: &[Row], verdicts: Option<&Verdicts>) {
        if self.of_each.is_empty() {
            self.begin(Base::default());
        }
        let Some(charges) = self.of_each.last_mut() else {
            return;
        };
        charges.summing.push(request, rows, verdicts);
        let base = self.base;
        let mut verdicts = verdicts.into_iter().flat_map(Verdicts::iter);
        self.owners.clear();
        for row in rows {
            // A request counts where its rows' largest shares are.
            let largest = verdicts.next().and_then(|(_, shares)| shares.first());
            let cause = largest.map_or(CauseId::UNKNOWN, |share| share.cause);
            let owner = OwnerKey::new(base, row, cause);
            if let Some(flush) = request.device_flush {
                let waited = (flush, owner.cause);
                let is_known = charges.flushes.last() == Some(&waited);
                charges.flushes.extend((!is_known).then_some(waited));
            }
            self.owners.push(owner);
        }
        self.owners.sort_unstable();
        self.owners.dedup();
        let sort = Sort::of(request);
        let count = match &self.owners[..] {
            [owner] => charges.alone.entry((sort, *owner)).or_default(),
            several => charges.spanning.entry((sort, several.into())).or_default(),
        };
        count.tally(1);
    }

    /// Returns the sums of everything, be it others'.
    pub fn sums(&self, origins: &Origins) -> Sums {
        let total = self.of_each.iter().map(|charges| charges.summing.total());
        Sums::of(self.keys(), origins, sum(total))
    }

    fn keys(&self) -> impl Iterator<Item = (&Key, u64)> {
        let each = self.of_each.iter();
        each.flat_map(|charges| charges.summing.keys())
    }

    /// Finds what of the recordings that were read is charged to the command, given the names, the manifest and the calls.
    pub fn charged<'r>(
        &'r self,
        origins: &'r Origins,
        manifest: Option<&'r Manifest>,
        databases: &'r [Database],
    ) -> Charged<'r> {
        let is_own = |_, process: &Process| process.of_command;
        let mut charged = Charged::new(self, origins, manifest, databases, is_own);
        let undivided = Counted::undivided(manifest, origins.names.knows_family);
        charged.counted = undivided.unwrap_or_else(|| charged.divided());
        charged.total = charged.totals(|cause| charged.counts(cause));
        if let Counted::OfCommand { others_flushes, .. } = charged.counted {
            let flushes = &mut charged.total.device_flushes;
            *flushes = flushes.saturating_sub(others_flushes);
        }
        charged
    }

    /// Finds what of a reading is charged to an app. `is_own` says of a process and its index whether it is the app's, and None if
    /// that is unknown.
    pub fn charged_to_app<'r>(
        &'r self,
        reading: &'r Reading,
        is_own: impl Fn(usize, &Process) -> Option<bool>,
    ) -> Charged<'r> {
        let manifest = reading.manifest.as_ref();
        let mut charged =
            Charged::new(self, &reading.origins, manifest, &reading.databases, is_own);
        let [unknown, others, own] = [None, Some(false), Some(true)].map(|of| charged.written(of));
        charged.counted = Counted::OfApp {
            written: sum([unknown, others, own]),
            others,
            unknown,
        };
        charged.total = charged.totals(|cause| charged.counts(cause));
        // The device's own flushes have no cause, but who waited for them has.
        charged.total.device_flushes = charged.own_flushes();
        charged
    }
}

/// What was read and summed up.
pub struct Charged<'r> {
    /// The names and causes of the rows.
    pub origins: &'r Origins,
    /// The manifest; None for the bare files of blktrace.
    pub manifest: Option<&'r Manifest>,
    /// The calls of everybody.
    pub databases: &'r [Database],
    /// What counts.
    pub counted: Counted,
    /// The sums of what counts.
    pub total: Totals,
    charging: &'r Charging,
    /// Whether a process is the command's, or the app's; None if that is unknown.
    own: Vec<Option<bool>>,
}

impl<'r> Charged<'r> {
    /// Begins with nothing counted out and no sums.
    fn new(
        charging: &'r Charging,
        origins: &'r Origins,
        manifest: Option<&'r Manifest>,
        databases: &'r [Database],
        is_own: impl Fn(usize, &Process) -> Option<bool>,
    ) -> Charged<'r> {
        Charged {
            origins,
            manifest,
            databases,
            counted: Counted::All,
            total: Totals::default(),
            charging,
            own: labels::of_processes(origins, By::Own, is_own),
        }
    }

    fn divided(&self) -> Counted {
        Counted::OfCommand {
            others: self.written(Some(false)),
            others_flushes: self.others_flushes(),
            unknown: self.written(None),
        }
    }

    /// Returns the bytes written by causes that [are](Charged::of) this.
    fn written(&self, of: Option<bool>) -> u64 {
        let keys = self.charging.keys().filter(|(key, _)| key.op == Op::Write);
        let theirs = keys.filter(|(key, _)| self.of(key.owner.cause) == of);
        sum(theirs.map(|(_, bytes)| bytes))
    }

    /// Counts the device's flushes for which the app waited, be it with others.
    fn own_flushes(&self) -> u64 {
        let of_each = self.charging.of_each.iter().map(|charges| {
            let own = charges.flushes.iter();
            let own = own.filter(|(_, cause)| self.of(*cause) == Some(true));
            let own: HashSet<u32> = own.map(|(flush, _)| *flush).collect();
            own.len() as u64
        });
        sum(of_each)
    }

    /// Counts the device's flushes for which others waited and nobody else.
    fn others_flushes(&self) -> u64 {
        let of_each = self.charging.of_each.iter().map(|charges| {
            let (others, ours): (Vec<_>, Vec<_>) = charges
                .flushes
                .iter()
                .partition(|(_, cause)| self.of(*cause) == Some(false));
            let ours: HashSet<u32> = ours.into_iter().map(|(flush, _)| flush).collect();
            let others: HashSet<u32> = others.into_iter().map(|(flush, _)| flush).collect();
            others.difference(&ours).count() as u64
        });
        sum(of_each)
    }

    /// Returns whether a cause's process is the command's, or the app's.
    fn of(&self, cause: CauseId) -> Option<bool> {
        let process = self.origins.causes.get(cause.0 as usize)?.process;
        self.own.get(process.0 as usize).copied().flatten()
    }

    /// Returns true if what has this cause counts.
    fn counts(&self, cause: CauseId) -> bool {
        match self.counted {
            Counted::All | Counted::Undivided => true,
            Counted::OfCommand { .. } => self.of(cause) != Some(false),
            Counted::OfApp { .. } => self.of(cause) == Some(true),
        }
    }

    /// Sums up what has a cause that is wanted.
    fn totals(&self, is_wanted: impl Fn(CauseId) -> bool) -> Totals {
        let mut totals = Totals::default();
        for charges in &self.charging.of_each {
            for ((sort, owners), count) in charges.requests() {
                if owners.iter().any(|owner| is_wanted(owner.cause)) {
                    totals.count(sort, count, 0);
                }
            }
        }
        for (key, bytes) in self
            .charging
            .keys()
            .filter(|(key, _)| is_wanted(key.owner.cause))
        {
            totals.count(Sort::only(key.op), 0, bytes);
        }
        totals
    }

    /// Returns the sums of what counts.
    pub fn sums(&self) -> Sums {
        let keys = self
            .charging
            .keys()
            .filter(|(key, _)| self.counts(key.owner.cause));
        Sums::of(keys, self.origins, self.total)
    }

    /// Returns the sums of what others caused; None if that is nothing.
    pub fn of_others(&self) -> Option<Sums> {
        let Counted::OfCommand { others: 1.., .. } = self.counted else {
            return None;
        };
        let is_theirs = |cause| self.of(cause) == Some(false);
        let keys = self
            .charging
            .keys()
            .filter(|(key, _)| is_theirs(key.owner.cause));
        let total = self.totals(is_theirs);
        Some(Sums::of(keys, self.origins, total))
    }

    /// Sums up what counts by these columns; groups with more bytes come first, then those with more requests.
    pub fn groups(&self, by: &[&'static str]) -> Groups {
        let mut groups = groups::of(self, by, self.total, |cause| self.counts(cause));
        if let Counted::OfCommand { others_flushes, .. } = self.counted {
            // The device's own flushes have no class, file or cause, so that they are one group.
            let mut each = groups.groups.iter_mut().map(|(_, totals)| totals);
            if let Some(own) = each.find(|totals| totals.device_flushes > 0) {
                own.device_flushes = own.device_flushes.saturating_sub(others_flushes);
            }
        }
        groups
    }

    /// Returns the calls that count.
    pub fn own_databases(&self) -> Cow<'_, [Database]> {
        if matches!(self.counted, Counted::All | Counted::Undivided) {
            return Cow::Borrowed(self.databases);
        }
        let processes = self.origins.names.processes.iter().zip(&self.own);
        let own = processes.filter(|(_, own)| **own == Some(true));
        let own: HashSet<u32> = own.filter_map(|(process, _)| process.tgid).collect();
        let own = |database: &&Database| own.contains(&database.tgid);
        self.databases.iter().filter(own).cloned().collect()
    }

    /// Returns what the command caused.
    pub fn answer(&self) -> Answer {
        Answer::of(&self.sums(), self.manifest, &self.own_databases())
    }

    /// Returns the tree of everything, be it others'.
    pub fn tree(&self) -> Tree {
        let filesystem = self.manifest.and_then(|m| m.filesystem.as_ref());
        let filesystem = filesystem.map_or("the filesystem", |f| f.kind.as_str());
        let total = self.totals(|_| true);
        let groups = GROUPINGS.map(|by| groups::of(self, by, total, |_| true));
        Tree::of(groups, self.databases, filesystem, false)
    }
}

impl Charges {
    /// Returns the numbers of requests by their sort and the owners of their rows.
    fn requests(&self) -> impl Iterator<Item = ((Sort, &[OwnerKey]), u64)> {
        let alone = self.alone.iter();
        let alone = alone.map(|((sort, owner), n)| ((*sort, std::slice::from_ref(owner)), *n));
        let spanning = self.spanning.iter();
        alone.chain(spanning.map(|((sort, owners), n)| ((*sort, &owners[..]), *n)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::{Names, ProcessId};
    use crate::causes::{Cause, Reason};
    use mostrace_bundle::manifest::Command;

    /// Two waiters share the first flush, one waits alone for the second, and nobody known for the third.
    #[test]
    fn flushes_for_which_others_alone_waited_are_not_counted() {
        let theirs = Verdicts::for_tests(Reason::Hardlink, 5);
        let nobodys = Verdicts::default();
        let mut charging = Charging::default();
        let rows = [Row::default(); 2];
        for (flush, rows, verdicts) in [
            (Some(3), &rows[..], Some(&theirs)),
            (Some(4), &rows[..1], Some(&theirs)),
            (Some(4), &rows[..1], Some(&theirs)),
            (Some(5), &rows[..], Some(&nobodys)),
            (Some(5), &rows[..], None),
            (None, &rows[..], Some(&theirs)),
        ] {
            let request = Request {
                op: Op::Flush,
                device_flush: flush,
                ..Request::default()
            };
            charging.push(&request, rows, verdicts);
        }
        for _ in 0..3 {
            let request = Request {
                op: Op::DeviceFlush,
                ..Request::default()
            };
            charging.push(&request, &rows[..1], None);
        }
        let (known, unknown) = (CauseId(1), CauseId::UNKNOWN);
        let waited = [(3, known), (3, unknown), (4, known), (5, unknown)];
        assert_eq!(charging.of_each[0].flushes, waited);
        let command = Command {
            alone: Some(false),
            ..Command::default()
        };
        let manifest = Manifest {
            command: Some(command),
            ..Manifest::default()
        };
        let flushes = |of_command| {
            let process = Process {
                of_command,
                ..Process::default()
            };
            let names = Names {
                processes: vec![Process::default(), process],
                knows_family: true,
                ..Names::default()
            };
            let cause = Cause {
                process: ProcessId(1),
                ..Cause::default()
            };
            let origins = Origins {
                names,
                causes: vec![Cause::default(), cause],
                ..Origins::default()
            };
            let charged = charging.charged(&origins, Some(&manifest), &[]);
            let groups = charged.groups(&["class"]).groups;
            let of_all: u64 = groups.iter().map(|(_, totals)| totals.device_flushes).sum();
            assert_eq!(of_all, charged.total.device_flushes);
            (charged.total.device_flushes, charged.own_flushes())
        };
        assert_eq!(flushes(Some(false)), (2, 0));
        assert_eq!(flushes(Some(true)), (3, 2));
        assert_eq!(flushes(None), (3, 0));
    }

    #[test]
    fn what_others_wrote_has_sums_of_its_own() {
        let theirs = Verdicts::for_tests(Reason::Hardlink, 5);
        let mut charging = Charging::default();
        let row = Row {
            op: Op::Write,
            bytes: 4096,
            ..Row::default()
        };
        let request = Request {
            op: Op::Write,
            bytes: 4096,
            ..Request::default()
        };
        charging.push(&request, &[row], Some(&theirs));
        let cause = Cause {
            process: ProcessId(1),
            ..Cause::default()
        };
        let origins = |of_command| Origins {
            names: Names {
                processes: vec![
                    Process::default(),
                    Process {
                        of_command,
                        ..Process::default()
                    },
                ],
                knows_family: true,
                ..Names::default()
            },
            causes: vec![Cause::default(), cause],
            ..Origins::default()
        };
        let manifest = Manifest {
            command: Some(Command {
                alone: Some(false),
                ..Command::default()
            }),
            ..Manifest::default()
        };
        let others = |of_command| {
            let origins = origins(of_command);
            let charged = charging.charged(&origins, Some(&manifest), &[]);
            let others = charged.of_others();
            let others = others.map(|sums| sums.who.total.write_bytes);
            (charged.total.write_bytes, others)
        };
        assert_eq!(others(Some(false)), (0, Some(4096)));
        assert_eq!(others(Some(true)), (4096, None));
    }
}

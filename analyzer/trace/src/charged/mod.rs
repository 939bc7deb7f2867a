// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of a recording is charged to its command. Limits, comparisons and figures per transaction all have this one base: everything
//! but what others are known to have caused. What nobody is known to have caused counts, since the command may have caused it.

// A recording may come from anybody: no number in it may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod counted;
mod owners;

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;

use mostrace_map::class::Kind;

use crate::answer::{Answer, Key, Summing, Sums};
use crate::attribute::{FileId, HashMap, Op, ProcessId};
use crate::causes::{CauseId, Verdicts};
use crate::labels::{self, By};
use crate::origins::{Base, Origins};
use crate::pipeline::{Fold, Step};
use crate::reading::Reading;
use crate::sums::{Sort, Totals};
use crate::tally::{Tally, sum};
use crate::transactions::Database;
use crate::tree::Tree;
pub use counted::Counted;

/// Sums up rows by their owners, and counts requests by all owners of their rows.
#[derive(Default)]
pub struct Charging {
    /// One for each recording.
    of_each: Vec<Charges>,
    base: Base,
    /// The owners of the rows of the request at hand.
    owners: Vec<Owner>,
}

/// The sums of one recording.
#[derive(Default)]
struct Charges {
    summing: Summing,
    /// Requests whose rows have one owner.
    alone: HashMap<(Sort, Owner), u64>,
    /// Requests whose rows have several, in order.
    spanning: HashMap<(Sort, Box<[Owner]>), u64>,
    /// The device's flushes, each with the cause of who waited for it; several waiters can share one.
    flushes: Vec<(u32, CauseId)>,
}

/// What the words for a row's owner and its layer depend on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Owner {
    cause: CauseId,
    process: ProcessId,
    file: FileId,
    kind: Option<Kind>,
    home_kind: Option<Kind>,
}

impl Fold for Charging {
    fn begin(&mut self, base: Base) {
        self.base = base;
        let mut charges = Charges::default();
        charges.summing.begin(base);
        self.of_each.push(charges);
    }

    fn step(&mut self, step: &Step<'_, '_>) -> io::Result<()> {
        let Some(charges) = self.of_each.last_mut() else {
            return Ok(());
        };
        charges.summing.step(step)?;
        let base = self.base;
        let mut verdicts = step.verdicts.into_iter().flat_map(Verdicts::iter);
        self.owners.clear();
        for row in step.rows {
            // A request counts where its rows' largest shares are.
            let largest = verdicts.next().and_then(|(_, shares)| shares.first());
            let owner = Owner {
                cause: base.cause(largest.map_or(CauseId::UNKNOWN, |share| share.cause)),
                process: base.process(row.process),
                file: base.file(row.file),
                kind: row.kind,
                home_kind: row.journal.and_then(|journal| journal.home_kind),
            };
            if let Some(flush) = step.request.device_flush {
                let waited = (flush, owner.cause);
                let is_known = charges.flushes.last() == Some(&waited);
                charges.flushes.extend((!is_known).then_some(waited));
            }
            self.owners.push(owner);
        }
        self.owners.sort_unstable();
        self.owners.dedup();
        let sort = Sort::of(&step.request);
        let count = match &self.owners[..] {
            [owner] => charges.alone.entry((sort, *owner)).or_default(),
            several => charges.spanning.entry((sort, several.into())).or_default(),
        };
        count.tally(1);
        Ok(())
    }
}

/// What was read and summed up.
pub struct Charged {
    /// The recording, or several.
    pub reading: Reading,
    /// What of it counts.
    pub counted: Counted,
    /// The sums of what counts.
    pub total: Totals,
    of_each: Vec<Charges>,
    /// Whether a cause's process is the command's; None if that is unknown.
    of_command: Vec<Option<bool>>,
}

impl Charging {
    /// Finds what of the recordings that were read is charged to the command.
    pub fn finish(self, reading: Reading) -> Charged {
        let origins = &reading.origins;
        let of_command = labels::of_processes(origins, By::Cause, |_, process| process.of_command);
        let manifest = reading.manifest.as_ref();
        let undivided = Counted::undivided(manifest, origins.names.knows_family);
        let mut charged = Charged {
            counted: undivided.unwrap_or_default(),
            total: Totals::default(),
            of_each: self.of_each,
            of_command,
            reading,
        };
        if undivided.is_none() {
            charged.counted = charged.divided();
        }
        charged.total = charged.totals(|cause| charged.counts(cause));
        if let Counted::OfCommand { others_flushes, .. } = charged.counted {
            let flushes = &mut charged.total.device_flushes;
            *flushes = flushes.saturating_sub(others_flushes);
        }
        charged
    }
}

impl Charged {
    fn divided(&self) -> Counted {
        let written = |of: Option<bool>| {
            let keys = self.keys().filter(|(key, _)| key.op == Op::Write);
            let theirs = keys.filter(|(key, _)| self.of(key.cause) == of);
            sum(theirs.map(|(_, bytes)| bytes))
        };
        Counted::OfCommand {
            others: written(Some(false)),
            others_flushes: self.others_flushes(),
            unknown: written(None),
        }
    }

    /// Counts the device's flushes for which others waited and nobody else.
    fn others_flushes(&self) -> u64 {
        let of_each = self.of_each.iter().map(|charges| {
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

    /// Returns whether a cause's process is the command's.
    fn of(&self, cause: CauseId) -> Option<bool> {
        self.of_command.get(cause.0 as usize).copied().flatten()
    }

    /// Returns true if what has this cause counts.
    fn counts(&self, cause: CauseId) -> bool {
        !matches!(self.counted, Counted::OfCommand { .. }) || self.of(cause) != Some(false)
    }

    fn keys(&self) -> impl Iterator<Item = (&Key, u64)> {
        self.of_each
            .iter()
            .flat_map(|charges| charges.summing.keys())
    }

    /// Sums up what has a cause that is wanted.
    fn totals(&self, is_wanted: impl Fn(CauseId) -> bool) -> Totals {
        let mut totals = Totals::default();
        for charges in &self.of_each {
            for ((sort, owners), count) in charges.requests() {
                if owners.iter().any(|owner| is_wanted(owner.cause)) {
                    totals.count(sort, count, 0);
                }
            }
        }
        for (key, bytes) in self.keys().filter(|(key, _)| is_wanted(key.cause)) {
            totals.count(Sort::only(key.op), 0, bytes);
        }
        totals
    }

    /// Returns the sums of what counts.
    pub fn sums(&self) -> Sums {
        let keys = self.keys().filter(|(key, _)| self.counts(key.cause));
        Sums::of(keys, &self.reading.origins, self.total)
    }

    /// Returns the sums of what others caused; None if that is nothing.
    pub fn of_others(&self) -> Option<Sums> {
        let Counted::OfCommand { others: 1.., .. } = self.counted else {
            return None;
        };
        let is_theirs = |cause| self.of(cause) == Some(false);
        let keys = self.keys().filter(|(key, _)| is_theirs(key.cause));
        let total = self.totals(is_theirs);
        Some(Sums::of(keys, &self.reading.origins, total))
    }

    /// Returns the calls that count.
    pub fn own_databases(&self) -> Cow<'_, [Database]> {
        let origins = &self.reading.origins;
        self.counted.databases(origins, &self.reading.databases)
    }

    /// Returns what the command caused.
    pub fn answer(&self) -> Answer {
        let manifest = self.reading.manifest.as_ref();
        Answer::of(&self.sums(), manifest, &self.own_databases())
    }

    /// Returns the tree of everything, be it others'.
    pub fn tree(&self) -> Tree {
        let manifest = self.reading.manifest.as_ref();
        let filesystem = manifest.and_then(|m| m.filesystem.as_ref());
        let filesystem = filesystem.map_or("the filesystem", |f| f.kind.as_str());
        Tree::of(
            owners::groups(self),
            &self.reading.databases,
            filesystem,
            false,
        )
    }

    /// Returns the bytes written that count, by kind and file.
    pub fn written(&self) -> impl Iterator<Item = (Option<Kind>, FileId, u64)> {
        let keys = self.keys().filter(|(key, _)| key.op == Op::Write);
        let keys = keys.filter(|(key, _)| self.counts(key.cause));
        keys.map(|(key, bytes)| (key.kind, key.file, bytes))
    }

    fn origins(&self) -> &Origins {
        &self.reading.origins
    }
}

impl Charges {
    /// Returns the numbers of requests by their sort and the owners of their rows.
    fn requests(&self) -> impl Iterator<Item = ((Sort, &[Owner]), u64)> {
        let alone = self.alone.iter();
        let alone = alone.map(|((sort, owner), n)| ((*sort, std::slice::from_ref(owner)), *n));
        let spanning = self.spanning.iter();
        alone.chain(spanning.map(|((sort, owners), n)| ((*sort, &owners[..]), *n)))
    }
}

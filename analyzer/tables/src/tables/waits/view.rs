// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of `analyze --waits`: what calls for durability waited for, summed up.

use std::collections::BTreeMap;
use std::io::Read;

use hdrhistogram::Histogram;
use mostrace_bundle::entry::{CallKind, EntryRef, RawCall};
use mostrace_bundle::table::TableReader;
use polars::prelude::PolarsResult;

use super::{Parts, Wait, Waits};
use crate::facts::Facts;
use crate::tables::call_files::{Error, Files};
use crate::tables::{Table, numbers, texts};
use mostrace_trace::attribute::{File, Task};
use mostrace_trace::tally::{Tally, sum};
use mostrace_trace::text::escape;

/// The columns of the call that its sums can be divided by.
pub const BY: [&str; 4] = ["process", "comm", "file", "role"];

/// Significant digits of a percentile.
const DIGITS: u8 = 2;

/// The calls of a group.
struct Group {
    parts: Parts,
    times: Histogram<u64>,
    /// The number of calls that are not divided.
    undivided: u64,
}

/// Sums of calls by the name of the call and by other columns.
pub struct Sums<'c> {
    by: Vec<&'c str>,
    groups: BTreeMap<Vec<Option<String>>, Group>,
}

impl<'c> Sums<'c> {
    /// Begins sums by these of [`BY`].
    pub fn new(by: Vec<&'c str>) -> Sums<'c> {
        Sums {
            by,
            groups: BTreeMap::new(),
        }
    }

    /// Adds the calls of the recording at index `nth`.
    ///
    /// # Errors
    /// Returns an error if a table or a temporary file cannot be read.
    pub fn add<R: Read>(
        &mut self,
        facts: &Facts,
        nth: usize,
        calls: &mut TableReader<R>,
        mut waits: Waits<'_, R>,
    ) -> Result<(), Error> {
        let all = facts.names().files.iter().enumerate();
        let its = all.filter(|(at, _)| facts.origins.of_file(*at) == nth);
        let files = Files::new(its.map(|(_, file)| file));
        while let Some(entry) = calls.next_if(|_| true)? {
            let EntryRef::Call(raw) = entry else { continue };
            if super::Ask::of(raw).is_some() {
                let labels = self.labels(facts, nth, &files, raw);
                let parts = waits.of(raw)?;
                self.groups.entry(labels).or_default().add(parts);
            }
        }
        Ok(())
    }

    fn labels(
        &self,
        facts: &Facts,
        nth: usize,
        files: &Files<'_>,
        raw: &RawCall,
    ) -> Vec<Option<String>> {
        let file = files.of(raw);
        let call: &str = CallKind::of(raw.kind.get()).into();
        let label = |by: &&str| match *by {
            "process" => {
                let name = facts.called(nth, &Task::from(raw), raw.head.time_ns.get());
                Some(format!("{name}:{}", raw.tgid.get()))
            }
            "comm" => Some(escape(&facts.shown(Task::from(raw).comm()))),
            "file" => match file.and_then(|file| file.path.as_deref()) {
                Some(path) => Some(escape(path)),
                None => Some(raw.ino.get())
                    .filter(|&ino| ino > 0)
                    .map(|ino| format!("inode {ino}")),
            },
            _ => role(file),
        };
        let others = self.by.iter().map(label);
        std::iter::once(Some(call.to_owned()))
            .chain(others)
            .collect()
    }

    /// Returns the table: the groups that waited longest come first, and the last row is for all. Times are in ns.
    ///
    /// # Errors
    /// Returns an error if the table cannot be made.
    pub fn table(self, top: Option<usize>) -> PolarsResult<Table> {
        let mut total = Group::default();
        self.groups.values().for_each(|group| total.join(group));
        let mut groups: Vec<_> = self.groups.into_iter().collect();
        groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.parts.sum()));
        groups.truncate(top.unwrap_or(usize::MAX));
        let names = std::iter::once("call").chain(self.by);
        let mut columns = Vec::new();
        for (at, name) in names.enumerate() {
            let labels = groups
                .iter()
                .map(|(labels, _)| labels.get(at).cloned().flatten());
            let last = (at == 0).then(|| "total".to_owned());
            columns.push(texts(name, labels.chain([last])));
        }
        let rows: Vec<&Group> = groups
            .iter()
            .map(|(_, group)| group)
            .chain([&total])
            .collect();
        let number = |name: &str, value: &dyn Fn(&Group) -> Option<u64>| {
            numbers(name, rows.iter().map(|group| value(group)))
        };
        columns.push(number("calls", &|group| {
            Some(sum([group.times.len(), group.undivided]))
        }));
        columns.push(number("undivided", &|group| Some(group.undivided)));
        columns.push(number("duration_ns", &|group| Some(group.parts.sum())));
        for &wait in Wait::ALL {
            let name = format!("wait_{}_ns", wait.as_str());
            columns.push(number(&name, &|group| Some(group.parts.get(wait))));
        }
        for (name, part) in [
            ("p50_ns", 0.5),
            ("p90_ns", 0.9),
            ("p99_ns", 0.99),
            ("max_ns", 1.0),
        ] {
            columns.push(number(name, &|group| {
                (!group.times.is_empty()).then(|| group.times.value_at_quantile(part))
            }));
        }
        Table::with_total(columns)
    }
}

fn role(file: Option<&File>) -> Option<String> {
    Some(file?.role?.as_str().to_owned())
}

impl Default for Group {
    fn default() -> Group {
        Group {
            parts: Parts::default(),
            times: Histogram::new(DIGITS).expect("2 is among 0 to 5"),
            undivided: 0,
        }
    }
}

impl Group {
    fn add(&mut self, parts: Option<Parts>) {
        match parts {
            Some(parts) => {
                self.parts.tally(parts);
                // A histogram that resizes itself takes any number.
                let _ = self.times.record(parts.sum());
            }
            None => self.undivided.tally(1),
        }
    }

    fn join(&mut self, other: &Group) {
        self.parts.tally(other.parts);
        self.undivided.tally(other.undivided);
        // Both resize themselves.
        let _ = self.times.add(&other.times);
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of a recording is charged to its command. Limits, comparisons and figures per transaction all have this one base: everything
//! but what others are known to have caused. What nobody is known to have caused counts, since the command may have caused it.

use std::borrow::Cow;
use std::collections::HashSet;

use mostrace_bundle::Manifest;
use polars::prelude::col;
use serde_json::{Value, json};

use super::groups::sums_of;
use super::{Grouping, Result, all_summed, for_the_answer, summed};
use crate::facts::{Column, Facts, Filter, Part, Rows};
use mostrace_trace::answer::{self, size};
use mostrace_trace::sums::{Groups, Label};
use mostrace_trace::text::grouped;
use mostrace_trace::transactions::Database;

/// The part of a recording that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counted {
    /// Everything: nobody else used the filesystem, or there was no command.
    #[default]
    All,
    /// Everything, including others', because it is unknown what the command's processes caused.
    Undivided,
    /// Everything but what others caused.
    OfCommand {
        /// Bytes that others wrote, which do not count.
        others: u64,
        /// Flushes of the device for which only others waited, which do not count.
        others_flushes: u64,
        /// Bytes of which nobody is known to have written them, which count.
        unknown: u64,
    },
}

/// The rows that count.
pub struct Charged {
    /// What they are.
    pub counted: Counted,
    filter: Option<Filter>,
}

/// The column that says whether the command caused it.
const OF_COMMAND: &str = "cause_of_command";
const OTHERS: &str = "NOT cause_of_command";
const NOT_OTHERS: &str = "cause_of_command IS NULL OR cause_of_command";

impl Charged {
    /// Finds what counts. Everything does, unless others could write to the command's filesystem.
    ///
    /// # Errors
    /// Returns an error if a temporary file cannot be read.
    pub fn new(facts: &Facts, manifest: Option<&Manifest>) -> Result<Charged> {
        let all = |counted| Charged {
            counted,
            filter: None,
        };
        let command = manifest.and_then(|manifest| manifest.command.as_ref());
        let is_shared = command.is_some_and(|command| command.alone == Some(false));
        let filter = Filter::parse(NOT_OTHERS).ok();
        match filter.filter(|_| facts.names().knows_family) {
            _ if !is_shared => Ok(all(Counted::All)),
            None => Ok(all(Counted::Undivided)),
            filter => {
                let sums = summed(facts, Grouping::by(&[OF_COMMAND]), None)?;
                let bytes = |of: Option<&str>| {
                    let label = |(labels, _): &&(Vec<Label>, _)| {
                        labels.first().and_then(Label::text).as_deref() == of
                    };
                    let group = sums.groups.iter().find(label);
                    group.map_or(0, |(_, totals)| totals.write_bytes)
                };
                let counted = Counted::OfCommand {
                    others: bytes(Some("no")),
                    others_flushes: others_flushes(facts)?,
                    unknown: bytes(None),
                };
                Ok(Charged { counted, filter })
            }
        }
    }

    /// Sums the rows that count by each of the groupings.
    ///
    /// # Errors
    /// Returns an error if a temporary file cannot be read.
    pub fn groups(&self, facts: &Facts, groupings: &[Grouping]) -> Result<Vec<Groups>> {
        let mut all = all_summed(facts, groupings, self.filter.as_ref())?;
        if let Counted::OfCommand { others_flushes, .. } = self.counted {
            for groups in &mut all {
                // The device's own flushes have no class, file or cause, so that they are one group.
                let mut each = groups.groups.iter_mut().map(|(_, totals)| totals);
                let own = each.find(|totals| totals.device_flushes > 0);
                for totals in own.into_iter().chain([&mut groups.total]) {
                    let flushes = &mut totals.device_flushes;
                    *flushes = flushes.saturating_sub(others_flushes);
                }
            }
        }
        Ok(all)
    }

    /// Sums the rows that count by [`answer::GROUPINGS`].
    ///
    /// # Errors
    /// Returns an error if a temporary file cannot be read.
    pub fn for_the_answer(&self, facts: &Facts) -> Result<answer::Sums> {
        let all = self.groups(facts, &answer::GROUPINGS.map(Grouping::of))?;
        Ok(sums_of(all))
    }

    /// Sums what others caused by [`answer::GROUPINGS`]; None if that is nothing.
    ///
    /// # Errors
    /// Returns an error if a temporary file cannot be read.
    pub fn of_others(&self, facts: &Facts) -> Result<Option<answer::Sums>> {
        match self.counted {
            Counted::OfCommand { others: 1.., .. } => {
                let filter = Filter::parse(OTHERS).ok();
                for_the_answer(facts, filter.as_ref()).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Returns the calls that count.
    pub fn databases<'d>(&self, facts: &Facts, all: &'d [Database]) -> Cow<'d, [Database]> {
        if self.filter.is_none() {
            return Cow::Borrowed(all);
        }
        let processes = facts.names().processes.iter();
        let own: HashSet<u32> = processes
            .filter(|process| process.of_command == Some(true))
            .filter_map(|process| process.tgid)
            .collect();
        let own = |database: &&Database| own.contains(&database.tgid);
        all.iter().filter(own).cloned().collect()
    }
}

/// Counts the device's flushes for which others waited and nobody else; several waiters can share one.
fn others_flushes(facts: &Facts) -> Result<u64> {
    let columns = [Column::find(OF_COMMAND), Column::find("device_flush")];
    let columns = columns.into_iter().flatten();
    let columns: Vec<_> = columns.map(|column| column.expr(facts)).collect();
    let (mut others, mut ours) = (HashSet::new(), HashSet::new());
    for rows in facts.view(columns, Part::Any, None, Rows::Whole) {
        let waited = rows?.filter(col("device_flush").is_not_null()).collect()?;
        let of_command = waited.column(OF_COMMAND)?.bool()?.iter();
        for (of, flush) in of_command.zip(waited.column("device_flush")?.i64()?.iter()) {
            match of {
                Some(false) => others.extend(flush),
                _ => ours.extend(flush),
            }
        }
    }
    Ok(others.difference(&ours).count() as u64)
}

impl Counted {
    /// Says what does not count though it was written, and what counts though others may have written it; nothing if all is the
    /// command's.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        let (others, flushes, unknown) = match *self {
            Counted::All => return None,
            Counted::Undivided => {
                let all = "all that was written to the filesystem counts, be it by others: the recording does not tell what the \
                           command's processes caused";
                return Some(all.into());
            }
            Counted::OfCommand {
                others,
                others_flushes,
                unknown,
            } => (others, others_flushes, unknown),
        };
        let many = match flushes {
            1 => "1 flush of the device".to_owned(),
            _ => format!("{} flushes of the device", grouped(flushes)),
        };
        let theirs = match (others, flushes) {
            (0, 0) => None,
            (0, _) => Some(format!("others caused {many}: not counted")),
            (_, 0) => Some(format!("others wrote {}: not counted", size(others as f64))),
            _ => Some(format!(
                "others wrote {} and caused {many}: not counted",
                size(others as f64)
            )),
        };
        let nobodys = || {
            format!(
                "nobody is known who wrote {}: counted",
                size(unknown as f64)
            )
        };
        let all = [theirs, (unknown > 0).then(nobodys)];
        let all: Vec<String> = all.into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Returns the same for programs; null if everything counts.
    #[must_use]
    pub fn value(&self) -> Value {
        match self {
            Counted::All | Counted::Undivided => Value::Null,
            Counted::OfCommand {
                others,
                others_flushes,
                unknown,
            } => json!({
                "others_bytes": others,
                "others_flushes": others_flushes,
                "counted_unknown_bytes": unknown,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_counted_is_said() {
        let divided = |others, others_flushes, unknown| {
            let counted = Counted::OfCommand {
                others,
                others_flushes,
                unknown,
            };
            counted.words().unwrap_or_default()
        };
        assert_eq!(
            divided(2_800_000, 20, 400_000),
            "others wrote 2.8 MB and caused 20 flushes of the device: not counted; nobody is known who wrote 400.0 kB: counted"
        );
        assert_eq!(divided(5000, 0, 0), "others wrote 5.0 kB: not counted");
        assert_eq!(
            divided(0, 1, 0),
            "others caused 1 flush of the device: not counted"
        );
        assert_eq!(
            divided(0, 0, 5000),
            "nobody is known who wrote 5.0 kB: counted"
        );
        assert_eq!(divided(0, 0, 0), "");
        assert_eq!(Counted::All.words(), None);
        let undivided = Counted::Undivided.words().unwrap();
        assert!(undivided.starts_with("all that was written"));
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows that are [charged](mostrace_trace::charged) to a recording's command.

use std::collections::HashSet;

use mostrace_bundle::Manifest;
use polars::prelude::col;

use super::{Grouping, Result, all_summed, summed};
use crate::facts::{Column, Facts, Filter, Part, Rows};
use mostrace_trace::charged::Counted;
use mostrace_trace::sums::{Groups, Label};

/// The rows that count.
pub struct Charged {
    /// What they are.
    pub counted: Counted,
    filter: Option<Filter>,
}

/// The column that says whether the command caused it.
const OF_COMMAND: &str = "cause_of_command";
const NOT_OTHERS: &str = "cause_of_command IS NULL OR cause_of_command";

impl Charged {
    /// Finds what counts.
    ///
    /// # Errors
    /// Returns an error if a temporary file cannot be read.
    pub fn new(facts: &Facts, manifest: Option<&Manifest>) -> Result<Charged> {
        if let Some(counted) = Counted::undivided(manifest, facts.names().knows_family) {
            return Ok(Charged {
                counted,
                filter: None,
            });
        }
        let sums = summed(facts, Grouping::by(&[OF_COMMAND]), None)?;
        let bytes = |of: Option<&str>| {
            let label = |(labels, _): &&(Vec<Label>, _)| {
                labels.first().and_then(Label::text).as_deref() == of
            };
            let group = sums.groups.iter().find(label);
            group.map_or(0, |(_, totals)| totals.write_bytes)
        };
        Ok(Charged {
            counted: Counted::OfCommand {
                others: bytes(Some("no")),
                others_flushes: others_flushes(facts)?,
                unknown: bytes(None),
            },
            filter: Filter::parse(NOT_OTHERS).ok(),
        })
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

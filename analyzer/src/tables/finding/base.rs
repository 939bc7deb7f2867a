// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which bytes count as caused by a process. All parts of a sentence about a process have this one base: its share, its files, its
//! operations, its flushes.

use super::culprits::Bytes;
use super::is_part;
use crate::attribute::{HashMap, SUBMITTER};
use crate::causes::Known;
use crate::tables::{Groups, Label, Totals};
use crate::tally::{Tally, sum};

/// The column of labels by which a row is in the base.
pub(in crate::tables) const KNOWN: &str = "cause_process_known";
/// Bytes that others may have caused too count for a process that caused at least this share of all with a cause, per cent:
/// nobody else is likely to have caused them.
const NEARLY_ALL: u64 = 95;

/// The base of one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tables) enum Base {
    /// All bytes with a cause.
    Likely,
    /// Those whose process is known for certain.
    Certain,
}

impl Base {
    /// Chooses the base for a figure; the groups are by process, operation and [`KNOWN`].
    pub fn of(processes: &Groups, of: Bytes) -> Base {
        let mut sums: HashMap<&str, u64> = HashMap::default();
        for (labels, totals) in &processes.groups {
            if let Some(Label::Text(name)) = labels.first()
                && !name.ends_with(SUBMITTER)
            {
                sums.entry(name).or_default().tally(of(totals));
            }
        }
        let (most, all) = (sums.values().max(), sum(sums.values().copied()));
        match most {
            Some(most) if is_part(*most, all, NEARLY_ALL) => Base::Likely,
            _ => Base::Certain,
        }
    }

    /// Returns true if rows with this label of [`KNOWN`] count.
    pub fn has(self, known: Option<&Label>) -> bool {
        let certain = [Known::Exact, Known::Shared].map(Known::as_str);
        match (self, known) {
            (Base::Likely, _) => true,
            (Base::Certain, Some(Label::Text(known))) => certain.contains(&known.as_str()),
            (Base::Certain, _) => false,
        }
    }

    /// Returns the rows of processes and submitters that count.
    pub fn rows<'g>(self, groups: &'g Groups) -> impl Iterator<Item = Row<'g>> {
        groups.groups.iter().filter_map(move |(labels, totals)| {
            let (known, labels) = labels.split_last()?;
            let (Label::Text(process), labels) = labels.split_first()? else {
                return None;
            };
            // A submitter is no cause: its bytes have none.
            let counts = self.has(Some(known)) || process.ends_with(SUBMITTER);
            counts.then_some(Row {
                process,
                labels,
                totals,
            })
        })
    }
}

/// The sums of a group whose labels begin with the process and end with [`KNOWN`].
#[derive(Clone, Copy)]
pub(in crate::tables) struct Row<'g> {
    pub process: &'g str,
    /// The labels between.
    pub labels: &'g [Label],
    pub totals: &'g Totals,
}

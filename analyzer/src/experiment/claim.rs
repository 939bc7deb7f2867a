// SPDX-License-Identifier: MIT OR Apache-2.0
//! What others have found, and what is expected here.

use std::collections::BTreeMap;

use serde::Deserialize;
use strum::{Display, EnumString};

/// A figure that can be claimed of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Display, EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Figure {
    /// Calls for durability for each transaction.
    Syncs,
    /// Requests that wrote, for each transaction.
    Writes,
    /// Bytes written for each transaction.
    WriteBytes,
    /// Bytes passed to write() for each transaction.
    CalledBytes,
    /// Cache flushes for each transaction.
    Flushes,
    /// Bytes written for each byte stored.
    Amplification,
    /// The journal's part of the bytes written, per cent.
    JournalPercent,
    /// The part of the requests that wrote to the journal, per cent.
    JournalWritesPercent,
    /// The metadata's part of the bytes written.
    MetadataPercent,
    /// That of data, of whatever role.
    DataPercent,
    /// The database's.
    DbPercent,
    /// That of all journaling: the filesystem's, and SQLite's.
    JournalingPercent,
    /// Transactions, or operations, in a second.
    PerSecond,
}

impl Figure {
    /// What it is counted in.
    pub fn unit(self) -> &'static str {
        match self {
            Figure::Syncs => "calls for durability a transaction",
            Figure::Writes => "write requests a transaction",
            Figure::WriteBytes => "bytes written a transaction",
            Figure::CalledBytes => "bytes passed to write() a transaction",
            Figure::Flushes => "cache flushes a transaction",
            Figure::Amplification => "bytes written a byte stored",
            Figure::JournalWritesPercent => "% of write requests",
            Figure::JournalPercent
            | Figure::MetadataPercent
            | Figure::DataPercent
            | Figure::DbPercent
            | Figure::JournalingPercent => "% of bytes written",
            Figure::PerSecond => "transactions a second",
        }
    }
}

/// Whose claim it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Display)]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    /// Others have published it.
    #[default]
    Published,
    /// It is expected here: seen by another tool, or said without a figure.
    Ours,
}

/// What somebody has found.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Whose it is: that of `[[published]]` or of `[[ours]]`.
    #[serde(skip)]
    pub kind: Kind,
    /// Of the cells with these values.
    #[serde(rename = "where", default)]
    pub at: BTreeMap<String, String>,
    /// What.
    pub figure: Figure,
    /// How much of it; for each transaction, where the figure is.
    #[serde(default)]
    pub value: Option<f64>,
    /// Or at least that much.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// Or at most.
    #[serde(default)]
    pub at_most: Option<f64>,
    /// Of a figure for each transaction: what comes once in a run, beside. Ours is told without it.
    #[serde(default)]
    pub besides: f64,
    /// By how much ours may differ and yet agree, per cent of it.
    #[serde(default)]
    pub tolerance_percent: f64,
    /// Divided by the same figure of the cells with these other values: a claim on a ratio.
    #[serde(default)]
    pub to: Option<BTreeMap<String, String>>,
    /// Who says so, and where.
    pub source: String,
    /// Other values of `[fixed]`: the cell is measured with these too, and shows whether what they change is why ours differs.
    #[serde(default)]
    pub control: BTreeMap<String, String>,
    /// What the control cell shows, if its figure agrees.
    #[serde(default)]
    pub why: String,
}

/// Figures are quotients of whole numbers: what differs by less than this is the same.
const ROUNDING: f64 = 1e-9;

impl Claim {
    pub(super) fn agrees(&self, ours: f64) -> bool {
        let slack = |value: f64| value.abs() * self.tolerance_percent / 100.0 + ROUNDING;
        let is = self
            .value
            .is_none_or(|value| (ours - value).abs() <= slack(value));
        let least = self
            .at_least
            .is_none_or(|value| ours >= value - slack(value));
        let most = self
            .at_most
            .is_none_or(|value| ours <= value + slack(value));
        is && least && most
    }

    /// What is wrong with it, if anything is. `fixed` are the values that a control cell can have others of.
    pub(super) fn check(
        &self,
        parameters: &[String],
        fixed: &BTreeMap<String, String>,
    ) -> Result<(), String> {
        let to = self.to.iter().flat_map(BTreeMap::keys);
        if let Some(name) = self.at.keys().chain(to).find(|n| !parameters.contains(n)) {
            return Err(format!("published: `{name}` is no parameter of the matrix"));
        }
        if let Some(name) = self.control.keys().find(|n| !fixed.contains_key(*n)) {
            return Err(format!("published: control: `{name}` is not in [fixed]"));
        }
        if [self.value, self.at_least, self.at_most] == [None; 3] {
            return Err(format!("published: {}: nothing is claimed", self.figure));
        }
        match self.why.is_empty() == self.control.is_empty() {
            true => Ok(()),
            false => Err(
                "published: a reason needs a control cell that shows it, and that a reason".into(),
            ),
        }
    }

    /// In words, as `4`, `at least 11`, `1 and 7 in each run`.
    pub fn words(&self) -> String {
        let number = |n: f64| match n.fract() == 0.0 {
            true => format!("{n:.0}"),
            false => format!("{n}"),
        };
        let parts = [
            ("", self.value),
            ("at least ", self.at_least),
            ("at most ", self.at_most),
        ];
        let parts = parts
            .into_iter()
            .filter_map(|(word, value)| Some(format!("{word}{}", number(value?))));
        let mut words = parts.collect::<Vec<_>>().join(", ");
        if self.besides > 0.0 {
            words.push_str(&format!(" and {} in each run", number(self.besides)));
        }
        words
    }
}

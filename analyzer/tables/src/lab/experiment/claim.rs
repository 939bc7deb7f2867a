// SPDX-License-Identifier: MIT OR Apache-2.0
//! Claims: figures that others have published, or that are expected here.

use std::collections::BTreeMap;

use serde::Deserialize;
use strum::{Display, EnumString};

/// A figure that can be claimed of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Display, EnumString)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Figure {
    /// Calls for durability per transaction.
    Syncs,
    /// Write requests per transaction.
    Writes,
    /// Bytes written per transaction.
    WriteBytes,
    /// Bytes passed to write() per transaction.
    CalledBytes,
    /// Cache flushes per transaction.
    Flushes,
    /// Bytes written per byte stored.
    Amplification,
    /// The journal's share of the bytes written, per cent.
    JournalPercent,
    /// The share of write requests that go to the journal, per cent.
    JournalWritesPercent,
    /// The metadata's share of the bytes written, per cent.
    MetadataPercent,
    /// The share of data of any role, per cent.
    DataPercent,
    /// The database's share, per cent.
    DbPercent,
    /// The share of all journalling, the filesystem's and SQLite's, per cent.
    JournalingPercent,
    /// Transactions, or operations, per second.
    PerSecond,
}

impl Figure {
    /// Returns the figure's unit.
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

/// The origin of a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Display)]
#[strum(serialize_all = "snake_case")]
pub enum Kind {
    /// Others have published it.
    #[default]
    Published,
    /// It is expected here: another tool showed it, or a text says it without a figure.
    Ours,
}

/// A claim about some cells.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// Its origin: it is a claim of `[[published]]` or of `[[ours]]`.
    #[serde(skip)]
    pub kind: Kind,
    /// The values of the cells that it is about.
    #[serde(rename = "where", default)]
    pub at: BTreeMap<String, String>,
    /// The figure.
    pub figure: Figure,
    /// The claimed value; per transaction if the figure is.
    pub value: Option<f64>,
    /// The claimed lower bound.
    pub at_least: Option<f64>,
    /// The claimed upper bound.
    pub at_most: Option<f64>,
    /// An amount that occurs once in each run beside a figure per transaction; it is subtracted from our figure.
    #[serde(default)]
    pub besides: f64,
    /// The difference up to which our figure agrees, per cent of the claimed value.
    #[serde(default)]
    pub tolerance_percent: f64,
    /// If set, the figure is divided by that of the cells with these other values: a claim about a ratio.
    pub to: Option<BTreeMap<String, String>>,
    /// The source of the claim.
    pub source: String,
    /// Other values of `[fixed]`: the control cell with these values shows whether they explain why our figure differs.
    #[serde(default)]
    pub control: BTreeMap<String, String>,
    /// The explanation if the control cell's figure agrees.
    #[serde(default)]
    pub why: String,
}

/// Figures are quotients of whole numbers; smaller relative differences than this are rounding.
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

    /// Returns an error if the claim is invalid. `fixed` are the values that a control cell can change.
    pub(super) fn check(
        &self,
        parameters: &[String],
        fixed: &BTreeMap<String, String>,
    ) -> Result<(), String> {
        let to = self.to.iter().flat_map(BTreeMap::keys);
        if let Some(name) = self.at.keys().chain(to).find(|n| !parameters.contains(n)) {
            return Err(format!(
                "published: `{name}` is not a parameter of the matrix"
            ));
        }
        if let Some(name) = self.control.keys().find(|n| !fixed.contains_key(*n)) {
            return Err(format!("published: control: `{name}` is not in [fixed]"));
        }
        if [self.value, self.at_least, self.at_most] == [None; 3] {
            return Err(format!("published: {}: nothing is claimed", self.figure));
        }
        match self.why.is_empty() == self.control.is_empty() {
            true => Ok(()),
            false => Err("published: `why` and `control` must be given together".into()),
        }
    }

    /// Returns the claim in words, such as `4`, `at least 11`, `1 and 7 in each run`.
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

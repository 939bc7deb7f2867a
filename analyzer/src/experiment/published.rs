// SPDX-License-Identifier: MIT OR Apache-2.0
//! What others have found, held against what was measured.

use std::collections::BTreeMap;

use serde::Deserialize;
use strum::{Display, EnumString};

use super::table::Summary;
use super::{Cell, Definition, Results};

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
    /// The metadata's.
    MetadataPercent,
    /// That of data.
    DataPercent,
    /// The database's.
    DbPercent,
    /// That of all journaling: the filesystem's, and SQLite's.
    JournalingPercent,
    /// Transactions, or operations, in a second.
    PerSecond,
}

/// What somebody has found.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
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
    /// Of a figure for each transaction: what comes once in a run, beside.
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
    /// Why ours may differ.
    #[serde(default)]
    pub why: String,
}

/// A claim on one cell, and what was measured.
#[derive(Clone, Debug)]
pub struct Verdict<'d> {
    /// The claim.
    pub claim: &'d Claim,
    /// The cell.
    pub cell: &'d Cell,
    /// What was measured, in the claim's own terms.
    pub ours: f64,
    /// Whether they agree.
    pub agrees: bool,
}

/// Holds every claim against every cell that it is on and that was measured.
pub fn judge<'d>(definition: &'d Definition, results: &Results) -> Vec<Verdict<'d>> {
    let mut verdicts = Vec::new();
    for claim in &definition.published {
        for cell in definition.cells.iter().filter(|cell| cell.is(&claim.at)) {
            let ours = Summary::of(cell, results)
                .and_then(|own| ours(claim, cell, &own, definition, results));
            if let Some(ours) = ours {
                let agrees = agrees(claim, ours);
                verdicts.push(Verdict {
                    claim,
                    cell,
                    ours,
                    agrees,
                });
            }
        }
    }
    verdicts
}

fn ours(
    claim: &Claim,
    cell: &Cell,
    own: &Summary,
    definition: &Definition,
    results: &Results,
) -> Option<f64> {
    let own = own.figure(claim.figure, claim.besides);
    let Some(to) = &claim.to else {
        return Some(own);
    };
    // The cell that differs from this one in those values alone.
    let mut values: BTreeMap<String, String> = cell.parameters.iter().cloned().collect();
    values.extend(to.clone());
    let other = definition.cells.iter().find(|cell| cell.is(&values))?;
    let other = Summary::of(other, results)?.figure(claim.figure, claim.besides);
    (other > 0.0).then(|| own / other)
}

/// Figures are quotients of whole numbers: what differs by less than this is the same.
const ROUNDING: f64 = 1e-9;

fn agrees(claim: &Claim, ours: f64) -> bool {
    let slack = |value: f64| value.abs() * claim.tolerance_percent / 100.0 + ROUNDING;
    let is = claim
        .value
        .is_none_or(|value| (ours - value).abs() <= slack(value));
    let least = claim
        .at_least
        .is_none_or(|value| ours >= value - slack(value));
    let most = claim
        .at_most
        .is_none_or(|value| ours <= value + slack(value));
    is && least && most
}

impl Claim {
    /// In words, as `4`, `at least 11`.
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
        parts.collect::<Vec<_>>().join(", ")
    }
}

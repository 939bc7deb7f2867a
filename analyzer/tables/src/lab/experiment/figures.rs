// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures of one measurement.

use mostrace_bundle::Manifest;
use serde::{Deserialize, Serialize};

use crate::analysis::{Analysis, Error};
use crate::lab::budget::{Measured, Parts};
use crate::tables::{Grouping, all_summed};
use mostrace_trace::sums::Label;
use mostrace_trace::transactions::{Sure, Transactions};

/// The unit by which figures are divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    /// The transactions, or operations, that the command reports; else SQLite's.
    #[default]
    Transaction,
    /// SQLite's transactions that changed a database, as the calls of the trace show them, whatever the command reports: a
    /// command also makes tables, and its transactions may change nothing.
    Commit,
}

/// The figures of one measurement; all are sums over the recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The transactions, or operations, that the command reported; otherwise, or always with [`Per::Commit`], those of
    /// SQLite that its calls show. 0 if there is neither.
    pub transactions: u64,
    /// The certainty of that number.
    #[serde(default)]
    pub transactions_sure: Sure,
    /// Bytes that the command stored, if it reported them.
    pub payload_bytes: u64,
    /// Bytes passed to write() and similar calls.
    pub called_bytes: u64,
    /// Number of the command's calls for durability.
    pub syncs: u64,
    /// Number of write requests.
    pub writes: u64,
    /// Number of write requests that went to the filesystem's journal; None in older results, which lack it.
    pub journal_writes: Option<u64>,
    /// Bytes written to the device.
    pub write_bytes: u64,
    /// Bytes read from the device.
    pub read_bytes: u64,
    /// Cache flushes that the device executed.
    pub flushes: u64,
    /// Wall time of the command's measured part, ns, if it reported it.
    pub elapsed_ns: u64,
    /// `write_bytes` by class, and for data by role.
    pub layers: Parts,
    /// `write_bytes` by cause: the operation and the role of its file.
    pub causes: Parts,
}

impl Figures {
    /// Computes the figures of a recording. `recorder` is the process that made the recording, whose own calls do not count.
    ///
    /// # Errors
    /// Returns an error if a temporary file or the table of calls cannot be read.
    pub fn of(analysis: &Analysis, recorder: u32, per: Per) -> Result<Figures, Error> {
        let manifest: Option<&Manifest> = analysis.manifest();
        let payload = manifest.and_then(|m| m.payload.as_ref());
        let mut databases = analysis.databases()?;
        databases.retain(|database| database.tgid != recorder);
        let measured = Measured::new(&analysis.facts, manifest, &databases)?;
        let groupings = [&["cause_op", "cause_role"][..], &["class"]].map(Grouping::by);
        let sums = all_summed(&analysis.facts, &groupings, None)?;
        let [groups, classes] = &sums[..] else {
            return Ok(Figures::default());
        };
        let is_journal = |labels: &[Label]| labels[0].text().as_deref() == Some("journal");
        let journal = classes
            .groups
            .iter()
            .filter(|(labels, _)| is_journal(labels));
        let mut causes = Parts::new();
        for (labels, totals) in groups.groups.iter().filter(|(_, t)| t.write_bytes > 0) {
            let words: Vec<String> = labels.iter().filter_map(|label| label.text()).collect();
            let name = match words.is_empty() {
                true => "unknown".to_owned(),
                false => words.join(" "),
            };
            *causes.entry(name).or_default() += totals.write_bytes;
        }
        let transactions = match per {
            Per::Transaction => measured.transactions,
            Per::Commit => Transactions::shown(manifest, &databases),
        };
        Ok(Figures {
            transactions: transactions.least,
            transactions_sure: transactions.sure,
            payload_bytes: measured.payload_bytes.unwrap_or(0),
            called_bytes: measured.called_bytes.unwrap_or(0),
            syncs: databases.iter().map(|d| d.total().syncs).sum(),
            writes: groups.total.writes,
            journal_writes: Some(journal.map(|(_, totals)| totals.writes).sum()),
            write_bytes: measured.write_bytes,
            read_bytes: groups.total.read_bytes,
            flushes: measured.flushes,
            elapsed_ns: payload.map_or(0, |p| p.elapsed_ns),
            layers: measured.layers,
            causes,
        })
    }

    /// Returns the bytes written per transaction; without transactions, all bytes.
    pub fn bytes_per_transaction(&self) -> f64 {
        self.write_bytes as f64 / self.transactions.max(1) as f64
    }

    /// Returns the share of all bytes written that these layers have, per cent. A layer is `journal`, `metadata`, or a role
    /// such as `wal`.
    pub(super) fn percent(&self, layers: &[&str]) -> f64 {
        let bytes: u64 = layers.iter().map(|layer| self.layer(layer)).sum();
        bytes as f64 * 100.0 / self.write_bytes.max(1) as f64
    }

    /// Returns the bytes of a layer, named as in [`Figures::percent`].
    pub(super) fn layer(&self, layer: &str) -> u64 {
        self.layers.get(&name_of(layer)).copied().unwrap_or(0)
    }

    /// Returns the bytes of all other layers.
    pub(super) fn rest(&self, layers: &[&str]) -> u64 {
        let named: Vec<String> = layers.iter().map(|layer| name_of(layer)).collect();
        let others = self.layers.iter().filter(|(name, _)| !named.contains(name));
        others.map(|(_, bytes)| bytes).sum()
    }

    /// Returns the cause of most bytes, with its share in per cent.
    pub(super) fn main_cause(&self) -> Option<(&str, f64)> {
        let largest = self.causes.iter().max_by_key(|(_, bytes)| **bytes);
        let percent = |bytes: u64| bytes as f64 * 100.0 / self.write_bytes.max(1) as f64;
        largest.map(|(name, &bytes)| (name.as_str(), percent(bytes)))
    }
}

/// Returns the name of a layer in [`Figures::layers`].
fn name_of(layer: &str) -> String {
    match layer {
        "journal" => "the filesystem's journal".to_owned(),
        "metadata" => "the filesystem's metadata".to_owned(),
        "unknown" => "unknown".to_owned(),
        role => format!("data: {}", role.replace('_', " ")),
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a trace comes to.

use std::collections::BTreeMap;

use mostrace_bundle::Manifest;

use crate::facts::{Column, Facts};
use crate::tables::{Grouping, Groups, Result};
use crate::tally::{Tally, sum};
use crate::transactions::{Count, Database, Transactions};

/// Bytes written, by name.
pub type Parts = BTreeMap<String, u64>;

/// What a trace comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Bytes of completed writes.
    pub write_bytes: u64,
    /// Cache flushes that the device executed.
    pub flushes: u64,
    /// Transactions that were committed.
    pub transactions: Count,
    /// Bytes that the application stored, if it told.
    pub payload_bytes: Option<u64>,
    /// Bytes passed to write() and the like, where calls were recorded.
    pub called_bytes: Option<u64>,
    /// What the command ended with, if there was one, and it did.
    pub exit_status: Option<i32>,
    /// `write_bytes` by what wrote them: the filesystem's journal, its metadata, or a role of data.
    pub layers: Parts,
    /// `write_bytes` of files' contents, by their paths.
    pub files: Parts,
}

impl Measured {
    /// Of all rows.
    ///
    /// # Errors
    /// A temporary file cannot be read.
    pub fn new(
        facts: &Facts,
        manifest: Option<&Manifest>,
        databases: &[Database],
    ) -> Result<Measured> {
        let by = |names: &[&str]| Grouping {
            by: names.iter().filter_map(|name| Column::find(name)).collect(),
            top: None,
        };
        let groupings = [by(&["class", "role"]), by(&["class", "file"])];
        let sums = Groups::several(facts, &groupings, None)?;
        let [layers, files] = &sums[..] else {
            return Ok(Measured::default());
        };
        let payload = manifest.and_then(|m| m.payload.as_ref());
        // A call is told of with any length.
        let called = sum(databases.iter().map(|d| d.total().bytes));
        let known = |n: u64| Some(n).filter(|&n| n > 0);
        Ok(Measured {
            write_bytes: layers.total.write_bytes,
            flushes: layers.total.device_flushes,
            transactions: Transactions::new(manifest, databases).count,
            payload_bytes: payload.and_then(|p| known(p.payload_bytes)),
            called_bytes: known(called),
            exit_status: manifest
                .and_then(|m| m.command.as_ref())
                .and_then(|command| command.exit_status),
            layers: parts(layers, |class, role| match (class, role) {
                ("data", Some(role)) => Some(format!("data: {}", role.replace('_', " "))),
                ("journal", _) => Some("the filesystem's journal".into()),
                ("metadata", _) => Some("the filesystem's metadata".into()),
                (class, _) => Some(class.into()),
            }),
            files: parts(files, |class, file| {
                file.filter(|_| class == "data").map(Into::into)
            }),
        })
    }
}

/// The bytes written of groups by class and something else, which `name` names, if they are wanted.
fn parts(groups: &Groups, name: impl Fn(&str, Option<&str>) -> Option<String>) -> Parts {
    let mut parts = Parts::new();
    for (labels, totals) in groups.groups.iter().filter(|(_, t)| t.write_bytes > 0) {
        let text = |at: usize| labels.get(at).and_then(|label| label.text());
        let class = text(0).unwrap_or_else(|| "unknown".into());
        if let Some(name) = name(&class, text(1).as_deref()) {
            parts.entry(name).or_default().tally(totals.write_bytes);
        }
    }
    parts
}

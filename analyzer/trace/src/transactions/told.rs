// SPDX-License-Identifier: MIT OR Apache-2.0
//! The final number of a trace's transactions.
//!
//! An application may report how many transactions it committed and how many bytes it stored (`manifest.payload`). That
//! number is used if the calls show no more than these and those that set up a workload's tables. If they show more, others
//! have committed too and have written a part of the bytes: then the number is that of all of SQLite's transactions that the
//! calls show.

use mostrace_bundle::Manifest;
use mostrace_bundle::manifest::Payload;
use serde::Serialize;

use super::count::Count;
use super::databases::{Database, together};

/// Transactions that a workload does not count: those that set up its tables.
const SETTING_UP: u64 = 8;
/// The manifest's names of losses of calls.
const LOSSES: [&str; 3] = ["causes_ring", "causes_tasks", "causes_misses"];

/// The origin of a number of transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The calls on SQLite's databases.
    #[default]
    Calls,
    /// The application's own report.
    Application,
}

/// The transactions to which all bytes of a trace are related.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Transactions {
    /// Their number.
    #[serde(flatten)]
    pub count: Count,
    /// The origin of the number.
    pub source: Source,
    /// Bytes that they stored; None if it is not known for all of them.
    pub payload_bytes: Option<u64>,
}

impl Transactions {
    /// Combines the application's report with what the calls show.
    pub fn new(manifest: Option<&Manifest>, databases: &[Database]) -> Transactions {
        let shown = Transactions::shown(manifest, databases);
        let payload = manifest.and_then(|manifest| manifest.payload.as_ref());
        match payload.filter(|payload| is_all(payload, shown)) {
            Some(payload) => Transactions {
                count: Count::new(payload.transactions, true),
                source: Source::Application,
                payload_bytes: Some(payload.payload_bytes).filter(|&bytes| bytes > 0),
            },
            None => Transactions {
                count: shown,
                ..Transactions::default()
            },
        }
    }

    /// Returns what the calls show, whatever the application reports. If calls were lost or none were recorded, there may be
    /// more.
    pub fn shown(manifest: Option<&Manifest>, databases: &[Database]) -> Count {
        let count = together(databases);
        let is_whole = are_calls_whole(manifest, databases);
        Count::new(count.least, count.is_exact() && is_whole)
    }
}

/// Returns true if calls were recorded and none was lost.
pub fn are_calls_whole(manifest: Option<&Manifest>, databases: &[Database]) -> bool {
    let lost = |manifest: &Manifest| {
        let mut losses = LOSSES.iter().filter_map(|name| manifest.losses.get(*name));
        losses.any(|&lost| lost > 0)
    };
    manifest.is_some_and(|manifest| !lost(manifest)) && !databases.is_empty()
}

fn is_all(payload: &Payload, shown: Count) -> bool {
    let told = payload.transactions;
    let most = told.saturating_add(told / 20).saturating_add(SETTING_UP);
    told > 0 && shown.least <= most
}

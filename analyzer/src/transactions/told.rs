// SPDX-License-Identifier: MIT OR Apache-2.0
//! The one count of a trace's transactions.
//!
//! An application may say of itself how many it committed, and how many bytes it stored (`manifest.payload`). That goes for the
//! trace if the calls show no more than these, and those that make a workload's tables. Where they show more, others have
//! committed too, and what was written is theirs as well: then it is all of SQLite's transactions that the calls show.

use mostrace_bundle::Manifest;
use mostrace_bundle::manifest::Payload;
use serde::Serialize;

use super::count::Count;
use super::databases::{Database, together};

/// Transactions of a workload that it does not count: those that make its tables.
const SETTING_UP: u64 = 8;
/// Losses of calls, by the manifest's names.
const LOSSES: [&str; 2] = ["causes_ring", "causes_tasks"];

/// Whose word a count is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// What the calls show of SQLite's databases.
    #[default]
    Calls,
    /// The application's, of itself.
    Application,
}

/// The transactions that all of a trace's bytes are held against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Transactions {
    /// How many.
    #[serde(flatten)]
    pub count: Count,
    /// Whose word that is.
    pub source: Source,
    /// Bytes that they stored; None where that is not known of all of them.
    pub payload_bytes: Option<u64>,
}

impl Transactions {
    /// By what the application told, and by what the calls show.
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

    /// What the calls show, whatever the application says. Where some were lost, or none were recorded, there may be more.
    pub fn shown(manifest: Option<&Manifest>, databases: &[Database]) -> Count {
        let count = together(databases);
        let is_whole = are_calls_whole(manifest, databases);
        Count::new(count.least, count.is_exact() && is_whole)
    }
}

/// Whether calls were recorded, and none was lost.
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

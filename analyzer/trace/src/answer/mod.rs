// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answer: what a trace shows, in three facts that a person can take in.
//!
//! ```text
//! headline  Each of 1,000 transactions stored 108 B and wrote 30.7 kB: 284 × what was stored, 6.6 × what was passed to write().
//! parts        71 %  ext4's journal, mostly because the WAL grew
//!              28 %  SQLite's WAL
//! last line 1.0 flush per transaction asked for, 1.9 executed. Nothing was lost. The cause is certain for 29 % of the bytes.
//! ```
//!
//! A program's bytes are all that it caused, and what it submitted if no cause is known: in the headline, in the
//! [destinations] and in the tables by `cause_or_submitter`. The last line says how certain that is.

// A recording may come from anybody: no number in it may make this panic.
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects))]

mod asked;
mod beside;
mod certainty;
mod destinations;
mod headline;
mod keys;
mod layers;
mod reason;
mod sums;
mod words;

use mostrace_bundle::Manifest;
use serde::Serialize;

pub use destinations::{Destination, Destinations};
pub use keys::{Key, OwnerKey};
pub use layers::bytes_of_layers;
pub use sums::{Summing, Sums, names_of_owners};
pub use words::{is_part, percent, size, times};

use self::headline::Headline;
use crate::sums::layer;
use crate::transactions::{Database, Transactions};

/// Number of layers that are named, and the least share of each, per cent.
const MOST: usize = 3;
const LEAST: u64 = 1;
/// The most groups by process and file that are kept apart.
const MOST_GROUPS: usize = 1 << 16;

/// The groupings that the answer needs: by layer, role and operation of the cause; by process and file of the cause, and
/// layer; by certainty.
pub const GROUPINGS: [(&[&str], Option<usize>); 3] = [
    (
        &[
            layer::COLUMNS[0],
            layer::COLUMNS[1],
            layer::COLUMNS[2],
            layer::COLUMNS[3],
            "cause_role",
            "cause_op",
        ],
        None,
    ),
    (
        &[
            "cause_or_submitter",
            "cause_or_final_file",
            layer::COLUMNS[0],
            layer::COLUMNS[1],
            layer::COLUMNS[2],
            layer::COLUMNS[3],
        ],
        Some(MOST_GROUPS),
    ),
    (&["cause_known"], None),
];

/// What a trace shows. JSON has it as `finding`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The first line, of at most 120 characters.
    pub headline: String,
    /// The largest layers, and the others; together all bytes written but for what is less than 1 %.
    pub parts: Vec<Part>,
    /// The flushes asked for and executed; None if there were none.
    pub flushes: Option<String>,
    /// What was done beside writing; None if nothing was.
    pub beside: Option<String>,
    /// For how many of the bytes written the cause is certain; None if nothing was written.
    pub certainty: Option<String>,
}

/// A layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Bytes written.
    pub bytes: u64,
    /// The share of all bytes written, per cent, rounded.
    pub percent: u64,
    /// The layer's name.
    pub layer: String,
    /// Why the filesystem wrote it, in everyday words; None if there is no one reason.
    pub because: Option<String>,
}

impl Answer {
    /// Returns the destinations of most bytes: at most `most` of them.
    pub fn destinations(sums: &Sums, manifest: Option<&Manifest>, most: usize) -> Destinations {
        Destinations::of(&sums.who, &filesystem(manifest), most)
    }

    /// Returns the answer.
    pub fn of(sums: &Sums, manifest: Option<&Manifest>, databases: &[Database]) -> Answer {
        let Sums { layers, who, known } = sums;
        let headline = Headline {
            transactions: Transactions::new(manifest, databases),
            payload: manifest.and_then(|m| m.payload.as_ref()),
            passed: asked::of(manifest, databases, layers),
            databases,
            layers,
            who,
        };
        let total = &layers.total;
        Answer {
            headline: headline.words(),
            parts: layers::parts(layers, &filesystem(manifest)),
            flushes: headline.flushes(),
            beside: beside::words(total),
            certainty: certainty::words(known),
        }
    }

    /// Returns the lines for people. `whole` says that nothing was lost and how that is known; without it, what was lost stands
    /// elsewhere.
    pub fn lines(&self, whole: Option<&str>) -> Vec<String> {
        let mut lines = vec![self.headline.clone()];
        let part = |part: &Part| {
            let because = part.because.iter().map(|why| format!(", {why}"));
            let because: String = because.collect();
            format!("{:>5} %  {}{because}", part.percent, part.layer)
        };
        lines.extend(self.parts.iter().map(part));
        lines.extend(self.beside.clone());
        let last = [self.flushes.as_deref(), whole, self.certainty.as_deref()];
        let last: Vec<&str> = last.into_iter().flatten().collect();
        lines.extend((!last.is_empty()).then(|| last.join(" ")));
        lines
    }
}

/// Returns the filesystem's name.
pub fn filesystem(manifest: Option<&Manifest>) -> String {
    let kind = manifest.and_then(|m| m.filesystem.as_ref());
    kind.map_or("the filesystem".into(), |f| {
        crate::text::escape(f.kind.as_bytes())
    })
}

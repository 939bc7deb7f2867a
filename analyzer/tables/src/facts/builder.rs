// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds facts from completions.

use std::io;
use std::sync::OnceLock;

use polars::prelude::PolarsResult;

use super::batches::{Batches, ROOM};
use super::rewrites::{Locality, Rewrites};
use super::{Facts, stored};
use mostrace_trace::attribute::{Request, Row};
use mostrace_trace::causes::Verdicts;
use mostrace_trace::charged::Charging;
use mostrace_trace::origins::{Base, Origins};
use mostrace_trace::pipeline::{Fold, Step, Stretch};

/// Rows of a batch: so many that a batch's fixed cost does not matter.
const BATCH: usize = 1 << 18;

/// Takes completions with their rows, one recording after the other, each in time order.
#[derive(Default)]
pub struct Builder {
    rows: stored::Builder,
    batches: Batches,
    /// Number of rows in a batch.
    batch: usize,
    locality: Option<Locality>,
    charging: Charging,
}

impl Fold for Builder {
    fn begin(&mut self, base: Base) {
        self.rows.base = base;
        self.charging.begin(base);
    }

    fn step(&mut self, step: &Step<'_, '_>) -> io::Result<()> {
        let pushed = self.push(&step.request, step.rows, step.verdicts);
        pushed.map_err(io::Error::other)
    }

    fn end(&mut self, _: &Stretch<'_>) -> io::Result<()> {
        self.end_recording().map_err(io::Error::other)
    }
}

impl Builder {
    /// Makes an empty builder; with `locality`, it tracks which blocks were written before.
    pub fn new(locality: bool) -> Builder {
        Builder::with_batch(locality, BATCH, ROOM)
    }

    /// Makes a builder with `batch` rows in a batch and up to `room` bytes of batches in memory.
    pub(crate) fn with_batch(locality: bool, batch: usize, room: usize) -> Builder {
        Builder {
            batches: Batches::with_room(room),
            batch,
            rows: stored::Builder::new(locality.then(Rewrites::default)),
            ..Builder::default()
        }
    }

    /// Adds a completion, and the causers of each of its rows if causes were asked for.
    ///
    /// # Errors
    /// Returns an error if a temporary file cannot be written.
    pub fn push(
        &mut self,
        request: &Request,
        rows: &[Row],
        verdicts: Option<&Verdicts>,
    ) -> PolarsResult<()> {
        self.rows.push(request, rows, verdicts);
        self.charging.push(request, rows, verdicts);
        if self.rows.len() >= self.batch {
            let (rows, shares) = self.rows.take()?;
            self.batches.push(rows, shares)?;
        }
        Ok(())
    }

    /// Ends a recording. A batch has rows of one recording only. An empty recording makes a batch too, so that there is at least
    /// one.
    fn end_recording(&mut self) -> PolarsResult<()> {
        let (rows, shares) = self.rows.take()?;
        self.batches.push(rows, shares)?;
        if let Some(rewrites) = self.rows.rewrites.take() {
            let locality = rewrites.finish().moved(self.rows.base);
            self.locality.get_or_insert_default().add(locality);
            self.rows.rewrites = Some(Rewrites::default());
        }
        Ok(())
    }

    /// Returns the facts of all recordings that have ended, whose names `origins` are.
    ///
    /// # Errors
    /// Returns an error if a temporary file cannot be written.
    pub fn build(mut self, origins: Origins) -> PolarsResult<Facts> {
        if origins.list.is_empty() {
            self.end_recording()?;
        }
        Ok(Facts {
            batches: self.batches,
            origins,
            requests: self.rows.requests().into(),
            rewrites: self.locality,
            charging: self.charging,
            devices: self.rows.devices,
            transactions: None,
            hidden: None,
            programs: Vec::new(),
            stacks: OnceLock::new(),
        })
    }

    /// Ends the only recording and returns its facts, for tests.
    #[cfg(test)]
    pub(crate) fn finish(
        mut self,
        names: mostrace_trace::attribute::Names,
        causes: Vec<mostrace_trace::causes::Cause>,
    ) -> Facts {
        use mostrace_trace::origins::Origin;
        self.end_recording().unwrap();
        let mut origins = Origins::default();
        origins.push(Origin::default(), names, causes);
        self.build(origins).unwrap()
    }
}

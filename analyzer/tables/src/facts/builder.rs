// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds facts from completions.

use std::sync::OnceLock;

use mostrace_bundle::{Manifest, Packages};
use polars::prelude::PolarsResult;

use super::batches::{Batches, ROOM};
use super::rewrites::{Locality, Rewrites};
use super::{Facts, stored};
use mostrace_trace::attribute::{Loops, Names, Request, Row};
use mostrace_trace::causes::{Cause, Verdicts};
use mostrace_trace::origins::{Origin, Origins};

/// Rows of a batch: so many that a batch's fixed cost does not matter.
const BATCH: usize = 1 << 18;

/// Takes completions with their rows, one recording after the other, each in time order.
#[derive(Default)]
pub struct Builder {
    rows: stored::Builder,
    batches: Batches,
    /// Number of rows in a batch.
    batch: usize,
    /// The recordings that have ended.
    origins: Origins,
    locality: Option<Locality>,
    /// The recording that the rows belong to.
    here: Origin,
    causes: Vec<Cause>,
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

    /// Starts a recording with this name, to which the following rows belong.
    pub fn begin(&mut self, name: &str) {
        self.here.name = name.into();
    }

    /// Returns the number of completions so far.
    pub fn requests(&self) -> u64 {
        self.rows.requests().into()
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
        let span = self.here.span.unwrap_or((request.time_ns, request.time_ns));
        let (first, last) = span;
        self.here.span = Some((first.min(request.time_ns), last.max(request.time_ns)));
        self.rows.push(request, rows, verdicts);
        if self.rows.len() >= self.batch {
            let (rows, shares) = self.rows.take()?;
            self.batches.push(rows, shares)?;
        }
        Ok(())
    }

    /// Sets the causes that the shares of the rows refer to.
    #[must_use]
    pub fn with_causes(mut self, causes: Vec<Cause>) -> Builder {
        self.causes = causes;
        self
    }

    /// Sets the apps of the Android device that was traced.
    #[must_use]
    pub fn with_packages(mut self, packages: Option<Packages>) -> Builder {
        self.here.packages = packages;
        self
    }

    /// Sets the manifest of the bundle.
    #[must_use]
    pub fn with_manifest(mut self, manifest: Option<&Manifest>) -> Builder {
        self.here.manifest = manifest.cloned().map(Box::new);
        self
    }

    /// Sets the loop devices whose backing files lie on the filesystem.
    #[must_use]
    pub fn with_loops(mut self, loops: Loops) -> Builder {
        self.here.loops = loops;
        self
    }

    /// Ends a recording, whose rows refer to `names`. `clock` is one moment in the trace's clock and as Unix time, ns each.
    ///
    /// # Errors
    /// Returns an error if a temporary file cannot be written.
    pub fn end(mut self, names: Names, clock: Option<(u64, u64)>) -> PolarsResult<Builder> {
        // A batch has rows of one recording only. An empty recording makes a batch too, so that there is at least one.
        let (rows, shares) = self.rows.take()?;
        self.batches.push(rows, shares)?;
        if let Some(rewrites) = self.rows.rewrites.take() {
            let locality = rewrites.finish().moved(self.here.base);
            self.locality.get_or_insert_default().add(locality);
            self.rows.rewrites = Some(Rewrites::default());
        }
        let ended = std::mem::take(&mut self.here);
        let causes = std::mem::take(&mut self.causes);
        self.origins.push(Origin { clock, ..ended }, names, causes);
        self.here.base = self.origins.next(self.rows.requests());
        self.rows.base = self.here.base;
        Ok(self)
    }

    /// Returns the facts of all recordings that have ended.
    ///
    /// # Errors
    /// Returns an error if a temporary file cannot be written.
    pub fn build(mut self) -> PolarsResult<Facts> {
        if self.origins.list.is_empty() {
            self = self.end(Names::default(), None)?;
        }
        Ok(Facts {
            batches: self.batches,
            origins: self.origins,
            requests: self.rows.requests().into(),
            rewrites: self.locality,
            devices: self.rows.devices,
            transactions: None,
            hidden: None,
            programs: Vec::new(),
            stacks: OnceLock::new(),
        })
    }

    /// Returns the facts of the only recording: [`end`](Self::end) and then [`build`](Self::build).
    ///
    /// # Errors
    /// Returns an error if a temporary file cannot be written.
    pub fn finish(self, names: Names, clock: Option<(u64, u64)>) -> PolarsResult<Facts> {
        self.end(names, clock)?.build()
    }
}

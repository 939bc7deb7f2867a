// SPDX-License-Identifier: MIT OR Apache-2.0
//! From completions to facts.

use mostrace_bundle::Packages;
use polars::prelude::PolarsResult;

use super::batches::{Batches, ROOM};
use super::rewrites::Rewrites;
use super::{Facts, stored};
use crate::attribute::{Loops, Names, Request, Row};
use crate::causes::{Cause, Verdicts};

/// Rows of a batch: enough that what a batch costs beside its rows does not matter.
const BATCH: usize = 1 << 18;

/// Takes completions with their rows, in the order of time.
#[derive(Default)]
pub struct Builder {
    rows: stored::Builder,
    batches: Batches,
    span: Option<(u64, u64)>,
    /// Rows of a batch.
    batch: usize,
    causes: Vec<Cause>,
    packages: Option<Packages>,
    loops: Loops,
}

impl Builder {
    /// With `locality`, it is followed which blocks were written before.
    pub fn new(locality: bool) -> Builder {
        Builder::with_batch(locality, BATCH, ROOM)
    }

    /// With so many rows in a batch, and so many bytes of batches in memory.
    pub(crate) fn with_batch(locality: bool, batch: usize, room: usize) -> Builder {
        Builder {
            batches: Batches::with_room(room),
            batch,
            rows: stored::Builder::new(locality.then(Rewrites::default)),
            ..Builder::default()
        }
    }

    /// Completions so far.
    pub fn requests(&self) -> u64 {
        self.rows.requests().into()
    }

    /// Adds a completion.
    ///
    /// # Errors
    /// A temporary file cannot be written.
    pub fn push(&mut self, request: &Request, rows: &[Row]) -> PolarsResult<()> {
        self.push_caused(request, rows, None)
    }

    /// Adds a completion, and who caused each of its rows if that was asked for.
    ///
    /// # Errors
    /// A temporary file cannot be written.
    pub fn push_caused(
        &mut self,
        request: &Request,
        rows: &[Row],
        verdicts: Option<&Verdicts>,
    ) -> PolarsResult<()> {
        let (first, last) = self.span.unwrap_or((request.time_ns, request.time_ns));
        self.span = Some((first.min(request.time_ns), last.max(request.time_ns)));
        self.rows.push(request, rows, verdicts);
        if self.rows.len() >= self.batch {
            let (rows, shares) = self.rows.take()?;
            self.batches.push(rows, shares)?;
        }
        Ok(())
    }

    /// What the shares of the rows refer to.
    #[must_use]
    pub fn with_causes(mut self, causes: Vec<Cause>) -> Builder {
        self.causes = causes;
        self
    }

    /// The apps of the Android device that the trace is of.
    #[must_use]
    pub fn with_packages(mut self, packages: Option<Packages>) -> Builder {
        self.packages = packages;
        self
    }

    /// Loop devices whose backing files lie on the filesystem.
    #[must_use]
    pub fn with_loops(mut self, loops: Loops) -> Builder {
        self.loops = loops;
        self
    }

    /// The facts. `clock` is a moment by the trace's clock and by the wall clock, ns.
    ///
    /// # Errors
    /// A temporary file cannot be written.
    pub fn finish(mut self, names: Names, clock: Option<(u64, u64)>) -> PolarsResult<Facts> {
        // The last batch, and the only one of an empty trace.
        let (rows, shares) = self.rows.take()?;
        self.batches.push(rows, shares)?;
        Ok(Facts {
            causes: self.causes,
            batches: self.batches,
            names,
            requests: self.rows.requests().into(),
            rewrites: self.rows.rewrites.take().map(Rewrites::finish),
            devices: self.rows.devices,
            packages: self.packages,
            loops: self.loops,
            clock,
            span: self.span,
            hidden: None,
        })
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a view of each segment.

use std::io;

use mostrace_bundle::entry::RawCall;

use super::sums::Sums;
use super::view::View;
use crate::attribute::Registry;
use crate::origins::Base;
use crate::pipeline::{Fold, Step, Stretch};

/// Calls a function with a view of each segment.
pub struct Views<F> {
    sums: Sums,
    tell: F,
}

impl<F: FnMut(View)> Views<F> {
    /// Makes views for this function.
    pub fn new(tell: F) -> Views<F> {
        Views {
            sums: Sums::default(),
            tell,
        }
    }
}

impl<F: FnMut(View)> Fold for Views<F> {
    fn begin(&mut self, _: Base) {
        self.sums.begin();
    }

    fn call(&mut self, call: &RawCall, registry: &Registry<'_>) {
        self.sums.call(call, registry);
    }

    fn step(&mut self, step: &Step<'_, '_>) -> io::Result<()> {
        self.sums.step(step);
        Ok(())
    }

    fn end(&mut self, segment: &Stretch<'_>) -> io::Result<()> {
        if let Some(manifest) = segment.manifest {
            (self.tell)(self.sums.end(segment, manifest));
        }
        Ok(())
    }
}

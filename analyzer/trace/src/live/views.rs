// SPDX-License-Identifier: MIT OR Apache-2.0
//! Makes a view of each segment.

use std::io::Read;

use mostrace_bundle::entry::RawCall;
use mostrace_bundle::manifest::Manifest;

use super::follow::Fold;
use super::sums::Sums;
use super::view::View;
use crate::attribute::Registry;
use crate::pipeline::{Pipeline, Step};

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
    fn begin_anew(&mut self) {
        self.sums.begin_anew();
    }

    fn call(&mut self, call: &RawCall, registry: &Registry<'_>) {
        self.sums.call(call, registry);
    }

    fn push(&mut self, step: &Step<'_, '_>) {
        self.sums.push(step);
    }

    fn end_segment<R: Read>(
        &mut self,
        manifest: &Manifest,
        pipeline: &Pipeline<'_, R>,
        has_calls: bool,
    ) {
        (self.tell)(self.sums.end_segment(manifest, pipeline, has_calls));
    }
}

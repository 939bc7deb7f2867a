// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bundle that is being written.

use std::path::Path;

use mostrace_bundle::Manifest;

use super::counters::Readings;
use super::output::Output;

/// A bundle that is being written.
pub(super) struct Open {
    pub output: Output,
    pub manifest: Manifest,
    pub readings: Readings,
}

/// Returns the name of a bundle, for messages.
pub(super) fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

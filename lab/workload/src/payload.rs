// SPDX-License-Identifier: MIT OR Apache-2.0
//! Passes a workload's payload to `record`.

use std::io::Write;
use std::path::Path;

use mostrace_bundle::manifest::Payload;
use mostrace_bundle::outfile;

use crate::{Error, Result};

/// Appends the payload as a line of JSON to those of other workloads in the same recording. It is a single write(2), so
/// that lines of workloads that end at the same time stay whole.
///
/// # Errors
///
/// Returns an error if the folder does not exist or is not writable, or if the disk is full.
pub fn write_payload(payload: &Payload, path: &Path) -> Result<()> {
    let mut line = serde_json::to_vec(payload).map_err(|error| Error::io(path)(error.into()))?;
    line.push(b'\n');
    let file = outfile::extend(path);
    file.and_then(|mut file| file.write_all(&line))
        .map_err(Error::io(path))
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a workload tells `record`.

use std::path::Path;

use mostrace_bundle::manifest::Payload;

use crate::{Error, Result};

/// Writes the payload as JSON, whole or not at all: a reader never sees half of it.
///
/// # Errors
///
/// The folder is missing or not writable, or the disk is full.
pub fn write_payload(payload: &Payload, path: &Path) -> Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(Error::io(path))?;
    serde_json::to_writer_pretty(&mut file, payload)
        .map_err(|error| Error::io(path)(error.into()))?;
    file.persist(path)
        .map_err(|error| Error::io(path)(error.error))?;
    Ok(())
}

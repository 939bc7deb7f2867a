// SPDX-License-Identifier: MIT OR Apache-2.0
//! Says which file a verb wrote, and what opens it.

use std::path::{Path, PathBuf};

use crate::{say, shell};

/// Runs a verb that writes to this file, and says so if it did.
///
/// # Errors
/// Returns the verb's error.
pub fn telling(
    file: Option<PathBuf>,
    run: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    run()?;
    if let Some(path) = file {
        tell(&path, opener(&path));
    }
    Ok(())
}

/// Says that a file was written; nothing of the standard output, a pipe or a device.
pub fn tell(path: &Path, how: &str) {
    if path.is_file() || path.is_dir() {
        say(&format!(
            "{}: {how}",
            shell::plain(&path.display().to_string())
        ));
    }
}

/// Returns what opens a file, by the ending of its name.
pub fn opener(path: &Path) -> &'static str {
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("csv") => "open it in a spreadsheet, or with pandas or polars",
        Some("parquet") => "open it with DuckDB, pandas or polars",
        Some("json") => "read it with jq",
        Some("html" | "htm") => "open it in a browser",
        _ => "read it with less",
    }
}

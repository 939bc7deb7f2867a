// SPDX-License-Identifier: MIT OR Apache-2.0
//! Checks that a recording to segments does not overwrite another one.

use std::path::Path;

use mostrace_bundle::{Folder, segments};

use crate::error::{Error, Result};

/// Checks that there is no segment of another recording with the same name.
///
/// # Errors
/// Returns an error if there is such a segment.
pub(super) fn check_free(output: &Path) -> Result<()> {
    let parent = output.parent().unwrap_or(Path::new(""));
    let mut names = Folder::open(parent)?.names()?;
    names.retain(|file| segments::number(output, file).is_some());
    names.sort();
    match names.first() {
        Some(first) => Err(Error::OutputExists(parent.join(first))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_another_recording_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for other in [
            "run.most",
            "run.1.most",
            "run.0001.txt",
            "xrun.0001.most",
            "run.00x1.most",
        ] {
            std::fs::create_dir(at(other)).unwrap();
            check_free(&at("run.most")).unwrap();
        }
        std::fs::create_dir(at("run.0007.most")).unwrap();
        for output in ["run.most", "run.most.tar.zst"] {
            let said = check_free(&at(output)).unwrap_err().to_string();
            assert!(said.contains("run.0007.most: exists already"), "{said}");
        }
    }
}

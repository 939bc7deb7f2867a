// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the segments of a recording are called: `NAME.0001.most`, `NAME.0002.most` and so on, so that they sort.

use std::path::{Path, PathBuf};

use mostrace_bundle::Folder;

use crate::error::{Error, Result};

const ENDINGS: [&str; 2] = [".most.tar.zst", ".most"];

/// NAME and its ending.
fn parts(output: &Path) -> (&str, &'static str) {
    let name = output.file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or_default();
    let ending = ENDINGS.iter().find(|ending| name.ends_with(**ending));
    let ending = ending.copied().unwrap_or_default();
    (&name[..name.len() - ending.len()], ending)
}

/// The place of the segment `number`, from 1 on, of a recording to `output`.
pub fn segment(output: &Path, number: u32) -> PathBuf {
    let (name, ending) = parts(output);
    output.with_file_name(format!("{name}.{number:04}{ending}"))
}

/// That there is no segment of another recording that has the same name.
///
/// # Errors
/// There is one.
pub(super) fn check_free(output: &Path) -> Result<()> {
    let (name, _) = parts(output);
    let parent = output.parent().unwrap_or(Path::new(""));
    let is_segment = |file: &str| {
        let rest = file
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('.'));
        let number = ENDINGS.iter().find_map(|ending| rest?.strip_suffix(ending));
        number.is_some_and(|n| n.len() >= 4 && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let mut names = Folder::open(parent)?.names()?;
    names.retain(|file| is_segment(file));
    names.sort();
    match names.first() {
        Some(first) => Err(Error::OutputExists {
            path: parent.join(first),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_numbered_ahead_of_the_ending() {
        for (output, second) in [
            ("a/run.most", "a/run.0002.most"),
            ("run.x.most.tar.zst", "run.x.0002.most.tar.zst"),
        ] {
            assert_eq!(segment(Path::new(output), 2), Path::new(second));
        }
        assert_eq!(
            segment(Path::new("r.most"), 12345),
            Path::new("r.12345.most")
        );
    }

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

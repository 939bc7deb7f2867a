// SPDX-License-Identifier: MIT OR Apache-2.0
//! Resolves the names of traces on the command line.

use std::path::{Path, PathBuf};

use mostrace_trace::recording::Recording;

/// Expands patterns that the shell left: a name with `*`, `?` or `[…]` stands for the files that it matches, sorted by name,
/// unless a file has that very name. A pattern that matches nothing stays, and is reported as missing when it is opened.
pub fn expand(names: &[PathBuf]) -> Vec<PathBuf> {
    names.iter().flat_map(|name| matches(name)).collect()
}

fn matches(name: &Path) -> Vec<PathBuf> {
    let itself = || vec![name.to_owned()];
    let Some(pattern) = name.to_str().filter(|name| name.contains(['*', '?', '['])) else {
        return itself();
    };
    if name.exists() {
        return itself();
    }
    let found: Vec<PathBuf> = match glob::glob(pattern) {
        Ok(paths) => paths.flatten().collect(),
        Err(_) => Vec::new(),
    };
    if found.is_empty() { itself() } else { found }
}

/// Opens the named traces. Segments that follow one another are one recording.
///
/// # Errors
/// Returns an error if a trace cannot be opened.
pub fn open(names: &[PathBuf], partial: bool) -> anyhow::Result<Vec<Recording>> {
    Ok(Recording::open_all(&expand(names), partial)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_stands_for_what_it_matches_and_anything_else_for_itself() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["b.most", "a.most", "odd[1].most"] {
            std::fs::write(at(name), "").unwrap();
        }
        assert_eq!(
            expand(&[at("?.most"), at("b.most")]),
            [at("a.most"), at("b.most"), at("b.most")]
        );
        for itself in ["odd[1].most", "none*.most", "[.most", "none.most"] {
            assert_eq!(expand(&[at(itself)]), [at(itself)]);
        }
    }
}

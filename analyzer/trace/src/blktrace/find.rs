// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the files of a trace by the name that the user gave.

use super::error::Error;
use std::path::{Path, PathBuf};

/// Finds the files of a trace by its basename or by one of them.
///
/// `x` stands for every `x.blktrace.N` beside it, in the order of N; numbers may be missing, because CPUs can be offline.
/// `x.blktrace.3` stands for `x`: one CPU's file alone lacks what happened to its requests on other CPUs. Any other file
/// name is that file alone (`blkparse -d` writes such files). To read only some CPUs, give the paths to
/// [`super::Trace::open`].
///
/// # Errors
/// Returns an error if there is no such file or its directory cannot be read.
pub fn find(basename: &Path) -> Result<Vec<PathBuf>, Error> {
    let not_found = || Error::NotFound(basename.to_owned());
    let name = basename
        .file_name()
        .ok_or_else(not_found)?
        .to_string_lossy();
    let stem = cpu_of(&name).map_or(&*name, |(stem, _)| stem);
    let folder = match basename.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut found = Vec::new();
    for entry in folder.read_dir().map_err(|e| Error::io(folder, e))? {
        let entry = entry.map_err(|e| Error::io(folder, e))?.file_name();
        if let Some((s, cpu)) = entry.to_str().and_then(cpu_of)
            && s == stem
        {
            found.push((cpu, basename.with_file_name(&entry)));
        }
    }
    found.sort();
    match found.is_empty() {
        false => Ok(found.into_iter().map(|(_, path)| path).collect()),
        true if basename.is_file() => Ok(vec![basename.to_owned()]),
        true => Err(not_found()),
    }
}

/// Returns the name of the trace that a CPU's file belongs to: `x` for `x.blktrace.3`, and any other name itself.
#[must_use]
pub fn stem(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match cpu_of(&name) {
        Some((stem, _)) => path.with_file_name(stem),
        None => path.to_owned(),
    }
}

/// Splits `x.blktrace.3` into (`x`, 3).
fn cpu_of(name: &str) -> Option<(&str, u32)> {
    let (stem, cpu) = name.rsplit_once(".blktrace.")?;
    Some((stem, cpu.parse().ok()?))
}

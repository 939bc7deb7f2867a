// SPDX-License-Identifier: MIT OR Apache-2.0
//! From what the user named to the files of a trace.

use super::error::Error;
use std::path::{Path, PathBuf};

/// The files of a trace, by its basename or by one of them.
///
/// `x` stands for every `x.blktrace.N` beside it, in the order of N; gaps are allowed, since CPUs
/// can be offline. `x.blktrace.3` stands for `x`: one CPU's file alone lacks what happened to its
/// requests on the others. Any other name of a file is that file alone (`blkparse -d` writes such
/// ones). To read less than all CPUs, give the paths to [`super::Trace::open`].
///
/// # Errors
/// If there is no such file, or its folder cannot be read.
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

/// `x.blktrace.3` as (`x`, 3).
fn cpu_of(name: &str) -> Option<(&str, u32)> {
    let (stem, cpu) = name.rsplit_once(".blktrace.")?;
    Some((stem, cpu.parse().ok()?))
}

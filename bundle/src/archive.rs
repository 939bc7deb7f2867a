// SPDX-License-Identifier: MIT OR Apache-2.0
//! A bundle on the move: the same files as one `.tar.zst`.
//!
//! An archive may come from a stranger, so unpacking writes regular files of known
//! names into a folder of its own, and no more than a bound.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use tempfile::TempDir;

use crate::error::{At, Error};
use crate::layout;

/// The most that an archive may unpack to, bytes.
pub const UNPACK_LIMIT: u64 = 64 << 30;

/// Packs the folder `from` into `to`.
///
/// # Errors
/// A file cannot be read, or `to` cannot be written.
pub fn pack(from: &Path, to: &Path) -> Result<(), Error> {
    let out = zstd::Encoder::new(File::create(to).at(to)?, 10).at(to)?;
    let mut tar = tar::Builder::new(out);
    let mut names: Vec<String> = known_files(from)?;
    // The manifest first: it can be shown before the rest has arrived.
    names.sort_by_key(|n| (n != layout::MANIFEST, n.clone()));
    for name in names {
        let path = from.join(&name);
        let mut file = File::open(&path).at(&path)?;
        tar.append_file(&name, &mut file).at(to)?;
    }
    tar.into_inner()
        .and_then(zstd::Encoder::finish)
        .and_then(|f| f.sync_all())
        .at(to)
}

/// Unpacks an archive into a temporary folder.
///
/// # Errors
/// Not an archive, damaged, or larger than [`UNPACK_LIMIT`].
pub fn unpack(from: &Path) -> Result<TempDir, Error> {
    let input = File::open(from).at(from)?;
    let zstd = zstd::Decoder::new(BufReader::new(input)).at(from)?;
    let mut tar = tar::Archive::new(zstd.take(UNPACK_LIMIT));
    let dir = TempDir::with_prefix("mostrace-").at(&std::env::temp_dir())?;
    for member in tar.entries().map_err(|e| damaged(from, &e))? {
        let mut member = member.map_err(|e| damaged(from, &e))?;
        let Some(name) = known_name(&member) else {
            continue;
        };
        let path = dir.path().join(name);
        let mut out = File::options()
            .write(true)
            .create_new(true)
            .open(&path)
            .at(&path)?;
        io::copy(&mut member, &mut out).map_err(|e| damaged(from, &e))?;
    }
    Ok(dir)
}

/// The last component of a regular member's path, if it is a bundle's.
fn known_name<R: Read>(member: &tar::Entry<'_, R>) -> Option<String> {
    if !member.header().entry_type().is_file() {
        return None;
    }
    let path = member.path().ok()?;
    let name = path.file_name()?.to_str()?;
    layout::is_known(name).then(|| name.to_owned())
}

/// The names of a bundle's files in `dir`.
fn known_files(dir: &Path) -> Result<Vec<String>, Error> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).at(dir)? {
        if let Ok(name) = entry.at(dir)?.file_name().into_string()
            && layout::is_known(&name)
        {
            names.push(name);
        }
    }
    Ok(names)
}

fn damaged(path: &Path, e: &io::Error) -> Error {
    Error::corrupt(path, format!("damaged archive: {e}"))
}

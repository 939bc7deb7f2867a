// SPDX-License-Identifier: MIT OR Apache-2.0
//! The identity of a recording: a hash of its contents, which is the same for a folder, its archive and a copy with another name.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use mostrace_bundle::{Bundle, Shortfall};

use crate::facts::Key;
use mostrace_trace::blktrace;
use mostrace_trace::recording::Recording;

/// The context of the hash, which stands for the rule; another rule would need another text.
const CONTEXT: &str = "mostrace 2026-11-25 recording, by names and contents of its files";
/// Hexadecimal digits of an identity: 128 bits.
const DIGITS: usize = 32;

/// A file of the recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The files of a bundle cannot be listed.
    #[error(transparent)]
    Bundle(#[from] mostrace_bundle::Error),
    /// Parts of the bundle are missing: the recording as a whole would be taken for another one.
    #[error("{}: {lacks}: a part of a recording has no identity (--partial takes it for a recording of its own)", path.display())]
    Part {
        /// The bundle.
        path: PathBuf,
        /// What is missing.
        lacks: Shortfall,
    },
    /// The event files without a bundle cannot be found.
    #[error(transparent)]
    Events(#[from] blktrace::Error),
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Returns the identity of a recording; with a key, a hash of it that nobody can compute from the recording without the key.
///
/// # Errors
/// Returns an error if a file cannot be read, or, unless it is `partial`, if a part of a bundle is missing.
pub fn identity(recording: &Recording, key: Option<&Key>, partial: bool) -> Result<String, Error> {
    if !partial {
        recording.bundles().iter().try_for_each(check_whole)?;
    }
    let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
    for (name, path) in files(recording)? {
        add(&mut hasher, &name, &path).map_err(|source| Error::Io { path, source })?;
    }
    let own = hasher.finalize();
    let shown = match key {
        Some(key) => blake3::keyed_hash(key, own.as_bytes()),
        None => own,
    };
    Ok(shown.to_hex()[..DIGITS].to_owned())
}

fn check_whole(bundle: &Bundle) -> Result<(), Error> {
    match bundle.shortfalls().into_iter().next() {
        Some(lacks) => Err(Error::Part {
            path: bundle.path().to_owned(),
            lacks,
        }),
        None => Ok(()),
    }
}

/// Returns the names and paths of a recording's files: those of each segment, by name.
fn files(recording: &Recording) -> Result<Vec<(String, PathBuf)>, Error> {
    let mut all = Vec::new();
    for bundle in recording.bundles() {
        all.extend(bundle.files()?);
    }
    if recording.bundles().is_empty() {
        // Their names are the user's, so that only their order counts.
        let found = blktrace::find(recording.path())?.into_iter();
        all.extend(found.map(|path| (String::new(), path)));
    }
    Ok(all)
}

/// Adds a file, with the lengths of its name and contents ahead, so that no two lists of files are the same bytes.
fn add(hasher: &mut blake3::Hasher, name: &str, path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    for number in [name.len() as u64, length] {
        hasher.update(&number.to_le_bytes());
    }
    hasher.update(name.as_bytes());
    // A file that is still growing is read as far as its length says.
    hasher.update_reader(file.take(length))?;
    Ok(())
}

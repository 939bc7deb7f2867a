// SPDX-License-Identifier: MIT OR Apache-2.0
//! Handling of an existing database before a run: it is used, removed or refused.

use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::{Choice, Error, Existing, Op, Result, Settings};

/// Returns true if the database is to be made. A file in its place is removed or refused, as the settings say.
pub(crate) fn make_way(path: &Path, settings: &Settings) -> Result<bool> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return may_make(path, settings);
        }
        Err(cause) => {
            return Err(Error::Io {
                path: path.to_owned(),
                cause,
            });
        }
    };
    match (settings.op, settings.existing) {
        (Op::Update | Op::Delete, _) | (_, Existing::Keep) => Ok(false),
        (_, Existing::Refuse) => Err(Error::Exists(path.to_owned())),
        (_, Existing::Overwrite) => {
            if !metadata.is_file() || !is_database(path)? {
                return Err(Error::NotDatabase(path.to_owned()));
            }
            remove(path)?;
            Ok(true)
        }
    }
}

/// Handles the case that there is no file. For insertions that is right, if the folder exists; SQLite's own message
/// would not say which part of the path is missing.
fn may_make(path: &Path, settings: &Settings) -> Result<bool> {
    if settings.op != Op::Insert {
        let op = settings.op.name();
        return Err(Error::TooFewRows {
            path: path.to_owned(),
            op,
            have: 0,
            need: settings.rows().max(1),
        });
    }
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    fs::metadata(folder).map_err(Error::io(folder))?;
    Ok(true)
}

/// Returns true if the file is an SQLite database; an empty file is one too.
fn is_database(path: &Path) -> Result<bool> {
    const MAGIC: &[u8; 16] = b"SQLite format 3\0";
    let mut start = Vec::new();
    let file = fs::File::open(path).map_err(Error::io(path))?;
    file.take(16)
        .read_to_end(&mut start)
        .map_err(Error::io(path))?;
    Ok(start.is_empty() || start == MAGIC)
}

/// Removes a database and its journals. A journal left by an earlier database would be rolled back into the new one.
pub(crate) fn remove(path: &Path) -> Result<()> {
    for suffix in ["-journal", "-wal", "-shm", ""] {
        let mut name = OsString::from(path);
        name.push(suffix);
        let file = PathBuf::from(name);
        match fs::remove_file(&file) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::io(&file)(error));
            }
            _ => {}
        }
    }
    Ok(())
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is there before a run: used, removed or refused.

use std::ffi::OsString;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::{Choice, Error, Existing, Op, Result, Settings};

/// Whether the database is to be made; what stands in its way is removed or refused.
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

/// Nothing is there: fine for insertions, if there is a folder to put it in (SQLite's message would not say which
/// part of the path is missing).
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

/// An empty file is a database too.
fn is_database(path: &Path) -> Result<bool> {
    const MAGIC: &[u8; 16] = b"SQLite format 3\0";
    let mut start = Vec::new();
    let file = fs::File::open(path).map_err(Error::io(path))?;
    file.take(16)
        .read_to_end(&mut start)
        .map_err(Error::io(path))?;
    Ok(start.is_empty() || start == MAGIC)
}

/// A journal left by an earlier database would be rolled back into the new one, so it goes too.
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

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The files that existed before the application began, inferred from its calls' results: if the first call that names
//! a path succeeded, the path existed and had at least the bytes that were read from it.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::files::below;
use crate::{Error, Result};
use mostrace_replay::mobigen::{Line, ScriptCall as Call};

/// A path as the first call found it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Found {
    there: bool,
    folder: bool,
    bytes: u64,
}

/// Makes these files below `root`, ordered by name, so that a folder comes before its contents. A path that cannot be
/// made is skipped; the calls' results show it.
///
/// # Errors
/// Returns an error if the disk is full or refuses the operation.
pub(super) fn make(root: &Path, lines: &[Line]) -> Result<()> {
    let found = found(root, lines);
    let folders = found.keys().filter_map(|path| path.parent());
    for folder in folders.filter(|folder| folder.starts_with(root)) {
        fs::create_dir_all(folder).map_err(Error::io(folder))?;
    }
    for (path, found) in found.iter().filter(|(_, found)| found.there) {
        make_one(path, *found).map_err(Error::io(path))?;
    }
    Ok(())
}

fn make_one(path: &Path, found: Found) -> io::Result<()> {
    if path.is_dir() || found.folder {
        return fs::create_dir_all(path);
    }
    let mut file = File::create(path)?;
    io::copy(&mut io::repeat(0xa5).take(found.bytes), &mut file).map(drop)
}

/// Returns every path that is named in quotes.
fn found(root: &Path, lines: &[Line]) -> BTreeMap<PathBuf, Found> {
    let mut in_time: Vec<&Line> = lines.iter().collect();
    in_time.sort_by_key(|line| line.at);
    let mut all: BTreeMap<PathBuf, Found> = BTreeMap::new();
    let mut reads: HashMap<i64, (PathBuf, u64)> = HashMap::new();
    for line in in_time {
        match &line.call {
            Call::Open { path, flags } if path.starts_with('"') => {
                let path = below(root, path);
                let found = Found {
                    there: !line.failed() && !flags.writes && !flags.creates,
                    folder: flags.directory,
                    bytes: 0,
                };
                let known = all.entry(path.clone()).or_insert(found);
                known.folder |= flags.directory;
                if let Some(descriptor) = line.result.filter(|_| !line.failed()) {
                    reads.insert(descriptor, (path, 0));
                }
            }
            Call::Open { .. } => drop(line.result.and_then(|number| reads.remove(&number))),
            Call::Close(descriptor) => drop(reads.remove(descriptor)),
            Call::Read { descriptor, offset } => {
                let bytes = u64::try_from(line.bytes()).unwrap_or_default();
                if let Some((path, position)) = reads.get_mut(descriptor) {
                    let end = offset.unwrap_or(*position).saturating_add(bytes);
                    if offset.is_none() {
                        *position = end;
                    }
                    let known = all.entry(path.clone()).or_default();
                    known.bytes = known.bytes.max(end);
                }
            }
            Call::Access(path) | Call::Stat(path) | Call::Lstat(path) | Call::Unlink(path) => {
                let there = line.result == Some(0);
                let found = Found {
                    there,
                    ..Found::default()
                };
                all.entry(below(root, path)).or_insert(found);
            }
            _ => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use mostrace_replay::mobigen::parse;

    #[test]
    fn what_the_first_call_found_was_there() {
        let text = "1 0 access \"/data/a\" 0\n1 1 unlink \"/data/a\" 0\n1 2 access \"/data/a\" -1\n\
                    1 3 stat64 \"/data/b\" -1\n2 1 open \"/data/c\" O_RDONLY 5\n2 2 read 5 100\n2 3 read 5 20\n\
                    2 4 pread 5 30 4\n2 5 close 5 0\n2 6 open \"/data\" O_RDONLY|O_DIRECTORY 5\n\
                    2 7 open \"/data/d\" O_RDONLY|O_CREAT|O_EXCL 6\n";
        let root = tempfile::tempdir().unwrap();
        let lines = parse(Path::new("s"), text).unwrap();
        make(root.path(), &lines).unwrap();
        let length = |name: &str| fs::metadata(root.path().join(name)).map(|meta| meta.len());
        assert_eq!(length("data/a").unwrap(), 0);
        assert_eq!(length("data/c").unwrap(), 120);
        assert!(root.path().join("data").is_dir());
        assert!(length("data/b").is_err() && length("data/d").is_err());
    }
}

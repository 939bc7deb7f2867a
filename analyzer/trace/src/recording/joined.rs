// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files that follow one another, read as one.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Files, each with the byte offset from which it is read. A file is opened when the one before has ended, so that any
/// number of files needs one descriptor.
#[derive(Debug, Default)]
pub struct Joined {
    waiting: VecDeque<(PathBuf, u64)>,
    /// The file that is read, and the offset of what comes next.
    current: Option<(Arc<File>, u64)>,
}

impl From<Arc<File>> for Joined {
    /// Reads one file from its start, whoever else reads it.
    fn from(file: Arc<File>) -> Joined {
        Joined {
            current: Some((file, 0)),
            ..Joined::default()
        }
    }
}

impl Joined {
    /// Joins these files in this order. The first one is opened at once, so that a missing file is noticed before anything
    /// is read.
    pub fn open(files: impl IntoIterator<Item = (PathBuf, u64)>) -> io::Result<Joined> {
        let mut joined = Joined {
            waiting: files.into_iter().collect(),
            current: None,
        };
        joined.turn()?;
        Ok(joined)
    }

    /// Opens the next file; returns false if there is none.
    fn turn(&mut self) -> io::Result<bool> {
        self.current = None;
        let Some((path, from)) = self.waiting.pop_front() else {
            return Ok(false);
        };
        self.current = Some((Arc::new(File::open(path)?), from));
        Ok(true)
    }
}

impl Read for Joined {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while let Some((file, at)) = &mut self.current {
            match file.read_at(buf, *at)? {
                0 if !buf.is_empty() => {
                    self.turn()?;
                }
                n => {
                    *at = at.saturating_add(n as u64);
                    return Ok(n);
                }
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_read_from_its_own_place_on() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str, from| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            (path, from)
        };
        let files = [
            file("a", "one ", 0),
            file("b", "", 0),
            file("c", "one two ", 4),
            file("d", "three", 0),
            file("e", "gone", 9),
        ];
        let mut text = String::new();
        let mut joined = Joined::open(files).unwrap();
        joined.read_to_string(&mut text).unwrap();
        assert_eq!(text, "one two three");
        assert_eq!(joined.read(&mut [0; 4]).unwrap(), 0);
        assert!(Joined::open([(dir.path().join("none"), 0)]).is_err());
    }
}

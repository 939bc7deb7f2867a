// SPDX-License-Identifier: MIT OR Apache-2.0
//! The lines of a text, in bounded memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::seen::{LineReader, Reader, Taker};
use super::{Error, Rest};

/// The longest line that is kept; no event is as long, but the scripts of a page are.
const LONGEST: u64 = 64 << 10;

pub(super) struct Lines<R> {
    text: BufReader<R>,
    line: Vec<u8>,
    number: u64,
}

/// A line without its end.
pub(super) struct Line<'a> {
    pub text: &'a [u8],
    /// Counted from 1.
    pub number: u64,
    /// False if the text ends within the line.
    pub is_ended: bool,
}

impl Lines<File> {
    pub fn open(path: &Path) -> io::Result<Lines<File>> {
        Ok(Lines::of(File::open(path)?))
    }
}

impl<R: Read> Lines<R> {
    pub fn of(text: R) -> Lines<R> {
        Lines {
            text: BufReader::with_capacity(256 << 10, text),
            line: Vec::new(),
            number: 0,
        }
    }

    /// Passes all lines to the reader of their format. The text is that of the file at `path`.
    pub fn read(
        mut self,
        path: &Path,
        reader: &mut dyn LineReader,
        to: &mut dyn Taker,
        rest: &mut Rest,
    ) -> Result<(), Error> {
        let failed = |source| Error::Io {
            path: path.to_owned(),
            source,
        };
        let mut in_page = false;
        while let Some(line) = self.next().map_err(failed)? {
            in_page |= line.number == 1 && is_page(line.text);
            // Pages of old versions have the text as a string of a script.
            let text = line.text.strip_suffix(b"\\n\\").unwrap_or(line.text);
            match reader.line(text, to) {
                Ok(true) => {}
                Ok(false) if in_page => {}
                Ok(false) => rest.strange = rest.strange.saturating_add(1),
                Err(_) if !line.is_ended => rest.cut.push(path.to_owned()),
                Err(what) => {
                    return Err(Error::Line {
                        path: path.to_owned(),
                        line: line.number,
                        what,
                    });
                }
            }
        }
        Ok(())
    }

    /// Reads the next line. What is beyond the length that is kept is skipped.
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.line.clear();
        let read = (&mut self.text)
            .take(LONGEST)
            .read_until(b'\n', &mut self.line)?;
        if read == 0 {
            return Ok(None);
        }
        self.number = self.number.saturating_add(1);
        let mut is_ended = self.line.ends_with(b"\n");
        if !is_ended && self.line.len() as u64 == LONGEST {
            is_ended = self.text.skip_until(b'\n')? > 0;
        }
        Ok(Some(Line {
            text: self.line.trim_ascii_end(),
            number: self.number,
            is_ended,
        }))
    }
}

/// Returns true if a page begins with the line.
pub(super) fn is_page(line: &[u8]) -> bool {
    let begins = |with: &[u8]| {
        line.get(..with.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(with))
    };
    begins(b"<!doctype html") || begins(b"<html")
}

impl<L: LineReader> Reader for L {
    fn file(&mut self, path: &Path, to: &mut dyn Taker, rest: &mut Rest) -> Result<(), Error> {
        let lines = Lines::open(path).map_err(|source| Error::Io {
            path: path.to_owned(),
            source,
        })?;
        lines.read(path, self, to, rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_and_counted_as_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let long = vec![b'x'; 200_000];
        let text = [&b"one\r\n\n"[..], &long, b"\nlast"].concat();
        std::fs::write(&path, text).unwrap();
        let mut lines = Lines::open(&path).unwrap();
        let mut seen = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            seen.push((line.text.len(), line.number, line.is_ended));
        }
        assert_eq!(
            seen,
            [(3, 1, true), (0, 2, true), (65536, 3, true), (4, 4, false)]
        );
    }
}

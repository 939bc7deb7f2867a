// SPDX-License-Identifier: MIT OR Apache-2.0
//! The destination of an answer or a table: a file or the standard output.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use mostrace_bundle::outfile;
use rustix::termios::tcgetwinsize;
use serde_json::Value;

use crate::text;

/// An output could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The system reported an error.
    #[error("{name}: {source}")]
    Io {
        /// The file, or `standard output`.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The format's writer failed.
    #[error("{name}: {what}")]
    Format {
        /// The file, or `standard output`.
        name: String,
        /// Its message.
        what: String,
    },
}

/// A file or the standard output. It remembers the system's error, which a format's writer may lose. A new file that was not
/// written completely is removed, because a part of a table looks like the whole.
pub struct Output {
    name: String,
    /// The file, if it did not exist before.
    made: Option<(PathBuf, File)>,
    /// True if everything was written.
    is_whole: bool,
    inner: BufWriter<Box<dyn Write + Send>>,
    terminal: bool,
    failed: Option<io::Error>,
}

impl Output {
    /// Creates the file; None or `-` is the standard output.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created.
    pub fn create(path: Option<&Path>) -> Result<Output, WriteError> {
        let mut made = None;
        let (name, inner, terminal): (_, Box<dyn Write + Send>, _) = match path {
            Some(path) if path != Path::new("-") => {
                let name = path.display().to_string();
                let is_new = path.symlink_metadata().is_err();
                let opened = outfile::create(path);
                let opened = opened.and_then(|file| Ok((file.try_clone()?, file)));
                match opened {
                    Ok((file, same)) => {
                        made = is_new.then(|| (path.to_owned(), same));
                        (name, Box::new(file), false)
                    }
                    Err(source) => return Err(WriteError::Io { name, source }),
                }
            }
            _ => {
                let stdout = io::stdout();
                let terminal = stdout.is_terminal();
                ("standard output".into(), Box::new(stdout), terminal)
            }
        };
        let inner = BufWriter::with_capacity(1 << 16, inner);
        Ok(Output {
            name,
            made,
            is_whole: false,
            inner,
            terminal,
            failed: None,
        })
    }

    /// Returns true if the output is a terminal.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Returns the characters in a line of the terminal; None for other outputs.
    pub fn width(&self) -> Option<usize> {
        let size = self.terminal.then(|| tcgetwinsize(io::stdout()).ok());
        size.flatten()
            .map(|size| usize::from(size.ws_col))
            // A terminal without a size, such as a pseudo-terminal of a program, has no limit.
            .filter(|width| *width > 0)
    }

    /// Writes lines for people, in which [deceptive](text::is_deceptive) characters are escaped.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    pub fn text(&mut self, text: &str) -> Result<(), WriteError> {
        self.page(&text::harmless_lines(text))
    }

    /// Writes a JSON document.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    pub fn json(&mut self, value: &Value) -> Result<(), WriteError> {
        self.page(&text::harmless_json(&format!("{value:#}\n")))
    }

    /// Writes a page unchanged.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    pub fn page(&mut self, page: &str) -> Result<(), WriteError> {
        let written = self.write_all(page.as_bytes());
        self.end(written)
    }

    /// Flushes, and turns a writer's error into one that names the file.
    ///
    /// # Errors
    /// Returns an error if the output could not be written.
    pub fn end(&mut self, result: Result<(), impl Display>) -> Result<(), WriteError> {
        let flushed = match &result {
            Ok(()) => self.flush(),
            Err(_) => Ok(()),
        };
        let name = self.name.clone();
        match (self.failed.take(), result, flushed) {
            (Some(source), ..) | (None, _, Err(source)) => Err(WriteError::Io { name, source }),
            (None, Err(what), Ok(())) => Err(WriteError::Format {
                name,
                what: what.to_string(),
            }),
            (None, Ok(()), Ok(())) => Ok(()),
        }
    }

    /// Keeps the error and returns one of the same kind.
    fn note<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let kind = error.kind();
            self.failed.get_or_insert(error);
            kind.into()
        })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_whole = false;
        let written = self.inner.write(bytes);
        self.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.inner.flush();
        self.is_whole = flushed.is_ok() && self.failed.is_none();
        self.note(flushed)
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if let Some((path, file)) = self.made.take().filter(|_| !self.is_whole) {
            // A file that cannot be removed stays.
            let _ = outfile::remove(&path, &file);
        }
    }
}

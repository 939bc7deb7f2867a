// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where tables go: a file or the standard output.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use mostrace_bundle::outfile;
use serde_json::Value;

use crate::text;

/// Why an output could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The system refused.
    #[error("{name}: {source}")]
    Io {
        /// The file, or `standard output`.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The format's writer gave up.
    #[error("{name}: {what}")]
    Format {
        /// The file, or `standard output`.
        name: String,
        /// Its words.
        what: String,
    },
}

impl WriteError {
    /// Whether nobody reads any more (`| head`), which is no error.
    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, WriteError::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// A file or the standard output. It remembers why writing failed, as a format's writer may not.
pub struct Output {
    name: String,
    inner: BufWriter<Box<dyn Write + Send>>,
    terminal: bool,
    failed: Option<io::Error>,
}

impl Output {
    /// Creates the file; None or `-` is the standard output.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn create(path: Option<&Path>) -> Result<Output, WriteError> {
        let (name, inner, terminal): (_, Box<dyn Write + Send>, _) = match path {
            Some(path) if path != Path::new("-") => {
                let name = path.display().to_string();
                match outfile::create(path) {
                    Ok(file) => (name, Box::new(file), false),
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
            inner,
            terminal,
            failed: None,
        })
    }

    /// Whether a person looks at it.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Characters of a line, if a person looks at it.
    pub fn width(&self) -> Option<usize> {
        // Of stdout, which a table takes over from comfy-table's own laying out.
        let table = comfy_table::Table::new();
        self.terminal
            .then(|| table.width())
            .flatten()
            .map(usize::from)
            // A terminal without a size, as one that a program has made, has room for all.
            .filter(|width| *width > 0)
    }

    /// Writes lines for people: what [deceives](text::is_deceptive) in them is escaped.
    ///
    /// # Errors
    /// The system refused.
    pub fn text(&mut self, text: &str) -> Result<(), WriteError> {
        self.whole(&text::harmless_lines(text))
    }

    /// Writes a document of JSON.
    ///
    /// # Errors
    /// The system refused.
    pub fn json(&mut self, value: &Value) -> Result<(), WriteError> {
        self.whole(&text::harmless_json(&format!("{value:#}\n")))
    }

    /// Writes a page, in which nothing is changed.
    ///
    /// # Errors
    /// The system refused.
    pub fn page(&mut self, page: &str) -> Result<(), WriteError> {
        self.whole(page)
    }

    fn whole(&mut self, text: &str) -> Result<(), WriteError> {
        let written = self.write_all(text.as_bytes());
        self.end(written.map_err(Into::into))
    }

    /// Flushes, and turns what a writer says into an error that names the file.
    pub(super) fn end(&mut self, result: super::Result) -> Result<(), WriteError> {
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

    /// Keeps the error; the caller gets one of the same kind.
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
        let written = self.inner.write(bytes);
        self.note(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.inner.flush();
        self.note(flushed)
    }
}

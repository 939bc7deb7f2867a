// SPDX-License-Identifier: MIT OR Apache-2.0
//! All per-CPU files of a trace as one stream in time order.

use super::cpu_file::CpuFile;
use super::error::{Error, Problem};
use mostrace_bundle::blk_io_trace::Event;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// Bytes by which a record is known.
const MAGIC: usize = 4;

/// Whether a file that cannot be read to its end is an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partial {
    /// It is.
    #[default]
    Refused,
    /// It is, unless the file ends within a record, as one does whose writer was stopped or whose copy was cut: it is
    /// read up to its last whole record, and a [`Notice`] says what was left out.
    CutAtEnd,
    /// It is read up to its last whole record, and a [`Notice`] says what was left out. A file
    /// that does not even begin with a record is an error all the same.
    Allowed,
}

/// Something about the trace that its reader should be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The end of a file was left out ([`Partial::CutAtEnd`], [`Partial::Allowed`]).
    LeftOut {
        /// The file.
        path: PathBuf,
        /// Why, and from where.
        problem: Problem,
        /// How many bytes.
        bytes: u64,
    },
    /// Events stood further out of order in a file than could be mended.
    Disorder {
        /// The file.
        path: PathBuf,
        /// How many.
        events: u64,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeftOut {
                path,
                problem,
                bytes,
            } => write!(f, "{}: {problem}; left out {bytes} bytes", path.display()),
            Self::Disorder { path, events } => {
                write!(f, "{}: {events} events out of time order", path.display())
            }
        }
    }
}

/// The events of a trace, in time order, each lent until the next one is asked for.
///
/// Events of equal time come in the order of the files given, and within a file in its order. An
/// event that stands up to 64 records late in its file is put back in order; one that is later
/// still comes where it stands, and is counted in a [`Notice`]. After an error the stream ends.
pub struct Trace {
    files: Vec<CpuFile>,
    /// The file that the last event came from.
    current: Option<usize>,
    /// Time of the next event and the file that has it, earliest first; without the current one.
    others: BinaryHeap<Reverse<(u64, usize)>>,
    partial: Partial,
    notices: Vec<Notice>,
    /// Length of the files together, as far as it is known.
    bytes_total: u64,
    /// Files whose first event was not asked for yet.
    unstarted: bool,
}

impl Trace {
    /// Opens exactly these files (see [`super::find()`] for a basename); a file that cannot be
    /// read to its end is an error.
    ///
    /// # Errors
    /// If one cannot be opened; what is in them is looked at while iterating.
    pub fn open(paths: &[PathBuf]) -> Result<Self, Error> {
        Self::open_with(paths, Partial::Refused)
    }

    /// The same, with a choice about incomplete files.
    ///
    /// # Errors
    /// If one cannot be opened.
    pub fn open_with(paths: &[PathBuf], partial: Partial) -> Result<Self, Error> {
        let mut sources: Vec<(PathBuf, Box<dyn Read + Send>)> = Vec::new();
        let mut bytes_total: u64 = 0;
        for path in paths {
            let file = File::open(path).map_err(|e| Error::io(path, e))?;
            let length = file.metadata().map_or(0, |metadata| metadata.len());
            bytes_total = bytes_total.saturating_add(length);
            sources.push((path.clone(), Box::new(file)));
        }
        Ok(Self {
            bytes_total,
            ..Self::from_sources(sources, partial)
        })
    }

    /// Reads from anything, each source with the name that messages are to give it. Sources are
    /// read in large pieces and need no buffer of their own.
    #[must_use]
    pub fn from_sources(sources: Vec<(PathBuf, Box<dyn Read + Send>)>, partial: Partial) -> Self {
        Self {
            files: sources
                .into_iter()
                .map(|(path, source)| CpuFile::new(path, source))
                .collect(),
            current: None,
            others: BinaryHeap::new(),
            partial,
            notices: Vec::new(),
            bytes_total: 0,
            unstarted: true,
        }
    }

    /// Says how long the sources are together, bytes.
    #[must_use]
    pub fn of_length(self, bytes_total: u64) -> Self {
        Self {
            bytes_total,
            ..self
        }
    }

    /// What there is to tell so far; complete when the iteration has ended.
    #[must_use]
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Bytes of records so far, of all files.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.files.iter().map(CpuFile::bytes_read).sum()
    }

    /// Bytes of all files; 0 if they are not files ([`Self::from_sources`]).
    #[must_use]
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total
    }

    /// The next event.
    ///
    /// # Errors
    /// A file cannot be read (further).
    #[allow(clippy::should_implement_trait)] // an Iterator cannot lend
    #[inline(always)] // with what it calls: having several callers it would not be, a seventh of the work of reading a bare trace
    pub fn next(&mut self) -> Result<Option<Event<'_>>, Error> {
        if let Err(error) = self.turn() {
            self.others.clear();
            self.current = None;
            return Err(error);
        }
        let file = self.current.and_then(|index| self.files.get_mut(index));
        Ok(file.and_then(CpuFile::pop))
    }

    /// Lets the file with the earliest event be the current one.
    #[inline(always)]
    fn turn(&mut self) -> Result<(), Error> {
        if self.unstarted {
            return self.start();
        }
        let Some(index) = self.current else {
            return Ok(());
        };
        let Some(time_ns) = self.head(index)? else {
            self.current = self.others.pop().map(|Reverse((_, other))| other);
            return Ok(());
        };
        // The heap is touched only if another file's event is earlier now.
        let head = Reverse((time_ns, index));
        if let Some(mut earliest) = self.others.peek_mut()
            && *earliest > head
        {
            let Reverse((_, other)) = std::mem::replace(&mut *earliest, head);
            self.current = Some(other);
        }
        Ok(())
    }

    fn start(&mut self) -> Result<(), Error> {
        self.unstarted = false;
        for index in 0..self.files.len() {
            if let Some(time_ns) = self.head(index)? {
                self.others.push(Reverse((time_ns, index)));
            }
        }
        self.current = self.others.pop().map(|Reverse((_, first))| first);
        Ok(())
    }

    /// Time of the next event of a file.
    #[inline]
    fn head(&mut self, index: usize) -> Result<Option<u64>, Error> {
        match self.files.get(index).and_then(CpuFile::ready) {
            Some(time_ns) => Ok(Some(time_ns)),
            None => self.read(index),
        }
    }

    /// Reads on in a file; at its end, says what there is to say about it.
    fn read(&mut self, index: usize) -> Result<Option<u64>, Error> {
        let Some(file) = self.files.get_mut(index) else {
            return Ok(None);
        };
        let head = file.peek()?;
        if let Some(problem) = file.problem
            && self.partial.refuses(problem)
        {
            return Err(Error::Malformed {
                path: file.path.clone(),
                problem,
            });
        }
        if head.is_none() {
            if let Some(problem) = file.problem {
                self.notices.push(Notice::LeftOut {
                    path: file.path.clone(),
                    problem,
                    bytes: file.left_out()?,
                });
            }
            if file.late > 0 {
                self.notices.push(Notice::Disorder {
                    path: file.path.clone(),
                    events: file.late,
                });
            }
        }
        Ok(head)
    }
}

impl Partial {
    fn refuses(self, problem: Problem) -> bool {
        match (self, problem) {
            (Partial::Refused, _) => true,
            (Partial::CutAtEnd, Problem::BadMagic { .. }) => true,
            // Too short to tell whether it would be a record.
            (Partial::CutAtEnd, Problem::Truncated { offset, left, .. }) => {
                offset == 0 && left < MAGIC
            }
            // Foreign from its first byte on, rather than cut off.
            (Partial::Allowed, problem) => matches!(problem, Problem::BadMagic { offset: 0, .. }),
        }
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! All per-CPU files of a trace as one stream in time order.

use super::cpu_file::CpuFile;
use super::error::{Error, Problem};
use super::event::Event;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// Whether a file that cannot be read to its end is an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partial {
    /// It is.
    #[default]
    Refused,
    /// It is read up to its last whole record, and a [`Notice`] says what was left out. A file
    /// that does not even begin with a record is an error all the same.
    Allowed,
}

/// Something about the trace that its reader should be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The end of a file was left out ([`Partial::Allowed`]).
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

/// The events of a trace, in time order: an iterator.
///
/// Events of equal time come in the order of the files given, and within a file in its order. An
/// event that stands up to 64 records late in its file is put back in order; one that is later
/// still comes where it stands, and is counted in a [`Notice`]. After an error the stream ends.
pub struct Trace {
    files: Vec<CpuFile>,
    /// Time of the next event and the file that has it, earliest first.
    heads: BinaryHeap<Reverse<(u64, usize)>>,
    partial: Partial,
    notices: Vec<Notice>,
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
        for path in paths {
            let file = File::open(path).map_err(|e| Error::io(path, e))?;
            sources.push((path.clone(), Box::new(file)));
        }
        Ok(Self::from_sources(sources, partial))
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
            heads: BinaryHeap::new(),
            partial,
            notices: Vec::new(),
            unstarted: true,
        }
    }

    /// What there is to tell so far; complete when the iteration has ended.
    #[must_use]
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    fn start(&mut self) -> Result<(), Error> {
        self.unstarted = false;
        for index in 0..self.files.len() {
            if let Some(time_ns) = self.head(index)? {
                self.heads.push(Reverse((time_ns, index)));
            }
        }
        Ok(())
    }

    /// Time of the next event of a file; at its end, says what there is to say about it.
    fn head(&mut self, index: usize) -> Result<Option<u64>, Error> {
        let Some(file) = self.files.get_mut(index) else {
            return Ok(None);
        };
        let head = file.peek()?;
        if let Some(problem) = file.problem
            && (self.partial == Partial::Refused || problem_at_start(problem))
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

    fn advance(&mut self) -> Result<Option<Event>, Error> {
        if self.unstarted {
            self.start()?;
        }
        let Some(&Reverse((_, index))) = self.heads.peek() else {
            return Ok(None);
        };
        let event = self.files.get_mut(index).and_then(CpuFile::pop);
        let head = self.head(index)?;
        if let Some(mut top) = self.heads.peek_mut() {
            match head {
                // Re-sorts the heap only if another file's event is earlier now.
                Some(time_ns) => *top = Reverse((time_ns, index)),
                None => drop(PeekMut::pop(top)),
            }
        }
        Ok(event)
    }
}

/// A file that is foreign from its first byte on, rather than one that was cut off.
fn problem_at_start(problem: Problem) -> bool {
    matches!(problem, Problem::BadMagic { offset: 0, .. })
}

impl Iterator for Trace {
    type Item = Result<Event, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        if next.is_err() {
            self.heads.clear();
        }
        next.transpose()
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! All per-CPU files of a trace as one stream of events in time order.

use super::cpu_file::CpuFile;
use super::error::{Error, Problem};
use super::relative::{self, Shifted};
use mostrace_bundle::Zones;
use mostrace_bundle::blk_io_trace::Event;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// Length of the magic number by which a record is recognised, bytes.
const MAGIC: usize = 4;

/// The treatment of a file that cannot be read to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partial {
    /// It is an error.
    #[default]
    Refused,
    /// It is an error unless the file ends within a record, because its writer was stopped or its copy was cut off: then it
    /// is read up to its last whole record, and a [`Notice`] says what was left out.
    CutAtEnd,
    /// The file is read up to its last whole record, and a [`Notice`] says what was left out. A file that does not even
    /// begin with a record is still an error.
    Allowed,
}

/// A message about the trace for its reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The end of a file was left out ([`Partial::CutAtEnd`], [`Partial::Allowed`]).
    LeftOut {
        /// The file.
        path: PathBuf,
        /// The problem and its place.
        problem: Problem,
        /// Bytes left out.
        bytes: u64,
    },
    /// The times of a file's events are relative (`blkparse -d`); they were set by the notes, whose times are not.
    Relative {
        /// The file.
        path: PathBuf,
    },
    /// Events in a file were so far out of order that they could not be sorted.
    Disorder {
        /// The file.
        path: PathBuf,
        /// Number of those events.
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
            Self::Relative { path } => write!(
                f,
                "{}: the times of its events are relative, as blkparse -d writes them; the names of processes tell the clock to \
                 within some microseconds",
                path.display()
            ),
            Self::Disorder { path, events } => {
                write!(f, "{}: {events} events out of time order", path.display())
            }
        }
    }
}

/// The events of a trace in time order; each borrows from the stream until the next call.
///
/// Events of equal time come in the order of the files given, and within a file in its order. An event that stands up to 64
/// records late in its file is put back in order; one that is later still is returned where it stands, and is counted in a
/// [`Notice`]. After an error the stream ends.
pub struct Trace {
    files: Vec<CpuFile>,
    /// The file that the last event came from.
    current: Option<usize>,
    /// Time of each other file's next event and the file's index, earliest first.
    others: BinaryHeap<Reverse<(u64, usize)>>,
    partial: Partial,
    notices: Vec<Notice>,
    /// Total length of the files in bytes, as far as it is known.
    bytes_total: u64,
    zones: Zones,
    /// True until the files' first events have been read.
    unstarted: bool,
}

impl Trace {
    /// Opens exactly these files (see [`super::find()`] for a basename); a file that cannot be read to its end is an error.
    ///
    /// # Errors
    /// Returns an error if a file cannot be opened; the contents are checked while iterating.
    pub fn open(paths: &[PathBuf]) -> Result<Self, Error> {
        Self::open_with(paths, Partial::Refused)
    }

    /// Opens the files with a choice about incomplete ones.
    pub fn open_with(paths: &[PathBuf], partial: Partial) -> Result<Self, Error> {
        let mut sources: Vec<(PathBuf, Box<dyn Read + Send>)> = Vec::new();
        let mut bytes_total: u64 = 0;
        let mut notices = Vec::new();
        for path in paths {
            let mut file = File::open(path).map_err(|e| Error::io(path, e))?;
            let metadata = file.metadata().ok();
            let length = metadata.as_ref().map_or(0, std::fs::Metadata::len);
            bytes_total = bytes_total.saturating_add(length);
            // A pipe cannot be read twice.
            let is_file = metadata.is_some_and(|metadata| metadata.is_file());
            let shift = match is_file && paths.len() == 1 {
                true => relative::shift(path, &mut file)?,
                false => None,
            };
            sources.push(match shift {
                None => (path.clone(), Box::new(file)),
                Some(by_ns) => {
                    notices.push(Notice::Relative { path: path.clone() });
                    (path.clone(), Box::new(Shifted::new(file, by_ns)))
                }
            });
        }
        Ok(Self {
            bytes_total,
            notices,
            ..Self::from_sources(sources, partial)
        })
    }

    /// Reads from any sources, each with the name for messages. Sources are read in large pieces and need no buffer of their
    /// own.
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
            zones: Zones::default(),
            unstarted: true,
        }
    }

    /// Sets the total length of the sources, in bytes.
    #[must_use]
    pub fn of_length(self, bytes_total: u64) -> Self {
        Self {
            bytes_total,
            ..self
        }
    }

    /// Sets the zones of the disk.
    #[must_use]
    pub fn of_zones(self, zones: Zones) -> Self {
        Self { zones, ..self }
    }

    /// Returns the zones of the disk.
    #[must_use]
    pub fn zones(&self) -> Zones {
        self.zones
    }

    /// Returns the notices so far; they are complete when the iteration has ended.
    #[must_use]
    pub fn notices(&self) -> &[Notice] {
        &self.notices
    }

    /// Returns the bytes of records read so far from all files.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.files.iter().map(CpuFile::bytes_read).sum()
    }

    /// Returns the bytes of all files; 0 if unknown, as for [`Self::from_sources`].
    #[must_use]
    pub fn bytes_total(&self) -> u64 {
        self.bytes_total
    }

    /// Returns the next event; None at the end.
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

    /// Makes the file with the earliest event the current one.
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
        // The heap is touched only if another file's event is earlier.
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

    /// Returns the time of the next event of a file.
    #[inline]
    fn head(&mut self, index: usize) -> Result<Option<u64>, Error> {
        match self.files.get(index).and_then(CpuFile::ready) {
            Some(time_ns) => Ok(Some(time_ns)),
            None => self.read(index),
        }
    }

    /// Reads on in a file; at its end, adds the notices about it.
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
            // The rest is too short to decide whether it is a record.
            (Partial::CutAtEnd, Problem::Truncated { offset, left, .. }) => {
                offset == 0 && left < MAGIC
            }
            // A file with a wrong first byte is of another kind, rather than cut off.
            (Partial::Allowed, problem) => matches!(problem, Problem::BadMagic { offset: 0, .. }),
        }
    }
}

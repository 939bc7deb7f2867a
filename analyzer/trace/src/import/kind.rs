// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kinds of foreign traces, recognised by their bytes.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::biosnoop::{self, Biosnoop};
use super::blkformat::{Format, Formatted};
use super::blkparse::{self, Blkparse};
use super::csv::{self, Csv};
use super::ftrace::{self, Ftrace};
use super::iolog::{self, Iolog};
use super::lines::{Lines, is_page};
use super::most::{self, Most};
use super::perfetto::{self, Perfetto};
use super::seen::Reader;
use super::tracedat::{self, TraceDat};

/// A kind of foreign trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The text of blkparse.
    Blkparse,
    /// The same in a format that the user names.
    Formatted,
    /// The text of ftrace, also within a page.
    Ftrace,
    /// A file of trace-cmd.
    TraceDat,
    /// A trace of Perfetto.
    Perfetto,
    /// fio's iolog of this version.
    Iolog(u8),
    /// The text of biosnoop.
    Biosnoop,
    /// Alibaba's block traces.
    Alibaba,
    /// The output of MOST.
    Most,
    /// Those of Microsoft Research Cambridge.
    Msr,
    /// Tencent's.
    Tencent,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Blkparse | Kind::Formatted => f.write_str("the text of blkparse"),
            Kind::Ftrace => f.write_str("the text of ftrace"),
            Kind::TraceDat => f.write_str("a trace of trace-cmd"),
            Kind::Perfetto => f.write_str("a trace of Perfetto"),
            Kind::Iolog(version) => write!(f, "an iolog of fio, version {version}"),
            Kind::Biosnoop => f.write_str("the text of biosnoop"),
            Kind::Alibaba => f.write_str("a block trace in Alibaba's format"),
            Kind::Most => f.write_str("the output of MOST"),
            Kind::Msr => f.write_str("a block trace in the format of MSR Cambridge"),
            Kind::Tencent => f.write_str("a block trace in Tencent's format"),
        }
    }
}

/// The most lines ahead of the first one of the trace; a page has its scripts there.
const AHEAD: u64 = 1 << 10;
const AHEAD_IN_A_PAGE: u64 = 1 << 17;

impl Kind {
    /// Recognises a file by its first lines; None if it is of no known kind.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn of(path: &Path) -> io::Result<Option<Kind>> {
        if !path.metadata()?.is_file() {
            return Ok(None);
        }
        if let Some(kind) = binary(path)? {
            return Ok(Some(kind));
        }
        let mut lines = Lines::open(path)?;
        let mut most = AHEAD;
        while let Some(line) = lines.next()? {
            if line.number == 1 && is_page(line.text) {
                most = AHEAD_IN_A_PAGE;
            }
            if line.text.contains(&0) || line.number > most {
                return Ok(None);
            }
            let kind = of_line(line.text);
            if kind.is_some() {
                return Ok(kind);
            }
        }
        Ok(None)
    }

    /// Returns true if times may be out of order beyond what their readers put right.
    pub(super) fn is_unordered(self) -> bool {
        !matches!(
            self,
            Kind::Blkparse
                | Kind::Formatted
                | Kind::Ftrace
                | Kind::TraceDat
                | Kind::Perfetto
                | Kind::Most
        )
    }

    /// Returns true if a request's last event is its completion where the text has it.
    pub(super) fn has_completions(self) -> bool {
        !self.is_unordered() || self == Kind::Biosnoop
    }

    /// Returns what the kind cannot tell of any trace.
    pub(super) fn cannot_tell(self) -> &'static str {
        match self {
            Kind::Blkparse | Kind::Formatted => {
                "blkparse's text does not tell which process a thread is of, nor files; times are since the first event"
            }
            Kind::Ftrace => {
                "ftrace's text has times in µs of the clock that was chosen, and does not tell which"
            }
            Kind::TraceDat => "trace-cmd's files have times of the clock that was chosen",
            Kind::Perfetto => "of a trace of Perfetto, the events of ftrace are read",
            Kind::Most => {
                "MOST's output does not tell devices or errors; its classes and paths are not imported, as they are of the map: see --image"
            }
            Kind::Iolog(_) => "an iolog does not tell processes; a sync is taken for a flush",
            Kind::Biosnoop => "biosnoop does not tell flags of requests, nor files",
            Kind::Alibaba | Kind::Msr | Kind::Tencent => {
                "a public block trace does not tell processes, files or flushes"
            }
        }
    }

    /// Returns the reader of the kind; that of blkparse's text reads the format that the user named, if any.
    pub(super) fn reader(self, format: Option<&Format>) -> Box<dyn Reader> {
        match self {
            Kind::Blkparse | Kind::Formatted => match format {
                Some(format) => Box::new(Formatted::new(format.clone())),
                None => Box::new(Blkparse::default()),
            },
            Kind::Ftrace => Box::new(Ftrace::default()),
            Kind::TraceDat => Box::new(TraceDat::default()),
            Kind::Perfetto => Box::new(Perfetto::default()),
            Kind::Iolog(_) => Box::new(Iolog::default()),
            Kind::Biosnoop => Box::new(Biosnoop::default()),
            Kind::Alibaba => Box::new(Csv::new(csv::Of::Alibaba)),
            Kind::Most => Box::new(Most::default()),
            Kind::Msr => Box::new(Csv::new(csv::Of::Msr)),
            Kind::Tencent => Box::new(Csv::new(csv::Of::Tencent)),
        }
    }
}

/// Recognises a file that is no text.
fn binary(path: &Path) -> io::Result<Option<Kind>> {
    let mut begins = Vec::new();
    let most = tracedat::MAGIC.len() as u64;
    File::open(path)?.take(most).read_to_end(&mut begins)?;
    Ok(match begins == tracedat::MAGIC {
        true => Some(Kind::TraceDat),
        false => perfetto::begins(path)?.then_some(Kind::Perfetto),
    })
}

fn of_line(line: &[u8]) -> Option<Kind> {
    if let Some(version) = iolog::version(line) {
        return Some(Kind::Iolog(version));
    }
    if biosnoop::is_header(line) {
        return Some(Kind::Biosnoop);
    }
    if ftrace::is_ftrace(line) {
        return Some(Kind::Ftrace);
    }
    if blkparse::is_event(line) {
        return Some(Kind::Blkparse);
    }
    if most::is_event(line) {
        return Some(Kind::Most);
    }
    Some(match csv::recognise(line)? {
        csv::Of::Alibaba => Kind::Alibaba,
        csv::Of::Msr => Kind::Msr,
        csv::Of::Tencent => Kind::Tencent,
    })
}

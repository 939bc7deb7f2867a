// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads all rows of a trace one after the other.

use mostrace_map::class::Kind;
use polars::prelude::{Column as Values, Expr, col};

use super::colour::Colour;
use crate::attribute::Op;
use crate::facts::catalogue::Key;
use crate::facts::row::{Text, Words};
use crate::facts::{Column, Facts, NONE, Part, Rows, bits, stored_column as at};
use crate::tables::Result;

/// The fields of a row that the pictures need.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Number of the completion.
    pub request: u32,
    pub time_ns: u64,
    pub q_ns: Option<u64>,
    pub d_ns: Option<u64>,
    pub sector: Option<u64>,
    pub bytes: u64,
    pub op: Op,
    pub colour: Colour,
    pub kind: Option<Kind>,
    /// The file's code, for [`Scan::file`].
    pub file: u32,
    /// The submitter's code, for [`Scan::process`].
    pub process: u32,
}

impl Seen {
    /// Returns the bytes that were written or read.
    pub fn moved(&self) -> Option<(Op, u64)> {
        self.op.carries_data().then_some((self.op, self.bytes))
    }
}

/// The rows of a trace, and the names in them.
pub(super) struct Scan<'f> {
    facts: &'f Facts,
    columns: Vec<Expr>,
    /// Colours by the codes of class and role.
    colours: Vec<Vec<Colour>>,
    files: Words,
    processes: Words,
}

impl<'f> Scan<'f> {
    pub fn new(facts: &'f Facts) -> Scan<'f> {
        let [class, role, file, process] =
            ["class", "role", "file", "process"].map(|name| words_of(facts, name));
        let word = |words: &Words, at: usize| words.get(at).cloned().flatten();
        let colour = |c: usize, r: usize| {
            let (class, role) = (word(&class.words, c), word(&role.words, r));
            Colour::of_class(class.as_deref(), role.as_deref())
        };
        let of_class = |c| (0..role.words.len()).map(|r| colour(c, r)).collect();
        Scan {
            facts,
            colours: (0..class.words.len()).map(of_class).collect(),
            files: file.words,
            processes: process.words,
            columns: [
                at::request,
                at::time,
                at::q,
                at::d,
                at::sector,
                at::bytes,
                at::bits,
            ]
            .map(col)
            .into_iter()
            .chain([
                class.code.alias("class"),
                role.code.alias("role"),
                file.code.alias("file"),
                process.code.alias("process"),
            ])
            .collect(),
        }
    }

    /// Calls `see` with every row.
    ///
    /// # Errors
    /// Returns an error if a temporary file cannot be read.
    pub fn each(&self, mut see: impl FnMut(&Seen)) -> Result<()> {
        for view in self
            .facts
            .view(self.columns.clone(), Part::Any, None, Rows::Whole)
        {
            let frame = view?.collect()?;
            let columns: Vec<Values> = frame.columns().iter().map(Values::rechunk).collect();
            let long = |at: usize| columns[at].u64()?.cont_slice();
            let short = |at: usize| columns[at].u32()?.cont_slice();
            let (request, time) = (short(0)?, long(1)?);
            let (q, d, sector) = (long(2)?, long(3)?, long(4)?);
            let (bytes, word) = (short(5)?, long(6)?);
            let (class, role) = (short(7)?, short(8)?);
            let (file, process) = (short(9)?, short(10)?);
            let known = |value: u64| (value != NONE).then_some(value);
            for row in 0..frame.height() {
                let op = Op::ALL.get(bits::OP.of(word[row]) as usize);
                let op = op.copied().unwrap_or_default();
                let colour = self.colours[class[row] as usize][role[row] as usize];
                let kind = bits::KIND.of(word[row]).checked_sub(1);
                see(&Seen {
                    request: request[row],
                    time_ns: time[row],
                    q_ns: known(q[row]),
                    d_ns: known(d[row]),
                    sector: known(sector[row]),
                    bytes: bytes[row].into(),
                    op,
                    colour: match op.carries_data() {
                        true => colour,
                        false => Colour::Flush,
                    },
                    kind: kind.and_then(|kind| Kind::ALL.get(kind as usize)).copied(),
                    file: file[row],
                    process: process[row],
                });
            }
        }
        Ok(())
    }

    /// Returns the path or the inode of a row's file.
    pub fn file(&self, code: u32) -> Option<&str> {
        self.files.get(code as usize).and_then(Option::as_deref)
    }

    /// Returns `comm:tgid` of a row's submitter.
    pub fn process(&self, code: u32) -> Option<&str> {
        self.processes.get(code as usize).and_then(Option::as_deref)
    }

    /// Returns the code of a process.
    pub fn code_of_process(&self, name: &str) -> Option<u32> {
        let is = |word: &Option<String>| word.as_deref() == Some(name);
        self.processes.iter().position(is).map(|at| at as u32)
    }
}

/// Returns a column of a few words.
fn words_of(facts: &Facts, name: &str) -> Text {
    match Column::find(name).and_then(|column| column.key(facts)) {
        Some(Key::Text(text)) => text,
        _ => Text::new([at::bits], [None], |_| 0),
    }
}

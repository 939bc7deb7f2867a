// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows: small, in one vector, with what repeats replaced by numbers.

use mostrace_bundle::entry::{Jbd2, Origin, Stage};

use super::{File, FileId, Op, Process, ProcessId};
use crate::blktrace::Completion;
use mostrace_map::class::{Class, Kind, Provenance};

/// One completion, without its parts.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Time of C, ns in the trace's clock.
    pub time_ns: u64,
    /// Time of the last D.
    pub d_ns: Option<u64>,
    /// Categories and action of the C event.
    pub action: u64,
    /// First sector, whole disk.
    pub sector: u64,
    /// Bytes completed; the bytes of its rows sum to this.
    pub bytes: u32,
    /// major << 20 | minor.
    pub device: u32,
    /// errno, 0 for success.
    pub error: u16,
}

/// What a jbd2 block is, beside its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalBlock {
    /// The block's type.
    pub jbd2: Jbd2,
    /// jbd2 transaction.
    pub tid: Option<u32>,
    /// Where a copy goes at the checkpoint.
    pub home_sector: Option<u64>,
    /// What is there.
    pub home_kind: Option<Kind>,
    /// The file there, or that the metadata there belongs to.
    pub home_file: FileId,
}

/// A run of a completion's sectors with one answer: same process, dirtier, kind, file and
/// provenance, consecutive in the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Row {
    /// Which of [`Attributed::requests`].
    pub request: u32,
    /// Who submitted it.
    pub process: ProcessId,
    /// Who dirtied its pages.
    pub dirtier: ProcessId,
    /// Which file.
    pub file: FileId,
    /// 1 + the index in [`Attributed::journal`], or 0.
    pub journal: u32,
    /// First sector, whole disk.
    pub sector: u64,
    /// Bytes; 0 for flushes.
    pub bytes: u32,
    /// What was done with the bytes.
    pub op: Op,
    /// What the blocks hold; None for rows that carry no data.
    pub kind: Option<Kind>,
    /// Where the entry was made; None without one.
    pub stage: Option<Stage>,
    /// What the pages belonged to; None without an entry.
    pub origin: Option<Origin>,
    /// Of the first byte, in the file.
    pub file_offset: Option<u64>,
    /// The earliest Q of the bios in it.
    pub q_ns: Option<u64>,
    /// When its first page was made dirty.
    pub dirty_ns: Option<u64>,
    /// How the owner is known where there is no file; see [`Attributed::provenance`].
    pub(crate) found: Option<Provenance>,
}

impl Row {
    /// A row that nothing is known of.
    pub(super) fn unmapped() -> Row {
        Row {
            kind: Some(Kind::Unmapped),
            found: Some(Provenance::Unknown),
            ..Row::default()
        }
    }

    /// The class of its kind.
    pub fn class(&self) -> Option<Class> {
        self.kind.map(Kind::class)
    }

    /// Takes `next` in, if it goes on where this row ends.
    fn join(&mut self, next: &Row) -> bool {
        let answer = |r: &Row| {
            (
                (r.request, r.process, r.dirtier, r.file, r.op),
                (r.kind, r.stage, r.origin, r.found),
            )
        };
        let sectors = u64::from(self.bytes / 512);
        let offset = self
            .file_offset
            .map(|o| o.saturating_add(u64::from(self.bytes)));
        let joins = self.bytes > 0
            && self.bytes.is_multiple_of(512)
            && self.sector.checked_add(sectors) == Some(next.sector)
            && (self.journal, next.journal) == (0, 0)
            && offset == next.file_offset
            && answer(self) == answer(next);
        if joins {
            self.bytes += next.bytes;
            self.q_ns = self.q_ns.into_iter().chain(next.q_ns).min();
        }
        joins
    }
}

/// Entries that found no completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// Of the process table.
    pub process_entries: u64,
    /// Of the file table.
    pub file_entries: u64,
    /// Of the dirtier table.
    pub dirtier_entries: u64,
}

/// A whole trace, attributed.
#[derive(Debug, Default)]
pub struct Attributed {
    /// One for every completion, in the order of C.
    pub requests: Vec<Request>,
    /// Rows, in the order of their requests and, within one, of sectors.
    pub rows: Vec<Row>,
    /// By [`ProcessId`].
    pub processes: Vec<Process>,
    /// By [`FileId`].
    pub files: Vec<File>,
    /// Journal blocks, see [`Row::journal`].
    pub journal: Vec<JournalBlock>,
    /// Entries without a completion.
    pub leftovers: Leftovers,
}

impl Attributed {
    /// Every completion with what it did and its rows.
    pub fn by_request(&self) -> impl Iterator<Item = (&Request, Op, &[Row])> {
        let same = |a: &Row, b: &Row| a.request == b.request;
        self.rows
            .chunk_by(same)
            .map(|rows| (self.request(&rows[0]), rows[0].op, rows))
    }

    /// The completion that a row is part of.
    pub fn request(&self, row: &Row) -> &Request {
        &self.requests[row.request as usize]
    }

    /// Who submitted a row.
    pub fn process(&self, row: &Row) -> &Process {
        &self.processes[row.process.0 as usize]
    }

    /// Who dirtied a row's pages.
    pub fn dirtier(&self, row: &Row) -> &Process {
        &self.processes[row.dirtier.0 as usize]
    }

    /// The file of a row, if it has one.
    pub fn file(&self, row: &Row) -> Option<&File> {
        self.file_of(row.file)
    }

    /// A file by its number.
    pub fn file_of(&self, id: FileId) -> Option<&File> {
        (id != FileId::NONE).then(|| &self.files[id.0 as usize])
    }

    /// What a row's journal block is, if it is one and a probe saw it.
    pub fn journal_block(&self, row: &Row) -> Option<&JournalBlock> {
        row.journal
            .checked_sub(1)
            .map(|at| &self.journal[at as usize])
    }

    /// How a row's owner is known; None for rows that carry no data.
    pub fn provenance(&self, row: &Row) -> Option<Provenance> {
        row.found
            .map(|found| self.file(row).map_or(found, |file| file.provenance))
    }
}

/// Collects rows, joining what continues.
#[derive(Default)]
pub(super) struct Builder {
    out: Attributed,
}

impl Builder {
    /// The rows that follow belong to this completion.
    pub fn begin(&mut self, c: &Completion<'_>) {
        self.out.requests.push(Request {
            time_ns: c.time_ns,
            d_ns: c.d_ns,
            action: c.action,
            sector: c.sector,
            bytes: c.bytes,
            device: c.device,
            error: c.error,
        });
    }

    pub fn push(&mut self, row: Row) {
        let request = self.out.requests.len() - 1;
        let row = Row {
            request: u32::try_from(request).unwrap_or(u32::MAX),
            ..row
        };
        if !self.out.rows.last_mut().is_some_and(|last| last.join(&row)) {
            self.out.rows.push(row);
        }
    }

    /// Keeps a journal block and returns what goes into [`Row::journal`].
    pub fn journal(&mut self, block: JournalBlock) -> u32 {
        self.out.journal.push(block);
        u32::try_from(self.out.journal.len()).unwrap_or(0)
    }

    pub fn finish(
        mut self,
        processes: Vec<Process>,
        files: Vec<File>,
        leftovers: Leftovers,
    ) -> Attributed {
        self.out.processes = processes;
        self.out.files = files;
        self.out.leftovers = leftovers;
        self.out
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of a completion, and what they refer to by number.

use mostrace_bundle::entry::{Jbd2, Origin, Stage};
use mostrace_map::class::{Class, Kind, Provenance};

use super::{File, FileId, Op, Process, ProcessId};
use crate::blktrace::Completion;

/// One completion, without its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// What was done with the bytes.
    pub op: Op,
    /// Number of the completion of the device flush that it waited for, if it is known which one that was.
    pub device_flush: Option<u32>,
    /// Whether it began where the request of the same direction issued before it on the device ended.
    pub sequential: bool,
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Who submitted it.
    pub process: ProcessId,
    /// Who dirtied its pages.
    pub dirtier: ProcessId,
    /// That moved them to collect f2fs's garbage.
    pub collects: bool,
    /// Which file.
    pub file: FileId,
    /// What the journal block is, if it is one and a probe saw it.
    pub journal: Option<JournalBlock>,
    /// First sector, whole disk.
    pub sector: u64,
    /// Bytes; 0 for flushes.
    pub bytes: u32,
    /// What was done with the bytes: as the request's, where the events tell it.
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
    /// How the owner is known where there is no file; see [`Names::provenance`].
    pub found: Option<Provenance>,
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

    /// The same without what only rows that carry data have.
    fn without_data(&self, op: Op) -> Row {
        Row {
            op,
            file: FileId::NONE,
            journal: None,
            kind: None,
            file_offset: None,
            found: None,
            ..*self
        }
    }

    /// Takes `next` in, if it goes on where this row ends.
    fn join(&mut self, next: &Row) -> bool {
        let answer = |r: &Row| {
            (
                (r.process, r.dirtier, r.collects, r.file, r.op),
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
            && self.journal.is_none()
            && next.journal.is_none()
            && offset == next.file_offset
            && answer(self) == answer(next);
        let bytes = self.bytes.checked_add(next.bytes);
        let Some(bytes) = bytes.filter(|_| joins) else {
            return false;
        };
        self.bytes = bytes;
        self.q_ns = self.q_ns.into_iter().chain(next.q_ns).min();
        true
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

/// What the rows refer to by number, complete once the trace was read to its end.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// By [`ProcessId`].
    pub processes: Vec<Process>,
    /// By [`FileId`].
    pub files: Vec<File>,
    /// Entries without a completion.
    pub leftovers: Leftovers,
    /// It is known which processes are of the command's tree.
    pub knows_family: bool,
}

impl Names {
    /// A process by its number.
    pub fn process(&self, ProcessId(id): ProcessId) -> &Process {
        &self.processes[id as usize]
    }

    /// A file by its number; None for no file.
    pub fn file(&self, FileId(id): FileId) -> Option<&File> {
        (id != FileId::NONE.0).then(|| &self.files[id as usize])
    }

    /// How a row's owner is known; None for rows that carry no data, but flushes of a file.
    pub fn provenance(&self, row: &Row) -> Option<Provenance> {
        row.found
            .map(|found| self.file(row.file).map_or(found, |file| file.provenance))
    }
}

/// The rows of one completion, joined where one continues the other.
#[derive(Default)]
pub(super) struct Builder {
    rows: Vec<Row>,
    /// What an entry knows of the operation that the events do not tell.
    told: Option<Op>,
}

impl Builder {
    /// Forgets the rows of the completion before.
    pub fn begin(&mut self) {
        self.rows.clear();
        self.told = None;
    }

    /// The whole request is what an entry says of one of its bios: bios of several operations are
    /// never merged.
    pub fn tell(&mut self, op: Op) {
        self.told = Some(op);
    }

    /// Those of the completion so far.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub fn push(&mut self, row: Row) {
        if !self.rows.last_mut().is_some_and(|last| last.join(&row)) {
            self.rows.push(row);
        }
    }

    /// The completion and its rows.
    pub fn end(&mut self, completion: &Completion<'_>, op: Op) -> (Request, &[Row]) {
        if let Some(told) = self.told {
            for row in self.rows.iter_mut().filter(|row| row.op != told) {
                *row = row.without_data(told);
            }
        }
        let request = Request {
            time_ns: completion.time_ns,
            d_ns: completion.d_ns,
            action: completion.action,
            sector: completion.sector,
            bytes: completion.bytes,
            device: completion.device,
            error: completion.error,
            op: self.told.unwrap_or(op),
            device_flush: completion.device_flush,
            sequential: completion.sequential,
        };
        (request, &self.rows)
    }
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows of a completion, and the lists that their numbers refer to.

use mostrace_bundle::entry::{Flags, Jbd2, Origin, Stage};
use mostrace_map::class::{Class, Kind, Provenance};

use super::stacks::Stack;
use super::{File, FileId, Op, Process, ProcessId, ProcessNames};
use crate::blktrace::Completion;

/// One completion, without its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Time of C, in ns of the trace's clock.
    pub time_ns: u64,
    /// Time of the last D, in ns.
    pub d_ns: Option<u64>,
    /// The C event's action word: categories and action.
    pub action: u64,
    /// First sector on the whole disk.
    pub sector: u64,
    /// Bytes completed; its rows' bytes sum to this.
    pub bytes: u32,
    /// Device number, major << 20 | minor.
    pub device: u32,
    /// errno; 0 for success.
    pub error: u16,
    /// The operation.
    pub op: Op,
    /// Number of the completion of the device flush that it waited for, if that is known.
    pub device_flush: Option<u32>,
    /// True if it began where the request of the same direction issued before it on the device ended.
    pub sequential: bool,
}

/// The details of a jbd2 block beside its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalBlock {
    /// The block's type.
    pub jbd2: Jbd2,
    /// Number of the jbd2 transaction.
    pub tid: Option<u32>,
    /// The sectors of the block ahead of the row, and behind it: the disk may write a block of several pages in several requests.
    pub ahead: u32,
    /// See `ahead`.
    pub behind: u32,
    /// Sector on the disk to which a copy is written at the checkpoint.
    pub home_sector: Option<u64>,
    /// The kind of the block at that home.
    pub home_kind: Option<Kind>,
    /// The file at that home, or the one that the metadata there belongs to.
    pub home_file: FileId,
}

impl JournalBlock {
    /// Returns the first sector of the home of a copy, of which the row may be a part.
    #[must_use]
    pub fn home_of_block(&self) -> Option<u64> {
        self.home_sector?.checked_sub(self.ahead.into())
    }
}

/// The call in which a task mounts or unmounts a filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mounting {
    /// mount or fsconfig.
    Mount,
    /// umount2.
    Umount,
}

impl Mounting {
    /// Decodes the flags of a process or dirtier entry.
    pub(super) fn of(flags: Flags) -> Option<Mounting> {
        match flags {
            _ if flags.has(Flags::MOUNTS) => Some(Mounting::Mount),
            _ if flags.has(Flags::UNMOUNTS) => Some(Mounting::Umount),
            _ => None,
        }
    }
}

/// A run of a completion's sectors with one answer: same process, dirtier, kind, file and provenance, and consecutive in the
/// file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The thread that submitted it.
    pub process: ProcessId,
    /// The call for mounting that this thread was in when it submitted it.
    pub mounting: Option<Mounting>,
    /// The thread that dirtied its pages.
    pub dirtier: ProcessId,
    /// True if the dirtier moved the pages to collect f2fs's garbage.
    pub collects: bool,
    /// True if stores through a mapping may have changed its pages unseen.
    pub is_mapped: bool,
    /// The call for mounting that the dirtier was in when it made them dirty.
    pub dirtied_in: Option<Mounting>,
    /// The file that the blocks belong to.
    pub file: FileId,
    /// The details of a journal block that a probe saw.
    pub journal: Option<JournalBlock>,
    /// First sector on the whole disk.
    pub sector: u64,
    /// Bytes; 0 for flushes.
    pub bytes: u32,
    /// The operation, which is the request's.
    pub op: Op,
    /// The kind of the blocks; None for rows that carry no data.
    pub kind: Option<Kind>,
    /// The event at which the entry was made; None without one.
    pub stage: Option<Stage>,
    /// The owner of the bio's pages; None without an entry.
    pub origin: Option<Origin>,
    /// File offset of the first byte.
    pub file_offset: Option<u64>,
    /// The earliest Q of its bios, ns.
    pub q_ns: Option<u64>,
    /// Time when its first page became dirty, ns.
    pub dirty_ns: Option<u64>,
    /// The source of the owner if there is no file; see [`Names::provenance`].
    pub found: Option<Provenance>,
}

impl Row {
    /// Returns a row of which nothing is known.
    pub(super) fn unmapped() -> Row {
        Row {
            kind: Some(Kind::Unmapped),
            found: Some(Provenance::Unknown),
            ..Row::default()
        }
    }

    /// Returns the class of its kind.
    pub fn class(&self) -> Option<Class> {
        self.kind.map(Kind::class)
    }

    /// Returns the row with operation `op` and without the fields that only rows with data have.
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

    /// Appends `next` if it continues this row; returns true if it did.
    fn join(&mut self, next: &Row) -> bool {
        let answer = |r: &Row| {
            (
                (r.process, r.dirtier, r.collects, r.is_mapped, r.file, r.op),
                (r.kind, r.stage, r.origin, r.found),
                (r.mounting, r.dirtied_in),
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
    /// Entries of the process table.
    pub process_entries: u64,
    /// Entries of the file table.
    pub file_entries: u64,
    /// Entries of the dirtier table.
    pub dirtier_entries: u64,
}

/// The processes and files that rows refer to by number, complete once the trace was read to its end.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Processes, indexed by [`ProcessId`].
    pub processes: Vec<Process>,
    /// The names of processes over time.
    pub process_names: ProcessNames,
    /// Files, indexed by [`FileId`].
    pub files: Vec<File>,
    /// Stacks, indexed by [`StackId`]; empty or an unknown one alone unless stacks were recorded.
    pub stacks: Vec<Stack>,
    /// The calls and handles whose stack is not in the table.
    pub missing_stacks: u64,
    /// Entries without a completion.
    pub leftovers: Leftovers,
    /// True if it is known which processes are of the command's tree.
    pub knows_family: bool,
}

impl Names {
    /// Returns a process by its number.
    pub fn process(&self, ProcessId(id): ProcessId) -> &Process {
        &self.processes[id as usize]
    }

    /// Returns a file by its number; None for no file.
    pub fn file(&self, FileId(id): FileId) -> Option<&File> {
        (id != FileId::NONE.0).then(|| &self.files[id as usize])
    }

    /// Returns how a row's owner is known; None for rows without data, except flushes of a file.
    pub fn provenance(&self, row: &Row) -> Option<Provenance> {
        row.found
            .map(|found| self.file(row.file).map_or(found, |file| file.provenance))
    }
}

/// The rows of one completion; a row that continues the one before is joined to it.
#[derive(Default)]
pub(super) struct Builder {
    rows: Vec<Row>,
    /// The same, joined only if they were queued at the same time. A change between two Qs is in the second bio alone.
    pieces: Vec<Row>,
    /// The operation by an entry, if the events cannot distinguish it.
    told: Option<Op>,
}

impl Builder {
    /// Forgets the rows of the previous completion.
    pub fn begin(&mut self) {
        self.rows.clear();
        self.pieces.clear();
        self.told = None;
    }

    /// Takes the operation of the whole request from the entry of one of its bios. Bios with different operations are never
    /// merged.
    pub fn tell(&mut self, op: Op) {
        self.told = Some(op);
    }

    /// Returns the completion's rows so far.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the pieces that the rows were joined of, in their order.
    pub fn pieces(&self) -> &[Row] {
        &self.pieces
    }

    pub fn push(&mut self, row: Row) {
        let last = self.pieces.last_mut();
        if !last.is_some_and(|last| last.q_ns == row.q_ns && last.join(&row)) {
            self.pieces.push(row);
        }
        if !self.rows.last_mut().is_some_and(|last| last.join(&row)) {
            self.rows.push(row);
        }
    }

    /// Returns the completion and its rows.
    pub fn end(&mut self, completion: &Completion<'_>, op: Op) -> (Request, &[Row]) {
        if let Some(told) = self.told {
            let all = self.rows.iter_mut().chain(&mut self.pieces);
            for row in all.filter(|row| row.op != told) {
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

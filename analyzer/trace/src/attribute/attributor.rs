// SPDX-License-Identifier: MIT OR Apache-2.0
//! Joins completions with entries.

use std::collections::BTreeMap;
use std::io::Read;

use mostrace_bundle::Error;
use mostrace_bundle::entry::{EntryRef, Flags, Jbd2};
use mostrace_bundle::table::TableReader;
use mostrace_map::Map;
use mostrace_map::class::Provenance;
use mostrace_map::fs::jbd2::Journal;

use super::empties::Empties;
use super::family::Family;
use super::note::{Dirt, FileRun, Note};
use super::owners::Owners;
use super::pending::{self, Match, Pending, Window};
use super::registry::Registry;
use super::rows::{self, Leftovers, Names, Request, Row};
use super::served::Served;
use super::{FileId, Op, ProcessId, role};
use crate::blktrace::{self, Completion, Part};

/// The largest deviation of entries from time order in their table, ns: a probe takes the time and then reserves its place
/// in the ring, and may be preempted in between.
const DISORDER_NS: u64 = 20_000_000;

/// The manifest's name of the skipped runs of probes that make entries.
const MISSES: &str = "probe_misses";

/// Joins completions with entries. Each table is read only as far as the completions have come.
pub struct Attributor<'a, R> {
    pub(super) registry: Registry<'a>,
    pub(super) journal: Option<&'a Journal>,
    tables: Vec<&'a mut TableReader<R>>,
    notes: Pending<Note>,
    runs: Pending<FileRun>,
    dirt: Pending<Dirt>,
    empties: Empties,
    /// One moment as CLOCK_MONOTONIC and as Unix time, ns each.
    pub(super) clock: Option<(u64, u64)>,
    pub(super) rows: rows::Builder,
    is_btrfs: bool,
    /// True if the kernel may have skipped runs of probes that would have made entries.
    has_misses: bool,
    // Reused for every part, so that no part allocates.
    seen: Seen,
}

/// The entries that match one part.
#[derive(Default)]
struct Seen {
    notes: Vec<Match<Note>>,
    runs: Vec<Match<FileRun>>,
    dirt: Vec<Match<Dirt>>,
}

impl<'a, R: Read> Attributor<'a, R> {
    /// Takes the entry tables, each roughly in time order (none for a bare trace), and the map.
    pub fn new(tables: Vec<&'a mut TableReader<R>>, map: Option<&'a Map>) -> Self {
        Attributor {
            registry: Registry::new(map),
            journal: None,
            tables,
            notes: Pending::new(),
            runs: Pending::new(),
            dirt: Pending::new(),
            empties: Empties::default(),
            clock: None,
            rows: rows::Builder::default(),
            is_btrfs: false,
            has_misses: false,
            seen: Seen::default(),
        }
    }

    /// Sets the device number (major << 20 | minor) of the map's filesystem: inode numbers of files on other filesystems are
    /// not looked up in the map.
    #[must_use]
    pub fn of_filesystem(mut self, s_dev: u32) -> Self {
        self.registry.files.set_filesystem(s_dev);
        self
    }

    /// Sets the type of the filesystem as `/proc/mounts` names it. On btrfs, pages of the B-tree inode are blocks of its
    /// trees.
    #[must_use]
    pub fn of_kind(mut self, filesystem: &str) -> Self {
        self.is_btrfs = filesystem == "btrfs";
        self
    }

    /// Takes the manifest's losses.
    #[must_use]
    pub fn with_losses(mut self, losses: &BTreeMap<String, u64>) -> Self {
        self.add_losses(losses);
        self
    }

    fn add_losses(&mut self, losses: &BTreeMap<String, u64>) {
        self.has_misses |= losses.get(MISSES) != Some(&0);
    }

    /// Sets the contents of the journal when the map was made: they identify a copy that no probe saw and that the map no
    /// longer knows.
    #[must_use]
    pub fn with_journal(mut self, journal: &'a Journal) -> Self {
        self.journal = Some(journal);
        self
    }

    /// Sets one moment as CLOCK_MONOTONIC and as Unix time, ns each: the snapshot's inodes have their change times in Unix
    /// time.
    #[must_use]
    pub fn with_clock(mut self, mono_ns: u64, unix_ns: u64) -> Self {
        self.clock = Some((mono_ns, unix_ns));
        self
    }

    /// Sets which processes belong to the recorded command's tree.
    #[must_use]
    pub fn with_family(mut self, family: Family) -> Self {
        self.registry.processes.set_family(family);
        self
    }

    /// Sets for whom the threads of FUSE's daemons worked.
    #[must_use]
    pub fn with_served(mut self, served: Served) -> Self {
        self.registry.served = served;
        self
    }

    /// Reads the table of cgroups to its present end. Call it before anything that names processes.
    pub fn learn_cgroups(&mut self, table: &mut TableReader<impl Read>) -> Result<(), Error> {
        self.registry.processes.cgroups_mut().read(table)
    }

    /// Reads the table of the names of processes to its present end. Call it before anything that names processes.
    pub fn learn_process_names(&mut self, table: &mut TableReader<impl Read>) -> Result<(), Error> {
        self.registry.processes.names_mut().read(table)
    }

    /// Reads the table of stacks.
    pub fn with_stacks(mut self, table: &mut TableReader<impl Read>) -> Result<Self, Error> {
        self.registry.stacks.read(table)?;
        Ok(self)
    }

    /// Reads the table of names of the mounted tree. Call it after [`of_filesystem`](Self::of_filesystem) and before
    /// anything that asks for names.
    pub fn with_tree(mut self, table: &mut TableReader<R>) -> Result<Self, Error> {
        while let Some(entry) = table.next_if(|_| true)? {
            if let EntryRef::File(entry) = entry {
                self.registry.files.see_tree(entry);
            }
        }
        Ok(self)
    }

    /// Reads the table of names of the files that calls are about. Call it after [`of_filesystem`](Self::of_filesystem).
    pub fn with_called(mut self, table: &mut TableReader<R>) -> Result<Self, Error> {
        while let Some(entry) = table.next_if(|_| true)? {
            if let EntryRef::File(entry) = entry {
                self.registry.files.see_called(entry);
            }
        }
        Ok(self)
    }

    /// Reads the table of metadata blocks that were freed, with the inodes that freed them. Call it after
    /// [`of_filesystem`](Self::of_filesystem).
    pub fn with_freed(mut self, table: &mut TableReader<R>) -> Result<Self, Error> {
        self.registry.owners = Owners::read(table, &mut self.registry.files, self.registry.map)?;
        Ok(self)
    }

    /// Makes the tables read on: they may have grown past the end that was reached, with these losses.
    pub fn go_on(&mut self, losses: &BTreeMap<String, u64>) {
        self.add_losses(losses);
        self.tables.iter_mut().for_each(|table| table.go_on());
    }

    /// Takes the numbers of the threads that the trace has noted to be renamed since the last call, and when (ns): the number of
    /// a thread that has ended may be reused by another.
    pub fn rename(&mut self, renamed: &[(u32, u64)]) {
        self.registry.processes.rename(renamed);
    }

    /// Takes the next completion, in time order, and returns its rows in the order of sectors; there is at least one.
    pub fn push(&mut self, completion: &Completion<'_>) -> Result<(Request, &[Row]), Error> {
        self.pull(completion.time_ns)?;
        let op = Op::of(completion.action, completion.bytes);
        self.rows.begin();
        if completion.bytes == 0 {
            self.empty(completion, op);
        } else {
            self.parts(completion, op);
        }
        Ok(self.rows.end(completion, op))
    }

    /// Returns the rows of the completion that was pushed last.
    pub fn rows(&self) -> &[Row] {
        self.rows.rows()
    }

    /// Returns the pieces that these rows were joined of: each was queued at one time.
    pub fn pieces(&self) -> &[Row] {
        self.rows.pieces()
    }

    /// Returns the processes and files that are known so far.
    pub fn registry(&self) -> &Registry<'a> {
        &self.registry
    }

    /// Returns the same, to which the tables of causes add.
    pub fn registry_mut(&mut self) -> &mut Registry<'a> {
        &mut self.registry
    }

    fn parts(&mut self, completion: &Completion<'_>, op: Op) {
        let mut left = completion.bytes;
        for part in completion.parts {
            let part = Part {
                bytes: part.bytes.min(left),
                ..*part
            };
            left = left.saturating_sub(part.bytes);
            self.part(completion, &part, op);
        }
        // Parts should cover their completion; if they do not, the remaining bytes still get rows.
        if left > 0 {
            let done = u64::from(completion.bytes.saturating_sub(left)).div_ceil(512);
            let sector = completion.sector.saturating_add(done);
            let part = Part {
                sector,
                bytes: left,
                ..Part::default()
            };
            self.part(completion, &part, op);
        }
    }

    /// Returns what the rows refer to, once the last completion has been pushed. `names` are the process names that the
    /// trace itself noted, for threads without an entry.
    ///
    /// # Errors
    /// Returns an error if a table cannot be read to its end.
    pub fn finish(mut self, names: Option<&blktrace::ThreadNames>) -> Result<Names, Error> {
        self.pull(u64::MAX)?;
        if let Some(names) = names {
            self.registry.processes.fill_in(names);
        }
        self.registry.files.fill_in();
        let map = self.registry.files.map();
        let (stacks, missing_stacks) = self.registry.stacks.into_list();
        let knows_family = self.registry.processes.knows_family();
        let (processes, process_names) = self.registry.processes.into_list();
        Ok(Names {
            knows_family,
            processes,
            process_names,
            files: role::assign(self.registry.files.into_list(), map),
            stacks,
            missing_stacks,
            leftovers: Leftovers {
                process_entries: self.notes.left().saturating_add(self.empties.left()),
                file_entries: self.runs.left(),
                dirtier_entries: self.dirt.left(),
            },
        })
    }

    /// Reads the tables' entries up to `time_ns`.
    fn pull(&mut self, time_ns: u64) -> Result<(), Error> {
        let last = time_ns.saturating_add(DISORDER_NS);
        for table in &mut self.tables {
            while let Some(entry) = table.next_if(|head| head.time_ns.get() <= last)? {
                match entry {
                    EntryRef::Process(raw) => {
                        let note = Note::new(raw, self.registry.processes.submitter(raw));
                        if note.jbd2 == Jbd2::COMMIT {
                            self.registry.owners.commit(note.time_ns, raw.tid.get());
                        }
                        if raw.head.bytes.get() == 0 {
                            self.empties.insert(raw, note);
                        } else {
                            self.notes.insert(&raw.head, note);
                        }
                    }
                    EntryRef::File(entry) => {
                        let file = self.registry.files.live(entry);
                        if entry.raw.head.bytes.get() == 0 {
                            self.empties.tell(&entry.raw.head, file);
                        } else {
                            let run = match self.is_btrfs {
                                true => FileRun::of_btrfs(entry.raw, file),
                                false => FileRun::new(entry.raw, file),
                            };
                            self.runs.insert(&entry.raw.head, run);
                        }
                    }
                    // It may be a task that dirtied the pages for an earlier write.
                    EntryRef::Dirtier(raw)
                        if self.has_misses && raw.head.flags.has(Flags::AGAIN) => {}
                    EntryRef::Dirtier(raw) => {
                        let dirt = Dirt::new(raw, self.registry.processes.dirtier(raw));
                        self.dirt.insert(&raw.head, dirt);
                    }
                    // These belong to the tables of causes, which are read elsewhere.
                    EntryRef::Handle(_)
                    | EntryRef::Dirtied(_)
                    | EntryRef::Call(_)
                    | EntryRef::Freed(_)
                    | EntryRef::F2fs(_)
                    | EntryRef::Fork(_)
                    | EntryRef::Served(_)
                    | EntryRef::Cgroup(_)
                    | EntryRef::Comm(_)
                    | EntryRef::Stack(_)
                    | EntryRef::Operation(_) => {}
                }
            }
        }
        Ok(())
    }

    /// Adds one row without bytes for a flush or for the end of a flush sequence.
    fn empty(&mut self, completion: &Completion<'_>, op: Op) {
        let part = completion.parts.first();
        // A flush sequence with data was issued, and has no entry of its own.
        let is_empty_flush = op == Op::Flush && completion.d_ns.is_none();
        let entry = match is_empty_flush {
            true => self.empties.take(completion),
            false => self.empties.take_of_zones(completion),
        };
        let note = entry.map(|e| e.note);
        let told = note.and_then(|note| note.op);
        if let Some(told) = told {
            self.rows.tell(told);
        }
        let op = told.unwrap_or(op);
        let file = entry.map_or(FileId::NONE, |e| e.file);
        let process = match note {
            Some(note) if note.tells_submitter() => note.process,
            _ => part.map_or(ProcessId::UNKNOWN, |part| {
                self.registry.processes.by_part(part, completion.time_ns)
            }),
        };
        let row = Row {
            sector: completion.sector,
            process,
            mounting: note.and_then(|n| n.mounting),
            op,
            file,
            found: (file != FileId::NONE).then_some(Provenance::Unknown),
            q_ns: entry.map(|e| e.submit_ns).or(part.and_then(|p| p.q_ns)),
            stage: note.map(|n| n.stage),
            origin: note.map(|n| n.origin),
            ..Row::default()
        };
        self.rows.push(row);
    }

    /// Cuts one bio's share of a completion into rows.
    fn part(&mut self, completion: &Completion<'_>, part: &Part, op: Op) {
        let sectors = u64::from(part.bytes).div_ceil(512);
        // The sectors of a passthrough command mean nothing, and there are none past the last sector.
        let end = part.sector.checked_add(sectors);
        let Some(end) = end.filter(|_| op != Op::Other) else {
            let process = self.registry.processes.by_part(part, completion.time_ns);
            let (sector, q_ns) = (part.sector, part.q_ns);
            let row = Row {
                sector,
                process,
                op,
                q_ns,
                ..Row::unmapped()
            };
            self.rows.push(Row {
                bytes: part.bytes,
                ..row
            });
            return;
        };
        let window = Window::of(completion, part);
        let mut seen = std::mem::take(&mut self.seen);
        // Entries have the sectors for which their bio was queued.
        let moved = completion.moved;
        let (first, last) = (part.sector.saturating_sub(moved), end.saturating_sub(moved));
        self.notes.take(first, last, &window, &mut seen.notes);
        let window = window.of_bio(&seen.notes);
        self.runs.take(first, last, &window, &mut seen.runs);
        self.dirt.take(first, last, &window, &mut seen.dirt);
        if moved > 0 {
            pending::move_by(&mut seen.notes, moved);
            pending::move_by(&mut seen.runs, moved);
            pending::move_by(&mut seen.dirt, moved);
        }
        self.segments(completion, part, end, op, &seen);
        self.seen = seen;
    }

    /// Walks a part up to `end` in steps within which the matching note, run and dirt stay the same.
    fn segments(
        &mut self,
        completion: &Completion<'_>,
        part: &Part,
        end: u64,
        op: Op,
        seen: &Seen,
    ) {
        let mut left = part.bytes;
        let mut at = part.sector;
        while at < end {
            let (note, note_to) = pending::at(&seen.notes, at, end);
            let (run, run_to) = pending::at(&seen.runs, at, end);
            let (dirt, dirt_to) = pending::at(&seen.dirt, at, end);
            let to = note_to.min(run_to).min(dirt_to);
            // If twins belong to different files, the file of neither is known.
            let run = run.filter(|run| run.file != FileId::NONE || run.node.is_some());
            let process = match note {
                Some(note) if note.tells_submitter() => note.process,
                _ => self.registry.processes.by_part(part, completion.time_ns),
            };
            if let Some(told) = note.and_then(|n| n.op) {
                self.rows.tell(told);
            }
            let base = Row {
                process,
                mounting: note.and_then(|n| n.mounting),
                op: note.and_then(|n| n.op).unwrap_or(op),
                // The tracer may have no Q: on 7.2 blktrace leaves out those of FUA writes.
                q_ns: part.q_ns.or(note.and_then(|n| n.queued_ns)),
                stage: note.map(|n| n.stage).or(run.map(|r| r.stage)),
                origin: note.map(|n| n.origin).or(run.map(|r| r.origin)),
                dirtier: dirt.map_or(ProcessId::UNKNOWN, |d| d.process),
                collects: dirt.is_some_and(|d| d.collects),
                is_mapped: dirt.is_some_and(|d| d.is_mapped),
                dirtied_in: dirt.and_then(|d| d.mounting),
                dirty_ns: dirt.and_then(|d| d.dirty_at(at)),
                ..Row::default()
            };
            self.classify(at..to, note, run, base, &mut left);
            at = to;
        }
    }
}

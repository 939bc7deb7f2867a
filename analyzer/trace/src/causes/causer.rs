// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the causers of each row.

use std::collections::VecDeque;
use std::io::Read;

use mostrace_bundle::Error;
use mostrace_bundle::entry::{CallKind, NONE, Origin, RawCall, call_flags, handle_flags};
use mostrace_map::class::{Class, Kind};

use super::ahead::Ahead;
use super::blame::{Blame, Others, Weights};
use super::calls::{Call, Calls};
use super::cause::List;
use super::change::{Act, Change, Inode, NEVER};
use super::emptied::Emptied;
use super::f2fs::F2fs;
use super::forced::Forced;
use super::handle::{Handle, Lead, removes};
use super::homes::Homes;
use super::journals::{Journals, Place};
use super::pages::Pages;
use super::share::{Sharing, Verdicts};
use super::tables::Tables;
use super::unlinked::Unlinked;
use super::writes::Writes;
use super::{Caller, Cause, CauseId, Known, Operation};
use crate::attribute::{FileId, HashMap, Op, ProcessId, Registry, Request, Row};

mod background;
mod checkpoint;
mod contents;
mod discard;
mod flush;
mod forced;
mod home;
mod journal;

use checkpoint::Nodes;
use discard::Freed;
use flush::Asked;

/// The longest time between the filesystem's report of a part of a write and the moment when its pages become dirty, ns.
const PART_NS: u64 = 100_000;
/// Number of inodes whose last conversion is remembered; beyond it, all are forgotten.
const CONVERTED: usize = 1 << 16;
/// ext4's largest block, bytes (`EXT4_MAX_BLOCK_SIZE`).
const LARGEST_BLOCK: u32 = 1 << 16;
/// A filesystem's block size until another one is known, bytes.
const BLOCK: u32 = 4096;

/// Finds the causers of rows.
pub struct Causer<'a, R> {
    tables: Tables<'a, R>,
    functions: Vec<String>,
    sharing: Sharing,
    /// False if the recording lost entries, so that some changes may be unknown.
    is_whole: bool,
    /// Calls that last long.
    ahead: Ahead,
    found: Found,
    journals: Journals,
    homes: Homes,
    /// Weights of the transactions committed since jbd2's superblock was written.
    since_superblock: Weights,
    /// The sectors of the latest commit blocks, who asked for each, and what forced it.
    commits: VecDeque<(u64, Option<Asked>, Option<Forced>)>,
    /// The age at which jbd2's timer commits a transaction, ns; None if it is not known.
    commit_ns: Option<u64>,
    nodes: Nodes,
    freed: Freed,
    /// The filesystem's block size, bytes.
    block: u32,
    verdicts: Verdicts,
}

/// The indexes by which the causers of a handle are found.
#[derive(Default)]
struct Found {
    list: List,
    calls: Calls,
    f2fs: F2fs,
    pages: Pages,
    unlinked: Unlinked,
    writes: Writes,
    /// The time when blocks of each inode were last converted, ns.
    converted: HashMap<Inode, u64>,
}

impl<'a, R: Read> Causer<'a, R> {
    /// Takes the tables of a bundle and the functions that its manifest names.
    /// `is_whole` is false if the recording lost entries of these tables.
    pub fn new(
        tables: Tables<'a, R>,
        functions: &[String],
        sharing: Sharing,
        is_whole: bool,
    ) -> Self {
        Causer {
            tables,
            functions: functions.to_vec(),
            sharing,
            is_whole,
            ahead: Ahead::default(),
            found: Found::default(),
            journals: Journals::default(),
            homes: Homes::default(),
            since_superblock: Weights::default(),
            commits: VecDeque::new(),
            commit_ns: None,
            nodes: Nodes::default(),
            freed: Freed::default(),
            block: BLOCK,
            verdicts: Verdicts::default(),
        }
    }

    /// Tells the age at which jbd2's timer commits a transaction, ns.
    pub fn commits_after(self, commit_ns: Option<u64>) -> Self {
        Causer { commit_ns, ..self }
    }

    /// Makes the tables read on: they may have grown past the end that was reached, and the manifest may name more
    /// functions; `is_whole` is false if entries were lost meanwhile.
    pub fn go_on(&mut self, functions: &[String], is_whole: bool) {
        self.is_whole &= is_whole;
        self.tables.go_on();
        functions.clone_into(&mut self.functions);
    }

    /// Reads the tables as far as a completion at `time_ns` needs them.
    pub fn pull(&mut self, time_ns: u64, registry: &mut Registry<'_>) -> Result<(), Error> {
        if let Some(bytes) = registry.block_size().and_then(|b| u32::try_from(b).ok()) {
            self.block = bytes.clamp(512, LARGEST_BLOCK);
        }
        self.pull_calls(time_ns, registry)?;
        while let Some(raw) = self.tables.step(time_ns)? {
            let (raw, process) = &registry.for_whom(*raw, raw.head.time_ns.get());
            let Found { f2fs, calls, .. } = &mut self.found;
            f2fs.push(raw, *process, calls);
        }
        while let Some(raw) = self.tables.handle(time_ns)? {
            let (raw, process) = registry.for_whom(*raw, raw.head.time_ns.get());
            let call = self.found.calls.at(raw.pid.get(), raw.head.time_ns.get());
            // A call that removes a name begins its handle for the directory; the removed file is the call's.
            let removed = call.filter(|call| removes(call.kind) && call.file != FileId::NONE);
            let file = match removed {
                Some(call) => call.file,
                None => registry.inode(raw.ino.get(), raw.generation.get()),
            };
            let function = usize::try_from(raw.function.get()).ok();
            let function = function.and_then(|at| self.functions.get(at));
            let is_kernels = raw.head.flags.has(handle_flags::KERNEL) || !registry.is_user(process);
            let caller = Caller {
                process,
                stack: registry.stack(raw.head.sector.get()),
            };
            let handle = Handle::new(&raw, function.map(String::as_str), caller, is_kernels, file);
            let handle = self.found.note_handle(handle, CallKind::of(raw.call.get()));
            self.journals.add(raw.s_dev.get(), raw.tid.get(), handle);
        }
        while let Some(raw) = self.tables.dirtied(time_ns)? {
            self.block = raw.head.bytes.get().clamp(512, LARGEST_BLOCK);
            if let Some(home) = registry.home_on_disk(raw.home, raw.head.sector.get()) {
                self.journals.modified(raw, home);
            }
        }
        self.is_whole &= !self.journals.are_partial();
        for transaction in self.journals.outdated(time_ns) {
            self.committed(transaction);
        }
        Ok(())
    }

    /// Reads the calls that may have been in progress at `time_ns`.
    fn pull_calls(&mut self, time_ns: u64, registry: &mut Registry<'_>) -> Result<(), Error> {
        while let Some(raw) = self.tables.long_call()? {
            self.ahead.push(raw);
        }
        self.is_whole &= self.ahead.cut_short() == 0;
        while let Some(raw) = self.ahead.next(time_ns) {
            self.found.note_call(&raw, time_ns, self.block, registry);
        }
        while let Some(raw) = self.tables.call(time_ns)? {
            self.found.note_call(&raw, time_ns, self.block, registry);
        }
        Ok(())
    }
}

impl<R> Causer<'_, R> {
    /// Returns a cause by its number.
    pub fn cause(&self, id: CauseId) -> Cause {
        self.found.list.get(id)
    }

    /// Returns the number of causes so far.
    pub fn count(&self) -> usize {
        self.found.list.len()
    }

    /// Judges the rows of the next completion; completions come in time order. `pieces` are what the rows were joined of.
    pub fn push(
        &mut self,
        request: &Request,
        rows: &[Row],
        pieces: &[Row],
        registry: &Registry<'_>,
    ) -> &Verdicts {
        self.verdicts.clear();
        let mut pieces = pieces.iter().map(|piece| registry.row_for_whom(piece));
        for row in rows {
            let mut left = row.bytes;
            let mut latency_ns = None;
            let mut forced = None;
            for piece in pieces.by_ref() {
                let its = self.forced(request, &piece, registry);
                forced = Some(match forced {
                    None => its,
                    Some(before) => Forced::of_both(before, its),
                });
                latency_ns = latency_ns.max(self.judge(request, &piece, registry));
                left = left.saturating_sub(piece.bytes);
                if left == 0 {
                    break;
                }
            }
            if self.is_one_process(registry) {
                self.verdicts.one_process();
            }
            self.verdicts.end(latency_ns, forced.flatten());
        }
        &self.verdicts
    }

    /// Judges a piece of a row; returns the time from the start of the call that forced it to the completion, ns.
    fn judge(&mut self, request: &Request, row: &Row, registry: &Registry<'_>) -> Option<u64> {
        match row.op {
            Op::Write => return self.write(request, row, registry),
            Op::Flush => return self.flush(request, row, registry),
            Op::Read => self.read(row, registry),
            op if op == Op::Discard || op.is_of_zones() => self.discard(row, registry),
            Op::WriteZeroes => self.zero(row, registry),
            _ => {}
        }
        None
    }

    /// Returns true if all causers of the row that is being judged belong to one process.
    fn is_one_process(&self, registry: &Registry<'_>) -> bool {
        let mut causers = self.verdicts.causers();
        let process_of = |causer| registry.process(self.found.list.get(causer).process).tgid;
        let first = causers.next().and_then(process_of);
        first.is_some() && causers.all(|causer| process_of(causer) == first)
    }

    /// Returns how many calls and changes were forgotten because there was no room for more, by what they are.
    pub fn cut_short(&self) -> Vec<(&'static str, usize)> {
        let Found {
            calls,
            pages,
            unlinked,
            writes,
            ..
        } = &self.found;
        let all = [
            ("calls that lasted long", self.ahead.cut_short()),
            ("calls for durability", calls.cut_short()),
            ("changes to contents", writes.cut_short()),
            ("writers of pages", pages.cut_short()),
            ("names that were removed", unlinked.cut_short()),
            ("blocks to be written home", self.homes.cut_short()),
        ];
        let mut all = all.to_vec();
        all.retain(|(_, count)| *count > 0);
        all
    }

    /// Returns the causes, indexed by number.
    pub fn finish(self) -> Vec<Cause> {
        self.found.list.into_list()
    }

    fn read(&mut self, row: &Row, registry: &Registry<'_>) {
        match user(row.process, registry) {
            Some(process) => {
                self.one(Some(process.into()), Operation::Read, row);
            }
            None => {
                let blame = self.background(row, registry);
                self.blame(&blame, row.bytes);
            }
        }
    }

    /// Judges written bytes; returns the same time.
    fn write(&mut self, request: &Request, row: &Row, registry: &Registry<'_>) -> Option<u64> {
        let class = row.kind.map(Kind::class);
        match (class, row.journal) {
            _ if row.kind == Some(Kind::FastCommit) => {
                return self.fast_commit(request, row, registry);
            }
            (Some(Class::Journal), Some(block)) => {
                return self.journal(request, row, &block, registry);
            }
            (Some(Class::Journal), None) => {
                let blame = self.background(row, registry);
                self.blame(&blame.first(&Others::Unknown), row.bytes);
            }
            (Some(Class::Metadata), _) => self.metadata(request, row, registry),
            _ if row.origin == Some(Origin::BDEV) => self.metadata(request, row, registry),
            _ => self.contents(request, row, registry),
        }
        None
    }

    /// Gives all bytes of a row to one causer, or to the unknown one.
    fn one(&mut self, caller: Option<Caller>, operation: Operation, row: &Row) -> CauseId {
        let Some(caller) = caller else {
            self.unknown(row.bytes);
            return CauseId::UNKNOWN;
        };
        let cause = Cause::of(caller, operation, row.file);
        let causer = self.found.list.intern(cause);
        self.verdicts.add(causer, Known::Exact, row.bytes);
        causer
    }

    /// Gives all bytes of a row to the causer of the first change; anybody may have made more.
    fn first(&mut self, caller: Option<Caller>, operation: Operation, row: &Row) {
        let blame = caller.map_or(Blame::Unknown, |caller| {
            let cause = Cause::of(caller, operation, row.file);
            Blame::Exact(self.found.list.intern(cause))
        });
        self.blame(&blame.first(&Others::Unknown), row.bytes);
    }

    fn unknown(&mut self, bytes: u32) {
        self.verdicts.add(CauseId::UNKNOWN, Known::Unknown, bytes);
    }

    fn blame(&mut self, blame: &Blame, bytes: u32) {
        let partial = (!self.is_whole).then(|| blame.clone().first(&Others::Unknown));
        let blame = partial.as_ref().unwrap_or(blame);
        for (causer, part) in blame.parts(bytes, self.sharing) {
            self.verdicts.add(causer, blame.known(), part);
        }
        self.verdicts.add_others(blame.others().causers());
    }
}

/// Returns the process if it is a user's thread; kernel threads are not causes, except f2fs's when it collects garbage.
fn user(process: ProcessId, registry: &Registry<'_>) -> Option<ProcessId> {
    registry.is_user(process).then_some(process)
}

impl Found {
    /// Returns the causers of a handle, found by its `lead`.
    fn causers(&mut self, handle: &Handle) -> Blame {
        let Found {
            list,
            pages,
            unlinked,
            ..
        } = self;
        let mut cause = |caller| list.intern(Cause::of(caller, handle.operation, handle.file));
        let found = match handle.lead {
            Lead::Nothing => return Blame::Unknown,
            Lead::Task => return Blame::Exact(cause(handle.caller)),
            Lead::Pages => {
                let writers = pages.submitted(handle.inode, handle.start_ns, handle.end_ns);
                Blame::of(writers.map(&mut cause))
            }
            Lead::WrittenPages => {
                let writers = pages.completed(handle.inode, handle.converted_ns, handle.start_ns);
                Blame::of(writers.map(&mut cause))
            }
            Lead::Eviction => Blame::of(unlinked.get(handle.inode).map(&mut cause)),
        };
        let are_missing = match handle.lead {
            Lead::Pages => pages.forgot(handle.inode, handle.start_ns),
            Lead::WrittenPages => pages.forgot(handle.inode, handle.converted_ns),
            _ => false,
        };
        let found = match found {
            // Whoever closes a file last did not remove it.
            Blame::Unknown if handle.lead == Lead::Eviction => Blame::Unknown,
            Blame::Unknown if !handle.is_kernels => Blame::Exact(cause(handle.caller)),
            found => found,
        };
        match are_missing {
            true => found.first(&Others::Unknown),
            false => found,
        }
    }

    /// Returns the same causers with the operation `Write`.
    fn as_written(&mut self, blame: &Blame) -> Blame {
        blame.map(|causer| {
            let cause = self.list.get(causer);
            self.list.intern(Cause {
                operation: Some(Operation::Write),
                ..cause
            })
        })
    }

    /// Notes a call. `now_ns` is the trace's time.
    fn note_call(&mut self, raw: &RawCall, now_ns: u64, block: u32, registry: &mut Registry<'_>) {
        let (raw, process) = &registry.for_whom(*raw, raw.head.time_ns.get());
        let caller = Caller {
            process: *process,
            stack: registry.stack(raw.head.sector.get()),
        };
        let file = registry.inode(raw.ino.get(), raw.generation.get());
        let call = Call::new(raw, caller, file);
        if call.kind == CallKind::Unlink && raw.result.get() == 0 {
            self.unlinked.push(call.inode, caller);
        }
        if registry.is_mapped(raw.s_dev.get()) {
            // A kernel thread, such as a loop device's, writes for somebody who is not known.
            let whose = user(caller.process, registry).map(|_| caller);
            let whose = whose.unwrap_or_default();
            self.note_write(raw, whose, block.into());
        }
        self.f2fs.call(&call, raw.result.get() >= 0);
        self.calls.push(call, now_ns);
    }

    /// Notes what a call did to the contents of a file on a filesystem with blocks of `block` bytes.
    fn note_write(&mut self, raw: &RawCall, caller: Caller, block: u64) {
        let inode = (raw.ino.get(), raw.generation.get());
        let kind = CallKind::of(raw.kind.get());
        let is_written_part = matches!(kind, CallKind::Write | CallKind::CopyUp)
            && raw.head.flags.has(call_flags::PART);
        let slack_ns = match is_written_part {
            true => PART_NS,
            false => 0,
        };
        let start_ns = raw.start_ns.get().saturating_sub(slack_ns);
        let end_ns = match raw.head.flags.has(call_flags::OPEN_END) {
            true => NEVER,
            false => raw.head.time_ns.get().saturating_add(slack_ns),
        };
        let mut note = |act, from: u64, to: u64| {
            if from < to {
                let change = Change {
                    act,
                    caller,
                    from,
                    to,
                    start_ns,
                    end_ns,
                };
                self.writes.push(inode, change);
            }
        };
        let (offset, result) = (raw.offset.get(), raw.result.get());
        let end = offset.saturating_add(raw.bytes.get());
        let flags = raw.head.flags;
        match kind {
            CallKind::Write | CallKind::Splice
                if offset == NONE && (result > 0 || flags.has(call_flags::OPEN_END)) =>
            {
                self.writes.lose(inode, start_ns);
            }
            CallKind::Write if flags.has(call_flags::OPEN_END) => {
                note(Act::MayHaveChanged, offset, end);
            }
            CallKind::Write | CallKind::Splice | CallKind::CopyUp if result > 0 => {
                note(Act::Changed, offset, end);
            }
            CallKind::Mmap if result == 0 => self.writes.mapped(inode, start_ns),
            CallKind::Truncate | CallKind::Fallocate => {
                let emptied = Emptied::by(raw, block);
                if let Some((from, to)) = emptied.changed {
                    note(Act::MayHaveChanged, from, to);
                }
                if let Some(from) = emptied.dropped_from {
                    note(Act::Dropped, from, u64::MAX);
                }
                if emptied.is_vague {
                    self.writes.lose(inode, start_ns);
                }
            }
            // Everything had been written out when the atomic write began.
            CallKind::AtomicAbort if result == 0 => note(Act::Dropped, 0, u64::MAX),
            _ => {}
        }
    }

    /// Notes what a handle tells of the contents and the conversions of a file; returns it with the latter.
    fn note_handle(&mut self, handle: Handle, call: CallKind) -> Handle {
        match (handle.operation, call, handle.lead) {
            // O_TRUNC
            (Operation::Truncate, CallKind::Open, _) => self.writes.push(
                handle.inode,
                Change {
                    act: Act::Dropped,
                    caller: handle.caller,
                    from: 0,
                    to: u64::MAX,
                    start_ns: handle.start_ns,
                    end_ns: handle.end_ns,
                },
            ),
            (.., Lead::WrittenPages) => {
                if self.converted.len() >= CONVERTED {
                    // Without them, the next conversion of each is taken to concern all that was written before.
                    self.converted.clear();
                }
                let before = self.converted.insert(handle.inode, handle.start_ns);
                return Handle {
                    converted_ns: before.unwrap_or(0),
                    ..handle
                };
            }
            _ => {}
        }
        handle
    }
}

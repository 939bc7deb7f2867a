// SPDX-License-Identifier: MIT OR Apache-2.0
//! Judges contents of files.

use std::ops::Range;

use mostrace_bundle::entry::Origin;
use mostrace_map::class::Kind;

use super::{Causer, user};
use crate::attribute::{ProcessId, Registry, Request, Row};
use crate::causes::again::Dirtied;
use crate::causes::blame::{Blame, Others};
use crate::causes::change::Inode;
use crate::causes::changed::Changers;
use crate::causes::{Caller, Cause, CauseId, Operation};

/// A row of buffered contents with what is known of it.
struct Contents {
    inode: Inode,
    /// The row's bytes in the file.
    range: (u64, u64),
    q_ns: u64,
    /// The user's task that made the first page dirty.
    dirtier: Option<ProcessId>,
    /// The same task, if it is known when it did so.
    dirtied: Option<Dirtied>,
    /// True if the dirtier did so within a known call.
    is_explained: bool,
    /// True if all calls that may have changed the file are known.
    are_all: bool,
}

impl<R> Causer<'_, R> {
    /// Judges the contents of a file. The causers are the tasks whose calls changed them since they were last written, else the
    /// task that made the pages dirty, or the submitter of direct IO.
    pub(super) fn contents(&mut self, request: &Request, row: &Row, registry: &Registry<'_>) {
        if let Some(collector) = self.collector(row, registry) {
            self.one(Some(collector.into()), Operation::Gc, row);
            return;
        }
        if row.origin.is_none() {
            self.written_unseen(request, row);
        }
        let operation = self.operation(row, registry);
        let is_direct = matches!(row.origin, Some(Origin::DIRECT | Origin::RAW));
        if is_direct && row.dirtier == ProcessId::UNKNOWN {
            let mut caller = user(row.process, registry).map(Caller::from);
            if let (Some(by), Some((inode, range, q_ns))) = (&mut caller, place(row, registry)) {
                *by = self.found.writes.written_directly(inode, by.process, q_ns);
                self.found.writes.written(inode, range, q_ns, None);
                self.submitted(request, inode, [*by], q_ns);
            }
            self.one(caller, operation, row);
            return;
        }
        if self.is_of_journal(row) {
            let writes = &mut self.found.writes;
            let is_all = place(row, registry).is_some_and(|(inode, range, q_ns)| {
                writes.written(inode, range, q_ns, None);
                // A store through a mapping is journalled with whatever else changes the page.
                writes.are_all(inode, q_ns)
            });
            self.home(request, row, is_all, registry);
            return;
        }
        self.homes_written(request, row);
        match self.buffered(row, registry) {
            Some(contents) => self.by_calls(request, row, operation, &contents, registry),
            None => self.by_dirtier(request, row, operation, registry),
        }
    }

    /// Returns true if a row was changed through the journal (data=journal) and is written home like metadata. Before 6.3 such pages
    /// are not made dirty; from then on they have a dirtier.
    fn is_of_journal(&self, row: &Row) -> bool {
        let is_undirtied = row.origin == Some(Origin::FILE) && row.dirtier == ProcessId::UNKNOWN;
        let (homes, step) = self.homes_of(row);
        is_undirtied
            && !homes.is_empty()
            && homes
                .step_by(step)
                .all(|home| self.homes.are_contents(home))
    }

    /// Returns the sectors of a row, and their number in a block.
    fn homes_of(&self, row: &Row) -> (Range<u64>, usize) {
        let end = row.sector.saturating_add(u64::from(row.bytes / 512));
        (row.sector..end, (self.block / 512).max(1) as usize)
    }

    /// Notes that the changes of a row's blocks that were made through the journal are written home.
    fn homes_written(&mut self, request: &Request, row: &Row) {
        let (homes, step) = self.homes_of(row);
        let time_ns = row.q_ns.unwrap_or(request.time_ns);
        self.homes.all_written(homes, step as u64, time_ns);
    }

    /// Judges a row whose entry names the file and the place in it.
    fn buffered(&mut self, row: &Row, registry: &Registry<'_>) -> Option<Contents> {
        let (inode, range, q_ns) = place(row, registry)?;
        let is_of_file = row.origin == Some(Origin::FILE) && row.kind == Some(Kind::Regular);
        if !is_of_file || row.file_offset.is_none() || !self.tables.has_calls() {
            return None;
        }
        let dirtier = user(row.dirtier, registry);
        let dirtied = dirtier.zip(row.dirty_ns);
        let block = self.block.into();
        let writes = &mut self.found.writes;
        let is_explained =
            dirtied.is_some_and(|dirtied| writes.explain(inode, range.0, block, dirtied));
        Some(Contents {
            inode,
            range,
            q_ns,
            dirtier,
            dirtied,
            is_explained,
            are_all: self.is_whole && !row.is_mapped && writes.are_all(inode, q_ns),
        })
    }

    /// Judges a row by the calls that changed its bytes.
    fn by_calls(
        &mut self,
        request: &Request,
        row: &Row,
        operation: Operation,
        of: &Contents,
        registry: &Registry<'_>,
    ) {
        let block = self.block.into();
        let writes = &mut self.found.writes;
        let (runs, are_found) = writes.changers(of.inode, of.range, block, of.q_ns, of.dirtied);
        let of = &Contents {
            are_all: of.are_all && are_found,
            ..*of
        };
        let mut from = of.range.0;
        for (to, changers) in runs {
            let bytes = u32::try_from(to.saturating_sub(from)).unwrap_or(u32::MAX);
            let of = &Contents {
                is_explained: of.is_explained || is_among(&changers, of, row, registry),
                ..*of
            };
            let blame = self.blame_of(&changers, of, row, operation);
            self.blame(&blame, bytes);
            let writes = &mut self.found.writes;
            writes.written(of.inode, (from, to), of.q_ns, changers.only());
            match changers.is_empty() {
                true => {
                    self.submitted(request, of.inode, of.dirtier.map(Caller::from), of.q_ns);
                }
                false => self.submitted(request, of.inode, changers.all(), of.q_ns),
            }
            from = to;
        }
    }

    /// Returns the causers of blocks that these tasks changed by calls.
    fn blame_of(
        &mut self,
        changers: &Changers,
        of: &Contents,
        row: &Row,
        operation: Operation,
    ) -> Blame {
        let list = &mut self.found.list;
        let mut cause = |caller: Caller| match caller.process {
            ProcessId::UNKNOWN => CauseId::UNKNOWN,
            _ => list.intern(Cause::of(caller, operation, row.file)),
        };
        let all: Vec<_> = changers.all().map(&mut cause).collect();
        if of.are_all && of.is_explained && !changers.is_empty() {
            return match changers.possible.is_empty() {
                true => Blame::all(all),
                false => Blame::of(all),
            };
        }
        // Whoever dirtied a page outside a known call did so through a mapping, or before calls were recorded.
        let unexplained = of
            .dirtier
            .filter(|_| !of.is_explained || changers.is_empty());
        let dirtier = unexplained.map(Caller::from).map(&mut cause);
        Blame::of(dirtier.into_iter().chain(all)).first(&Others::Unknown)
    }

    /// Notes a row without an entry: the changes that it wrote must not count as unwritten.
    fn written_unseen(&mut self, request: &Request, row: &Row) {
        self.found.writes.written_unseen(request.time_ns);
        self.homes_written(request, row);
    }

    /// Judges a row by the task that made its pages dirty: others may have changed them afterwards.
    fn by_dirtier(
        &mut self,
        request: &Request,
        row: &Row,
        operation: Operation,
        registry: &Registry<'_>,
    ) {
        let dirtier = user(row.dirtier, registry).map(Caller::from);
        self.first(dirtier, operation, row);
        if let (Some(caller), Some((inode, _, q_ns))) = (dirtier, place(row, registry)) {
            self.submitted(request, inode, [caller], q_ns);
        }
    }

    /// Notes that pages of an inode that these tasks had changed were submitted at `q_ns`; only handles lead back to them.
    fn submitted(
        &mut self,
        request: &Request,
        inode: Inode,
        callers: impl IntoIterator<Item = Caller>,
        q_ns: u64,
    ) {
        if self.tables.has_handles() {
            let known = |caller: &Caller| caller.process != ProcessId::UNKNOWN;
            for caller in callers.into_iter().filter(known) {
                let pages = &mut self.found.pages;
                pages.written(inode, caller, q_ns, request.time_ns);
            }
        }
    }

    fn operation(&self, row: &Row, registry: &Registry<'_>) -> Operation {
        let is_atomic = place(row, registry)
            .is_some_and(|(inode, _, q_ns)| self.found.f2fs.commits(inode, q_ns));
        match row.kind {
            Some(Kind::Directory | Kind::Symlink) => Operation::Other,
            _ if is_atomic => Operation::AtomicWrite,
            _ => Operation::Write,
        }
    }

    /// Returns the task that moved the blocks to collect garbage. It dirtied their pages meanwhile, or wrote blocks unchanged
    /// because it could not decode them (encrypted, compressed). f2fs's own thread is a causer only here.
    pub(super) fn collector(&self, row: &Row, registry: &Registry<'_>) -> Option<ProcessId> {
        if row.collects {
            return Some(row.dirtier);
        }
        if row.dirtier != ProcessId::UNKNOWN || row.origin != Some(Origin::META) {
            return None;
        }
        let (process, time_ns) = (row.process, row.q_ns?);
        let pid = registry.process(process).pid?;
        self.found.f2fs.collects(pid, time_ns).then_some(process)
    }
}

/// Returns the inode, the row's bytes in the file and the time of Q, ns.
fn place(row: &Row, registry: &Registry<'_>) -> Option<(Inode, (u64, u64), u64)> {
    let file = registry.file(row.file);
    let inode = (file.inode?, file.generation.unwrap_or(0));
    let from = row.file_offset.unwrap_or(0);
    Some((
        inode,
        (from, from.saturating_add(row.bytes.into())),
        row.q_ns?,
    ))
}

/// Returns true if the dirtier is one of these tasks, or worked for one, where it is not known when it dirtied the page: only a
/// row's first page has a time.
fn is_among(changers: &Changers, of: &Contents, row: &Row, registry: &Registry<'_>) -> bool {
    let Some(dirtier) = of.dirtier.filter(|_| row.dirty_ns.is_none()) else {
        return false;
    };
    let mut all = changers.all();
    changers.has(dirtier) || all.any(|caller| registry.works_for(dirtier, caller.process))
}

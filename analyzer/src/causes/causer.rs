// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds the causers of each row.

use std::io::Read;

use mostrace_bundle::Error;
use mostrace_bundle::entry::{CallKind, Origin, handle_flags};
use mostrace_map::class::{Class, Kind};

use super::blame::{Blame, Weights};
use super::calls::{Call, Calls};
use super::cause::List;
use super::f2fs::{F2fs, Requester};
use super::handle::{Handle, Lead, removes};
use super::homes::Homes;
use super::operation::is_sync;
use super::pages::Pages;
use super::share::{Sharing, Verdicts};
use super::tables::Tables;
use super::transactions::Transactions;
use super::unlinked::Unlinked;
use super::{Cause, CauseId, Known, Operation};
use crate::attribute::{FileId, HashMap, JournalBlock, Op, ProcessId, Registry, Request, Row};

/// A filesystem's block size until another one is known, bytes.
const BLOCK: u32 = 4096;
/// More commits than can wait for their flush; there is one at a time.
const COMMITS: usize = 64;

/// Finds the causers of rows.
pub struct Causer<'a, R> {
    tables: Tables<'a, R>,
    functions: Vec<String>,
    sharing: Sharing,
    found: Found,
    transactions: Transactions,
    homes: Homes,
    /// Weights of the transactions committed since jbd2's superblock was written.
    since_superblock: Weights,
    /// The call that forced each commit, by the sector of the commit block.
    commits: HashMap<u64, Option<Call>>,
    nodes: Nodes,
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
}

/// Weights of the f2fs nodes written since the last checkpoint.
#[derive(Default)]
struct Nodes {
    weights: Weights,
    /// True if a checkpoint was seen since the last of these nodes.
    is_over: bool,
}

impl<'a, R: Read> Causer<'a, R> {
    /// Takes the tables of a bundle and the functions that its manifest names.
    pub fn new(tables: Tables<'a, R>, functions: &[String], sharing: Sharing) -> Self {
        Causer {
            tables,
            functions: functions.to_vec(),
            sharing,
            found: Found::default(),
            transactions: Transactions::default(),
            homes: Homes::default(),
            since_superblock: Weights::default(),
            commits: HashMap::default(),
            nodes: Nodes::default(),
            block: BLOCK,
            verdicts: Verdicts::default(),
        }
    }

    /// Makes the tables read on: they may have grown past the end that was reached, and the manifest may name more
    /// functions.
    pub fn go_on(&mut self, functions: &[String]) {
        self.tables.go_on();
        functions.clone_into(&mut self.functions);
    }

    /// Returns a cause by its number.
    pub fn cause(&self, id: CauseId) -> Cause {
        self.found.list.get(id)
    }

    /// Reads the tables as far as a completion at `time_ns` needs them.
    ///
    /// # Errors
    /// Returns an error if a table cannot be read.
    pub fn pull(
        &mut self,
        time_ns: u64,
        registry: &mut Registry<'_>,
    ) -> Result<(), Error> {
        while let Some(raw) = self.tables.call(time_ns)? {
            let process = registry.thread(raw.into(), raw.head.time_ns.get());
            let file = registry.inode(raw.ino.get(), raw.generation.get());
            let call = Call::new(raw, process, file);
            if call.kind == CallKind::Unlink && raw.result.get() == 0 {
                self.found.unlinked.push(call.inode, process);
            }
            let succeeded = raw.result.get() >= 0;
            self.found.f2fs.call(&call, succeeded);
            self.found.calls.push(call, time_ns);
        }
        while let Some(raw) = self.tables.step(time_ns)? {
            let process = registry.thread(raw.into(), raw.head.time_ns.get());
            let Found { f2fs, calls, .. } = &mut self.found;
            f2fs.push(raw, process, calls);
        }
        while let Some(raw) = self.tables.handle(time_ns)? {
            let process = registry.thread(raw.into(), raw.head.time_ns.get());
            let call = self.found.calls.at(raw.pid.get(), raw.head.time_ns.get());
            // A call that removes a name begins its handle for the directory; the removed file is the call's.
            let removed = call.filter(|call| removes(call.kind) && call.file != FileId::NONE);
            let file = match removed {
                Some(call) => call.file,
                None => registry.inode(raw.ino.get(), raw.generation.get()),
            };
            let function = usize::try_from(raw.function.get()).ok();
            let function = function.and_then(|at| self.functions.get(at));
            let is_kernels =
                raw.head.flags.has(handle_flags::KERNEL) || !registry.is_user(process);
            let handle = Handle::new(raw, function.map(String::as_str), process, is_kernels, file);
            self.transactions
                .add(raw.s_dev.get(), raw.tid.get(), handle);
        }
        while let Some(raw) = self.tables.dirtied(time_ns)? {
            self.block = raw.head.bytes.get().max(512);
            if let Some(home) = registry.home_on_disk(raw.home, raw.head.sector.get()) {
                self.transactions
                    .dirtied(raw.tid.get(), raw.handle.get(), home);
            }
        }
        Ok(())
    }

    /// Judges the rows of the next completion; completions come in time order.
    pub fn push(
        &mut self,
        request: &Request,
        rows: &[Row],
        registry: &Registry<'_>,
    ) -> &Verdicts {
        self.verdicts.clear();
        for row in rows {
            let latency_ns = match row.op {
                Op::Write => self.write(request, row, registry),
                Op::Read => {
                    let process = user(row.process, registry);
                    self.one(process, Operation::Read, row);
                    None
                }
                Op::Flush => self.flush(request, row, registry),
                _ => None,
            };
            if self.is_one_process(registry) {
                self.verdicts.one_process();
            }
            self.verdicts.end(latency_ns);
        }
        &self.verdicts
    }

    /// Returns true if all causers of the row that is being judged belong to one process.
    fn is_one_process(&self, registry: &Registry<'_>) -> bool {
        let mut causers = self.verdicts.causers();
        let process_of = |causer| registry.process(self.found.list.get(causer).process).tgid;
        let first = causers.next().and_then(process_of);
        first.is_some() && causers.all(|causer| process_of(causer) == first)
    }

    /// Returns the causes, indexed by number.
    pub fn finish(self) -> Vec<Cause> {
        self.found.list.into_list()
    }

    /// Judges a row of written bytes; returns the time from the start of the call that forced it to the completion, ns.
    fn write(
        &mut self,
        request: &Request,
        row: &Row,
        registry: &Registry<'_>,
    ) -> Option<u64> {
        let class = row.kind.map(Kind::class);
        match (class, row.journal) {
            _ if row.kind == Some(Kind::FastCommit) => {
                return self.fast_commit(request, row, registry);
            }
            (Some(Class::Journal), Some(block)) => {
                return self.journal(request, row, &block, registry);
            }
            (Some(Class::Journal), None) => self.unknown(row.bytes),
            (Some(Class::Metadata), _) => self.metadata(request, row, registry),
            _ if row.origin == Some(Origin::BDEV) => self.metadata(request, row, registry),
            _ => self.contents(row, registry),
        }
        None
    }

    /// Judges contents of a file: the causer is the task that dirtied the pages, or the submitter of direct IO.
    fn contents(&mut self, row: &Row, registry: &Registry<'_>) {
        if let Some(collector) = self.collector(row, registry) {
            self.one(Some(collector), Operation::Gc, row);
            return;
        }
        let is_direct = matches!(row.origin, Some(Origin::DIRECT | Origin::RAW));
        let process = match row.dirtier {
            ProcessId::UNKNOWN if is_direct => user(row.process, registry),
            dirtier => user(dirtier, registry),
        };
        let file = registry.file(row.file);
        let inode = file.inode.map(|ino| (ino, file.generation.unwrap_or(0)));
        let is_atomic = inode
            .zip(row.q_ns)
            .is_some_and(|(inode, q_ns)| self.found.f2fs.commits(inode, q_ns));
        let operation = match row.kind {
            Some(Kind::Directory | Kind::Symlink) => Operation::Other,
            _ if is_atomic => Operation::AtomicWrite,
            _ => Operation::Write,
        };
        self.one(process, operation, row);
        // Only handles are traced back to these pages.
        if !self.tables.has_handles() {
            return;
        }
        if let (Some(process), Some(inode), Some(q_ns)) = (process, inode, row.q_ns) {
            self.found.pages.written(inode, process, q_ns);
        }
    }

    /// Returns the task that moved the blocks to collect garbage: it dirtied their pages meanwhile, or wrote blocks that it
    /// could not decode (encrypted, compressed) unchanged. f2fs's own thread is a causer only here.
    fn collector(&self, row: &Row, registry: &Registry<'_>) -> Option<ProcessId> {
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

    /// Judges metadata that is written home.
    fn metadata(&mut self, request: &Request, row: &Row, registry: &Registry<'_>) {
        let dirtier = user(row.dirtier, registry);
        match row.kind {
            Some(kind) if kind.is_node() => self.node(kind, dirtier, row, registry),
            Some(Kind::Checkpoint | Kind::Sit | Kind::Nat | Kind::Ssa) => {
                self.checkpoint(row, registry);
            }
            Some(Kind::Btree) => self.one_of_several(dirtier, row),
            _ if self.tables.has_handles() && dirtier.is_none() => self.home(request, row),
            _ => {
                self.one(dirtier, Operation::Other, row);
            }
        }
    }

    /// Judges a node of f2fs, which the next checkpoint makes valid.
    fn node(
        &mut self,
        kind: Kind,
        dirtier: Option<ProcessId>,
        row: &Row,
        registry: &Registry<'_>,
    ) {
        let collector = self.collector(row, registry);
        let (process, operation, of_checkpoint) = match (collector, kind) {
            (Some(_), _) => (collector, Operation::Gc, Operation::Gc),
            (_, Kind::FsyncNode) => (dirtier, Operation::Fsync, Operation::Checkpoint),
            _ => (dirtier, Operation::Other, Operation::Checkpoint),
        };
        self.one(process, operation, row);
        let causer = match process {
            None => CauseId::UNKNOWN,
            Some(process) => self.found.list.intern(Cause {
                process,
                operation: Some(of_checkpoint),
                file: row.file,
            }),
        };
        self.nodes.push(causer, row.bytes);
    }

    /// Judges blocks that have copies in the journal.
    fn home(&mut self, request: &Request, row: &Row) {
        let time_ns = row.q_ns.or(request.d_ns).unwrap_or(request.time_ns);
        let mut left = row.bytes;
        let mut sector = row.sector;
        while left > 0 {
            let bytes = left.min(self.block);
            let changes = self.homes.written(sector, time_ns);
            match (self.sharing, &changes[..]) {
                (_, []) => self.unknown(bytes),
                (Sharing::First, [first, later @ ..]) => {
                    self.blame(first, bytes);
                    later.iter().for_each(|blame| self.blame(blame, 0));
                }
                (Sharing::Equal, _) => {
                    let weights = vec![1; changes.len()];
                    let parts = super::share::in_proportion(bytes, &weights);
                    for (blame, part) in changes.iter().zip(parts) {
                        self.blame(blame, part);
                    }
                }
            }
            left = left.saturating_sub(bytes);
            sector = sector.saturating_add(u64::from(self.block / 512));
        }
    }

    /// Judges a block of f2fs's checkpoint: its causers are those who requested it, or else those whose nodes it makes
    /// valid.
    fn checkpoint(&mut self, row: &Row, registry: &Registry<'_>) {
        let Found { list, f2fs, .. } = &mut self.found;
        let seen = row.q_ns.and_then(|q_ns| f2fs.checkpoint(q_ns));
        let blame = match seen {
            Some(checkpoint) => {
                self.verdicts.checkpoint(checkpoint.reason);
                let requesters = checkpoint.requesters.iter();
                Blame::of(requesters.map(|requester| list.intern(of_requester(requester))))
            }
            None => self.by_submitter(row, registry),
        };
        match blame {
            Blame::Unknown => self.nodes.weights.share(row.bytes, &mut self.verdicts),
            blame => self.blame(&blame, row.bytes),
        }
        self.nodes.is_over = true;
    }

    /// Blames a block of an unseen checkpoint on its submitter: a task that writes a checkpoint itself requested it.
    fn by_submitter(&mut self, row: &Row, registry: &Registry<'_>) -> Blame {
        let Some(process) = user(row.process, registry) else {
            return Blame::Unknown;
        };
        let call = row
            .q_ns
            .and_then(|q_ns| self.call(process, q_ns, registry));
        Blame::Exact(self.found.list.intern(Cause {
            process,
            operation: Some(Operation::Checkpoint),
            file: call.map_or(FileId::NONE, |call| call.file),
        }))
    }

    /// Judges a block of jbd2's journal.
    fn journal(
        &mut self,
        request: &Request,
        row: &Row,
        block: &JournalBlock,
        registry: &Registry<'_>,
    ) -> Option<u64> {
        let Causer {
            transactions,
            found,
            sharing,
            ..
        } = self;
        if row.kind == Some(Kind::Jbd2Superblock) {
            let since = std::mem::take(&mut self.since_superblock);
            since.share(row.bytes, &mut self.verdicts);
            return None;
        }
        let transaction = block.tid.and_then(|tid| transactions.get(tid));
        let Some(transaction) = transaction else {
            self.unknown(row.bytes);
            return None;
        };
        transaction.first_q_ns = row.q_ns.into_iter().chain(transaction.first_q_ns).min();
        let mut causers = |handle: &Handle| found.causers(handle);
        match row.kind {
            Some(Kind::MetadataCopy | Kind::DataCopy) => {
                let home = block.home_sector;
                let blame = home.map(|home| transaction.blame(home, &mut causers));
                let blame = blame.unwrap_or_default();
                let blame = match row.kind {
                    Some(Kind::DataCopy) => found.as_written(&blame),
                    _ => blame,
                };
                self.blame(&blame, row.bytes);
                None
            }
            Some(Kind::Commit) => {
                let weights = transaction.weights(*sharing, &mut causers);
                weights.share(row.bytes, &mut self.verdicts);
                self.commit(request, row, block.tid?, registry)
            }
            Some(Kind::Descriptor | Kind::Revoke) => {
                let weights = transaction.weights(*sharing, &mut causers);
                weights.share(row.bytes, &mut self.verdicts);
                None
            }
            _ => {
                self.unknown(row.bytes);
                None
            }
        }
    }

    /// Ends a transaction. Returns the time from the start of the call that forced it to the completion, ns.
    fn commit(
        &mut self,
        request: &Request,
        row: &Row,
        tid: u32,
        registry: &Registry<'_>,
    ) -> Option<u64> {
        let forced = self.forced_by(row, tid, registry).copied();
        if self.commits.len() >= COMMITS {
            self.commits.clear();
        }
        self.commits.insert(row.sector, forced);
        let Causer {
            transactions,
            found,
            homes,
            ..
        } = self;
        let mut causers = |handle: &Handle| found.causers(handle);
        for mut transaction in transactions.committed(tid) {
            let weights = transaction.weights(self.sharing, &mut causers);
            self.since_superblock.add_all(weights);
            for (home, time_ns, blame) in transaction.blocks(&mut causers) {
                homes.dirtied(home, time_ns, blame);
            }
        }
        forced.map(|call| request.time_ns.saturating_sub(call.start_ns))
    }

    /// Returns the call that a commit was made for: the first one that waited for it all along, of a process that took part
    /// in the transaction or that a kernel thread did work for. None if the timer or a lack of room caused the commit.
    fn forced_by(
        &mut self,
        row: &Row,
        tid: u32,
        registry: &Registry<'_>,
    ) -> Option<&Call> {
        let Found { calls, list, .. } = &self.found;
        let transaction = self.transactions.get(tid)?;
        let from_ns = transaction.first_q_ns?;
        let is_its = |causer, tgid| {
            let process = registry.process(list.get(causer).process);
            process.tgid == Some(tgid)
        };
        let took_part = |call: &Call| {
            call.kind == CallKind::Sync
                || transaction.has(call.tgid)
                || transaction
                    .causers()
                    .any(|causer| is_its(causer, call.tgid))
        };
        calls.first_sync(from_ns, row.q_ns?, took_part)
    }

    /// Judges a block of the fast-commit area, which the caller of fsync writes itself.
    fn fast_commit(
        &mut self,
        request: &Request,
        row: &Row,
        registry: &Registry<'_>,
    ) -> Option<u64> {
        let process = user(row.process, registry);
        let call = process.and_then(|p| self.call(p, row.q_ns?, registry));
        self.fsync(request, row, process, call)
    }

    /// Judges the end of a flush sequence or of an empty flush.
    fn flush(
        &mut self,
        request: &Request,
        row: &Row,
        registry: &Registry<'_>,
    ) -> Option<u64> {
        if let Some(forced) = self.commits.remove(&row.sector) {
            return self.fsync(request, row, forced.map(|call| call.process), forced);
        }
        let process = user(row.process, registry);
        let call = process.and_then(|p| self.call(p, row.q_ns?, registry));
        if call.is_none() && self.tables.has_calls() {
            // The flush is for a file that was opened with O_SYNC, or for something else that asks for it.
            self.one(process, Operation::Other, row);
            return None;
        }
        self.fsync(request, row, process, call)
    }

    /// Judges a row that a call for durability waits for.
    fn fsync(
        &mut self,
        request: &Request,
        row: &Row,
        process: Option<ProcessId>,
        call: Option<Call>,
    ) -> Option<u64> {
        let called = call.map(|call| call.file);
        let file = called.filter(|&file| file != FileId::NONE);
        let row = Row {
            file: file.unwrap_or(row.file),
            ..*row
        };
        self.one(process, Operation::Fsync, &row);
        call.map(|call| request.time_ns.saturating_sub(call.start_ns))
    }

    /// Returns the call for durability that a thread was in.
    fn call(
        &self,
        process: ProcessId,
        time_ns: u64,
        registry: &Registry<'_>,
    ) -> Option<Call> {
        let pid = registry.process(process).pid?;
        let call = self.found.calls.at(pid, time_ns);
        call.filter(|call| is_sync(call.kind)).copied()
    }

    /// Gives all bytes of a row to one causer, or to the unknown one.
    fn one(&mut self, process: Option<ProcessId>, operation: Operation, row: &Row) -> CauseId {
        let Some(process) = process else {
            self.unknown(row.bytes);
            return CauseId::UNKNOWN;
        };
        let cause = Cause {
            process,
            operation: Some(operation),
            file: row.file,
        };
        let causer = self.found.list.intern(cause);
        self.verdicts.add(causer, Known::Exact, row.bytes);
        causer
    }

    /// Judges a block that other tasks may also have changed after the known one dirtied it.
    fn one_of_several(&mut self, dirtier: Option<ProcessId>, row: &Row) {
        let Some(process) = dirtier else {
            return self.unknown(row.bytes);
        };
        let cause = Cause {
            process,
            operation: Some(Operation::Other),
            file: row.file,
        };
        let causer = self.found.list.intern(cause);
        self.verdicts.add(causer, Known::Set, row.bytes);
    }

    fn unknown(&mut self, bytes: u32) {
        self.verdicts.add(CauseId::UNKNOWN, Known::Unknown, bytes);
    }

    fn blame(&mut self, blame: &Blame, bytes: u32) {
        for (causer, part) in blame.parts(bytes, self.sharing) {
            self.verdicts.add(causer, blame.known(), part);
        }
    }
}

fn of_requester(requester: &Requester) -> Cause {
    let operation = match requester.collects {
        true => Operation::Gc,
        false => Operation::Checkpoint,
    };
    Cause {
        process: requester.process,
        operation: Some(operation),
        file: requester.file,
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
        let mut cause = |process| {
            list.intern(Cause {
                process,
                operation: Some(handle.operation),
                file: handle.file,
            })
        };
        let found = match handle.lead {
            Lead::Nothing => return Blame::Unknown,
            Lead::Task => Blame::Unknown,
            Lead::Pages => Blame::of(pages.since(handle.inode, handle.start_ns).map(&mut cause)),
            Lead::WrittenPages => Blame::of(pages.last(handle.inode).map(&mut cause)),
            Lead::Eviction => Blame::of(unlinked.get(handle.inode).map(&mut cause)),
        };
        match found {
            Blame::Unknown if !handle.is_kernels => Blame::Exact(cause(handle.process)),
            found => found,
        }
    }

    /// Returns the same causers with the operation `Write`.
    fn as_written(&mut self, blame: &Blame) -> Blame {
        let causers = blame.causers().iter().map(|&causer| {
            let cause = self.list.get(causer);
            match causer {
                CauseId::UNKNOWN => causer,
                _ => self.list.intern(Cause {
                    operation: Some(Operation::Write),
                    ..cause
                }),
            }
        });
        Blame::of(causers.collect::<Vec<_>>())
    }
}

impl Nodes {
    fn push(&mut self, causer: CauseId, bytes: u32) {
        if std::mem::take(&mut self.is_over) {
            self.weights = Weights::default();
        }
        self.weights.add(causer, bytes.into());
    }
}

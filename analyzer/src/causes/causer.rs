// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who caused each row.

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
use crate::attribute::{Attributor, FileId, HashMap, JournalBlock, Op, ProcessId, Request, Row};

/// A filesystem's block, as long as none is known to be of another size, bytes.
const BLOCK: u32 = 4096;
/// Commits whose flush has not ended yet: there is one at a time.
const COMMITS: usize = 64;

/// Finds the causers of rows.
pub struct Causer<'a, R> {
    tables: Tables<'a, R>,
    functions: Vec<String>,
    sharing: Sharing,
    found: Found,
    transactions: Transactions,
    homes: Homes,
    /// Of the transactions committed since jbd2's superblock was written.
    since_superblock: Weights,
    /// By the sector of a commit block, the call that forced it.
    commits: HashMap<u64, Option<Call>>,
    nodes: Nodes,
    /// Of the filesystem's, bytes.
    block: u32,
    verdicts: Verdicts,
}

/// What leads from a handle to its causers.
#[derive(Default)]
struct Found {
    list: List,
    calls: Calls,
    f2fs: F2fs,
    pages: Pages,
    unlinked: Unlinked,
}

/// f2fs's nodes since its last checkpoint.
#[derive(Default)]
struct Nodes {
    weights: Weights,
    /// A checkpoint was seen since the last of them.
    is_over: bool,
}

impl<'a, R: Read> Causer<'a, R> {
    /// By the tables of a bundle, and the functions that its manifest names.
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

    /// The tables may have more now, behind their ends, and name more functions.
    pub fn go_on(&mut self, functions: &[String]) {
        self.tables.go_on();
        functions.clone_into(&mut self.functions);
    }

    /// A cause by its number.
    pub fn cause(&self, id: CauseId) -> Cause {
        self.found.list.get(id)
    }

    /// Takes in the tables as far as a completion of this time needs them.
    ///
    /// # Errors
    /// A table cannot be read.
    pub fn pull<S: Read>(
        &mut self,
        time_ns: u64,
        attributor: &mut Attributor<'_, S>,
    ) -> Result<(), Error> {
        while let Some(raw) = self.tables.call(time_ns)? {
            let process = attributor.thread(raw.into(), raw.head.time_ns.get());
            let file = attributor.inode(raw.ino.get(), raw.generation.get());
            let call = Call::new(raw, process, file);
            if call.kind == CallKind::Unlink && raw.result.get() == 0 {
                self.found.unlinked.push(call.inode, process);
            }
            let succeeded = raw.result.get() >= 0;
            self.found.f2fs.call(&call, succeeded);
            self.found.calls.push(call, time_ns);
        }
        while let Some(raw) = self.tables.step(time_ns)? {
            let process = attributor.thread(raw.into(), raw.head.time_ns.get());
            let Found { f2fs, calls, .. } = &mut self.found;
            f2fs.push(raw, process, calls);
        }
        while let Some(raw) = self.tables.handle(time_ns)? {
            let process = attributor.thread(raw.into(), raw.head.time_ns.get());
            let call = self.found.calls.at(raw.pid.get(), raw.head.time_ns.get());
            // What removes a name begins for the directory.
            let removed = call.filter(|call| removes(call.kind) && call.file != FileId::NONE);
            let file = match removed {
                Some(call) => call.file,
                None => attributor.inode(raw.ino.get(), raw.generation.get()),
            };
            let function = usize::try_from(raw.function.get()).ok();
            let function = function.and_then(|at| self.functions.get(at));
            let is_kernels =
                raw.head.flags.has(handle_flags::KERNEL) || !attributor.is_user(process);
            let handle = Handle::new(raw, function.map(String::as_str), process, is_kernels, file);
            self.transactions
                .add(raw.s_dev.get(), raw.tid.get(), handle);
        }
        while let Some(raw) = self.tables.dirtied(time_ns)? {
            self.block = raw.head.bytes.get().max(512);
            if let Some(home) = attributor.home_on_disk(raw.home, raw.head.sector.get()) {
                self.transactions
                    .dirtied(raw.tid.get(), raw.handle.get(), home);
            }
        }
        Ok(())
    }

    /// Judges the rows of the next completion, in the order of time.
    pub fn push<S: Read>(
        &mut self,
        request: &Request,
        rows: &[Row],
        attributor: &Attributor<'_, S>,
    ) -> &Verdicts {
        self.verdicts.clear();
        for row in rows {
            let latency_ns = match row.op {
                Op::Write => self.write(request, row, attributor),
                Op::Read => {
                    let process = user(row.process, attributor);
                    self.one(process, Operation::Read, row);
                    None
                }
                Op::Flush => self.flush(request, row, attributor),
                _ => None,
            };
            if self.is_one_process(attributor) {
                self.verdicts.one_process();
            }
            self.verdicts.end(latency_ns);
        }
        &self.verdicts
    }

    /// Whether all causers of the row that is being judged are of one process.
    fn is_one_process<S: Read>(&self, attributor: &Attributor<'_, S>) -> bool {
        let mut causers = self.verdicts.causers();
        let process_of = |causer| attributor.process(self.found.list.get(causer).process).tgid;
        let first = causers.next().and_then(process_of);
        first.is_some() && causers.all(|causer| process_of(causer) == first)
    }

    /// The causes, by number.
    pub fn finish(self) -> Vec<Cause> {
        self.found.list.into_list()
    }

    /// Judges a row of written bytes; returns how long after the call that forced it the device answered.
    fn write<S: Read>(
        &mut self,
        request: &Request,
        row: &Row,
        attributor: &Attributor<'_, S>,
    ) -> Option<u64> {
        let class = row.kind.map(Kind::class);
        match (class, row.journal) {
            _ if row.kind == Some(Kind::FastCommit) => {
                return self.fast_commit(request, row, attributor);
            }
            (Some(Class::Journal), Some(block)) => {
                return self.journal(request, row, &block, attributor);
            }
            (Some(Class::Journal), None) => self.unknown(row.bytes),
            (Some(Class::Metadata), _) => self.metadata(request, row, attributor),
            _ if row.origin == Some(Origin::BDEV) => self.metadata(request, row, attributor),
            _ => self.contents(row, attributor),
        }
        None
    }

    /// Contents of a file: who made the pages dirty, or whose own direct IO it is.
    fn contents<S: Read>(&mut self, row: &Row, attributor: &Attributor<'_, S>) {
        if let Some(collector) = self.collector(row, attributor) {
            self.one(Some(collector), Operation::Gc, row);
            return;
        }
        let is_direct = matches!(row.origin, Some(Origin::DIRECT | Origin::RAW));
        let process = match row.dirtier {
            ProcessId::UNKNOWN if is_direct => user(row.process, attributor),
            dirtier => user(dirtier, attributor),
        };
        let file = attributor.file(row.file);
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
        // It is handles that are led to them.
        if !self.tables.has_handles() {
            return;
        }
        if let (Some(process), Some(inode), Some(q_ns)) = (process, inode, row.q_ns) {
            self.found.pages.written(inode, process, q_ns);
        }
    }

    /// The task that moved the blocks to collect garbage: it made their pages dirty meanwhile, or wrote what it could not
    /// read (encrypted, compressed) as it lay. f2fs's own thread does so for nobody else.
    fn collector<S: Read>(&self, row: &Row, attributor: &Attributor<'_, S>) -> Option<ProcessId> {
        if row.collects {
            return Some(row.dirtier);
        }
        if row.dirtier != ProcessId::UNKNOWN || row.origin != Some(Origin::META) {
            return None;
        }
        let (process, time_ns) = (row.process, row.q_ns?);
        let pid = attributor.process(process).pid?;
        self.found.f2fs.collects(pid, time_ns).then_some(process)
    }

    /// Metadata written home.
    fn metadata<S: Read>(&mut self, request: &Request, row: &Row, attributor: &Attributor<'_, S>) {
        let dirtier = user(row.dirtier, attributor);
        match row.kind {
            Some(kind) if kind.is_node() => self.node(kind, dirtier, row, attributor),
            Some(Kind::Checkpoint | Kind::Sit | Kind::Nat | Kind::Ssa) => {
                self.checkpoint(row, attributor);
            }
            Some(Kind::Btree) => self.one_of_several(dirtier, row),
            _ if self.tables.has_handles() && dirtier.is_none() => self.home(request, row),
            _ => {
                self.one(dirtier, Operation::Other, row);
            }
        }
    }

    /// A node of f2fs's, which the next checkpoint makes valid.
    fn node<S: Read>(
        &mut self,
        kind: Kind,
        dirtier: Option<ProcessId>,
        row: &Row,
        attributor: &Attributor<'_, S>,
    ) {
        let collector = self.collector(row, attributor);
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

    /// Blocks of which the journal has copies.
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

    /// f2fs's checkpoint: who asked for it, or those whose nodes it makes valid.
    fn checkpoint<S: Read>(&mut self, row: &Row, attributor: &Attributor<'_, S>) {
        let Found { list, f2fs, .. } = &mut self.found;
        let seen = row.q_ns.and_then(|q_ns| f2fs.checkpoint(q_ns));
        let blame = match seen {
            Some(checkpoint) => {
                self.verdicts.checkpoint(checkpoint.reason);
                let requesters = checkpoint.requesters.iter();
                Blame::of(requesters.map(|requester| list.intern(of_requester(requester))))
            }
            None => self.by_submitter(row, attributor),
        };
        match blame {
            Blame::Unknown => self.nodes.weights.share(row.bytes, &mut self.verdicts),
            blame => self.blame(&blame, row.bytes),
        }
        self.nodes.is_over = true;
    }

    /// A block of a checkpoint that was not seen: whoever writes it itself asked for it.
    fn by_submitter<S: Read>(&mut self, row: &Row, attributor: &Attributor<'_, S>) -> Blame {
        let Some(process) = user(row.process, attributor) else {
            return Blame::Unknown;
        };
        let call = row
            .q_ns
            .and_then(|q_ns| self.call(process, q_ns, attributor));
        Blame::Exact(self.found.list.intern(Cause {
            process,
            operation: Some(Operation::Checkpoint),
            file: call.map_or(FileId::NONE, |call| call.file),
        }))
    }

    /// A block of jbd2's.
    fn journal<S: Read>(
        &mut self,
        request: &Request,
        row: &Row,
        block: &JournalBlock,
        attributor: &Attributor<'_, S>,
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
                self.commit(request, row, block.tid?, attributor)
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

    /// A transaction is over. Returns how long after the call that forced it this is.
    fn commit<S: Read>(
        &mut self,
        request: &Request,
        row: &Row,
        tid: u32,
        attributor: &Attributor<'_, S>,
    ) -> Option<u64> {
        let forced = self.forced_by(row, tid, attributor).copied();
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

    /// The call that a commit was made for: the first one that waited for it all along, of a process that took part in
    /// the transaction, or for which a kernel thread did. None: the timer's, or for room.
    fn forced_by<S: Read>(
        &mut self,
        row: &Row,
        tid: u32,
        attributor: &Attributor<'_, S>,
    ) -> Option<&Call> {
        let Found { calls, list, .. } = &self.found;
        let transaction = self.transactions.get(tid)?;
        let from_ns = transaction.first_q_ns?;
        let is_its = |causer, tgid| {
            let process = attributor.process(list.get(causer).process);
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

    /// A block of the fast commit's area, which the caller of fsync writes itself.
    fn fast_commit<S: Read>(
        &mut self,
        request: &Request,
        row: &Row,
        attributor: &Attributor<'_, S>,
    ) -> Option<u64> {
        let process = user(row.process, attributor);
        let call = process.and_then(|p| self.call(p, row.q_ns?, attributor));
        self.fsync(request, row, process, call)
    }

    /// The end of a flush sequence, or of an empty flush.
    fn flush<S: Read>(
        &mut self,
        request: &Request,
        row: &Row,
        attributor: &Attributor<'_, S>,
    ) -> Option<u64> {
        if let Some(forced) = self.commits.remove(&row.sector) {
            return self.fsync(request, row, forced.map(|call| call.process), forced);
        }
        let process = user(row.process, attributor);
        let call = process.and_then(|p| self.call(p, row.q_ns?, attributor));
        if call.is_none() && self.tables.has_calls() {
            // A file that was opened to be written through, or whatever else asks for it.
            self.one(process, Operation::Other, row);
            return None;
        }
        self.fsync(request, row, process, call)
    }

    /// A row that a call for durability waits for.
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

    /// The call for durability that a thread was in.
    fn call<S: Read>(
        &self,
        process: ProcessId,
        time_ns: u64,
        attributor: &Attributor<'_, S>,
    ) -> Option<Call> {
        let pid = attributor.process(process).pid?;
        let call = self.found.calls.at(pid, time_ns);
        call.filter(|call| is_sync(call.kind)).copied()
    }

    /// All bytes of a row are this one's, or nobody's that is known.
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

    /// A block that others may have changed too, after the one that is known made it dirty.
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

/// Only a user's thread is a cause; and f2fs's that collects garbage.
fn user<S: Read>(process: ProcessId, attributor: &Attributor<'_, S>) -> Option<ProcessId> {
    attributor.is_user(process).then_some(process)
}

impl Found {
    /// The causers of a handle, by what leads to them.
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

    /// The same causers, who wrote contents.
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

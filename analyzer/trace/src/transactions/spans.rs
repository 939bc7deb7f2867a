// SPDX-License-Identifier: MIT OR Apache-2.0
//! The times of SQLite's transactions, and the calls that their processes made meanwhile.
//!
//! A transaction begins with the first call, after the previous one, on its journal or on a database without a WAL. It ends
//! when the calls for durability that follow its commit have returned, and a checkpoint that it triggers.

use std::io::Read;

use mostrace_bundle::Error;
use mostrace_bundle::entry::{CallKind, EntryRef, RawCall};
use mostrace_bundle::table::TableReader;
use mostrace_map::class::Role;

use super::reader::{Databases, Found};
use super::threads::Tie;
use crate::attribute::{File, HashMap, Task};
use crate::causes::is_sync;
use crate::tally::Tally;

/// A transaction and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The thread of its process that called last before it was found.
    pub task: Task,
    /// Inode and generation of the file whose call committed it.
    pub file: (u64, u32),
    /// Its start, CLOCK_MONOTONIC in ns.
    pub start_ns: u64,
    /// Its end, CLOCK_MONOTONIC in ns.
    pub end_ns: u64,
}

impl Span {
    /// Returns its duration, ns.
    pub fn ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

/// A call within a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// The kind of the call.
    pub kind: CallKind,
    /// The role of its file; None if the file belongs to no database.
    pub role: Option<Role>,
    /// Start of the call, CLOCK_MONOTONIC in ns.
    pub start_ns: u64,
    /// Return of the call, CLOCK_MONOTONIC in ns.
    pub end_ns: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// The state of one process and one database.
#[derive(Default)]
struct State {
    began_ns: Option<u64>,
    /// The index of its last transaction.
    last: Option<usize>,
    has_wal: bool,
}

/// Returns all transactions in the order of their commits.
pub fn spans<R: Read>(calls: &mut TableReader<R>, files: &[File]) -> Result<Vec<Span>, Error> {
    let mut reader = Databases::new(files);
    let mut spans: Vec<(usize, Span)> = Vec::new();
    let mut states: HashMap<(u32, usize), State> = HashMap::default();
    // The database in which each process committed last: a directory's fsync follows the deletion of a journal.
    let mut latest: HashMap<u32, usize> = HashMap::default();
    let mut tasks: HashMap<u32, Task> = HashMap::default();
    while let Some(entry) = calls.next_if(|_| true)? {
        let EntryRef::Call(raw) = entry else { continue };
        if raw.result.get() < 0 {
            continue;
        }
        let seen = reader.see(raw);
        let tgid = raw.tgid.get();
        tasks.insert(tgid, Task::from(raw));
        let end_ns = raw.head.time_ns.get();
        let kind = CallKind::of(raw.kind.get());
        let database = seen.place.map(|place| place.database);
        let Some(database) = database.or(latest.get(&tgid).copied()) else {
            continue;
        };
        let state = states.entry((tgid, database)).or_default();
        if let Some(place) = seen.place {
            if begins(place.role, kind, state) {
                state.began_ns.get_or_insert(raw.start_ns.get());
            }
            state.has_wal |= place.role == Role::Wal;
        }
        if seen.found.is_empty() {
            // This call makes the commit durable, or belongs to a checkpoint.
            if let (None, Some(last)) = (state.began_ns, state.last)
                && (seen.place.is_some() || is_sync(kind))
            {
                spans[last].1.end_ns = end_ns;
            }
            continue;
        }
        for found in &seen.found {
            let state = states.entry((tgid, found.database)).or_default();
            latest.insert(tgid, found.database);
            add(found, &tasks, state, &mut spans);
        }
    }
    for found in reader.finish() {
        add(&found, &tasks, &mut State::default(), &mut spans);
    }
    spans.retain(|(database, _)| reader.is_sqlites(*database));
    Ok(spans.into_iter().map(|(_, span)| span).collect())
}

/// Adds a commit; a part of an existing transaction extends that one.
fn add(
    found: &Found,
    tasks: &HashMap<u32, Task>,
    state: &mut State,
    spans: &mut Vec<(usize, Span)>,
) {
    let commit = &found.commit;
    let Some(&task) = tasks.get(&commit.who.tgid) else {
        return;
    };
    let began_ns = state.began_ns.take().unwrap_or(commit.start_ns);
    if found.tie == Tie::Part
        && let Some((_, span)) = spans.last_mut()
        && span.task.tgid == commit.who.tgid
    {
        span.start_ns = span.start_ns.min(began_ns);
        span.end_ns = span.end_ns.max(commit.end_ns);
        return;
    }
    state.last = Some(spans.len());
    let span = Span {
        task,
        file: commit.file,
        start_ns: began_ns,
        end_ns: commit.end_ns,
    };
    spans.push((found.database, span));
}

/// Returns true if a call may be the first of a transaction.
fn begins(role: Role, kind: CallKind, state: &State) -> bool {
    match role {
        Role::RollbackJournal => !is_sync(kind) && !matches!(kind, CallKind::Unlink),
        Role::Wal => matches!(kind, CallKind::Write),
        Role::Db => matches!(kind, CallKind::Write) && !state.has_wal,
        _ => false,
    }
}

/// Returns for each transaction what its process called meanwhile, at most `most` calls, and the number of all its calls.
pub fn called<R: Read>(
    calls: &mut TableReader<R>,
    files: &[File],
    spans: &[Span],
    most: usize,
) -> Result<Vec<(Vec<Called>, u64)>, Error> {
    let reader = Databases::new(files);
    let mut all = vec![(Vec::new(), 0_u64); spans.len()];
    while let Some(entry) = calls.next_if(|_| true)? {
        let EntryRef::Call(raw) = entry else { continue };
        for (span, (calls, count)) in spans.iter().zip(&mut all) {
            if !is_in(span, raw) {
                continue;
            }
            count.tally(1);
            let file = (raw.ino.get(), raw.generation.get());
            if calls.len() < most {
                calls.push(Called {
                    kind: CallKind::of(raw.kind.get()),
                    role: reader.role(file),
                    start_ns: raw.start_ns.get(),
                    end_ns: raw.head.time_ns.get(),
                    bytes: raw.bytes.get(),
                });
            }
        }
    }
    Ok(all)
}

fn is_in(span: &Span, raw: &RawCall) -> bool {
    let (from, to) = (raw.start_ns.get(), raw.head.time_ns.get());
    raw.tgid.get() == span.task.tgid && from >= span.start_ns && to <= span.end_ns
}

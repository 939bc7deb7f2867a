// SPDX-License-Identifier: MIT OR Apache-2.0
//! When SQLite's transactions began and ended, and what their processes called meanwhile.
//!
//! A transaction begins with the first call on its journal, or on a database without a WAL, after the one before. It ends when
//! the calls for durability return that follow its commit, and with a checkpoint that they bring.

use std::io::Read;

use mostrace_bundle::Error;
use mostrace_bundle::entry::{CallKind, EntryRef, RawCall};
use mostrace_bundle::table::TableReader;
use mostrace_map::class::Role;

use super::commits::Progress;
use super::databases::{act, places};
use super::operation::is_sync;
use crate::attribute::{File, HashMap};

/// A transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The process.
    pub tgid: u32,
    /// Inode and generation of the file whose call committed it.
    pub file: (u64, u32),
    /// CLOCK_MONOTONIC, ns.
    pub start_ns: u64,
    /// The same.
    pub end_ns: u64,
}

impl Span {
    /// How long it took.
    pub fn ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }
}

/// A call within a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// What was called.
    pub kind: CallKind,
    /// The role of its file; None if that is none of a database's.
    pub role: Option<Role>,
    /// Inode and generation of its file.
    pub file: (u64, u32),
    /// CLOCK_MONOTONIC, ns.
    pub start_ns: u64,
    /// When it returned.
    pub end_ns: u64,
    /// Bytes written.
    pub bytes: u64,
}

/// One process and one database, as far as the calls have come.
#[derive(Default)]
struct State {
    progress: Progress,
    began_ns: Option<u64>,
    /// Its last transaction's place in the list.
    last: Option<usize>,
}

/// All transactions, in the order of their commits.
///
/// # Errors
/// The table cannot be read.
pub fn spans<R: Read>(calls: &mut TableReader<R>, files: &[File]) -> Result<Vec<Span>, Error> {
    let places = places(files);
    let mut spans: Vec<Span> = Vec::new();
    let mut states: HashMap<(u32, &[u8]), State> = HashMap::default();
    // Of each process the database that committed last: a directory's fsync follows a deletion.
    let mut latest: HashMap<u32, &[u8]> = HashMap::default();
    while let Some(entry) = calls.next_if(|_| true)? {
        let EntryRef::Call(raw) = entry else { continue };
        if raw.result.get() < 0 {
            continue;
        }
        let (tgid, file) = (raw.tgid.get(), (raw.ino.get(), raw.generation.get()));
        let (start_ns, end_ns) = (raw.start_ns.get(), raw.head.time_ns.get());
        let kind = CallKind::of(raw.kind.get());
        let place = places.get(&file);
        let database = place.map(|p| p.database).or(latest.get(&tgid).copied());
        let Some(database) = database else { continue };
        let state = states.entry((tgid, database)).or_default();
        let Some(place) = place else {
            if let (true, None, Some(last)) = (is_sync(kind), state.began_ns, state.last) {
                spans[last].end_ns = end_ns;
            }
            continue;
        };
        if begins(place.role, kind, &state.progress) {
            state.began_ns.get_or_insert(start_ns);
        }
        let before = state.progress.commits.transactions();
        state.progress.see(place.role, &act(raw));
        if state.progress.commits.transactions() > before {
            let start_ns = state.began_ns.take().unwrap_or(start_ns);
            state.last = Some(spans.len());
            latest.insert(tgid, database);
            spans.push(Span {
                tgid,
                file,
                start_ns,
                end_ns,
            });
        } else if let (None, Some(last)) = (state.began_ns, state.last) {
            // What makes the commit durable, and a checkpoint.
            spans[last].end_ns = end_ns;
        }
    }
    Ok(spans)
}

/// Whether a call may be a transaction's first.
fn begins(role: Role, kind: CallKind, progress: &Progress) -> bool {
    match role {
        Role::RollbackJournal => !is_sync(kind) && !matches!(kind, CallKind::Unlink),
        Role::Wal => matches!(kind, CallKind::Write),
        Role::Db => matches!(kind, CallKind::Write) && progress.commits.wal == 0,
        _ => false,
    }
}

/// What the processes of these transactions called while they ran, for each of them; at most so many of each, and how many there
/// were.
///
/// # Errors
/// The table cannot be read.
pub fn called<R: Read>(
    calls: &mut TableReader<R>,
    files: &[File],
    spans: &[Span],
    most: usize,
) -> Result<Vec<(Vec<Called>, u64)>, Error> {
    let places = places(files);
    let mut all = vec![(Vec::new(), 0); spans.len()];
    while let Some(entry) = calls.next_if(|_| true)? {
        let EntryRef::Call(raw) = entry else { continue };
        for (span, (calls, count)) in spans.iter().zip(&mut all) {
            if !is_in(span, raw) {
                continue;
            }
            *count += 1;
            let file = (raw.ino.get(), raw.generation.get());
            if calls.len() < most {
                calls.push(Called {
                    kind: CallKind::of(raw.kind.get()),
                    role: places.get(&file).map(|place| place.role),
                    file,
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
    raw.tgid.get() == span.tgid && from >= span.start_ns && to <= span.end_ns
}

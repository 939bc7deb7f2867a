// SPDX-License-Identifier: MIT OR Apache-2.0
//! What processes asked of their files: bytes written, syncs, and of SQLite's databases the transactions.

use std::io::Read;

use mostrace_bundle::Error;
use mostrace_bundle::entry::{CallKind, EntryRef, RawCall, call_flags};
use mostrace_bundle::table::TableReader;
use mostrace_map::class::Role;

use super::commits::Commits;
use super::count::Count;
use super::reader::{Found, Reader};
use super::threads::Tie;
use crate::attribute::{HashMap, HashSet, Names};
use crate::causes::is_sync;
use crate::tally::{Tally, sum};

/// Calls of one process on the files of one role of one database, or on its other files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Calls that wrote.
    pub writes: u64,
    /// Bytes that they wrote.
    pub bytes: u64,
    /// Calls for durability.
    pub syncs: u64,
    /// Of the calls that wrote, those to files that were opened to be written through.
    pub through: u64,
}

/// What one process asked of one database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Database {
    /// The recording that it is of; empty where that is not told.
    pub bundle: Box<str>,
    /// The process.
    pub tgid: u32,
    /// Of the thread that called first; raw bytes without NULs.
    pub comm: Box<[u8]>,
    /// Of the database; None for all files that belong to none.
    pub path: Option<Box<[u8]>>,
    /// Its transactions.
    pub commits: Commits,
    /// There may be more of them.
    pub has_doubt: bool,
    /// By role; of other files by `other`, whatever they are.
    pub asked: Vec<(Role, Asked)>,
}

impl Tally for Asked {
    fn tally(&mut self, more: Asked) {
        self.writes.tally(more.writes);
        // A call is told of with any length: what does not fit is the most that there can be.
        self.bytes.tally(more.bytes);
        self.syncs.tally(more.syncs);
        self.through.tally(more.through);
    }
}

impl Asked {
    /// Calls that returned when something was durable.
    pub fn durable(&self) -> u64 {
        self.syncs.saturating_add(self.through)
    }
}

impl Database {
    /// All roles together.
    pub fn total(&self) -> Asked {
        sum(self.asked.iter().map(|(_, asked)| *asked))
    }

    /// The transactions that changed this database, be they of others too.
    pub fn transactions(&self) -> Count {
        Count::new(self.commits.transactions(), !self.has_doubt)
    }
}

/// The transactions of all of these; one of several databases is one.
pub(super) fn together(databases: &[Database]) -> Count {
    let each = databases.iter().map(|database| {
        let commits = &database.commits;
        let parts = commits.united.saturating_add(commits.perhaps_united);
        commits.transactions().saturating_sub(parts)
    });
    let is_exact =
        |database: &Database| !database.has_doubt && database.commits.perhaps_united == 0;
    Count::new(sum(each), databases.iter().all(is_exact))
}

/// Reads the calls from their first to their last. Files are called as all of the trace names them, so it comes after the
/// rows. Those with the most transactions first, then those with the most bytes.
///
/// # Errors
/// The table cannot be read.
pub fn read<R: Read>(calls: &mut TableReader<R>, names: &Names) -> Result<Vec<Database>, Error> {
    let mut reader = Reader::new(&names.files);
    let mut list = List::default();
    while let Some(entry) = calls.next_if(|_| true)? {
        let EntryRef::Call(raw) = entry else { continue };
        if raw.result.get() < 0 {
            continue;
        }
        let seen = reader.see(raw);
        let place = seen.place;
        let at = list.of_call(raw, place.map(|place| place.database));
        let database = &mut list.found[at].1;
        count(database, place.map_or(Role::Other, |place| place.role), raw);
        database.has_doubt |= seen.doubt;
        seen.found.iter().for_each(|found| list.commit(found));
    }
    for found in reader.finish() {
        list.commit(&found);
    }
    Ok(list.finish(&reader))
}

/// Each process with each of its databases.
#[derive(Default)]
struct List {
    /// With the database's number.
    found: Vec<(Option<usize>, Database)>,
    by: HashMap<(u32, Option<usize>), usize>,
}

impl List {
    fn of_call(&mut self, raw: &RawCall, database: Option<usize>) -> usize {
        let tgid = raw.tgid.get();
        let List { found, by } = self;
        *by.entry((tgid, database)).or_insert_with(|| {
            let comm = raw.comm.split(|&b| b == 0).next().unwrap_or_default();
            let new = Database {
                tgid,
                comm: comm.into(),
                ..Database::default()
            };
            let at = found.len();
            found.push((database, new));
            at
        })
    }

    /// Whoever commits has called before.
    fn commit(&mut self, of: &Found) {
        let Some(&at) = self.by.get(&(of.commit.who.tgid, Some(of.database))) else {
            return;
        };
        let commits = &mut self.found[at].1.commits;
        commits.add(of.commit.way);
        match of.tie {
            Tie::Alone => {}
            Tie::Part => commits.united.tally(1),
            Tie::Perhaps => commits.perhaps_united.tally(1),
        }
    }

    fn finish(self, reader: &Reader<'_>) -> Vec<Database> {
        let written: HashSet<usize> = self.found.iter().filter_map(with_contents).collect();
        let done = |(database, mut of): (Option<usize>, Database)| {
            let Some(at) = database else { return of };
            of.path = Some(reader.path(at).into());
            if !reader.is_sqlites(at) {
                let counted = std::mem::take(&mut of.commits).transactions() > 0;
                of.has_doubt = (of.has_doubt || counted) && !reader.is_anothers(at);
            } else if !written.contains(&at) {
                // The database has no name that is known: whether it was written is not seen.
                of.has_doubt = true;
            }
            of
        };
        let mut all: Vec<Database> = self.found.into_iter().map(done).collect();
        all.sort_by_key(|d| std::cmp::Reverse((d.commits.transactions(), d.total().bytes)));
        all
    }
}

/// The number of a database that was written itself, or has a WAL that was.
fn with_contents((at, database): &(Option<usize>, Database)) -> Option<usize> {
    let has =
        |(role, asked): &(Role, Asked)| matches!(role, Role::Db | Role::Wal) && asked.writes > 0;
    at.filter(|_| database.asked.iter().any(has))
}

fn count(database: &mut Database, role: Role, raw: &RawCall) {
    let kind = CallKind::of(raw.kind.get());
    let writes = matches!(kind, CallKind::Write | CallKind::Splice);
    if !writes && !is_sync(kind) {
        return;
    }
    let known = database.asked.iter().position(|(known, _)| *known == role);
    let at = known.unwrap_or(database.asked.len());
    if known.is_none() {
        database.asked.push((role, Asked::default()));
    }
    let asked = &mut database.asked[at].1;
    if writes {
        asked.writes.tally(1);
        asked.bytes.tally(raw.bytes.get());
        asked
            .through
            .tally(raw.head.flags.has(call_flags::THROUGH).into());
    } else {
        asked.syncs.tally(1);
    }
}

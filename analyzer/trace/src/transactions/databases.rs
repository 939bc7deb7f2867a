// SPDX-License-Identifier: MIT OR Apache-2.0
//! The calls of processes on their files: bytes written, syncs, and the transactions of SQLite databases.

use std::cmp::Reverse;
use std::io::Read;

use mostrace_bundle::Error;
use mostrace_bundle::entry::{CallKind, EntryRef, RawCall};
use mostrace_bundle::table::TableReader;
use mostrace_map::class::Role;

use super::commits::Commits;
use super::count::Count;
use super::reader::{Databases, Found};
use super::threads::Tie;
use crate::attribute::{HashMap, HashSet, Names, Task, called};
use crate::causes::asks;
use crate::tally::{Tally, sum, tallied_by_field};

/// The calls of one process on the files of one role of one database, or on its other files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Number of calls that wrote.
    pub writes: u64,
    /// Bytes that these calls wrote.
    pub bytes: u64,
    /// Number of calls for durability, among them writes that asked for it.
    pub syncs: u64,
}

/// The calls of one process on the files of one database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Database {
    /// The recording's name; empty if there is only one.
    pub bundle: Box<str>,
    /// Process ID.
    pub tgid: u32,
    /// Name of the process when it called; raw bytes without NULs, empty if it is not known. A process has an entry for each name.
    pub comm: Box<[u8]>,
    /// Path of the database; None for all files that belong to no database.
    pub path: Option<Box<[u8]>>,
    /// Its transactions, by way of commit.
    pub commits: Commits,
    /// True if there may be more transactions.
    pub has_doubt: bool,
    /// The calls by role; files that belong to no database are `other`, whatever they are.
    pub asked: Vec<(Role, Asked)>,
}

// A trace may claim any length for a call: a sum that overflows stays at the maximum.
tallied_by_field! {
    Asked: writes, bytes, syncs
}

impl Database {
    /// Returns its place in a list: those with the most transactions come first, then those with the most bytes.
    pub(crate) fn rank(&self) -> Reverse<(u64, u64)> {
        Reverse((self.commits.transactions(), self.total().bytes))
    }

    /// Returns the label of the process, `name:tgid`.
    pub fn process(&self) -> String {
        format!("{}:{}", called(Some(&self.comm)), self.tgid)
    }

    /// Returns the sum over all roles.
    pub fn total(&self) -> Asked {
        sum(self.asked.iter().map(|(_, asked)| *asked))
    }

    /// Returns the number of transactions that changed this database, including those that changed others too.
    pub fn transactions(&self) -> Count {
        Count::new(self.commits.transactions(), !self.has_doubt)
    }
}

/// Returns the number of transactions in all of these; a transaction in several databases counts once.
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

/// Reads the calls from first to last, and shows each to `each`. Files have their final names, so call it after the rows were read.
pub fn read<R: Read>(
    calls: &mut TableReader<R>,
    names: &Names,
    mut each: impl FnMut(&RawCall),
) -> Result<Vec<Database>, Error> {
    let mut reader = Databases::new(&names.files);
    let mut list = List::default();
    while let Some(entry) = calls.next_if(|_| true)? {
        let EntryRef::Call(raw) = entry else { continue };
        each(raw);
        if raw.result.get() < 0 {
            continue;
        }
        let seen = reader.see(raw);
        let place = seen.place;
        let task = Task::from(raw);
        let name = names.process_names.of_task(&task, raw.head.time_ns.get());
        let database = place.map(|place| place.database);
        let at = list.of_call(task.tgid, name.unwrap_or_default(), database);
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

/// A process's number, its database and its name at the time.
type Place = (u32, Option<usize>, Box<[u8]>);

/// Each process with each of its databases.
#[derive(Default)]
struct List {
    /// The databases, each with its number in the reader; None for other files.
    found: Vec<(Option<usize>, Database)>,
    by: HashMap<Place, usize>,
    /// The latest of each process and database.
    latest: HashMap<(u32, Option<usize>), usize>,
}

impl List {
    fn of_call(&mut self, tgid: u32, name: &[u8], database: Option<usize>) -> usize {
        let List { found, by, latest } = self;
        let latest = latest.entry((tgid, database)).or_insert(usize::MAX);
        if found.get(*latest).is_none_or(|(_, of)| *of.comm != *name) {
            *latest = *by.entry((tgid, database, name.into())).or_insert_with(|| {
                let new = Database {
                    tgid,
                    comm: name.into(),
                    ..Database::default()
                };
                let at = found.len();
                found.push((database, new));
                at
            });
        }
        *latest
    }

    /// Counts a commit; the committing process has made a call before.
    fn commit(&mut self, of: &Found) {
        let Some(&at) = self.latest.get(&(of.commit.who.tgid, Some(of.database))) else {
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

    fn finish(self, reader: &Databases<'_>) -> Vec<Database> {
        let written: HashSet<usize> = self.found.iter().filter_map(with_contents).collect();
        let done = |(database, mut of): (Option<usize>, Database)| {
            let Some(at) = database else { return of };
            of.path = Some(reader.path(at).into());
            if !reader.is_sqlites(at) {
                let counted = std::mem::take(&mut of.commits).transactions() > 0;
                of.has_doubt = (of.has_doubt || counted) && !reader.is_anothers(at);
            } else if !written.contains(&at) {
                // The database's own name is unknown: whether it was written cannot be seen.
                of.has_doubt = true;
            }
            of
        };
        let mut all: Vec<Database> = self.found.into_iter().map(done).collect();
        all.sort_by_key(Database::rank);
        all
    }
}

/// Returns the number of a database that was written itself or has a WAL that was.
fn with_contents((at, database): &(Option<usize>, Database)) -> Option<usize> {
    let has =
        |(role, asked): &(Role, Asked)| matches!(role, Role::Db | Role::Wal) && asked.writes > 0;
    at.filter(|_| database.asked.iter().any(has))
}

fn count(database: &mut Database, role: Role, raw: &RawCall) {
    let kind = CallKind::of(raw.kind.get());
    let writes = matches!(kind, CallKind::Write | CallKind::Splice);
    if !writes && !asks(raw) {
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
    }
    asked.syncs.tally(asks(raw).into());
}

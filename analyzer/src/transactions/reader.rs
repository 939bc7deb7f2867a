// SPDX-License-Identifier: MIT OR Apache-2.0
//! Calls in their order → commits, each of a database.

use mostrace_bundle::entry::{CallKind, RawCall};
use mostrace_map::class::{Kind, Role};

use super::Outcome;
use super::act::{Act, Told};
use super::commits::Commit;
use super::store::Store;
use super::threads::{Thread, Tie};
use crate::attribute::{File, HashMap};

/// A file's place: the number of its database, and what it is to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub database: usize,
    pub role: Role,
}

/// A commit in a database, and whether it is a transaction of its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub database: usize,
    pub commit: Commit,
    pub tie: Tie,
}

/// What a call came to.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub place: Option<Place>,
    pub found: Vec<Found>,
    /// Its process may have committed more, to this database or to one that is not known.
    pub doubt: bool,
}

/// All databases of a trace.
pub(super) struct Reader<'n> {
    /// By inode and generation.
    places: HashMap<(u64, u32), Place>,
    /// Files that are none of a database's by their names.
    others: HashMap<(u64, u32), &'n File>,
    by_path: HashMap<&'n [u8], usize>,
    databases: Vec<(&'n [u8], Store)>,
    /// By their ids.
    threads: HashMap<u32, Thread>,
}

impl<'n> Reader<'n> {
    /// Files are called as all of the trace names them.
    pub fn new(files: &'n [File]) -> Reader<'n> {
        let mut reader = Reader {
            places: HashMap::default(),
            others: HashMap::default(),
            by_path: HashMap::default(),
            databases: Vec::new(),
            threads: HashMap::default(),
        };
        files.iter().for_each(|file| reader.place(file));
        reader
    }

    fn place(&mut self, file: &'n File) {
        let Some(key) = file.inode.zip(file.generation) else {
            return;
        };
        match file.database().zip(file.role) {
            Some((path, role)) => {
                let database = self.number(path);
                self.places.insert(key, Place { database, role });
            }
            None if file.path.is_some() => {
                self.others.insert(key, file);
            }
            None => {}
        }
    }

    fn number(&mut self, path: &'n [u8]) -> usize {
        *self.by_path.entry(path).or_insert_with(|| {
            let number = self.databases.len();
            self.databases.push((path, Store::default()));
            number
        })
    }

    /// Path of a database.
    pub fn path(&self, database: usize) -> &'n [u8] {
        self.databases[database].0
    }

    /// Whether what was counted of a database are SQLite's transactions.
    pub fn is_sqlites(&self, database: usize) -> bool {
        self.databases[database].1.proof.is_given()
    }

    /// Whether it is certain that a database is none of SQLite's.
    pub fn is_anothers(&self, database: usize) -> bool {
        self.databases[database].1.proof.is_refuted()
    }

    /// What a file is to a database.
    pub fn role(&self, file: (u64, u32)) -> Option<Role> {
        self.places.get(&file).map(|place| place.role)
    }

    /// Takes the next call that succeeded.
    pub fn see(&mut self, raw: &RawCall) -> Seen {
        let act = Act::of(raw);
        let Some(place) = self.find(&act) else {
            self.thread(&act).turn();
            return Seen {
                doubt: is_sqlites(&act) && !self.others.contains_key(&act.file),
                ..Seen::default()
            };
        };
        let mut outcome = Outcome::default();
        let store = &mut self.databases[place.database].1;
        let was_open = store.rollback.is_open(act.who.pid);
        store.see(place.role, &act, &mut outcome);
        let has_wal = store.wal.is_seen;
        let begins = !was_open && store.rollback.is_open(act.who.pid);
        let thread = self.thread(&act);
        match (place.role, act.kind) {
            (Role::RollbackJournal, _) if begins => thread.begin(place.database),
            (Role::SuperJournal, CallKind::Unlink) => thread.super_journal(),
            // A checkpoint.
            (Role::Db, CallKind::Write) if has_wal => thread.turn(),
            _ => {}
        }
        Seen {
            place: Some(place),
            found: self.tied(place.database, outcome.commits),
            doubt: outcome.doubt,
        }
    }

    /// The calls are at their end: what was waiting for more of them.
    pub fn finish(&mut self) -> Vec<Found> {
        let mut found = Vec::new();
        for database in 0..self.databases.len() {
            let mut outcome = Outcome::default();
            self.databases[database].1.wal.settle(&mut outcome);
            found.extend(self.tied(database, outcome.commits));
        }
        found
    }

    /// The place of a call's file, by its name, or else by what is written to it. SQLite's temporary databases are kept
    /// by nobody.
    fn find(&mut self, act: &Act) -> Option<Place> {
        if let Some(place) = self.places.get(&act.file) {
            return Some(*place);
        }
        act.first_page()?;
        let file = *self.others.get(&act.file)?;
        let path = file.path.as_deref()?;
        if file.kind != Kind::Regular || file.role == Some(Role::Temp) {
            return None;
        }
        let place = Place {
            database: self.number(path),
            role: Role::Db,
        };
        self.places.insert(act.file, place);
        Some(place)
    }

    fn thread(&mut self, act: &Act) -> &mut Thread {
        self.threads.entry(act.who.pid).or_default()
    }

    fn tied(&mut self, database: usize, commits: Vec<Commit>) -> Vec<Found> {
        let Reader {
            databases, threads, ..
        } = self;
        let mut found = Vec::new();
        for commit in commits {
            let pid = commit.who.pid;
            let others = || {
                let all = databases.iter().enumerate();
                all.filter(move |(at, _)| *at != database)
            };
            let writing = others().filter(|(_, (_, store))| store.rollback.is_writing(pid));
            let open = others().filter(|(_, (_, store))| store.rollback.is_open(pid));
            let thread = threads.entry(pid).or_default();
            let tie = thread.tie(
                database,
                &commit,
                writing.map(|(at, _)| at),
                open.map(|(at, _)| at),
            );
            found.push(Found {
                database,
                commit,
                tie,
            });
        }
        found
    }
}

/// Whether it wrote the beginning of one of SQLite's files.
fn is_sqlites(act: &Act) -> bool {
    let is_first_page = matches!(act.told, Told::FirstPage { .. });
    is_first_page || act.told.is_journal() || act.told.is_wal()
}

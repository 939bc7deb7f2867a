// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads calls in their order and finds the commits in each database.

use mostrace_bundle::entry::{CallKind, RawCall};
use mostrace_map::class::{Kind, Role};

use super::Outcome;
use super::act::{Act, Content};
use super::commits::Commit;
use super::store::Store;
use super::threads::{Thread, Tie};
use crate::attribute::{File, HashMap};

/// The number of a file's database, and the file's role in it.
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

/// The result of a call.
#[derive(Debug, Default)]
pub(super) struct CallOutcome {
    pub place: Option<Place>,
    pub found: Vec<Found>,
    /// True if its process may have committed more, in this database or in an unknown one.
    pub doubt: bool,
}

/// All databases of a trace.
pub(super) struct Databases<'n> {
    /// Places of databases' files, by inode and generation.
    places: HashMap<(u64, u32), Place>,
    /// Files that belong to no database by their names.
    others: HashMap<(u64, u32), &'n File>,
    by_path: HashMap<&'n [u8], usize>,
    databases: Vec<(&'n [u8], Store)>,
    /// The threads, by their IDs.
    threads: HashMap<u32, Thread>,
}

impl<'n> Databases<'n> {
    /// Takes the files with their final names.
    pub fn new(files: &'n [File]) -> Databases<'n> {
        let mut reader = Databases {
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

    /// Returns the path of a database.
    pub fn path(&self, database: usize) -> &'n [u8] {
        self.databases[database].0
    }

    /// Returns true if a database is SQLite's, so that what was counted are transactions.
    pub fn is_sqlites(&self, database: usize) -> bool {
        self.databases[database].1.proof.is_given()
    }

    /// Returns true if a database certainly is not SQLite's.
    pub fn is_anothers(&self, database: usize) -> bool {
        self.databases[database].1.proof.is_refuted()
    }

    /// Returns a file's role in its database.
    pub fn role(&self, file: (u64, u32)) -> Option<Role> {
        self.places.get(&file).map(|place| place.role)
    }

    /// Takes the next successful call.
    pub fn see(&mut self, raw: &RawCall) -> CallOutcome {
        let act = Act::of(raw);
        let Some(place) = self.find(&act) else {
            self.thread(&act).turn();
            return CallOutcome {
                doubt: is_sqlites(&act) && !self.others.contains_key(&act.file),
                ..CallOutcome::default()
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
            // This write is a checkpoint.
            (Role::Db, CallKind::Write) if has_wal => thread.turn(),
            _ => {}
        }
        CallOutcome {
            place: Some(place),
            found: self.tied(place.database, outcome.commits),
            doubt: outcome.doubt,
        }
    }

    /// Returns the commits that were waiting for more calls; call it after the last call.
    pub fn finish(&mut self) -> Vec<Found> {
        let mut found = Vec::new();
        for database in 0..self.databases.len() {
            let mut outcome = Outcome::default();
            self.databases[database].1.wal.settle(&mut outcome);
            found.extend(self.tied(database, outcome.commits));
        }
        found
    }

    /// Finds the place of a call's file by its name, or else by what is written to it. SQLite's temporary databases do not
    /// count.
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
        let Databases {
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

/// Returns true if the call wrote the beginning of one of SQLite's files.
fn is_sqlites(act: &Act) -> bool {
    let is_first_page = matches!(act.content, Content::FirstPage { .. });
    is_first_page || act.content.is_journal() || act.content.is_wal()
}

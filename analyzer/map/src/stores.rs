// SPDX-License-Identifier: MIT OR Apache-2.0
//! Files of stores other than SQLite, and the one [table](STORES) of their names.
//!
//! A name alone never decides a role. First a folder must be recognised as a store's, by its own name (`.git`) or by
//! its contents (`CURRENT` beside `MANIFEST-000004`); then the name below that folder gives the role.

/// A pattern for part of a name; a whole name is a sequence of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// This text, which may hold `/`.
    Is(&'static str),
    /// At least this many decimal digits.
    Digits(usize),
    /// Exactly this many hexadecimal digits.
    Hex(usize),
    /// One or more bytes without `/`.
    Any,
    /// One or more bytes up to the end of the name.
    Rest,
}

/// A pattern for a name relative to a store's folder.
pub type Name = &'static [Piece];

/// A store: how its folder is recognised, and the roles of its files.
#[derive(Debug)]
pub struct Store {
    /// Folder names by which the folder is recognised.
    pub folders: &'static [Name],
    /// Contents by which the folder is recognised; one of them is enough.
    pub marks: &'static [Mark],
    /// Its files; the first pattern that matches a name decides.
    pub files: &'static [FileOf],
}

/// Names that together identify a store's folder.
#[derive(Debug)]
pub struct Mark {
    /// Names that must all exist.
    pub has: &'static [Name],
    /// Names none of which may exist; this can be checked only if all names of the filesystem are known.
    pub lacks: &'static [Name],
}

/// The role of some of a store's files.
#[derive(Debug)]
pub struct FileOf {
    /// The role's word in tables and files.
    pub role: &'static str,
    /// The role's name in sentences.
    pub called: &'static str,
    /// Patterns for the files' names, relative to the store's folder.
    pub names: &'static [Name],
}

use Piece::{Any, Digits, Hex, Is, Rest};

const fn has(has: &'static [Name]) -> Mark {
    Mark { has, lacks: &[] }
}

const fn file(role: &'static str, called: &'static str, names: &'static [Name]) -> FileOf {
    FileOf {
        role,
        called,
        names,
    }
}

const CURRENT: Name = &[Is("CURRENT")];
const MANIFEST: Name = &[Is("MANIFEST-"), Digits(6)];
const OPTIONS: Name = &[Is("OPTIONS-"), Digits(6)];
const OPTIONS_TMP: Name = &[Is("OPTIONS-"), Digits(6), Is(".dbtmp")];
const IDENTITY: Name = &[Is("IDENTITY")];
/// A log file's name in LevelDB and RocksDB: the number has six digits or more.
const LOG: Name = &[Digits(6), Is(".log")];
/// The temporary file that is renamed to `CURRENT`.
const DBTMP: Name = &[Digits(6), Is(".dbtmp")];
const OBJECT: Name = &[Is("objects/"), Hex(2), Is("/"), Hex(38)];
const PACK: Name = &[Is("objects/pack/pack-"), Hex(40), Is(".pack")];
const PREFERENCES: Name = &[Any, Is(".preferences_pb")];
const REALM: Name = &[Any, Is(".realm")];

/// All stores. Adding one here is enough: tables, sentences and the pages on columns follow.
#[rustfmt::skip] // a line each
pub static STORES: &[Store] = &[
    Store {
        folders: &[],
        marks: &[has(&[&[Is("data.mdb")], &[Is("lock.mdb")]])],
        files: &[
            file("lmdb_data", "LMDB's data", &[&[Is("data.mdb")]]),
            file("lmdb_lock", "LMDB's lock file", &[&[Is("lock.mdb")]]),
        ],
    },
    Store {
        folders: &[],
        marks: &[
            has(&[CURRENT, MANIFEST, OPTIONS]), has(&[CURRENT, MANIFEST, IDENTITY]),
            // The names of these files while they are being written.
            has(&[DBTMP, MANIFEST, OPTIONS_TMP]),
        ],
        files: &[
            file("rocksdb_wal", "RocksDB's write-ahead log", &[LOG, &[Is("archive/"), Digits(6), Is(".log")]]),
            file("rocksdb_table", "RocksDB's tables", &[&[Digits(6), Is(".sst")]]),
            file("rocksdb_blob", "RocksDB's blobs", &[&[Digits(6), Is(".blob")]]),
            file("rocksdb_manifest", "RocksDB's manifest", &[MANIFEST]),
            file("rocksdb_other", "RocksDB's small files", &[
                CURRENT, DBTMP, OPTIONS, IDENTITY, OPTIONS_TMP,
                &[Is("LOCK")], &[Is("LOG")], &[Is("LOG.old."), Digits(1)],
            ]),
        ],
    },
    Store {
        folders: &[],
        // A RocksDB folder has these files too.
        marks: &[Mark { has: &[CURRENT, MANIFEST], lacks: &[OPTIONS, IDENTITY] }],
        files: &[
            file("leveldb_wal", "LevelDB's log", &[LOG]),
            file("leveldb_table", "LevelDB's tables", &[&[Digits(6), Is(".ldb")], &[Digits(6), Is(".sst")]]),
            file("leveldb_manifest", "LevelDB's manifest", &[MANIFEST]),
            file("leveldb_other", "LevelDB's small files", &[
                CURRENT, DBTMP, &[Is("LOCK")], &[Is("LOG")], &[Is("LOG.old")],
            ]),
        ],
    },
    Store {
        // The folder of a tablespace, named by the versions of Postgres and of its catalogue.
        folders: &[&[Is("PG_"), Digits(1), Is("_"), Digits(9)]],
        marks: &[has(&[&[Is("PG_VERSION")], &[Is("global/pg_control")]]), has(&[&[Is("pg_wal/"), Hex(24)]])],
        files: &[
            // Files of tables and of indexes have names of the same form.
            file("postgres_relation", "Postgres' tables and indexes", &[
                &[Is("base/"), Digits(1), Is("/"), Digits(1)], &[Is("base/"), Digits(1), Is("/"), Digits(1), Is("."), Digits(1)],
                &[Is("global/"), Digits(1)], &[Is("global/"), Digits(1), Is("."), Digits(1)],
                &[Digits(1), Is("/"), Digits(1)], &[Digits(1), Is("/"), Digits(1), Is("."), Digits(1)],
            ]),
            file("postgres_fsm", "Postgres' free-space maps", &[
                &[Is("base/"), Digits(1), Is("/"), Digits(1), Is("_fsm")], &[Is("global/"), Digits(1), Is("_fsm")],
                &[Digits(1), Is("/"), Digits(1), Is("_fsm")],
            ]),
            file("postgres_vm", "Postgres' visibility maps", &[
                &[Is("base/"), Digits(1), Is("/"), Digits(1), Is("_vm")], &[Is("global/"), Digits(1), Is("_vm")],
                &[Digits(1), Is("/"), Digits(1), Is("_vm")],
            ]),
            file("postgres_wal", "Postgres' write-ahead log", &[&[Is("pg_wal/"), Hex(24)], &[Is("pg_wal/xlogtemp."), Digits(1)]]),
            file("postgres_xact", "Postgres' commit log", &[&[Is("pg_xact/"), Hex(4)]]),
            file("postgres_other", "Postgres' other files", &[
                &[Is("PG_VERSION")], &[Is("global/pg_"), Rest], &[Is("base/"), Digits(1), Is("/pg_"), Rest],
                &[Is("base/pgsql_tmp/"), Rest], &[Is("pg_multixact/"), Rest], &[Is("pg_subtrans/"), Rest], &[Is("pg_commit_ts/"), Rest],
                &[Is("pg_logical/"), Rest], &[Is("pg_stat/"), Rest], &[Is("pg_stat_tmp/"), Rest], &[Is("pg_replslot/"), Rest],
                &[Is("pg_twophase/"), Rest], &[Is("postmaster.pid")], &[Is("postmaster.opts")],
            ]),
        ],
    },
    Store {
        folders: &[],
        marks: &[has(&[&[Is("ibdata1")]])],
        files: &[
            file("innodb_tablespace", "InnoDB's tablespaces", &[
                &[Is("ibdata"), Digits(1)], &[Any, Is(".ibd")], &[Any, Is("/"), Any, Is(".ibd")],
            ]),
            file("innodb_redo", "InnoDB's redo log", &[
                &[Is("#innodb_redo/#ib_redo"), Digits(1)], &[Is("#innodb_redo/#ib_redo"), Digits(1), Is("_tmp")],
                &[Is("ib_logfile"), Digits(1)],
            ]),
            file("innodb_undo", "InnoDB's undo log", &[&[Is("undo_"), Digits(3)], &[Is("undo"), Digits(3)]]),
            file("innodb_doublewrite", "InnoDB's doublewrite buffer", &[
                &[Is("#ib_"), Digits(1), Is("_"), Digits(1), Is(".dblwr")], &[Is("#ib_"), Digits(1), Is("_"), Digits(1), Is(".bdblwr")],
            ]),
            file("innodb_temp", "InnoDB's temporary tablespaces", &[
                &[Is("ibtmp"), Digits(1)], &[Is("#innodb_temp/temp_"), Digits(1), Is(".ibt")],
            ]),
        ],
    },
    Store {
        folders: &[&[Is("shared_prefs")]],
        marks: &[],
        files: &[
            file("shared_prefs", "SharedPreferences", &[&[Any, Is(".xml")]]),
            file("shared_prefs_backup", "backups of SharedPreferences", &[&[Any, Is(".xml.bak")]]),
        ],
    },
    Store {
        // An app's folder `files`, in which the library makes its own folder.
        folders: &[&[Is("files")]],
        marks: &[has(&[PREFERENCES])],
        files: &[
            file("datastore", "DataStore", &[
                PREFERENCES, &[Is("datastore/"), Any, Is(".preferences_pb")], &[Is("datastore/"), Any, Is(".pb")],
            ]),
            file("datastore_temp", "DataStore's temporary files", &[
                &[Any, Is(".preferences_pb.tmp")], &[Is("datastore/"), Any, Is(".preferences_pb.tmp")],
                &[Is("datastore/"), Any, Is(".pb.tmp")],
            ]),
        ],
    },
    Store {
        folders: &[],
        marks: &[has(&[REALM, &[Any, Is(".realm.lock")]]), has(&[REALM, &[Any, Is(".realm.note")]])],
        files: &[
            file("realm", "Realm", &[REALM]),
            file("realm_lock", "Realm's lock file", &[&[Any, Is(".realm.lock")]]),
            file("realm_note", "Realm's notifications", &[&[Any, Is(".realm.note")], &[Any, Is(".realm.management/"), Any]]),
        ],
    },
    Store {
        folders: &[&[Is(".git")], &[Any, Is(".git")]],
        marks: &[has(&[&[Is("HEAD")], &[Is("config")], OBJECT]), has(&[&[Is("HEAD")], &[Is("config")], PACK])],
        files: &[
            file("git_pack", "git's packs", &[PACK, &[Is("objects/pack/tmp_pack_"), Any]]),
            file("git_pack_index", "git's indexes of packs", &[
                &[Is("objects/pack/pack-"), Hex(40), Is(".idx")], &[Is("objects/pack/pack-"), Hex(40), Is(".rev")],
                &[Is("objects/pack/pack-"), Hex(40), Is(".bitmap")], &[Is("objects/pack/tmp_idx_"), Any],
                &[Is("objects/pack/tmp_rev_"), Any], &[Is("objects/pack/multi-pack-index")],
            ]),
            file("git_object", "git's loose objects", &[
                OBJECT, &[Is("objects/"), Hex(2), Is("/"), Hex(62)], &[Is("objects/"), Hex(2), Is("/tmp_obj_"), Any],
            ]),
            file("git_index", "git's index", &[
                &[Is("index")], &[Is("index.lock")], &[Is("worktrees/"), Any, Is("/index")], &[Is("worktrees/"), Any, Is("/index.lock")],
            ]),
            file("git_ref", "git's refs", &[
                &[Is("refs/"), Rest], &[Is("HEAD")], &[Is("HEAD.lock")], &[Is("ORIG_HEAD")], &[Is("FETCH_HEAD")],
                &[Is("packed-refs")], &[Is("packed-refs.lock")], &[Is("packed-refs.new")],
            ]),
            file("git_log", "git's reflogs", &[&[Is("logs/"), Rest]]),
            file("git_other", "git's other files", &[
                &[Is("COMMIT_EDITMSG")], &[Is("config")], &[Is("config.lock")], &[Is("description")], &[Is("hooks/"), Rest],
                &[Is("info/"), Rest], &[Is("objects/info/"), Rest],
            ]),
        ],
    },
];

/// Returns true if the pattern matches the whole name.
pub fn is_name(pieces: &[Piece], name: &[u8]) -> bool {
    let Some((first, rest)) = pieces.split_first() else {
        return name.is_empty();
    };
    let after = |length: usize| name.get(length..).is_some_and(|name| is_name(rest, name));
    let run = |is: fn(u8) -> bool| name.iter().take_while(|&&b| is(b)).count();
    match *first {
        Is(text) => name.starts_with(text.as_bytes()) && after(text.len()),
        Digits(least) => {
            let digits = run(|b| b.is_ascii_digit());
            digits >= least && after(digits)
        }
        Hex(digits) => run(|b| b.is_ascii_hexdigit()) >= digits && after(digits),
        Any => (1..=run(|b| b != b'/')).any(after),
        Rest => !name.is_empty(),
    }
}

/// Returns true if a name that matches the pattern may end with this component.
pub fn may_end(pieces: &[Piece], component: &[u8]) -> bool {
    let digits = || component.iter().rev().take_while(|b| b.is_ascii_hexdigit());
    match pieces.last() {
        Some(Is(text)) => {
            let last = text.rsplit('/').next().unwrap_or_default();
            component.ends_with(last.as_bytes())
        }
        Some(Digits(count) | Hex(count)) => digits().count() >= *count,
        _ => true,
    }
}

/// Returns the number of folders ahead of the pattern's last component.
pub fn depth(pieces: &[Piece]) -> usize {
    let slashes = pieces.iter().map(|piece| match piece {
        Is(text) => text.bytes().filter(|&b| b == b'/').count(),
        _ => 0,
    });
    slashes.sum()
}

/// One entry in the table's lists of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StoreFile(u8);

impl StoreFile {
    /// Returns all of them, in the table's order.
    pub fn all() -> impl Iterator<Item = StoreFile> {
        (0..).map(StoreFile).zip(lines()).map(|(file, _)| file)
    }

    /// Returns the entry for a file of a store, by its name relative to the store's folder.
    pub fn find(store: &Store, name: &[u8]) -> Option<StoreFile> {
        let is_it = |file: &&FileOf| file.names.iter().any(|pieces| is_name(pieces, name));
        let found = store.files.iter().find(is_it)?;
        let number = lines().position(|line| std::ptr::eq(line, found))?;
        u8::try_from(number).ok().map(StoreFile)
    }

    /// Returns its position in the table, counted from 0.
    pub fn number(self) -> usize {
        self.0.into()
    }

    fn line(self) -> Option<&'static FileOf> {
        lines().nth(self.number())
    }

    /// Returns the word used in tables and files.
    pub fn as_str(self) -> &'static str {
        self.line().map_or("other", |line| line.role)
    }
}

fn lines() -> impl Iterator<Item = &'static FileOf> {
    STORES.iter().flat_map(|store| store.files)
}

/// Returns a role's name for sentences; None if the role belongs to no store.
pub fn called(role: &str) -> Option<&'static str> {
    let mut lines = lines();
    lines.find(|line| line.role == role).map(|line| line.called)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_all_of_its_pieces() {
        let is = |pieces: Name, name: &str| is_name(pieces, name.as_bytes());
        assert!(is(LOG, "000004.log") && is(LOG, "1000004.log"));
        assert!(!is(LOG, "00004.log") && !is(LOG, "000004.log2") && !is(LOG, "a000004.log"));
        assert!(is(OBJECT, &format!("objects/0a/{}", "f".repeat(38))));
        assert!(!is(OBJECT, &format!("objects/0a/{}", "f".repeat(39))));
        assert!(is(REALM, "a.realm.realm") && !is(REALM, ".realm") && !is(REALM, "a/b.realm"));
        assert!(is(&[Is("refs/"), Rest], "refs/heads/a") && !is(&[Is("refs/"), Rest], "refs/"));
        assert_eq!([depth(LOG), depth(OBJECT), depth(PACK)], [0, 2, 2]);
    }

    #[test]
    fn roles_are_distinct_and_have_the_words_of_their_line() {
        let roles: Vec<&str> = StoreFile::all().map(StoreFile::as_str).collect();
        let distinct: std::collections::HashSet<_> = roles.iter().collect();
        assert_eq!(distinct.len(), roles.len());
        assert_eq!(roles.len(), lines().count());
        assert_eq!(called("rocksdb_wal"), Some("RocksDB's write-ahead log"));
        assert_eq!(called("wal"), None);
    }

    /// A mark's names must be few, as they are counted in the bits of a word, and none may have an open end, so that it
    /// can be looked up.
    #[test]
    fn marks_are_few_names_that_end() {
        for mark in STORES.iter().flat_map(|store| store.marks) {
            let names = || mark.has.iter().chain(mark.lacks);
            assert!(!mark.has.is_empty() && names().count() <= 8, "{mark:?}");
            assert!(names().all(|name| !name.contains(&Rest)), "{mark:?}");
        }
    }
}

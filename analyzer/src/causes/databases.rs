// SPDX-License-Identifier: MIT OR Apache-2.0
//! What processes asked of their files: bytes written, syncs, and of SQLite's databases the transactions.

use std::io::Read;

use mostrace_bundle::Error;
use mostrace_bundle::entry::{CallKind, EntryRef, RawCall, call_flags};
use mostrace_bundle::table::TableReader;
use mostrace_map::class::Role;

use super::commits::{Act, Commits, Progress};
use super::operation::is_sync;
use crate::attribute::{File, HashMap, Names};

/// Calls of one process on the files of one role of one database, or on its other files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Calls that wrote.
    pub writes: u64,
    /// Bytes that they wrote.
    pub bytes: u64,
    /// Calls for durability.
    pub syncs: u64,
}

/// What one process asked of one database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Database {
    /// The process.
    pub tgid: u32,
    /// Of the thread that called first; raw bytes without NULs.
    pub comm: Box<[u8]>,
    /// Of the database; None for all files that belong to none.
    pub path: Option<Box<[u8]>>,
    /// Its transactions.
    pub commits: Commits,
    /// By role; of other files by `other`, whatever they are.
    pub asked: Vec<(Role, Asked)>,
}

impl std::ops::Add for Asked {
    type Output = Asked;

    fn add(self, other: Asked) -> Asked {
        Asked {
            writes: self.writes + other.writes,
            // A call is told of with any length: what does not fit is the most that there can be.
            bytes: self.bytes.saturating_add(other.bytes),
            syncs: self.syncs + other.syncs,
        }
    }
}

impl Database {
    /// All roles together.
    pub fn total(&self) -> Asked {
        let all = self.asked.iter().map(|(_, asked)| *asked);
        all.fold(Asked::default(), |sum, asked| sum + asked)
    }
}

/// A file's place in a database.
#[derive(Clone, Copy)]
pub(super) struct Place<'n> {
    pub database: &'n [u8],
    pub role: Role,
}

/// Reads the calls from their first to their last. Files are called as all of the trace names them, so it comes after the
/// rows. Those with the most transactions first, then those with the most bytes.
///
/// # Errors
/// The table cannot be read.
pub fn read<R: Read>(calls: &mut TableReader<R>, names: &Names) -> Result<Vec<Database>, Error> {
    let places = places(&names.files);
    let mut found: Vec<(Database, Progress)> = Vec::new();
    let mut by: HashMap<(u32, Option<&[u8]>), usize> = HashMap::default();
    while let Some(entry) = calls.next_if(|_| true)? {
        let EntryRef::Call(raw) = entry else { continue };
        if raw.result.get() < 0 {
            continue;
        }
        let place = places.get(&(raw.ino.get(), raw.generation.get())).copied();
        let (database, role) = place.map_or((None, Role::Other), |p| (Some(p.database), p.role));
        let tgid = raw.tgid.get();
        let at = *by.entry((tgid, database)).or_insert_with(|| {
            let comm = raw.comm.split(|&b| b == 0).next().unwrap_or_default();
            let new = Database {
                tgid,
                comm: comm.into(),
                path: database.map(Into::into),
                ..Database::default()
            };
            found.push((new, Progress::default()));
            found.len() - 1
        });
        let (asked, progress) = &mut found[at];
        count(asked, role, raw);
        if database.is_some() {
            progress.see(role, &act(raw));
        }
    }
    let done = |(database, progress): (Database, Progress)| Database {
        commits: progress.commits,
        ..database
    };
    let mut all: Vec<Database> = found.into_iter().map(done).collect();
    all.sort_by_key(|d| std::cmp::Reverse((d.commits.transactions(), d.total().bytes)));
    Ok(all)
}

/// Of every file of a database, by inode and generation.
pub(super) fn places(files: &[File]) -> HashMap<(u64, u32), Place<'_>> {
    files.iter().filter_map(place).collect()
}

fn place(file: &File) -> Option<((u64, u32), Place<'_>)> {
    let (database, role) = (file.database()?, file.role?);
    Some(((file.inode?, file.generation?), Place { database, role }))
}

fn count(database: &mut Database, role: Role, raw: &RawCall) {
    let kind = CallKind::of(raw.kind.get());
    let writes = matches!(kind, CallKind::Write | CallKind::Splice);
    if !writes && !is_sync(kind) {
        return;
    }
    let asked = match database.asked.iter().position(|(known, _)| *known == role) {
        Some(at) => &mut database.asked[at].1,
        None => {
            database.asked.push((role, Asked::default()));
            let last = database.asked.len() - 1;
            &mut database.asked[last].1
        }
    };
    if writes {
        asked.writes += 1;
        asked.bytes = asked.bytes.saturating_add(raw.bytes.get());
    } else {
        asked.syncs += 1;
    }
}

pub(super) fn act(raw: &RawCall) -> Act {
    let told = raw.head.flags.has(call_flags::FIRST);
    Act {
        kind: CallKind::of(raw.kind.get()),
        offset: raw.offset.get(),
        bytes: raw.bytes.get(),
        first_bytes: told.then_some(raw.first_bytes),
    }
}

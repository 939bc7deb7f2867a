// SPDX-License-Identifier: MIT OR Apache-2.0
//! What rows can be summed by.

use std::collections::HashMap;

use mostrace_bundle::entry::{Origin, Stage};

use super::Values;
use crate::attribute::{Attributed, File, Op, Process, Request, Row};
use crate::blktrace::rwbs;
use mostrace_map::class::{Class, Kind, Provenance, Role};

/// A column to sum by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum By {
    /// metadata, journal, data, unknown
    Class,
    /// inode_table, commit, regular …
    Kind,
    /// What a regular file is to SQLite: db, wal …
    Role,
    /// The process (tgid) and its name
    Process,
    /// Who dirtied the pages (tgid) and its name
    Dirtier,
    /// The file, by its path, or by its inode if it has no name
    File,
    /// Name of the thread
    Comm,
    /// Thread
    Pid,
    /// Process
    Tgid,
    /// User
    Uid,
    /// How the file name was found: live, snapshot, layout, unknown
    Provenance,
    /// What the pages belonged to: file, bdev, direct …
    Origin,
    /// Where the entry was made: queue, insert, issue
    Stage,
    /// write, read, flush, discard …
    Op,
    /// blkparse's letters
    Rwbs,
    /// Bytes of the request
    Size,
    /// Inode
    Inode,
    /// What a journalled copy is a copy of
    HomeKind,
    /// Device, major:minor
    Device,
}

/// A group's name in one column.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Label {
    /// A number.
    Id(u64),
    /// A word.
    Text(String),
    /// Not known, or does not apply.
    Empty,
    /// So many groups that are not shown one by one.
    Rest(usize),
}

impl Label {
    /// As text; None for an empty cell.
    pub fn text(&self) -> Option<String> {
        match self {
            Label::Id(id) => Some(id.to_string()),
            Label::Text(text) => Some(text.clone()),
            Label::Empty => None,
            Label::Rest(groups) => Some(format!("({groups} others)")),
        }
    }
}

impl By {
    /// Name of the column.
    pub const fn name(self) -> &'static str {
        match self {
            By::Class => "class",
            By::Kind => "kind",
            By::Role => "role",
            By::Process => "process",
            By::Dirtier => "dirtier",
            By::File => "file",
            By::Comm => "comm",
            By::Pid => "pid",
            By::Tgid => "tgid",
            By::Uid => "uid",
            By::Provenance => "provenance",
            By::Origin => "origin",
            By::Stage => "stage",
            By::Op => "op",
            By::Rwbs => "rwbs",
            By::Size => "size",
            By::Inode => "inode",
            By::HomeKind => "home_kind",
            By::Device => "device",
        }
    }

    /// The column of a table that ends with a total; the first column says so.
    pub(super) fn values<'a>(self, labels: impl Iterator<Item = &'a Label>, first: bool) -> Values {
        let total = first.then(|| "total".to_owned());
        Values::text(labels.map(Label::text).chain([total]))
    }
}

/// Finds a row's label by number.
pub(super) struct Dictionary<'a> {
    labels: Vec<Label>,
    code: Box<dyn Fn(&Row) -> u32 + 'a>,
}

impl<'a> Dictionary<'a> {
    pub fn new(by: By, a: &'a Attributed) -> Self {
        match by {
            By::Class => {
                let labels = words(Class::ALL.iter().map(|c| c.as_str()));
                Self::coded(labels, |row| {
                    row.class().map_or(0, |class| 1 + class as u32)
                })
            }
            By::Kind => Self::coded(kinds(), |row| row.kind.map_or(0, |kind| 1 + kind as u32)),
            By::HomeKind => Self::coded(kinds(), |row| {
                let home = a.journal_block(row).and_then(|block| block.home_kind);
                home.map_or(0, |kind| 1 + kind as u32)
            }),
            By::Role => Self::coded(roles(), |row| role_code(a, row)),
            By::Provenance => {
                let labels = words(Provenance::ALL.iter().map(|p| p.as_str()));
                Self::coded(labels, |row| a.provenance(row).map_or(0, |p| 1 + p as u32))
            }
            By::Origin => {
                let labels = words((0..=ORIGINS).map(|o| super::words::origin(Origin(o))));
                let code = |o: Origin| 1 + u32::from(o.0.min(ORIGINS));
                Self::coded(labels, move |row| row.origin.map_or(0, code))
            }
            By::Stage => {
                let labels = words((0..=STAGES).map(|s| Stage(s).as_str()));
                let code = |s: Stage| 1 + u32::from(s.0.min(STAGES));
                Self::coded(labels, move |row| row.stage.map_or(0, code))
            }
            By::Op => {
                let labels = words(Op::ALL.iter().map(|op| op.as_str()));
                Self::coded(labels, |row| 1 + row.op as u32)
            }
            By::Process => Self::coded(process_labels(a), |row| row.process.0),
            By::Dirtier => Self::coded(process_labels(a), |row| row.dirtier.0),
            By::Comm => of_processes(a, |p| p.comm.as_deref().map_or(Label::Empty, raw_text)),
            By::Pid => of_processes(a, |p| id(p.pid.map(u64::from))),
            By::Tgid => of_processes(a, |p| id(p.tgid.map(u64::from))),
            By::Uid => of_processes(a, |p| id(p.uid.map(u64::from))),
            By::File => of_files(a, file_label),
            By::Inode => of_files(a, |f| id(f.inode)),
            By::Rwbs => of_requests(a, |r| Label::Text(rwbs(r.action, r.bytes).into())),
            By::Size => of_requests(a, |r| Label::Id(r.bytes.into())),
            By::Device => of_requests(a, |r| Label::Text(super::words::device(r.device))),
        }
    }

    /// Labels by the number of something; those that are equal become one.
    fn coded(all: Vec<Label>, number: impl Fn(&Row) -> u32 + 'a) -> Self {
        let mut codes: HashMap<Label, u32> = HashMap::new();
        let mut labels: Vec<Label> = Vec::new();
        let mut code_of = Vec::with_capacity(all.len());
        for label in all {
            let code = *codes.entry(label).or_insert_with_key(|label| {
                labels.push(label.clone());
                labels.len() as u32 - 1
            });
            code_of.push(code);
        }
        Dictionary {
            labels,
            code: Box::new(move |row| code_of[number(row) as usize]),
        }
    }

    pub fn code(&self, row: &Row) -> u32 {
        (self.code)(row)
    }

    /// By code.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }
}

/// The highest origin that has a word of its own, and what is beyond it.
const ORIGINS: u8 = Origin::META.0 + 1;
/// The same of stages.
const STAGES: u8 = Stage::ISSUE.0 + 1;

/// Code 0 is the empty label.
fn words(words: impl Iterator<Item = &'static str>) -> Vec<Label> {
    std::iter::once(Label::Empty)
        .chain(words.map(|word| Label::Text(word.into())))
        .collect()
}

fn kinds() -> Vec<Label> {
    words(Kind::ALL.iter().map(|kind| kind.as_str()))
}

fn roles() -> Vec<Label> {
    words(
        Role::ALL
            .iter()
            .map(|role| role.as_str())
            .chain([UNKNOWN_ROLE]),
    )
}

/// The role of a regular file whose name is not known.
pub(super) const UNKNOWN_ROLE: &str = "unknown";

/// 0: not a regular file's; else 1 + the role, or the unknown one behind them.
pub(super) fn role_code(a: &Attributed, row: &Row) -> u32 {
    if row.kind != Some(Kind::Regular) {
        return 0;
    }
    let role = a.file(row).and_then(|file| file.role);
    1 + role.map_or(Role::ALL.len() as u32, |role| role as u32)
}

fn of_requests<'a>(a: &'a Attributed, label: fn(&Request) -> Label) -> Dictionary<'a> {
    Dictionary::coded(a.requests.iter().map(label).collect(), |row| row.request)
}

fn of_processes<'a>(a: &'a Attributed, label: impl Fn(&Process) -> Label) -> Dictionary<'a> {
    Dictionary::coded(a.processes.iter().map(label).collect(), |row| row.process.0)
}

fn of_files<'a>(a: &'a Attributed, label: fn(&File) -> Label) -> Dictionary<'a> {
    Dictionary::coded(a.files.iter().map(label).collect(), |row| row.file.0)
}

fn id(id: Option<u64>) -> Label {
    id.map_or(Label::Empty, Label::Id)
}

fn raw_text(bytes: &[u8]) -> Label {
    Label::Text(crate::text::escape(bytes))
}

/// A file without a name is called by its inode, generation and all: the number alone may have
/// gone from one file to the next.
fn file_label(file: &File) -> Label {
    match (&file.path, file.inode, file.generation) {
        (Some(path), _, _) => raw_text(path),
        (None, Some(inode), Some(generation)) => {
            Label::Text(format!("(inode {inode}, generation {generation})"))
        }
        (None, Some(inode), None) => Label::Text(format!("(inode {inode})")),
        (None, None, _) => Label::Empty,
    }
}

fn process_labels(a: &Attributed) -> Vec<Label> {
    let names = names_of_groups(a);
    let label = |process| process_label(process, &names);
    a.processes.iter().map(label).collect()
}

/// `comm:tgid`, the name being that of the main thread if it was seen.
fn process_label(process: &Process, names: &HashMap<u32, &[u8]>) -> Label {
    let Some(tgid) = process.tgid.or(process.pid) else {
        return Label::Empty;
    };
    match names.get(&tgid) {
        Some(comm) => Label::Text(format!("{}:{tgid}", crate::text::escape(comm))),
        None => Label::Text(format!("?:{tgid}")),
    }
}

/// A name for each process: the main thread's last, or else any thread's.
fn names_of_groups(a: &Attributed) -> HashMap<u32, &[u8]> {
    let mut names = HashMap::new();
    for main in [false, true] {
        for p in a
            .processes
            .iter()
            .filter(|p| (p.tgid.is_none() || p.tgid == p.pid) == main)
        {
            if let (Some(tgid), Some(comm)) = (p.tgid.or(p.pid), p.comm.as_deref()) {
                names.insert(tgid, comm);
            }
        }
    }
    names
}

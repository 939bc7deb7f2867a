// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table `calls`: what processes asked of the filesystem, call by call. It is what an application's writes are
//! compared with (bytes passed to write()), and how long it waited for durability.

use std::io::Read;

use mostrace_bundle::entry::{CallKind, EntryRef, RawCall, call_flags};
use mostrace_bundle::table::TableReader;
use polars::prelude::{DataType, IntoColumn, NamedFrom, PolarsResult, Series, TimeUnit};

use strum::VariantArray;

pub use super::call_files::Error;
use super::call_files::Files;
use super::relations::{BUNDLE, Doc, INT64, STRING, docs};
use super::waits::{Parts, Wait, Waits};
use super::{Table, numbers, texts};
use crate::facts::{Facts, package};
use mostrace_trace::attribute::{File, Task};
use mostrace_trace::text::escape;

/// The table's directory in a data set.
pub const NAME: &str = "calls";
/// A sentence that describes a row.
pub const DOC: &str = "A row for each system call by which a file or its metadata was changed or written out, in the order of their returns. A query has this table if there is one recording. It has no rows if the recording has no causes.";

const UTC: &str = "timestamp[µs, UTC]";

const COLUMNS: [Doc; 21] = docs! {
    "time_ns" INT64 "when it returned, ns in the trace's clock",
    "time_utc" UTC "when it returned, by the wall clock; empty if the trace does not have it",
    "call" STRING "write, splice (also sendfile and copy_file_range), fsync, fdatasync, sync, atomic_commit, unlink, rename, truncate …",
    "pid" INT64 "thread that called",
    "tgid" INT64 "its process",
    "uid" INT64 "its user",
    "comm" STRING "its name",
    "package" STRING "app of the user, on an Android device",
    "inode" INT64 "inode number of the file",
    "generation" INT64 "i_generation of the file",
    "path" STRING "path of the file, if it is known by the end",
    "role" STRING "role of the file in SQLite or another store",
    "bytes" INT64 "bytes that a write or splice passed to the filesystem; empty for other calls and for those that failed",
    "duration_ns" INT64 "time from the call to its return; empty if the recording does not tell",
    "error" INT64 "errno; 0 for success",
    "wait_data_ns" INT64 "of duration_ns, how long a call for durability (fsync, sync, a write with O_SYNC …; docs/GLOSSARY.md lists all) waited for contents to be written; the six parts sum to duration_ns; empty for other calls",
    "wait_metadata_ns" INT64 "how long it waited for metadata that it read or wrote itself: f2fs's nodes, the tables of FAT",
    "wait_commit_start_ns" INT64 "how long it waited until the journal's commit, or f2fs's checkpoint, that it needed began to be written: for an earlier one, for open handles, for the thread",
    "wait_commit_ns" INT64 "how long it waited for that commit, fast commit or checkpoint itself, without its flushes",
    "wait_flush_ns" INT64 "how long it waited for flushes of the device's cache: its own, and those of its writes and of the commit",
    "wait_other_ns" INT64 "the rest: its own work, locks, waking up, and what the recording does not tell",
};

/// The number of calls in a piece.
const PIECE: usize = 1 << 16;

/// Columns that were added later.
const LATER: [Doc; 1] = docs! {
    "process" STRING "name:tgid of its process, as in events",
};

/// Returns the columns in their order.
pub fn columns() -> Vec<Doc> {
    [&COLUMNS[..], &[BUNDLE], &LATER].concat()
}

/// Returns all words of the column `call`.
pub fn kinds() -> Vec<String> {
    let word = |&kind: &CallKind| <&str>::from(kind).to_owned();
    CallKind::VARIANTS.iter().map(word).collect()
}

/// Returns the calls of the only recording in pieces; without a table of calls, one piece without rows.
pub fn of<'f, R: Read + 'f>(
    facts: &'f Facts,
    mut calls: Option<TableReader<R>>,
    mut waits: Waits<'f, R>,
) -> impl Iterator<Item = Result<Table, Error>> + 'f {
    let files = Files::new(&facts.names().files);
    let mut is_first = true;
    std::iter::from_fn(move || {
        let piece = match calls.as_mut().map_or(Ok(Vec::new()), read) {
            Ok(piece) => piece,
            Err(error) => {
                calls = None;
                is_first = false;
                return Some(Err(error.into()));
            }
        };
        let is_asked = !piece.is_empty() || is_first;
        is_first = false;
        is_asked.then(|| {
            let parts: Result<Vec<_>, _> = piece.iter().map(|raw| waits.of(raw)).collect();
            Ok(table(facts, &files, &piece, &parts?)?)
        })
    })
}

/// Reads the calls of the next piece.
fn read<R: Read>(calls: &mut TableReader<R>) -> Result<Vec<RawCall>, mostrace_bundle::Error> {
    let mut piece = Vec::new();
    while piece.len() < PIECE
        && let Some(entry) = calls.next_if(|_| true)?
    {
        if let EntryRef::Call(raw) = entry {
            piece.push(*raw);
        }
    }
    Ok(piece)
}

fn table(
    facts: &Facts,
    files: &Files<'_>,
    calls: &[RawCall],
    parts: &[Option<Parts>],
) -> PolarsResult<Table> {
    let number = |name, value: fn(&RawCall) -> Option<u64>| numbers(name, calls.iter().map(value));
    let id = |name, value: fn(&RawCall) -> u32| {
        numbers(name, calls.iter().map(|raw| Some(value(raw).into())))
    };
    let of_file = |name, value: fn(&File) -> Option<String>| {
        texts(name, calls.iter().map(|raw| value(files.of(raw)?)))
    };
    let origin = facts.origins.list.first();
    let packages = origin.and_then(|origin| origin.packages.as_ref());
    let comm = |raw: &RawCall| Some(escape(&facts.shown(Task::from(raw).comm())));
    let name = |raw: &RawCall| {
        let name: &str = CallKind::of(raw.kind.get()).into();
        Some(name.to_owned())
    };
    let waited = |&wait: &Wait| {
        let part = parts.iter().map(|parts| Some((*parts)?.get(wait)));
        numbers(&format!("wait_{}_ns", wait.as_str()), part)
    };
    let bundle = facts.name_of(0);
    let mut columns = vec![
        number("time_ns", |raw| Some(raw.head.time_ns.get())),
        moments(facts, calls)?.into_column(),
        texts("call", calls.iter().map(name)),
        id("pid", |raw| raw.pid.get()),
        id("tgid", |raw| raw.tgid.get()),
        id("uid", |raw| raw.uid.get()),
        texts("comm", calls.iter().map(comm)),
        texts(
            "package",
            calls.iter().map(|raw| package(packages?, raw.uid.get())),
        ),
        number("inode", |raw| Some(raw.ino.get()).filter(|&ino| ino > 0)),
        number("generation", |raw| {
            Some(raw.generation.get().into()).filter(|_| raw.ino.get() > 0)
        }),
        of_file("path", |file| file.path.as_deref().map(escape)),
        of_file("role", |file| Some(file.role?.as_str().to_owned())),
        number("bytes", written),
        number("duration_ns", duration),
        number("error", |raw| Some(raw.result.get().min(0).unsigned_abs())),
    ];
    columns.extend(Wait::ALL.iter().map(waited));
    columns.push(texts(
        "bundle",
        calls.iter().map(|_| Some(bundle.to_owned())),
    ));
    let process = |raw: &RawCall| {
        let name = facts.called(0, &Task::from(raw), raw.head.time_ns.get());
        Some(format!("{name}:{}", raw.tgid.get()))
    };
    columns.push(texts("process", calls.iter().map(process)));
    Table::new(columns)
}

/// Returns the times of the calls by the wall clock.
fn moments(facts: &Facts, calls: &[RawCall]) -> PolarsResult<Series> {
    let moment = |raw: &RawCall| {
        let (mono, unix) = facts.clock()?;
        let since = i128::from(raw.head.time_ns.get()).checked_sub(mono.into())?;
        let ns = since.checked_add(unix.into())?;
        i64::try_from(ns.div_euclid(1000)).ok()
    };
    let moments: Vec<Option<i64>> = calls.iter().map(moment).collect();
    Series::new("time_utc".into(), moments).cast(&DataType::Datetime(TimeUnit::Microseconds, None))
}

/// Returns the bytes that a call passed to the filesystem.
fn written(raw: &RawCall) -> Option<u64> {
    let writes = matches!(
        CallKind::of(raw.kind.get()),
        CallKind::Write | CallKind::Splice
    );
    (writes && raw.result.get() >= 0).then(|| raw.bytes.get())
}

/// Returns the time that a call took, if its entry has both its beginning and its end.
fn duration(raw: &RawCall) -> Option<u64> {
    let flags = raw.head.flags;
    let is_told = !flags.has(call_flags::OPEN_END) && !flags.has(call_flags::PART);
    let took = raw.head.time_ns.get().checked_sub(raw.start_ns.get());
    took.filter(|_| is_told)
}

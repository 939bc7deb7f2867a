// SPDX-License-Identifier: MIT OR Apache-2.0
//! The single list of columns: those that `events` prints, that `--by`, `--where` and `query` accept, and that
//! docs/SCHEMA.md describes.

use std::time::Duration;

use polars::prelude::{DataType, Expr, TimeUnit};

use super::Facts;
use super::labels;
use super::row::{Text, flag, number};
use super::stored::{NONE, NONE_32, bits, column as at};
use crate::sql;
use mostrace_map::class::Kind;
use mostrace_trace::attribute::Op;

/// Version of the columns; it grows when a column changes its meaning or is removed.
pub const SCHEMA: u32 = 3;

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A number that names something: a pid, a sector. Signed, 64 bits.
    Id,
    /// A number that counts or measures. Signed, 64 bits.
    Amount,
    /// Yes or no.
    Flag,
    /// Text.
    Text,
    /// A moment in UTC, in µs.
    Time,
}

impl Type {
    /// Returns the type's name for the schema page.
    pub fn name(self) -> &'static str {
        match self {
            Type::Id | Type::Amount => "int64",
            Type::Flag => "boolean",
            Type::Text => "string",
            Type::Time => "timestamp[µs, UTC]",
        }
    }
}

/// The way in which a column is computed from the stored ones.
enum Values {
    Number(fn(&Facts) -> Expr),
    Flag(fn(&Facts) -> Expr),
    Time(fn(&Facts) -> Expr),
    Text(fn(&Facts) -> Text),
    /// Text of a vocabulary that is the same for every trace.
    Word(fn(&Facts) -> Text),
}

/// One column.
pub struct Column {
    /// The name in snake_case, with its unit.
    pub name: &'static str,
    /// The type of its values.
    pub ty: Type,
    /// A description of its contents, and of when it is empty.
    pub doc: &'static str,
    /// True if `events` prints it only on request: it is computed from others, for grouping.
    pub derived: bool,
    /// The information that must be determined for it while the trace is read; otherwise it is empty.
    pub needs: Needs,
    values: Values,
}

/// The information that a column needs beside the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// It needs nothing else.
    Nothing,
    /// It needs to know which blocks were written before.
    Locality,
    /// It needs the causes of the rows.
    Causes,
}

/// The value of a row to group by.
pub enum Key {
    /// One of a few words.
    Text(Text),
    /// A number, or null.
    Number(Expr),
}

impl Column {
    /// Returns a column by its name.
    pub fn find(name: &str) -> Option<&'static Column> {
        ALL.iter().find(|column| column.name == name)
    }

    /// Returns the columns with these names.
    pub fn all_of(names: &[&str]) -> Vec<&'static Column> {
        names.iter().filter_map(|name| Column::find(name)).collect()
    }

    /// Returns true if it is filled only when blocks that were written before are tracked.
    pub fn needs_locality(&self) -> bool {
        self.needs == Needs::Locality
    }

    /// Returns true if it is filled only when causes are asked for.
    pub fn needs_causes(&self) -> bool {
        self.needs == Needs::Causes
    }

    /// Returns an expression for the rows' values, under the column's name.
    pub(crate) fn expr(&self, facts: &Facts) -> Expr {
        match self.values {
            Values::Number(make) | Values::Flag(make) | Values::Time(make) => make(facts),
            Values::Text(make) | Values::Word(make) => make(facts).text(),
        }
        .alias(self.name)
    }

    /// Returns the key to group rows by; None if rows cannot be grouped by this column.
    pub fn key(&self, facts: &Facts) -> Option<Key> {
        match self.values {
            Values::Number(make) => Some(Key::Number(make(facts))),
            Values::Flag(make) => Some(Key::Text(Text {
                code: make(facts).cast(DataType::UInt32),
                words: [Some("no".to_owned()), Some("yes".to_owned())].into(),
            })),
            Values::Time(_) => None,
            Values::Text(make) | Values::Word(make) => Some(Key::Text(make(facts))),
        }
    }

    /// Returns all texts that the column can have in any trace; None if they depend on the trace.
    pub fn words(&self) -> Option<Vec<String>> {
        match self.values {
            Values::Word(make) => {
                let words = make(&Facts::default()).words;
                Some(words.iter().flatten().cloned().collect())
            }
            _ => None,
        }
    }

    /// Returns what its values can be.
    pub(crate) fn known(&self) -> sql::Values {
        sql::Values {
            ty: self.ty.name(),
            words: self.words(),
        }
    }

    /// Returns the type in which polars holds the values.
    pub(crate) fn data_type(&self) -> DataType {
        match self.ty {
            Type::Id | Type::Amount => DataType::Int64,
            Type::Flag => DataType::Boolean,
            Type::Text => DataType::String,
            Type::Time => DataType::Datetime(TimeUnit::Microseconds, None),
        }
    }
}

/// The columns that `events` shows to people unless they ask for more.
pub const SHORT: &[&str] = &[
    "time_ns", "rwbs", "sector", "bytes", "pid", "comm", "class", "path", "kind", "role",
];

/// Returns the names of the columns that `events` prints.
pub fn events() -> impl Iterator<Item = &'static str> {
    ALL.iter().filter(|c| !c.derived).map(|c| c.name)
}

const fn id(name: &'static str, values: fn(&Facts) -> Expr, doc: &'static str) -> Column {
    column(name, Type::Id, Values::Number(values), doc)
}

const fn amount(name: &'static str, values: fn(&Facts) -> Expr, doc: &'static str) -> Column {
    column(name, Type::Amount, Values::Number(values), doc)
}

const fn yes(name: &'static str, values: fn(&Facts) -> Expr, doc: &'static str) -> Column {
    column(name, Type::Flag, Values::Flag(values), doc)
}

const fn text(name: &'static str, values: fn(&Facts) -> Text, doc: &'static str) -> Column {
    column(name, Type::Text, Values::Text(values), doc)
}

const fn word(name: &'static str, values: fn(&Facts) -> Text, doc: &'static str) -> Column {
    column(name, Type::Text, Values::Word(values), doc)
}

const fn column(name: &'static str, ty: Type, values: Values, doc: &'static str) -> Column {
    Column {
        name,
        ty,
        doc,
        derived: false,
        needs: Needs::Nothing,
        values,
    }
}

const fn derived(column: Column) -> Column {
    Column {
        derived: true,
        ..column
    }
}

const fn caused(column: Column) -> Column {
    Column {
        needs: Needs::Causes,
        ..column
    }
}

const fn followed(column: Column) -> Column {
    Column {
        needs: Needs::Locality,
        ..column
    }
}

/// Every column, in the order in which `events` prints them. New columns are added at the end.
#[rustfmt::skip] // a line each
pub static ALL: &[Column] = &[
    id("time_ns", |_| number([at::time], |[t]| Some(t)), "when the request was completed, ns in the trace's clock"),
    word("rwbs", rwbs, "what the request was, in blkparse's letters"),
    id("sector", |_| number([at::sector], |[s]| known(s)), "first sector, in units of 512 bytes from the start of the whole disk; empty for a cache flush of the device"),
    amount("bytes", |_| number([at::bytes], |[b]| Some(b)), "length in bytes; 0 for flushes"),
    id("pid", |f| labels::of_process(f, at::process, |p| p.pid), "thread that submitted it"),
    text("comm", |f| labels::comms(f, at::process), "name of that thread"),
    word("class", class, "metadata, journal, data or unknown; empty for rows without data"),
    text("path", |f| labels::paths(f, at::file), "path of the file from the filesystem's root; without a leading / it is a bare file name whose directory is unknown"),
    text("device", labels::devices, "major:minor of the traced disk"),
    id("tgid", |f| labels::of_process(f, at::process, |p| p.tgid), "process that submitted it"),
    id("uid", |f| labels::of_process(f, at::process, |p| p.uid), "user of that process"),
    word("kind", |_| kind(bits::KIND), "what the blocks hold"),
    word("role", labels::roles, "role of a regular file, or of the file of a flush, in SQLite or another store (rocksdb_wal, git_pack, …; GLOSSARY.md lists them); other if it has none, unknown if the file's name is unknown"),
    id("inode", |f| labels::of_file(f, at::file, |file| file.inode), "inode number of the file (on FAT, the place of its directory entry)"),
    id("file_offset", |_| number([at::offset], |[o]| known(o)), "offset of the row's first byte in the file, in bytes"),
    word("stage", labels::stages, "where the entry was made: queue, insert, issue, complete"),
    word("provenance", labels::provenances, "how the owner is known: live, snapshot, layout, tree (the mounted tree), encrypted (names in the path are ciphertext), unknown; for rows without data only if a flush is of a file"),
    amount("q2d_ns", |_| number([at::q, at::d], between), "time from the first Q of the row's bios to the last D of the request"),
    amount("d2c_ns", |_| number([at::d, at::time], between), "time from the last D to the completion"),
    id("completion", |_| number([at::request], |[r]| Some(r)), "number of the completion; rows of one request share it"),
    word("op", op, "write, read, flush (end of a flush sequence), device_flush, discard, write_zeroes, other, zone_open, zone_close, zone_finish, zone_reset, zone_reset_all"),
    yes("sync", |_| letter(0), "marked synchronous"),
    yes("fua", |_| letter(1), "written with forced unit access"),
    yes("flush", |_| letter(2), "a flush, or a write with a flush ahead of it"),
    yes("meta", |_| letter(3), "marked as metadata by the filesystem"),
    id("error", |_| number([at::error], |[e]| Some(e)), "errno; 0 for success"),
    word("origin", labels::origins, "what the pages belonged to: file, bdev, direct, raw, journal, empty, node, meta, unknown; empty without an entry"),
    id("generation", |f| labels::of_file(f, at::file, |file| file.generation.map(u64::from)), "i_generation of the file"),
    id("jbd2_tid", |_| number([at::tid], |[t]| (t != u64::from(NONE_32)).then_some(t)), "jbd2 transaction of a journal block"),
    id("home_sector", |_| number([at::home_sector], |[s]| known(s)), "sector to which a journalled copy is written at the checkpoint; null if that is on another disk"),
    word("home_kind", |_| kind(bits::HOME_KIND), "kind of the block at that sector"),
    id("home_inode", |f| labels::of_file(f, at::home_file, |file| file.inode), "inode of the file at that sector, or of the file that the metadata there belongs to"),
    text("home_path", |f| labels::paths(f, at::home_file), "path of that file"),
    id("dirty_pid", |f| labels::of_process(f, at::dirtier, |p| p.pid), "thread that dirtied the pages"),
    id("dirty_tgid", |f| labels::of_process(f, at::dirtier, |p| p.tgid), "its process"),
    id("dirty_uid", |f| labels::of_process(f, at::dirtier, |p| p.uid), "its user"),
    text("dirty_comm", |f| labels::comms(f, at::dirtier), "its name"),
    amount("dirty2q_ns", |_| number([at::dirty, at::q], between), "time from the row's first page becoming dirty to its Q"),
    column("time_utc", Type::Time, Values::Time(utc), "when the request was completed, by the wall clock; empty if the trace does not have it"),
    amount("size_bytes", |_| number([at::size], |[s]| Some(s)), "bytes of the whole request"),
    yes("sequential", |_| flag([at::bits], |[b]| bits::SEQUENTIAL.of(b) != 0), "whether the request began where the one of the same direction issued before it ended"),
    followed(amount("rewritten_bytes", |_| number([at::rewritten], |[r]| (r != u64::from(NONE_32)).then_some(r)), "bytes of the row in sectors that were written before in the trace; empty for writes that were not tracked")),
    followed(amount("rewrite_ns", |_| number([at::rewrite], |[r]| known(r)), "time since the first of these sectors was written")),
    amount("q2c_ns", |_| number([at::q, at::time], between), "time from the first Q of the row's bios to the completion, for which the submitter waits"),
    id("device_flush", |_| number([at::device_flush], |[c]| (c != u64::from(NONE_32)).then_some(c)), "number of the completion of the cache flush that this flush, or write with a flush ahead of it, waited for; flushes may share one"),
    caused(id("cause_pid", |f| labels::of_process(f, at::cause, |p| p.pid), "thread that caused it; if there are several causers, all cause_ columns are of the one with the largest share")),
    caused(id("cause_tgid", |f| labels::of_process(f, at::cause, |p| p.tgid), "its process")),
    caused(id("cause_uid", |f| labels::of_process(f, at::cause, |p| p.uid), "its user")),
    caused(text("cause_comm", |f| labels::comms(f, at::cause), "its name")),
    caused(word("cause_op", labels::cause_operations, "what it did: write, read, allocate, create, unlink, rename, truncate, fsync, time, xattr, mkdir, checkpoint, gc, mount, other, atomic_write, umount, lazy_init, orphan_cleanup, quota, discard, zero")),
    caused(id("cause_inode", |f| labels::of_file(f, at::cause, |file| file.inode), "inode of the file that it was done to")),
    caused(text("cause_path", |f| labels::paths(f, at::cause), "path of that file")),
    caused(word("cause_known", labels::cause_known, "how certain the cause is: exact (every change of these bytes since they were last written was seen, and all are of this cause), shared (all causes that changed them are known, and each has a part), first (this cause was seen to change them first; others may have changed them too), set (one of several possible causes), proportional (its part in a whole transaction or checkpoint), unknown")),
    caused(amount("causes", |_| number([at::causers], |[c]| Some(c)), "number of known causers; --by cause_… gives each its share of the bytes")),
    caused(amount("cause_latency_ns", |_| number([at::waited], |[w]| known(w)), "for a flush, a commit or a fast commit that a call for durability forced: time from the start of that call to the completion")),
    text("package", |f| labels::packages(f, at::process), "on an Android device, the app of the user that submitted it, the apps that share the user, or Android's name of a system user"),
    caused(text("cause_package", |f| labels::packages(f, at::cause), "as package, for the user that caused it")),
    caused(word("checkpoint_reason", labels::checkpoint_reasons, "why f2fs wrote the checkpoint that the row belongs to: the kernel's reason if an fsync needed one (non_regular, compressed, hardlink, sb_need_cp, wrong_pino, no_spc_roll, node_need_cp, fastboot_mode, spec_log_num, recover_dir, xattr_dir), else fsync, sync, ioctl, gc, discard, umount, recovery, pause, resize, background (a kernel thread asked for it), other")),
    caused(word("cause_process_known", labels::cause_process_known, "how certain the process is: exact also if all certain and possible causers belong to one process; else as cause_known")),
    caused(id("cause_generation", |f| labels::of_file(f, at::cause, |file| file.generation.map(u64::from)), "i_generation of the file that it was done to: inode numbers are reused")),
    caused(yes("cause_of_command", labels::cause_of_command, "whether that process belongs to the recorded command's tree: the command, or a process that it or a descendant started; empty if the cause is unknown or the recording does not have the tree")),
    derived(text("cgroup", |f| labels::cgroups(f, at::process), "path of the cgroup (v2) of the process that submitted it, as it was then; empty if the recording does not have it")),
    derived(text("dirty_cgroup", |f| labels::cgroups(f, at::dirtier), "the same of the process that dirtied the pages")),
    derived(caused(text("cause_cgroup", |f| labels::cgroups(f, at::cause), "the same of the process that caused it"))),
    derived(text("process", |f| labels::processes(f, at::process), "name:tgid of the process that submitted it; the name is that of its main thread then, and ? if it is not known. If the trace tells of threads alone (blktrace without entries), both are the thread's")),
    derived(text("dirtier", |f| labels::processes(f, at::dirtier), "the same of the process that dirtied the pages")),
    derived(text("file", |f| labels::files(f, at::file), "the path, or the inode of a file without a name")),
    derived(caused(text("cause_process", |f| labels::processes(f, at::cause), "the same of the process that caused it"))),
    derived(caused(text("cause_file", |f| labels::files(f, at::cause), "path of the file that it was done to, or the inode of a file without a name"))),
    derived(caused(text("cause_database", labels::cause_databases, "path of the SQLite database that this file is or is a temporary file of"))),
    derived(caused(word("cause_role", labels::cause_roles, "role of that file in SQLite or another store"))),
    derived(caused(text("cause_or_submitter", labels::causes_or_submitters, "as cause_process; if that is unknown, the submitter, marked as such: app:17 (submitter), kworker/u8:1 (submitter), or for a loop device's backing file loop0 (submitter)"))),
    derived(caused(text("cause_or_file", labels::cause_or_files, "as cause_file; if the causing process is unknown, as file"))),
    derived(id("size", |_| number([at::size], |[s]| Some(s)), "as size_bytes")),
    derived(id("zone", zone, "number of the zone in which its first sector lies, from 0; empty if the disk has no zones")),
    derived(text("bundle", labels::bundles, "the recording that the row comes from, by its label or its file's name; times and the numbers of processes, inodes and completions can be compared only within one recording")),
    derived(caused(text("cause_stack", labels::cause_stacks, "the stack from which it was caused, if stacks were recorded (record --stacks): the frames of the program, outermost first, then those of the kernel (marked _[k]), with semicolons between them; a program's function is known if its file is found, else the frame is file+0xoffset"))),
    derived(text("process_comm", |f| labels::process_comms(f, at::process), "name of the process that submitted it, which is that of its main thread then; empty if it is not known")),
    derived(text("dirty_process_comm", |f| labels::process_comms(f, at::dirtier), "the same of the process that dirtied the pages")),
    derived(caused(text("cause_process_comm", |f| labels::process_comms(f, at::cause), "the same of the process that caused it"))),
    text("final_path", |f| labels::final_paths(f, at::file), "the path that the file has in the end: the one that it was last renamed to within the recording, or else as path; empty if it is not known"),
    derived(caused(text("cause_or_final_file", labels::cause_or_final_files, "as cause_or_file, under the path that the file was last renamed to within the recording, with the number of files that were"))),
    caused(word("forced_by", labels::forced_by, "what made the filesystem write or flush this when it did. A call that waits until something is durable: fsync, fdatasync, sync_range, msync, sync, write (O_SYNC and the like), checkpoint, atomic_commit, call (another one, or several of different kinds). Or none: timer (jbd2's, after the time that the mount option commit= says), writeback (the kernel's of dirty pages), memory (a lack of it). Empty if it is not known, and for reads, discards and device flushes")),
    caused(id("forced_by_pid", |_| number([at::forced_pid], |[p]| (p != u64::from(NONE_32)).then_some(p)), "thread of the call that forced it; empty if several calls may have")),
    caused(id("forced_by_ns", |_| number([at::forced_start], |[s]| known(s)), "when that call began, ns in the trace's clock")),
];

fn known(value: u64) -> Option<u64> {
    (value != NONE).then_some(value)
}

fn between([from, to]: [u64; 2]) -> Option<u64> {
    known(to)?.checked_sub(known(from)?)
}

fn letter(at: usize) -> Expr {
    flag([at::bits], move |[b]| bits::RWBS.of(b) >> at & 1 != 0)
}

/// Converts the completion's time to Unix time, by the clock of the capture or of the trace's own TIMESTAMP note.
fn utc(facts: &Facts) -> Expr {
    unix_us(facts, Some).cast(DataType::Datetime(TimeUnit::Microseconds, None))
}

/// Returns where the interval of this length begins in which a request was completed: Unix time in µs.
pub(crate) fn interval(facts: &Facts, every: Duration) -> Expr {
    let every = u64::try_from(every.as_micros()).unwrap_or(u64::MAX);
    unix_us(facts, move |us| us.checked_sub(us.checked_rem(every)?))
}

/// Returns the completion's Unix time in µs, passed through `change`.
fn unix_us(facts: &Facts, change: impl Fn(u64) -> Option<u64> + Send + Sync + 'static) -> Expr {
    let clocks = facts.origins.list.iter().map(|origin| origin.clock);
    let clocks: Vec<Option<(u64, u64)>> = clocks.collect();
    number([at::time, at::origin], move |[time_ns, origin]| {
        let (mono_ns, unix_ns) = clocks.get(origin as usize).copied().flatten()?;
        change(unix_ns.checked_add(time_ns)?.checked_sub(mono_ns)? / 1000)
    })
}

/// Returns the zone of each row by its sector.
fn zone(facts: &Facts) -> Expr {
    let origins = facts.origins.list.iter();
    let lengths = origins.map(|origin| origin.manifest.as_ref()?.device.zone_sectors);
    let lengths: Vec<Option<u32>> = lengths.collect();
    number(
        [at::sector, at::origin, at::bits],
        move |[sector, origin, word]| {
            let length = lengths.get(origin as usize).copied().flatten()?;
            // An empty flush is for the whole device.
            let op = Op::ALL.get(bits::OP.of(word) as usize)?;
            let has_place = !matches!(op, Op::Flush | Op::DeviceFlush | Op::ZoneResetAll);
            known(sector)?
                .checked_div(length.into())
                .filter(|_| has_place)
        },
    )
}

fn rwbs(_: &Facts) -> Text {
    let words = (0..=bits::RWBS.max()).map(|code| Some(labels::rwbs(code).to_owned()));
    Text::new([at::bits], words, |[b]| bits::RWBS.of(b))
}

fn op(_: &Facts) -> Text {
    Text::new([at::bits], labels::words_of::<Op>(), |[b]| bits::OP.of(b))
}

fn kind(field: super::field::Field) -> Text {
    let words = std::iter::once(None).chain(labels::words_of::<Kind>());
    Text::new([at::bits], words, move |[b]| field.of(b))
}

fn class(_: &Facts) -> Text {
    let words = Kind::ALL
        .iter()
        .map(|kind| Some(kind.class().as_str().to_owned()));
    let words = std::iter::once(None).chain(words);
    Text::new([at::bits], words, |[b]| bits::KIND.of(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Builder;
    use mostrace_map::class::{Provenance, Role};
    use mostrace_trace::attribute::{
        File, FileId, Names, Process, ProcessId, Request, Row, Stack, StackId,
    };
    use mostrace_trace::causes::{Cause, Operation, Reason, Verdicts};
    use polars::prelude::DataFrame;

    /// Makes the facts of one row that is a rewrite and has every field that causes fill, if they are asked for.
    fn facts(locality: bool, causes: bool) -> Facts {
        let mut builder = Builder::new(locality);
        let verdicts = Verdicts::for_tests(Reason::SbNeedCp, 7);
        let row = Row {
            bytes: 4096,
            kind: Some(Kind::Checkpoint),
            ..Row::default()
        };
        for time_ns in [1000, 2000] {
            let request = Request {
                time_ns,
                bytes: 4096,
                op: Op::Write,
                ..Request::default()
            };
            let verdicts = causes.then_some(&verdicts);
            builder.push(&request, &[row], verdicts).unwrap();
        }
        let causes = match causes {
            true => vec![Cause::default(), cause()],
            false => Vec::new(),
        };
        builder.finish(names(), causes)
    }

    fn cause() -> Cause {
        Cause {
            process: ProcessId(1),
            stack: StackId(1),
            operation: Some(Operation::Write),
            file: FileId(1),
        }
    }

    /// Makes names with an unknown process and no file first, then one of each.
    fn names() -> Names {
        let process = |pid: Option<u32>| Process {
            pid,
            tgid: pid,
            uid: pid,
            comm: pid.map(|_| b"app"[..].into()),
            process_comm: pid.map(|_| b"app"[..].into()),
            of_command: pid.map(|_| true),
            cgroup: pid.map(|_| b"/app"[..].into()),
            told_ns: 0,
        };
        let file = |inode: Option<u64>| File {
            inode,
            generation: inode.map(|_| 3),
            kind: Kind::Regular,
            path: inode.map(|_| b"/a.db"[..].into()),
            name_withheld: false,
            provenance: Provenance::Live,
            role: inode.map(|_| Role::Db),
            final_path: None,
        };
        let stack = Stack {
            kernel: vec!["ext4_file_write_iter".into(), "vfs_write".into()],
            ..Stack::default()
        };
        Names {
            processes: vec![process(None), process(Some(7))],
            files: vec![file(None), file(Some(12))],
            stacks: vec![Stack::default(), stack],
            ..Names::default()
        }
    }

    /// A column's values depend on what was determined only if the column declares that it needs it.
    #[test]
    fn a_column_says_what_it_needs() {
        let values = |facts: &Facts, column: &Column| -> DataFrame {
            facts.frames(&[column], None).next().unwrap().unwrap()
        };
        let all = facts(true, true);
        let (no_locality, no_causes) = (facts(false, true), facts(true, false));
        let mut told = Vec::new();
        for column in ALL {
            let whole = values(&all, column);
            for (without, needs) in [
                (&no_locality, column.needs_locality()),
                (&no_causes, column.needs_causes()),
            ] {
                let differs = !values(without, column).equals_missing(&whole);
                assert!(needs || !differs, "{} says nothing", column.name);
                told.extend(differs.then_some(column.name));
            }
        }
        for name in [
            "rewritten_bytes",
            "rewrite_ns",
            "causes",
            "cause_latency_ns",
            "checkpoint_reason",
            "forced_by",
            "forced_by_pid",
            "forced_by_ns",
        ] {
            assert!(told.contains(&name), "{name}: {told:?}");
        }
    }
}

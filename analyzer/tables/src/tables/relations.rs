// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables beside `events` in `query` and in a data set: requests, causes, processes, files, recordings and transactions. What has
//! bytes among these sums to those of `events`.

use std::collections::HashMap;

use polars::prelude::{
    Column as Values, DataFrame, DataType, Expr, IntoLazy, PolarsError, PolarsResult, col, len,
};

use strum::{IntoStaticStr, VariantArray};

use super::{Table, numbers, texts};
use mostrace_bundle::Manifest;

use crate::facts::labels::{package_of, process_labels};
use crate::facts::{Column, Committed, Facts, Part, Rows, bits, stored_column as at};
use mostrace_trace::attribute::{File, Op, Process};
use mostrace_trace::origins::Origins;
use mostrace_trace::tally::Tally;
use mostrace_trace::text::escape;

/// One of these tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Relation {
    /// A row for each completion.
    Requests,
    /// A row for each share of an event.
    Causes,
    /// A row for each thread.
    Processes,
    /// A row for each file.
    Files,
    /// A row for each recording.
    Recordings,
    /// A row for each transaction of SQLite's.
    Transactions,
}

/// Name, type and description of a column.
pub(super) type Doc = (&'static str, &'static str, &'static str);

/// The types of columns.
pub(super) const INT64: &str = "int64";
pub(super) const STRING: &str = "string";

/// Lists columns, one a line.
macro_rules! docs {
    ($($name:literal $ty:ident $doc:literal,)+) => { [$(($name, $ty, $doc),)+] };
}
pub(super) use docs;

/// Columns that are equal in all rows of a request, or that are taken from its first row.
const SAME: [&str; 16] = [
    "time_ns",
    "rwbs",
    "op",
    "device",
    "d2c_ns",
    "sync",
    "fua",
    "flush",
    "meta",
    "error",
    "size_bytes",
    "sequential",
    "device_flush",
    "time_utc",
    "stage",
    "bundle",
];
const CAUSES: [&str; 16] = [
    "completion",
    "time_ns",
    "op",
    "sector",
    "bytes",
    "cause_pid",
    "cause_tgid",
    "cause_uid",
    "cause_comm",
    "cause_op",
    "cause_inode",
    "cause_path",
    "cause_role",
    "cause_known",
    "cause_package",
    "bundle",
];
const OF_REQUESTS: [Doc; 5] = docs! {
    "completion" INT64 "number of the completion, as in events",
    "sector" INT64 "first sector",
    "bytes" INT64 "bytes of all its rows",
    "q2c_ns" INT64 "q2c_ns of the row that waited longest",
    "events" INT64 "number of its rows in events",
};
const SUMS: [Doc; 3] = docs! {
    "write_bytes" INT64 "bytes written by its rows of events",
    "read_bytes" INT64 "bytes read by its rows of events",
    "flushes" INT64 "number of its rows that are flushes",
};
pub(super) const BUNDLE: Doc = ("bundle", "string", "the recording that the row comes from");
const PROCESSES: [Doc; 6] = docs! {
    "pid" INT64 "thread; empty in the row for requests of unknown submitters",
    "tgid" INT64 "its process",
    "uid" INT64 "user of that process",
    "comm" STRING "name of the thread; a thread that was renamed, or whose process was, has a row for each name",
    "process" STRING "name:tgid, as in events",
    "package" STRING "app of the user, on an Android device",
};
const FILES: [Doc; 8] = docs! {
    "inode" INT64 "inode number; empty in the row for blocks of no file",
    "generation" INT64 "i_generation",
    "path" STRING "path from the filesystem's root",
    "kind" STRING "what its blocks hold",
    "role" STRING "role in SQLite or another store",
    "provenance" STRING "how the name is known",
    "database" STRING "path of the SQLite database that the file is or is a temporary file of",
    "final_path" STRING "path that the file has in the end, as in events",
};

const RECORDINGS: [Doc; 14] = docs! {
    "begin_unix_ns" INT64 "when the recording began, ns since 1970",
    "duration_ns" INT64 "from the first completion to the last",
    "kernel" STRING "its release, as uname -r prints it",
    "machine" STRING "its architecture, as uname -m prints it",
    "disk" STRING "the kernel's name of the whole disk",
    "sectors" INT64 "length of the traced device, in sectors of 512 bytes",
    "scheduler" STRING "the disk's scheduler",
    "write_cache" STRING "write back or write through",
    "filesystem" STRING "ext4, f2fs, vfat …",
    "mount_options" STRING "its mount options",
    "events_source" STRING "where the block events come from",
    "entries_source" STRING "where the entries come from",
    "causes_source" STRING "where the causes come from",
    "lost" INT64 "number of records that were lost; empty if the recorder was killed before it counted them",
};

const TRANSACTIONS: [Doc; 8] = docs! {
    "start_ns" INT64 "when its first call on the database or its journal began, ns in the trace's clock, as time_ns in events",
    "end_ns" INT64 "when the last call that belongs to it returned: a call for durability, or a checkpoint that it triggered",
    "duration_ns" INT64 "end_ns less start_ns",
    "tgid" INT64 "process that committed it",
    "process" STRING "name:tgid, as in events",
    "database" STRING "path of the database",
    "path" STRING "path of the file whose call committed it: the rollback journal, the WAL, or the database itself",
    "role" STRING "role of that file",
};

/// A table in pieces.
pub type Pieces<'f> = Box<dyn Iterator<Item = Result<Table, PolarsError>> + 'f>;

impl Relation {
    /// All tables.
    pub const ALL: &[Relation] = Relation::VARIANTS;

    /// Returns the table's name in a query, which is also its directory in a data set.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns a sentence that describes a row.
    pub fn doc(self) -> &'static str {
        match self {
            Relation::Requests => {
                "A row for each completed request; `completion` (within a `bundle`) joins it with its events. `stage` is that of its first row."
            }
            Relation::Causes => {
                "A row for each share of an event: if an event has several causers, each has a row, and their bytes sum to the event's. The cause_ columns mean the same as in events, for each causer."
            }
            Relation::Processes => {
                "A row for each name of a thread that submitted, dirtied or caused something, with the bytes that it submitted."
            }
            Relation::Files => {
                "A row for each file that was written, read or changed in another way."
            }
            Relation::Transactions => {
                "A row for each committed transaction of SQLite's that the calls show, in the order of the commits. A transaction that changed several databases is one row, with the database that committed first. There are none without a table of calls, and there may be more if calls were lost."
            }
            Relation::Recordings => {
                "A row for each recording. What its manifest tells is empty for the bare files of blktrace."
            }
        }
    }

    /// Returns its columns in their order.
    pub fn columns(self) -> Vec<Doc> {
        let known = |names: &[&str]| -> Vec<Doc> {
            let columns = Column::all_of(names).into_iter();
            columns.map(|c| (c.name, c.ty.name(), c.doc)).collect()
        };
        match self {
            Relation::Requests => [&OF_REQUESTS[..], &known(&SAME)].concat(),
            Relation::Causes => known(&CAUSES),
            Relation::Processes => [&PROCESSES[..], &SUMS, &[BUNDLE]].concat(),
            Relation::Files => [&FILES[..], &SUMS, &[BUNDLE]].concat(),
            Relation::Recordings => [&RECORDINGS[..], &SUMS, &[BUNDLE]].concat(),
            Relation::Transactions => [&TRANSACTIONS[..], &[BUNDLE]].concat(),
        }
    }

    /// Returns true if the table needs causes.
    pub fn needs_causes(self) -> bool {
        self == Relation::Causes
    }

    /// Returns its rows in pieces; the rows of a request are in one piece.
    pub fn of(self, facts: &Facts) -> Pieces<'_> {
        match self {
            Relation::Requests => requests(facts),
            Relation::Causes => causes(facts),
            Relation::Processes => Box::new(std::iter::once_with(|| processes(facts))),
            Relation::Files => Box::new(std::iter::once_with(|| files(facts))),
            Relation::Recordings => Box::new(std::iter::once_with(|| recordings(facts))),
            Relation::Transactions => Box::new(std::iter::once_with(|| transactions(facts))),
        }
    }
}

fn requests(facts: &Facts) -> Pieces<'_> {
    let columns = [&["completion", "sector", "bytes", "q2c_ns"], &SAME[..]].concat();
    let group = |frame: DataFrame| {
        let same: Vec<Expr> = SAME.iter().map(|name| col(*name).first()).collect();
        let own = [
            col("sector").min(),
            col("bytes").sum(),
            col("q2c_ns").max(),
            len().cast(DataType::Int64).alias("events"),
        ];
        let aggregated: Vec<Expr> = own.into_iter().chain(same).collect();
        let requests = frame
            .lazy()
            .group_by_stable([col("completion")])
            .agg(aggregated);
        Ok(Table::from(requests.collect()?))
    };
    let frames = facts.frames(&Column::all_of(&columns), None);
    Box::new(frames.map(move |frame| group(frame?)))
}

fn causes(facts: &Facts) -> Pieces<'_> {
    let columns = Column::all_of(&CAUSES);
    let columns = columns.iter().map(|column| column.expr(facts)).collect();
    let shares = facts.view(columns, Part::Any, None, Rows::Shares);
    Box::new(shares.map(|view| Ok(Table::from(view?.collect()?))))
}

/// The sums over the rows of one process or file.
#[derive(Clone, Copy, Default)]
struct Sums {
    written: u64,
    read: u64,
    flushes: u64,
}

/// The rows of a table of processes or files: first a row of the unknown one for each recording, then each process or file.
struct Listed {
    sums: Vec<Sums>,
    /// The number of recordings, whose rows come first.
    recordings: usize,
}

impl Listed {
    /// Sums up by a stored number; `numbers` is the number of its values.
    fn by(facts: &Facts, number: &'static str, numbers: usize) -> PolarsResult<Listed> {
        let recordings = facts.origins.list.len();
        let others = numbers.saturating_sub(1);
        let sums = sums(
            facts,
            number,
            recordings.saturating_add(others),
            |id, origin| match id {
                0 => origin,
                id => recordings.saturating_add(id.saturating_sub(1)),
            },
        )?;
        Ok(Listed { sums, recordings })
    }

    /// Returns the number of each row's process or file; 0 is the unknown one.
    fn numbers(&self) -> impl Iterator<Item = usize> {
        let first = self.recordings;
        (0..self.sums.len()).map(move |row| match row.checked_sub(first) {
            Some(other) => other.saturating_add(1),
            None => 0,
        })
    }

    /// Returns the columns of sums and of the recording.
    fn columns(&self, facts: &Facts, origin: fn(&Origins, usize) -> usize) -> Vec<Values> {
        let names = self
            .numbers()
            .enumerate()
            .map(|(row, number)| match number {
                0 => facts.name_of(row).to_owned(),
                _ => facts.name_of(origin(&facts.origins, number)).to_owned(),
            });
        [of_sums(&self.sums), vec![texts("bundle", names.map(Some))]].concat()
    }
}

/// Sums the rows by the `place` of a stored number and of the recording's index, of which there are `places`.
fn sums(
    facts: &Facts,
    number: &'static str,
    places: usize,
    place: impl Fn(usize, usize) -> usize,
) -> PolarsResult<Vec<Sums>> {
    let mut sums = vec![Sums::default(); places];
    let columns = [number, at::bytes, at::bits].map(col);
    let columns = [&[col(at::origin).alias("of")], &columns[..]].concat();
    for view in facts.view(columns, Part::Any, None, Rows::Whole) {
        let frame = view?.collect()?;
        let columns = frame.columns();
        let short = |at: usize| columns[at].u32().map(|column| column.iter().flatten());
        let words = columns[3].u64()?.iter().flatten();
        let rows = short(0)?.zip(short(1)?).zip(short(2)?).zip(words);
        for (((origin, id), bytes), word) in rows {
            if let Some(sums) = sums.get_mut(place(id as usize, origin as usize)) {
                sums.see(bytes.into(), word);
            }
        }
    }
    Ok(sums)
}

/// Returns the columns of sums.
fn of_sums(all: &[Sums]) -> Vec<Values> {
    let all = || all.iter();
    vec![
        numbers("write_bytes", all().map(|sums| Some(sums.written))),
        numbers("read_bytes", all().map(|sums| Some(sums.read))),
        numbers("flushes", all().map(|sums| Some(sums.flushes))),
    ]
}

fn recordings(facts: &Facts) -> PolarsResult<Table> {
    let all = &facts.origins.list;
    let sums = sums(facts, at::origin, all.len(), |_, origin| origin)?;
    let manifests = || all.iter().map(|origin| origin.manifest.as_deref());
    let text = |name, of: fn(&Manifest) -> Option<&str>| {
        texts(
            name,
            manifests().map(move |manifest| {
                let told = of(manifest?).filter(|text| !text.is_empty());
                told.map(|text| escape(text.as_bytes()))
            }),
        )
    };
    let number = |name, of: fn(&Manifest) -> Option<u64>| {
        numbers(name, manifests().map(move |manifest| of(manifest?)))
    };
    let durations = all.iter().map(|origin| {
        let (first, last) = origin.span?;
        last.checked_sub(first)
    });
    let own = vec![
        number("begin_unix_ns", Manifest::begin_unix_ns),
        numbers("duration_ns", durations),
        text("kernel", |m| Some(&m.kernel.release)),
        text("machine", |m| Some(&m.kernel.machine)),
        text("disk", |m| Some(&m.device.disk)),
        number("sectors", |m| Some(m.device.sectors)),
        text("scheduler", |m| Some(&m.device.scheduler)),
        text("write_cache", |m| Some(&m.device.write_cache)),
        text("filesystem", |m| Some(&m.filesystem.as_ref()?.kind)),
        text("mount_options", |m| {
            m.filesystem.as_ref()?.mount_options.as_deref()
        }),
        text("events_source", |m| Some(&m.sources.events)),
        text("entries_source", |m| Some(&m.sources.entries)),
        text("causes_source", |m| Some(&m.sources.causes)),
        number("lost", lost),
    ];
    let names = all.iter().map(|origin| Some(origin.name.clone()));
    Table::new([own, of_sums(&sums), vec![texts("bundle", names)]].concat())
}

/// Returns the number of lost records. None if the recorder was killed, since it counts losses at its end.
fn lost(manifest: &Manifest) -> Option<u64> {
    let lost = manifest.losses.values();
    lost.copied().reduce(u64::saturating_add)
}

impl Sums {
    fn see(&mut self, bytes: u64, word: u64) {
        match Op::ALL.get(bits::OP.of(word) as usize) {
            Some(Op::Write) => self.written.tally(bytes),
            Some(Op::Read) => self.read.tally(bytes),
            Some(Op::Flush) => self.flushes.tally(1),
            _ => {}
        }
    }
}

fn processes(facts: &Facts) -> PolarsResult<Table> {
    let all = &facts.names().processes;
    let listed = Listed::by(facts, at::process, all.len())?;
    let labels = process_labels(facts);
    let each = || listed.numbers().map(|at| all.get(at));
    let number = |name, value: fn(&Process) -> Option<u32>| {
        numbers(
            name,
            each().map(move |process| value(process?).map(u64::from)),
        )
    };
    let comms = each().map(|process| process?.comm.as_deref().map(escape));
    let labels = listed.numbers().map(|at| labels.get(at).cloned().flatten());
    let packages = listed.numbers().map(|at| package_of(facts, at));
    let own = vec![
        number("pid", |p| p.pid),
        number("tgid", |p| p.tgid),
        number("uid", |p| p.uid),
        texts("comm", comms),
        texts("process", labels),
        texts("package", packages),
    ];
    Table::new([own, listed.columns(facts, Origins::of_process)].concat())
}

fn files(facts: &Facts) -> PolarsResult<Table> {
    let all = &facts.names().files;
    let listed = Listed::by(facts, at::file, all.len())?;
    let each = || {
        let numbers = listed.numbers();
        numbers.map(|at| all.get(at).filter(|_| at > 0))
    };
    let text = |name, value: fn(&File) -> Option<String>| {
        texts(name, each().map(move |file| value(file?)))
    };
    let own = vec![
        numbers("inode", each().map(|file| file?.inode)),
        numbers(
            "generation",
            each().map(|file| file?.generation.map(u64::from)),
        ),
        text("path", |file| file.path.as_deref().map(escape)),
        text("kind", |file| Some(file.kind.as_str().to_owned())),
        text("role", |file| Some(file.role?.as_str().to_owned())),
        text("provenance", |file| {
            Some(file.provenance.as_str().to_owned())
        }),
        text("database", |file| file.database().map(escape)),
        text("final_path", |file| file.final_path.as_deref().map(escape)),
    ];
    Table::new([own, listed.columns(facts, Origins::of_file)].concat())
}

fn transactions(facts: &Facts) -> PolarsResult<Table> {
    let all = facts.transactions()?;
    let mut files: HashMap<(usize, u64, u32), &File> = HashMap::new();
    for (at, file) in facts.names().files.iter().enumerate() {
        if let Some((inode, generation)) = file.inode.zip(file.generation) {
            let id = (facts.origins.of_file(at), inode, generation);
            files.entry(id).or_insert(file);
        }
    }
    let text = |name, value: fn(&File) -> Option<String>| {
        let file = |one: &Committed| files.get(&(one.origin, one.file.0, one.file.1)).copied();
        texts(name, all.iter().map(|one| value(file(one)?)))
    };
    let number =
        |name, value: fn(&Committed) -> u64| numbers(name, all.iter().map(|one| Some(value(one))));
    let process = |one: &Committed| {
        let name = facts.called(one.origin, &one.task, one.end_ns);
        let suffix = facts.origins.suffix(one.origin);
        Some(format!("{name}:{}{suffix}", one.task.tgid))
    };
    // A database that was recognised by its contents alone has no role: it is the file itself.
    let database = |file: &File| file.database().or(file.path.as_deref()).map(escape);
    let bundles = all
        .iter()
        .map(|one| Some(facts.name_of(one.origin).to_owned()));
    Table::new(vec![
        number("start_ns", |one| one.start_ns),
        number("end_ns", |one| one.end_ns),
        number("duration_ns", |one| one.end_ns.saturating_sub(one.start_ns)),
        number("tgid", |one| one.task.tgid.into()),
        texts("process", all.iter().map(process)),
        text("database", database),
        text("path", |file| file.path.as_deref().map(escape)),
        text("role", |file| Some(file.role?.as_str().to_owned())),
        texts("bundle", bundles),
    ])
}

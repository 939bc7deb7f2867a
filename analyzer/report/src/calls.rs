// SPDX-License-Identifier: MIT OR Apache-2.0
//! System calls and SQLite's transactions as columns, on the same time axis as the rows.

use std::collections::HashMap;
use std::io::Read;

use mostrace_bundle::entry::{CallKind, EntryRef};
use mostrace_bundle::table::TableReader;
use serde::Serialize;

use super::pack::{Table, signed};
use super::rows::{length, micros};
use super::scan::Dictionary;
use super::words::Words;
use mostrace_tables::facts::Facts;
use mostrace_tables::facts::labels::file_label;
use mostrace_tables::tables::calls::Error;
use mostrace_tables::tables::waits::{Parts, Wait, Waits};
use mostrace_trace::attribute::{File, Task};
use mostrace_trace::causes::{asks, is_sync};
use mostrace_trace::tally::Tally;
use mostrace_trace::text::escape;
use mostrace_trace::transactions::Span;

/// The most calls for durability, the most other calls, and the most transactions.
const MOST: usize = 150_000;

/// The columns of the calls; of what a call waited for, the rest is its time less the five parts.
const COLUMNS: [&str; 11] = [
    "call",
    "start",
    "took",
    "who",
    "file",
    "bytes",
    "data",
    "metadata",
    "commit_start",
    "commit",
    "flush",
];

/// The words of these tables, and what they do not have.
#[derive(Debug, Default, Serialize)]
pub(super) struct About {
    pub calls: Vec<Option<String>>,
    /// The kinds of calls that wait until something is durable, by number.
    pub durable: Vec<u32>,
    pub databases: Vec<Option<String>>,
    /// Numbers of calls for durability, of other calls and of transactions that are left out.
    pub left_out: [u64; 3],
}

/// A call as it is stored.
struct Call {
    kind: CallKind,
    start_us: i64,
    took_us: u64,
    who: u32,
    file: u32,
    bytes: u64,
    /// True if it asks for durability.
    asks: bool,
    /// The parts of its time by what it waited for; zeros if that is not known.
    parts: Parts,
}

/// Names of processes and files, by the numbers that calls have.
struct Names<'f> {
    facts: &'f Facts,
    files: HashMap<(u64, u32), &'f File>,
}

impl<'f> Names<'f> {
    fn new(facts: &'f Facts) -> Names<'f> {
        let files = facts.names().files.iter();
        Names {
            facts,
            files: files
                .filter_map(|file| Some(((file.inode?, file.generation?), file)))
                .collect(),
        }
    }

    /// Returns the label of a thread's process.
    fn process(&self, task: &Task, time_ns: u64) -> String {
        let name = self.facts.called(0, task, time_ns);
        format!("{name}:{}", task.tgid)
    }

    fn file(&self, id: (u64, u32)) -> Option<String> {
        file_label(self.files.get(&id)?)
    }
}

/// Returns the word for a call: `fsync`, `write`, `write (durable)`.
fn word(call: &Call) -> String {
    let word: &str = call.kind.into();
    match call.asks && !is_sync(call.kind) {
        true => format!("{word} (durable)"),
        false => word.to_owned(),
    }
}

/// Reads all calls that succeeded; files have their final names. `waits` says what those for durability waited for.
pub(super) fn calls<R: Read>(
    table: &mut TableReader<R>,
    mut waits: Waits<'_, R>,
    facts: &Facts,
    start_ns: u64,
    dictionary: &mut Dictionary,
    about: &mut About,
) -> Result<Table, Error> {
    let names = Names::new(facts);
    let mut files: HashMap<(u64, u32), u32> = HashMap::new();
    let mut all: Vec<Call> = Vec::new();
    let mut counts = [0_usize; 2];
    while let Some(entry) = table.next_if(|_| true)? {
        let EntryRef::Call(raw) = entry else { continue };
        let kind = CallKind::of(raw.kind.get());
        let sort = usize::from(!asks(raw));
        if raw.result.get() < 0 {
            continue;
        }
        if counts[sort] >= MOST {
            about.left_out[sort].tally(1);
            continue;
        }
        counts[sort].tally(1);
        let id = (raw.ino.get(), raw.generation.get());
        let name = names.process(&Task::from(raw), raw.head.time_ns.get());
        let who = dictionary.whos.number(Some(&name));
        let file = files.entry(id).or_insert_with(|| {
            let name = names.file(id);
            dictionary.files.number(name.as_deref())
        });
        let (from, to) = (raw.start_ns.get(), raw.head.time_ns.get());
        all.push(Call {
            kind,
            start_us: micros(from, start_ns),
            took_us: length(to.saturating_sub(from)),
            who,
            file: *file,
            bytes: raw.bytes.get(),
            asks: asks(raw),
            parts: waits.of(raw)?.unwrap_or_default(),
        });
    }
    // They are stored when they return; the page searches them by their beginning.
    all.sort_by_key(|call| call.start_us);
    let mut words = Words::default();
    let mut kinds: HashMap<(u16, bool), u32> = HashMap::new();
    let mut rows = Table::new("calls", &COLUMNS, &["start"]);
    for call in all {
        let sort = (call.kind as u16, call.asks);
        let number = *kinds.entry(sort).or_insert_with(|| {
            let number = words.number(Some(&word(&call)));
            if call.asks {
                about.durable.push(number);
            }
            number
        });
        let waited = |wait| signed(call.parts.get(wait) / 1000);
        rows.push([
            number.into(),
            call.start_us,
            signed(call.took_us),
            call.who.into(),
            call.file.into(),
            signed(call.bytes),
            waited(Wait::Data),
            waited(Wait::Metadata),
            waited(Wait::CommitStart),
            waited(Wait::Commit),
            waited(Wait::Flush),
        ]);
    }
    about.calls = words.list().to_vec();
    Ok(rows)
}

/// Returns all transactions, in the order of their beginning.
pub(super) fn transactions(
    spans: &[Span],
    facts: &Facts,
    start_ns: u64,
    dictionary: &mut Dictionary,
    about: &mut About,
) -> Table {
    let names = Names::new(facts);
    let mut sorted: Vec<&Span> = spans.iter().collect();
    if sorted.len() > MOST {
        // The slowest are what one looks for.
        sorted.sort_by_key(|span| std::cmp::Reverse(span.ns()));
        about.left_out[2] = sorted.len().saturating_sub(MOST) as u64;
        sorted.truncate(MOST);
    }
    sorted.sort_by_key(|span| span.start_ns);
    let mut databases = Words::default();
    let columns = ["start", "took", "who", "database"];
    let mut rows = Table::new("transactions", &columns, &["start"]);
    for span in sorted {
        let file = names.files.get(&span.file);
        let database = file.and_then(|file| file.database()).map(escape);
        let who = names.process(&span.task, span.end_ns);
        rows.push([
            micros(span.start_ns, start_ns),
            signed(length(span.ns())),
            dictionary.whos.number(Some(&who)).into(),
            databases.number(database.as_deref()).into(),
        ]);
    }
    about.databases = databases.list().to_vec();
    rows
}

// SPDX-License-Identifier: MIT OR Apache-2.0
//! One row per completed request part.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use mostrace_bundle::entry::{Origin, Stage};

use super::by::{UNKNOWN_ROLE, role_code};
use super::{Table, Values, words};
use crate::attribute::{Attributed, FileId, JournalBlock, Op, Row};
use crate::blktrace::{action, rwbs};
use crate::text::escape;
use mostrace_map::class::{Class, Kind, Provenance, Role};

/// Words of a column, and the number of a row's word; 0 is the empty one.
type Word = (Arc<[Option<String>]>, Box<dyn Fn(&Attributed, &Row) -> u32>);

/// How a column gets its values.
enum Source {
    Id(fn(&Attributed, &Row) -> Option<u64>),
    Amount(fn(&Attributed, &Row) -> Option<u64>),
    Flag(fn(&Attributed, &Row) -> bool),
    Word(fn(&Attributed) -> Word),
}

/// The columns, in the order they are printed.
const COLUMNS: &[(&str, Source)] = &[
    ("time_ns", Source::Id(|a, r| Some(a.request(r).time_ns))),
    ("rwbs", Source::Word(rwbs_words)),
    ("sector", Source::Id(|_, r| Some(r.sector))),
    ("bytes", Source::Amount(|_, r| Some(r.bytes.into()))),
    ("pid", Source::Id(|a, r| a.process(r).pid.map(u64::from))),
    ("comm", Source::Word(comm_words)),
    ("class", Source::Word(class_words)),
    ("path", Source::Word(path_words)),
    ("device", Source::Word(device_words)),
    ("tgid", Source::Id(|a, r| a.process(r).tgid.map(u64::from))),
    ("uid", Source::Id(|a, r| a.process(r).uid.map(u64::from))),
    ("kind", Source::Word(kind_words)),
    ("role", Source::Word(role_words)),
    ("inode", Source::Id(|a, r| a.file(r)?.inode)),
    ("file_offset", Source::Id(|_, r| r.file_offset)),
    ("stage", Source::Word(stage_words)),
    ("provenance", Source::Word(provenance_words)),
    (
        "q2d_ns",
        Source::Amount(|a, r| a.request(r).d_ns?.checked_sub(r.q_ns?)),
    ),
    (
        "d2c_ns",
        Source::Amount(|a, r| a.request(r).time_ns.checked_sub(a.request(r).d_ns?)),
    ),
    ("completion", Source::Id(|_, r| Some(r.request.into()))),
    ("op", Source::Word(op_words)),
    ("sync", Source::Flag(|a, r| has(a, r, action::BLK_TC_SYNC))),
    ("fua", Source::Flag(|a, r| has(a, r, action::BLK_TC_FUA))),
    (
        "flush",
        Source::Flag(|a, r| has(a, r, action::BLK_TC_FLUSH)),
    ),
    ("meta", Source::Flag(|a, r| has(a, r, action::BLK_TC_META))),
    ("error", Source::Id(|a, r| Some(a.request(r).error.into()))),
    ("origin", Source::Word(origin_words)),
    (
        "generation",
        Source::Id(|a, r| a.file(r)?.generation.map(u64::from)),
    ),
    (
        "jbd2_tid",
        Source::Id(|a, r| a.journal_block(r)?.tid.map(u64::from)),
    ),
    (
        "home_sector",
        Source::Id(|a, r| a.journal_block(r)?.home_sector),
    ),
    ("home_kind", Source::Word(home_kind_words)),
    (
        "home_inode",
        Source::Id(|a, r| a.file_of(a.journal_block(r)?.home_file)?.inode),
    ),
    ("home_path", Source::Word(home_path_words)),
    (
        "dirty_pid",
        Source::Id(|a, r| a.dirtier(r).pid.map(u64::from)),
    ),
    (
        "dirty_tgid",
        Source::Id(|a, r| a.dirtier(r).tgid.map(u64::from)),
    ),
    (
        "dirty_uid",
        Source::Id(|a, r| a.dirtier(r).uid.map(u64::from)),
    ),
    ("dirty_comm", Source::Word(dirty_comm_words)),
    (
        "dirty2q_ns",
        Source::Amount(|_, r| r.q_ns?.checked_sub(r.dirty_ns?)),
    ),
];

/// What people see unless they ask for more.
pub const SHORT: &[&str] = &[
    "time_ns", "rwbs", "sector", "bytes", "pid", "comm", "class", "path", "kind", "role",
];

/// Names of all columns.
pub fn columns() -> impl Iterator<Item = &'static str> {
    COLUMNS.iter().map(|(name, _)| *name)
}

/// Makes tables of rows, piece by piece, so that a long trace is never held twice.
pub struct Events<'a> {
    attributed: &'a Attributed,
    columns: Vec<(&'static str, &'static Source, Option<Word>)>,
}

impl<'a> Events<'a> {
    /// With the columns named, in that order; unknown names are left out.
    pub fn new<'n>(attributed: &'a Attributed, names: impl IntoIterator<Item = &'n str>) -> Self {
        let find = |name: &str| COLUMNS.iter().find(|(known, _)| *known == name);
        let columns = names
            .into_iter()
            .filter_map(find)
            .map(|(name, source)| match source {
                Source::Word(words) => (*name, source, Some(words(attributed))),
                _ => (*name, source, None),
            })
            .collect();
        Events {
            attributed,
            columns,
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.attributed.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.attributed.rows.is_empty()
    }

    /// Some of the rows. A range beyond the last row is cut.
    pub fn table(&self, range: Range<usize>) -> Table {
        let (a, end) = (self.attributed, range.end.min(self.len()));
        let rows = &a.rows[range.start.min(end)..end];
        let mut table = Table::default();
        for (name, source, word) in &self.columns {
            let values = match (source, word) {
                (Source::Id(f), _) => Values::Id(rows.iter().map(|r| f(a, r)).collect()),
                (Source::Amount(f), _) => Values::Amount(rows.iter().map(|r| f(a, r)).collect()),
                (Source::Flag(f), _) => Values::Flag(rows.iter().map(|r| f(a, r)).collect()),
                (Source::Word(_), Some((words, f))) => {
                    let codes = rows.iter().map(|r| f(a, r)).collect();
                    Values::Word {
                        codes,
                        words: words.clone(),
                    }
                }
                (Source::Word(_), None) => continue,
            };
            table.push(name, values);
        }
        table
    }
}

fn has(a: &Attributed, row: &Row, bit: u64) -> bool {
    a.request(row).action & bit != 0
}

/// An empty word, then these.
fn words_of<'w>(words: impl IntoIterator<Item = &'w str>) -> Arc<[Option<String>]> {
    std::iter::once(None)
        .chain(words.into_iter().map(|w| Some(w.to_owned())))
        .collect()
}

/// Numbers the words that a column turns out to have.
fn numbered(
    a: &Attributed,
    key: fn(&Attributed, &Row) -> u64,
    word: fn(&Attributed, &Row) -> String,
) -> Word {
    let mut words = vec![None];
    let mut codes: HashMap<u64, u32> = HashMap::new();
    for row in &a.rows {
        codes.entry(key(a, row)).or_insert_with(|| {
            words.push(Some(word(a, row)));
            words.len() as u32 - 1
        });
    }
    (
        words.into(),
        Box::new(move |a, row| codes.get(&key(a, row)).copied().unwrap_or(0)),
    )
}

fn rwbs_words(a: &Attributed) -> Word {
    const SHOWN: u64 = action::BLK_TC_WRITE
        | action::BLK_TC_FLUSH
        | action::BLK_TC_SYNC
        | action::BLK_TC_AHEAD
        | action::BLK_TC_META
        | action::BLK_TC_DISCARD
        | action::BLK_TC_FUA;
    numbered(
        a,
        |a, r| (a.request(r).action & SHOWN) << 1 | u64::from(a.request(r).bytes != 0),
        |a, r| rwbs(a.request(r).action, a.request(r).bytes).to_owned(),
    )
}

fn device_words(a: &Attributed) -> Word {
    numbered(
        a,
        |a, r| a.request(r).device.into(),
        |a, r| words::device(a.request(r).device),
    )
}

fn comms(a: &Attributed) -> Arc<[Option<String>]> {
    a.processes
        .iter()
        .map(|p| p.comm.as_deref().map(escape))
        .collect()
}

fn comm_words(a: &Attributed) -> Word {
    (comms(a), Box::new(|_, row| row.process.0))
}

fn dirty_comm_words(a: &Attributed) -> Word {
    (comms(a), Box::new(|_, row| row.dirtier.0))
}

fn paths(a: &Attributed) -> Arc<[Option<String>]> {
    a.files
        .iter()
        .map(|f| f.path.as_deref().map(escape))
        .collect()
}

fn path_words(a: &Attributed) -> Word {
    (paths(a), Box::new(|_, row| row.file.0))
}

fn home_path_words(a: &Attributed) -> Word {
    let home = |block: &JournalBlock| block.home_file;
    (
        paths(a),
        Box::new(move |a, row| a.journal_block(row).map_or(FileId::NONE, home).0),
    )
}

fn class_words(_: &Attributed) -> Word {
    let words = words_of(Class::ALL.iter().map(|c| c.as_str()));
    (
        words,
        Box::new(|_, row| row.class().map_or(0, |class| 1 + class as u32)),
    )
}

fn kinds() -> Arc<[Option<String>]> {
    words_of(Kind::ALL.iter().map(|k| k.as_str()))
}

fn kind_words(_: &Attributed) -> Word {
    (
        kinds(),
        Box::new(|_, row| row.kind.map_or(0, |kind| 1 + kind as u32)),
    )
}

fn home_kind_words(_: &Attributed) -> Word {
    let kind = |block: &JournalBlock| block.home_kind;
    let code = move |a: &Attributed, row: &Row| {
        a.journal_block(row)
            .and_then(kind)
            .map_or(0, |kind| 1 + kind as u32)
    };
    (kinds(), Box::new(code))
}

fn role_words(_: &Attributed) -> Word {
    let words = words_of(Role::ALL.iter().map(|r| r.as_str()).chain([UNKNOWN_ROLE]));
    (words, Box::new(role_code))
}

fn provenance_words(_: &Attributed) -> Word {
    let words = words_of(Provenance::ALL.iter().map(|p| p.as_str()));
    (
        words,
        Box::new(|a, row| a.provenance(row).map_or(0, |p| 1 + p as u32)),
    )
}

fn op_words(_: &Attributed) -> Word {
    let words = words_of(Op::ALL.iter().map(|op| op.as_str()));
    (words, Box::new(|_, row| 1 + row.op as u32))
}

fn stage_words(_: &Attributed) -> Word {
    let words = words_of((0..=3).map(|stage| Stage(stage).as_str()));
    (
        words,
        Box::new(|_, row| row.stage.map_or(0, |stage| 1 + u32::from(stage.0.min(3)))),
    )
}

fn origin_words(_: &Attributed) -> Word {
    let words = words_of((0..=6).map(|o| words::origin(Origin(o))));
    let code = |o: Origin| if o.0 <= 6 { 1 + u32::from(o.0) } else { 1 };
    (words, Box::new(move |_, row| row.origin.map_or(0, code)))
}

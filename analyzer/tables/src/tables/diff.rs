// SPDX-License-Identifier: MIT OR Apache-2.0
//! Differences between traces: each other trace is compared with the first.
//!
//! If the number of transactions is known for all traces, figures are compared per transaction; if it is known for none, as
//! totals. Otherwise the tables show what each wrote, and the first line says why it compares nothing.

use std::collections::{BTreeMap, BTreeSet};

use mostrace_bundle::Manifest;
use polars::prelude::{Column as Values, IntoColumn, NamedFrom, Series};

use super::summary::{Section, section};
use super::{Result, Table, numbers, ratio, reals, texts};
use mostrace_trace::answer::{Answer, size};
use mostrace_trace::charged::{Charged, Counted};
use mostrace_trace::sums::layer::{self, Layer};
use mostrace_trace::sums::{Groups, Label, Totals};
use mostrace_trace::tally::Tally;
use mostrace_trace::text::grouped;
use mostrace_trace::transactions::{Count, Source, Transactions};

/// Number of layers that the sentence names.
const MOST: usize = 3;
/// Smaller changes of a layer are not named: per cent of what the first trace wrote.
const LEAST: f64 = 1.0;
/// Smaller changes of reads and discards are not named: per cent of what the trace that wrote more wrote.
const CHANGED: f64 = 10.0;

/// The groupings of bytes beside layers: the name in JSON, the title, the columns.
const WAYS: [(&str, &str, &[&str]); 4] = [
    ("by_class", "Classes", &["class", "kind"]),
    ("by_role", "Roles of regular files", &["role"]),
    (
        "by_home",
        "What the journal holds copies of",
        &["home_kind"],
    ),
    (
        "by_cause",
        "What caused it: the operation, and what its file is to SQLite",
        &["cause_op", "cause_role"],
    ),
];

/// The column of layers, which are sums over groups.
const LAYER: &str = "layer";

/// The figures of one trace that are compared.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// The trace's name.
    pub name: String,
    /// The part of the trace that counts.
    pub counted: Counted,
    /// The sums of the rows that count.
    pub total: Totals,
    /// The number of its transactions.
    pub transactions: Count,
    /// What its rows that count show.
    pub finding: Answer,
    /// The unit of that number.
    unit: Unit,
    /// Why its figures may not be those of the intended measurement: something is missing, or the command failed.
    fault: Option<String>,
    filesystem: Option<String>,
    layers: Vec<(Layer, Totals)>,
    ways: Vec<Groups>,
}

/// The unit of a trace's number of transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Unit {
    #[default]
    Transactions,
    Operations,
}

impl Unit {
    fn of(manifest: Option<&Manifest>, transactions: &Transactions) -> Unit {
        let payload = manifest.and_then(|m| m.payload.as_ref());
        match payload.filter(|_| transactions.source == Source::Application) {
            Some(payload) if payload.counts_operations() => Unit::Operations,
            _ => Unit::Transactions,
        }
    }

    fn one(self) -> &'static str {
        match self {
            Unit::Transactions => "transaction",
            Unit::Operations => "operation",
        }
    }
}

/// Returns why a trace's figures may not be those of the intended measurement.
fn fault(manifest: Option<&Manifest>, warnings: &[String]) -> Option<String> {
    let status = manifest
        .and_then(|m| m.command.as_ref())
        .and_then(|command| command.exit_status);
    match status {
        Some(status) if status != 0 => Some(format!("its command ended with {status}")),
        _ => (!warnings.is_empty()).then(|| "it is incomplete".to_owned()),
    }
}

impl Side {
    /// Takes what of a trace, which was read with causes, is charged to its command. `warnings` say what makes its figures
    /// incomplete.
    pub fn new(name: String, charged: &Charged<'_>, warnings: &[String]) -> Side {
        let manifest = charged.manifest;
        let filesystem = manifest.and_then(|m| m.filesystem.as_ref());
        let layer = |(labels, totals): &(Vec<Label>, Totals)| Some((Layer::of(labels)?, *totals));
        let layers = charged.groups(&layer::COLUMNS);
        let transactions = Transactions::new(manifest, &charged.own_databases());
        Side {
            name,
            finding: charged.answer(),
            counted: charged.counted,
            total: charged.total,
            unit: Unit::of(manifest, &transactions),
            transactions: transactions.count,
            fault: fault(manifest, warnings),
            filesystem: filesystem.map(|f| mostrace_trace::text::escape(f.kind.as_bytes())),
            layers: layers.groups.iter().filter_map(layer).collect(),
            ways: WAYS.iter().map(|(.., by)| charged.groups(by)).collect(),
        }
    }
}

/// The differences.
#[derive(Debug)]
pub struct Diff {
    /// The sentence that comes first: a line for each other trace.
    pub sentence: String,
    /// A line for each trace of which a part does not count.
    pub notes: Vec<String>,
    /// The tables.
    pub sections: Vec<Section>,
}

/// The number of transactions of each side, by which its figures are divided; None if they are not divided.
type Per<'p> = Option<&'p [u64]>;

impl Diff {
    /// Compares all other sides with the first.
    ///
    /// # Errors
    /// Never fails, because all columns have different names.
    pub fn new(sides: &[&Side]) -> Result<Diff> {
        let per = per(sides);
        let per = per.as_deref();
        let filesystem = match sides.split_first() {
            Some((a, others)) if others.iter().all(|b| a.filesystem == b.filesystem) => {
                a.filesystem.as_deref()
            }
            _ => None,
        };
        let filesystem = filesystem.unwrap_or("the filesystem");
        let layers: Vec<Sums> = sides
            .iter()
            .map(|side| {
                let mut sums = Sums::new();
                for (layer, totals) in &side.layers {
                    let sum = sums.entry(vec![Some(layer.name(filesystem))]).or_default();
                    sum.tally(*totals);
                }
                sums
            })
            .collect();
        let mut sections = vec![
            section("total", "Total", None, total(sides, per)?),
            section("by_layer", "Layers", None, changes(&[LAYER], &layers, per)?),
        ];
        for (at, (name, title, columns)) in WAYS.iter().enumerate() {
            let of = |side: &&Side| side.ways.get(at).map(sums).unwrap_or_default();
            let sums: Vec<Sums> = sides.iter().map(of).collect();
            sections.push(section(name, title, None, changes(columns, &sums, per)?));
        }
        let others = sides.iter().zip(&layers).skip(1);
        let lines = others.filter_map(|(side, sums)| {
            let (a, of_a) = (sides.first()?, layers.first()?);
            let pair = [*a, *side];
            Some(sentence(pair, [of_a, sums], self::per(&pair).as_deref()))
        });
        let note = |side: &&Side| Some(format!("{}: {}", side.name, side.counted.words()?));
        Ok(Diff {
            notes: sides.iter().filter_map(note).collect(),
            sentence: lines.collect::<Vec<_>>().join("\n"),
            sections,
        })
    }
}

/// Returns each side's number of transactions; None if one is unknown or they count different things.
fn per(sides: &[&Side]) -> Option<Vec<u64>> {
    let is_alike = sides.windows(2).all(|two| two[0].unit == two[1].unit);
    let counts = sides.iter().map(|side| exactly(side));
    counts.collect::<Option<Vec<u64>>>().filter(|_| is_alike)
}

/// The letters from `a` to `z`.
const LETTERS: usize = 26;

/// Returns the prefix of a side's columns: `a`, `b` … `z`, `aa`.
pub fn letter(side: usize) -> String {
    let mut letters = 'a'..='z';
    let last = letters.nth(side % LETTERS).unwrap_or('z').to_string();
    match side / LETTERS {
        0 => last,
        more => letter(more.saturating_sub(1)) + &last,
    }
}

/// Returns the name of a column of changes; with two sides there is only one.
fn changed(what: &str, side: usize, sides: usize) -> String {
    match sides {
        ..=2 => what.to_owned(),
        _ => format!("{}_{what}", letter(side)),
    }
}

/// Returns why the two sides are not compared in the sentence; None if they are.
fn apart([a, b]: [&Side; 2]) -> Option<String> {
    let faulty = [a, b].into_iter().find_map(|side| {
        let fault = side.fault.as_ref()?;
        Some(format!("{} is not reliable: {fault}", side.name))
    });
    let known_only_for = |side: &Side| {
        let (name, one) = (&side.name, side.unit.one());
        Some(format!("the number of {one}s is known only for {name}"))
    };
    let unlike = || match [a, b].map(exactly) {
        [Some(_), Some(_)] if a.unit != b.unit => Some(format!(
            "{} counts {}s, {} {}s",
            a.name,
            a.unit.one(),
            b.name,
            b.unit.one()
        )),
        [Some(_), None] => known_only_for(a),
        [None, Some(_)] => known_only_for(b),
        _ => None,
    };
    faulty.or_else(unlike)
}

/// Returns the exact number of transactions, by which figures are divided; None if it is not known exactly.
fn exactly(side: &Side) -> Option<u64> {
    let count = side.transactions;
    count.divisor().filter(|_| count.is_exact())
}

/// Sums by the labels of some columns.
type Sums = BTreeMap<Vec<Option<String>>, Totals>;

fn sums(groups: &Groups) -> Sums {
    let named = |(labels, totals): &(Vec<Label>, Totals)| {
        (labels.iter().map(Label::text).collect(), *totals)
    };
    groups.groups.iter().map(named).collect()
}

/// Makes a column of differences, which may be negative.
fn signed(name: &str, values: impl Iterator<Item = (u64, u64)>) -> Values {
    let change = |(a, b): (u64, u64)| i64::try_from(i128::from(b).saturating_sub(a.into())).ok();
    let values: Vec<Option<i64>> = values.map(change).collect();
    Series::new(name.into(), values).into_column()
}

/// Returns by how much `b` exceeds `a`, in per cent of `a`; None if `a` is 0.
fn change_percent(a: f64, b: f64) -> Option<f64> {
    (a != 0.0).then(|| (b - a) * 100.0 / a)
}

/// Returns bytes written and writes of each group, the largest change first. With more than two sides, changes are shown
/// only in per cent.
fn changes(columns: &[&str], all: &[Sums], per: Per) -> Result<Table> {
    let sides = all.len();
    let keys: BTreeSet<&Vec<Option<String>>> = all.iter().flat_map(BTreeMap::keys).collect();
    let of_all = |key: &Vec<Option<String>>| -> Vec<Totals> {
        let each = all.iter().map(|sums| sums.get(key).copied());
        each.map(Option::unwrap_or_default).collect()
    };
    let mut rows: Vec<(&Vec<Option<String>>, Vec<Totals>)> = keys
        .into_iter()
        .map(|key| (key, of_all(key)))
        .filter(|(_, all)| all.iter().any(|totals| totals.write_bytes > 0))
        .collect();
    let each = |all: &[Totals], side: usize| divided(all[side].write_bytes, side, per);
    let moved = |all: &[Totals], side: usize| each(all, side) - each(all, 0);
    let most = |all: &[Totals]| {
        let moves = (1..sides).map(|side| moved(all, side).abs());
        moves.fold(0.0, f64::max)
    };
    rows.sort_by(|x, y| most(&y.1).total_cmp(&most(&x.1)).then_with(|| x.0.cmp(y.0)));
    let mut table: Vec<Values> = columns
        .iter()
        .enumerate()
        .map(|(at, name)| texts(name, rows.iter().map(|(key, _)| key[at].clone())))
        .collect();
    table.extend((0..sides).map(|side| {
        let bytes = rows.iter().map(|(_, all)| Some(all[side].write_bytes));
        numbers(&format!("{}_write_bytes", letter(side)), bytes)
    }));
    if sides == 2 {
        let pairs = rows
            .iter()
            .map(|(_, all)| (all[0].write_bytes, all[1].write_bytes));
        table.push(signed("change_bytes", pairs));
    }
    if per.is_some() {
        table.extend((0..sides).map(|side| {
            let bytes = rows.iter().map(|(_, all)| Some(each(all, side)));
            reals(&format!("{}_bytes_per_transaction", letter(side)), bytes)
        }));
        if sides == 2 {
            let moves = rows.iter().map(|(_, all)| Some(moved(all, 1)));
            table.push(reals("change_per_transaction", moves));
        }
    }
    table.extend((1..sides).map(|side| {
        let percent = rows
            .iter()
            .map(|(_, all)| change_percent(each(all, 0), each(all, side)));
        reals(&changed("change_percent", side, sides), percent)
    }));
    // A layer may be several groups, and a request may be in each of them.
    if columns != [LAYER] {
        table.extend((0..sides).map(|side| {
            let writes = rows.iter().map(|(_, all)| Some(all[side].writes));
            numbers(&format!("{}_writes", letter(side)), writes)
        }));
    }
    Table::new(table)
}

/// Divides by the side's number of transactions, if these are known.
fn divided(value: u64, side: usize, per: Per) -> f64 {
    match per {
        Some(per) => value as f64 / per[side] as f64,
        None => value as f64,
    }
}

/// A figure's name and how to get it from totals.
type Field = (&'static str, fn(&Totals) -> u64);

/// The totals that are compared.
const TOTALS: [Field; FIELDS] = [
    ("bytes written", |t| t.write_bytes),
    ("writes", |t| t.writes),
    ("synchronous writes", |t| t.sync_writes),
    ("writes with FUA", |t| t.fua_writes),
    ("flushes asked for", |t| t.flushes),
    ("device flushes", |t| t.device_flushes),
    ("bytes read", |t| t.read_bytes),
    ("reads", |t| t.reads),
    ("bytes discarded", |t| t.discard_bytes),
    ("discards", |t| t.discards),
];
const FIELDS: usize = 10;

fn total(sides: &[&Side], per: Per) -> Result<Table> {
    let values: Vec<[u64; FIELDS]> = sides
        .iter()
        .map(|side| TOTALS.map(|(_, field)| field(&side.total)))
        .collect();
    let each = |side: usize| {
        let by = |value: u64| match per {
            Some(per) => ratio(value, per[side]),
            None => Some(value as f64),
        };
        values[side].map(by)
    };
    let mut table = vec![texts("what", TOTALS.map(|(name, _)| Some(name.to_owned())))];
    let of_all = values.iter().enumerate();
    table.extend(of_all.map(|(side, values)| numbers(&letter(side), values.map(Some))));
    if let [a, b] = values[..] {
        table.push(signed("change", a.into_iter().zip(b)));
    }
    if per.is_some() {
        table.extend(
            (0..sides.len())
                .map(|side| reals(&format!("{}_per_transaction", letter(side)), each(side))),
        );
    }
    table.extend((1..sides.len()).map(|side| {
        let change = |(a, b): (Option<f64>, Option<f64>)| change_percent(a?, b?);
        let percents = each(0).into_iter().zip(each(side)).map(change);
        reals(
            &changed("change_percent", side, sides.len()),
            percents.collect::<Vec<_>>(),
        )
    }));
    Table::new(table)
}

/// Returns the sentence that compares two sides.
fn sentence([a, b]: [&Side; 2], layers: [&Sums; 2], per: Per) -> String {
    let each = |value: u64, side: usize| divided(value, side, per);
    let pair = |field: fn(&Totals) -> u64| (each(field(&a.total), 0), each(field(&b.total), 1));
    let (before, after) = pair(|t| t.write_bytes);
    if let Some(why) = apart([a, b]) {
        let [before, after] = [a, b].map(|side| size(side.total.write_bytes as f64));
        return format!(
            "{} wrote {after}, {} {before}: not compared in one line, because {why}",
            b.name, a.name
        );
    }
    let unit = match per {
        Some(_) => format!(" per {}", a.unit.one()),
        None => String::new(),
    };
    let mut text = match (before, after) {
        (0.0, 0.0) => format!("neither {} nor {} writes anything", a.name, b.name),
        (0.0, _) => format!(
            "{} writes {}{unit}, {} nothing",
            b.name,
            size(after),
            a.name
        ),
        (_, 0.0) => format!(
            "{} writes nothing, {} {}{unit}",
            b.name,
            a.name,
            size(before)
        ),
        _ => format!(
            "{} writes {}{unit}, {} the {} of {}",
            b.name,
            size(after),
            more_or_less(before, after),
            size(before),
            a.name,
        ),
    };
    let named = named_changes(layers, &each, before);
    if !named.is_empty() {
        text += &format!(": {}", named.join(", "));
    }
    let number = |number: f64| match per {
        Some(_) => format!("{number:.1}"),
        None => grouped(number as u64),
    };
    let count = |(before, after): (f64, f64), what: &str| {
        format!("{} {what} instead of {}", number(after), number(before))
    };
    let writes = count(pair(|t| t.writes), "writes");
    let flushes = count(pair(|t| t.device_flushes), "device flushes");
    let beside: [Field; 2] = [
        ("read", |t| t.read_bytes),
        ("discarded", |t| t.discard_bytes),
    ];
    let beside = beside.into_iter().filter_map(|(what, field)| {
        let (was, is) = pair(field);
        let has_changed = (is - was).abs() * 100.0 >= before.max(after) * CHANGED && was != is;
        has_changed.then(|| format!(", {} {what} instead of {}", size(is), size(was)))
    });
    let beside: String = beside.collect();
    format!("{text}; {writes}, {flushes}{beside}")
}

/// Formats a ratio: `52 % less than`, `3.1 ×`, `as much as`.
fn more_or_less(before: f64, after: f64) -> String {
    let percent = (after / before - 1.0) * 100.0;
    match percent.round() {
        0.0 => "as much as".into(),
        100.0.. => format!("{:.1} ×", after / before),
        more if more > 0.0 => format!("{more} % more than"),
        less => format!("{} % less than", -less),
    }
}

/// Returns the layers that changed most, each with the sign of its change.
fn named_changes([a, b]: [&Sums; 2], each: &dyn Fn(u64, usize) -> f64, before: f64) -> Vec<String> {
    let bytes = |sums: &Sums, key| sums.get(key).map_or(0, |totals| totals.write_bytes);
    let mut moved: Vec<(&str, f64)> = a
        .keys()
        .chain(b.keys().filter(|key| !a.contains_key(*key)))
        .filter_map(|key| {
            let change = each(bytes(b, key), 1) - each(bytes(a, key), 0);
            Some((key.first()?.as_deref()?, change))
        })
        .filter(|(_, change)| *change != 0.0 && change.abs() * 100.0 >= before * LEAST)
        .collect();
    moved.sort_by(|x, y| y.1.abs().total_cmp(&x.1.abs()));
    moved.truncate(MOST);
    let words = |(name, change): (&str, f64)| {
        let sign = if change < 0.0 { '−' } else { '+' };
        format!("{sign}{} {name}", size(change.abs()))
    };
    moved.into_iter().map(words).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn side(name: &str, bytes: u64, writes: u64, transactions: Option<u64>) -> Side {
        let totals = Totals {
            write_bytes: bytes,
            writes,
            device_flushes: writes / 2,
            ..Totals::default()
        };
        Side {
            name: name.into(),
            finding: Answer::default(),
            counted: Counted::All,
            total: totals,
            transactions: Count::new(transactions.unwrap_or(0), transactions.is_some()),
            unit: Unit::Transactions,
            fault: None,
            filesystem: Some("ext4".into()),
            layers: vec![(Layer::File(name.into()), totals)],
            ways: Vec::new(),
        }
    }

    #[test]
    fn the_sentence_is_by_the_transaction_where_both_tell_how_many() {
        let (a, b) = (
            side("rollback_journal", 40_000, 80, Some(10)),
            side("wal", 20_000, 40, Some(20)),
        );
        assert_eq!(
            Diff::new(&[&a, &b]).unwrap().sentence,
            "wal writes 1.0 kB per transaction, 75 % less than the 4.0 kB of rollback_journal: −4.0 kB SQLite's rollback journal, \
             +1.0 kB SQLite's WAL; 2.0 writes instead of 8.0, 1.0 device flushes instead of 4.0"
        );
        let [a, b] = [a, b].map(|side| Side {
            transactions: Count::new(20, false),
            ..side
        });
        assert_eq!(
            Diff::new(&[&a, &b]).unwrap().sentence,
            "wal writes 20.0 kB, 50 % less than the 40.0 kB of rollback_journal: −40.0 kB SQLite's rollback journal, +20.0 kB \
             SQLite's WAL; 40 writes instead of 80, 20 device flushes instead of 40"
        );
    }

    /// A ratio of figures that are not comparable would be misleading.
    #[test]
    fn what_is_not_alike_is_not_compared() {
        let sentence = |a: &Side, b: &Side| Diff::new(&[a, b]).unwrap().sentence;
        let a = side("db", 40_000, 80, Some(10));
        let known = |transactions| side("wal", 20_000, 40, transactions);
        let begin = "wal wrote 20.0 kB, db 40.0 kB: not compared in one line, because ";
        assert_eq!(
            sentence(&a, &known(None)),
            format!("{begin}the number of transactions is known only for db")
        );
        let b = Side {
            unit: Unit::Operations,
            ..known(Some(10))
        };
        assert_eq!(
            sentence(&a, &b),
            format!("{begin}db counts transactions, wal operations")
        );
        let b = Side {
            fault: Some("its command ended with 1".into()),
            ..known(Some(10))
        };
        assert_eq!(
            sentence(&a, &b),
            format!("{begin}wal is not reliable: its command ended with 1")
        );
    }

    #[test]
    fn nothing_is_nothing_and_what_was_read_is_said() {
        let sentence = |a: &Side, b: &Side| Diff::new(&[a, b]).unwrap().sentence;
        let (some, none) = (side("db", 4_000, 4, None), side("wal", 0, 0, None));
        let other = Side {
            name: "shm".into(),
            ..none.clone()
        };
        assert!(sentence(&some, &none).starts_with("wal writes nothing, db 4.0 kB: "));
        assert!(sentence(&none, &some).starts_with("db writes 4.0 kB, wal nothing: "));
        assert!(sentence(&none, &other).starts_with("neither wal nor shm writes anything; "));
        let mut reads = some.clone();
        reads.total.read_bytes = 9_000;
        reads.total.discard_bytes = 4_096;
        assert!(
            sentence(&some, &reads)
                .ends_with(", 9.0 kB read instead of 0 B, 4.1 kB discarded instead of 0 B")
        );
    }

    #[test]
    fn changes_have_signs() {
        let pairs = [(2.0, 1.0), (2.0, 3.0), (1.0, 3.1), (1.0, 1.001)];
        assert_eq!(
            pairs.map(|(before, after)| more_or_less(before, after)),
            ["50 % less than", "50 % more than", "3.1 ×", "as much as"]
        );
        let (a, b) = (side("db", 10, 1, None), side("wal", 4, 1, None));
        let table = &Diff::new(&[&a, &b]).unwrap().sections[0].table.frame;
        let change = table.column("change").unwrap().i64().unwrap().get(0);
        assert_eq!(change, Some(-6));
    }
}

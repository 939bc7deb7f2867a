// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums over rows, in groups.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use chrono::{DateTime, SecondsFormat};
use polars::prelude::{
    BooleanChunked, Column as Values, DataFrame, DataType, Expr, IntoLazy, LazyFrame,
    NewChunkedArray, UnionArgs, col, concat, len,
};

use super::{Result, Table, numbers, texts};
use crate::facts::catalogue::{self, Key};
use crate::facts::field::Field;
use crate::facts::row::{Words, code, flag};
use crate::facts::{Column, Facts, Filter, Part, Rows, bits, stored_column};
use mostrace_trace::answer;
use mostrace_trace::attribute::Op;
use mostrace_trace::sums::{FIELDS, Groups, Label, Sort, Totals};
use mostrace_trace::tally::{Tally, sum};

/// The columns by which rows are grouped.
#[derive(Clone)]
pub struct Grouping {
    /// The columns.
    pub by: Vec<&'static Column>,
    /// If set, all groups but this many become one, with the label [`Label::Rest`].
    pub top: Option<usize>,
    /// If set, rows are grouped first by the interval of this length in which their requests were completed, and groups
    /// follow in the order of time. Intervals are counted from the beginning of 1970, and their label is where they begin.
    pub every: Option<Duration>,
}

/// The column of intervals.
const TIME: &str = "time_utc";

impl Grouping {
    /// Groups by columns of these names.
    pub(crate) fn of((names, top): (&[&str], Option<usize>)) -> Grouping {
        Grouping {
            by: Column::all_of(names),
            top,
            every: None,
        }
    }

    /// Groups rows by the columns with these names, without a limit.
    pub fn by(names: &[&str]) -> Grouping {
        Grouping::of((names, None))
    }

    /// Returns the names of the columns of labels.
    fn names(&self) -> impl Iterator<Item = &'static str> {
        let time = self.every.map(|_| TIME).into_iter();
        time.chain(self.by.iter().map(|column| column.name))
    }
}

/// Sums the rows that pass the filter.
///
/// # Errors
/// Returns an error if a temporary file cannot be read or the filter does not fit its columns.
pub fn summed(facts: &Facts, grouping: Grouping, filter: Option<&Filter>) -> Result<Groups> {
    let mut all = all_summed(facts, &[grouping], filter)?;
    Ok(all.pop().unwrap_or_default())
}

/// Sums the rows by several groupings in one pass.
///
/// # Errors
/// Fails as [`summed`] does.
pub fn all_summed(
    facts: &Facts,
    groupings: &[Grouping],
    filter: Option<&Filter>,
) -> Result<Vec<Groups>> {
    let by = groupings.iter().flat_map(|g| g.by.iter().copied());
    let rows = rows_of(by.clone(), filter);
    let every = groupings.iter().find_map(|grouping| grouping.every);
    let keys = Keys::new(facts, by).with_times(facts, every);
    let mut sums: Vec<Sums> = groupings
        .iter()
        .map(|grouping| Sums::new(grouping.names().map(str::to_owned).collect()))
        .collect();
    let mut total = Sums::new(Vec::new());
    for view in facts.view(keys.columns(), Part::Any, filter, rows) {
        let batch = view?.collect()?.lazy();
        let whole = batch.clone().filter(col(WHOLE));
        // Requests with a single row can be summed for any grouping.
        let whole = counted(whole, &keys.all(), rows).collect()?;
        let spanning = batch.filter(col(WHOLE).not()).collect()?;
        for sums in sums.iter_mut().chain([&mut total]) {
            sums.add(&whole, &spanning)?;
        }
    }
    let total = total.finish()?.total();
    sums.into_iter()
        .zip(groupings)
        .map(|(sums, grouping)| {
            let mut groups = sums.finish()?.labelled(facts, &keys, grouping, filter)?;
            groups.total = total;
            Ok(groups)
        })
        .collect()
}

/// Sums the rows that pass the filter as the [answer] needs them.
///
/// # Errors
/// Fails as [`summed`] does.
pub fn for_the_answer(facts: &Facts, filter: Option<&Filter>) -> Result<answer::Sums> {
    let all = all_summed(facts, &answer::GROUPINGS.map(Grouping::of), filter)?;
    Ok(all.try_into().map(answer::Sums::new).unwrap_or_default())
}

/// Returns the groups as a table, whose last row is the total.
///
/// # Errors
/// Never fails, because no column occurs twice in a grouping.
pub fn table_of(groups: &Groups) -> Result<Table> {
    let mut columns = labels_of(groups);
    for (name, field) in FIELDS {
        columns.push(numbers(name, groups.sums().map(|t| Some(field(t)))));
    }
    Table::with_total(columns)
}

/// Returns the columns of labels; the first column ends with `total`.
pub(super) fn labels_of(groups: &Groups) -> Vec<Values> {
    let column = |(at, name): (usize, &&'static str)| {
        let total = (at == 0).then(|| "total".to_owned());
        let labels = groups.groups.iter().map(|(labels, _)| labels[at].text());
        texts(name, labels.chain([total]))
    };
    groups.by.iter().enumerate().map(column).collect()
}

/// Returns `Shares` if a column or the filter needs causes: then rows are cut into their causers' shares.
fn rows_of<'c>(by: impl Iterator<Item = &'c Column>, filter: Option<&Filter>) -> Rows {
    let asked = filter.map(Filter::columns).unwrap_or_default();
    match by.chain(asked.iter().copied()).any(Column::needs_causes) {
        true => Rows::Shares,
        false => Rows::Whole,
    }
}

pub(super) const WHOLE: &str = "_whole";
const SORT: &str = "_sort";
pub(super) const REQUEST: &str = stored_column::request;
const BYTES: &str = stored_column::bytes;
const COUNT: &str = "_count";
/// 1 for a row or its first share, with which the row is counted; 0 for a later share.
const FIRST: &str = "_first";

/// The codes or numbers of a group, one for each column; `NOTHING` for null.
type Codes = Vec<u64>;
const NOTHING: u64 = u64::MAX;

/// The expressions to group by, and the words of their codes.
pub(super) struct Keys {
    keys: Vec<(&'static str, Key)>,
}

impl Keys {
    pub fn new(facts: &Facts, columns: impl Iterator<Item = &'static Column>) -> Keys {
        let mut keys: Vec<(&'static str, Key)> = Vec::new();
        for column in columns {
            if !keys.iter().any(|(name, _)| *name == column.name) {
                keys.extend(column.key(facts).map(|key| (column.name, key)));
            }
        }
        Keys { keys }
    }

    /// Adds the intervals in which requests were completed.
    fn with_times(mut self, facts: &Facts, every: Option<Duration>) -> Keys {
        let key = every.map(|every| (TIME, Key::Number(catalogue::interval(facts, every))));
        self.keys.extend(key);
        self
    }

    /// Returns the expressions of all keys and of what is summed.
    pub fn columns(&self) -> Vec<Expr> {
        let keys = self.keys.iter().map(|(name, key)| {
            let expr = match key {
                Key::Text(text) => text.code.clone(),
                Key::Number(expr) => expr.clone(),
            };
            expr.alias(*name)
        });
        let sums = [
            code([stored_column::bits], |[b]| sort_code(b)).alias(SORT),
            flag([stored_column::bits], |[b]| bits::PART.of(b) == 0).alias(WHOLE),
            code([stored_column::bits], |[b]| {
                u32::from(bits::LATER_SHARE.of(b) == 0)
            })
            .alias(FIRST),
            col(REQUEST),
            col(BYTES).cast(DataType::UInt64),
        ];
        keys.chain(sums).collect()
    }

    pub fn all(&self) -> Vec<String> {
        self.keys
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect()
    }

    /// Returns the words of each of these columns; None for columns of numbers.
    pub fn of(&self, set: &[&Column]) -> Vec<Option<Words>> {
        let words = |column: &&Column| {
            let key = self.keys.iter().find(|(name, _)| *name == column.name);
            match key {
                Some((_, Key::Text(text))) => Some(text.words.clone()),
                _ => None,
            }
        };
        set.iter().map(words).collect()
    }
}

/// Encodes [`Sort`] as a number: the operation in the low bits, and three flags above it.
fn sort_code(word: u64) -> u32 {
    let letters = bits::RWBS.of(word);
    let (sync, fua) = (letters & 1, letters >> 1 & 1);
    let flags = sync | fua << 1 | bits::FAILED.of(word) << 2;
    // The operation is the lowest field of the word, too.
    (bits::OP.word(bits::OP.of(word)) | SORT_FLAGS.word(flags)) as u32
}

/// The flags of a [`Sort`] above its operation.
const SORT_FLAGS: Field = bits::OP.then(3);

fn sort_of(code: u32) -> Sort {
    let flags = SORT_FLAGS.of(code.into());
    let op = Op::ALL.get(bits::OP.of(code.into()) as usize);
    Sort {
        op: op.copied().unwrap_or_default(),
        sync: flags & 1 != 0,
        fua: flags >> 1 & 1 != 0,
        failed: flags >> 2 & 1 != 0,
    }
}

pub(super) fn columns(names: &[String], more: &[&str]) -> Vec<Expr> {
    let names = names.iter().map(String::as_str);
    names.chain(more.iter().copied()).map(col).collect()
}

/// Counts requests and bytes by keys and sort; each row must be a whole request, or a share of one.
fn counted(rows: LazyFrame, keys: &[String], cut: Rows) -> LazyFrame {
    let requests = match cut {
        Rows::Whole => len(),
        Rows::Shares => col(FIRST).sum(),
    };
    rows.group_by(columns(keys, &[SORT])).agg([
        requests.cast(DataType::UInt64).alias(COUNT),
        col(BYTES).sum(),
    ])
}

/// Requests with more rows than this use a set to find repeated keys.
const FEW: usize = 32;

/// Returns for each row 1 if it is the first of its request with its keys, else 0; later shares of a row are 0. The rows of
/// a request must be adjacent.
fn firsts(rows: &DataFrame, keys: &[String]) -> Result<Vec<Option<u64>>> {
    let requests = codes(rows.column(REQUEST)?)?;
    let counts = codes(rows.column(FIRST)?)?;
    let keys = codes_of(rows, keys)?;
    let mut firsts = Vec::with_capacity(requests.len());
    let mut start = 0_usize;
    for request in requests.chunk_by(|a, b| a == b) {
        let end = start.saturating_add(request.len());
        if request.len() <= FEW {
            let same = |a: usize, b: usize| {
                counts[b] != 0 && keys.iter().all(|codes| codes[a] == codes[b])
            };
            let is_first = |row| counts[row] != 0 && !(start..row).any(|before| same(row, before));
            firsts.extend((start..end).map(|row| Some(u64::from(is_first(row)))));
        } else {
            let mut seen = HashSet::new();
            let key = |row: usize| -> Codes { keys.iter().map(|codes| codes[row]).collect() };
            let mut is_first = |row| counts[row] != 0 && seen.insert(key(row));
            firsts.extend((start..end).map(|row| Some(u64::from(is_first(row)))));
        }
        start = end;
    }
    Ok(firsts)
}

/// Returns the codes of these columns.
fn codes_of(rows: &DataFrame, columns: &[String]) -> Result<Vec<Codes>> {
    let columns = columns.iter();
    columns.map(|name| codes(rows.column(name)?)).collect()
}

/// Sums by one grouping, over batches.
struct Sums {
    keys: Vec<String>,
    /// Partial sums of requests with a single row, and of the others.
    parts: [Vec<DataFrame>; 2],
}

/// The number of partial sums that are kept before they are merged.
const PARTIAL: usize = 16;

impl Sums {
    fn new(keys: Vec<String>) -> Sums {
        Sums {
            keys,
            parts: Default::default(),
        }
    }

    /// Adds a batch: the counts of requests with a single row, and the rows of the others.
    fn add(&mut self, whole: &DataFrame, spanning: &DataFrame) -> Result<()> {
        self.push(0, whole.clone().lazy())?;
        self.add_spanning(spanning)
    }

    /// Adds the rows of requests that have several.
    fn add_spanning(&mut self, rows: &DataFrame) -> Result<()> {
        if rows.height() == 0 {
            return Ok(());
        }
        let firsts = firsts(rows, &self.keys)?;
        let counted = rows.hstack(&[numbers(COUNT, firsts).cast(&DataType::UInt64)?])?;
        self.push(1, counted.lazy())
    }

    fn push(&mut self, part: usize, counts: LazyFrame) -> Result<()> {
        let added = self.added(counts)?;
        self.parts[part].push(added);
        if self.parts[part].len() >= PARTIAL {
            self.parts[part] = vec![self.whole(part)?];
        }
        Ok(())
    }

    fn added(&self, counts: LazyFrame) -> Result<DataFrame> {
        counts
            .group_by(columns(&self.keys, &[SORT]))
            .agg([col(COUNT).sum(), col(BYTES).sum()])
            .collect()
    }

    /// Merges the partial sums, so that each group occurs once.
    fn whole(&self, part: usize) -> Result<DataFrame> {
        let frames = self.parts[part].iter();
        let parts: Vec<LazyFrame> = frames.map(|sums| sums.clone().lazy()).collect();
        self.added(concat(parts, UnionArgs::default())?)
    }

    fn finish(self) -> Result<Sorted> {
        let mut sums: HashMap<Codes, [Totals; 2], foldhash::fast::RandomState> = HashMap::default();
        for part in [0, 1] {
            if self.parts[part].is_empty() {
                continue;
            }
            let frame = self.whole(part)?;
            let keys = codes_of(&frame, &self.keys)?;
            let sorts = frame.column(SORT)?.u32()?;
            let (counts, bytes) = (frame.column(COUNT)?.u64()?, frame.column(BYTES)?.u64()?);
            for row in 0..frame.height() {
                let key = keys.iter().map(|codes| codes[row]).collect();
                let (count, bytes) = (counts.get(row).unwrap_or(0), bytes.get(row).unwrap_or(0));
                let sort = sort_of(sorts.get(row).unwrap_or(0));
                sums.entry(key).or_default()[part].count(sort, count, bytes);
            }
        }
        Ok(Sorted {
            groups: sums.into_iter().collect(),
        })
    }
}

/// The sums of each group, for requests with a single row and for those with several.
struct Sorted {
    groups: Vec<(Codes, [Totals; 2])>,
}

impl Sorted {
    fn total(&self) -> Totals {
        let parts = self.groups.iter().flat_map(|(_, parts)| parts);
        sum(parts.copied())
    }

    /// Returns the first groups with their labels, and the others as one.
    fn labelled(
        mut self,
        facts: &Facts,
        keys: &Keys,
        grouping: &Grouping,
        filter: Option<&Filter>,
    ) -> Result<Groups> {
        let times = grouping.every.map(|_| None).into_iter();
        let words: Vec<Option<Words>> = times.chain(keys.of(&grouping.by)).collect();
        let time = |codes: &Codes| grouping.every.and_then(|_| codes.first().copied());
        let rank = |(_, parts): &(Codes, [Totals; 2])| {
            let both = sum(*parts);
            Reverse((both.bytes(), both.requests))
        };
        let order = |a: &(Codes, [Totals; 2]), b: &(Codes, [Totals; 2])| {
            time(&a.0)
                .cmp(&time(&b.0))
                .then_with(|| rank(a).cmp(&rank(b)))
                .then_with(|| named(&a.0, &words).cmp(named(&b.0, &words)))
        };
        let top = grouping.top.unwrap_or(usize::MAX).min(self.groups.len());
        if top < self.groups.len() {
            self.groups.select_nth_unstable_by(top, order);
        }
        let others = self.groups.split_off(top);
        self.groups.sort_by(order);
        let label = |(codes, parts): &(Codes, [Totals; 2])| {
            let mut labels: Vec<Label> = named(codes, &words).map(Name::label).collect();
            if let (Some(at), Some(every), Some(label)) =
                (time(codes), grouping.every, labels.first_mut())
            {
                *label = moment(at, every);
            }
            (labels, sum(*parts))
        };
        let mut groups: Vec<(Vec<Label>, Totals)> = self.groups.iter().map(label).collect();
        if !others.is_empty() {
            let mut all = sum(others.iter().map(|(_, [whole, _])| *whole));
            all.tally(self.spanning_rest(facts, grouping, filter)?);
            let rest = vec![Label::Rest(others.len()); grouping.names().count()];
            groups.push((rest, all));
        }
        Ok(Groups {
            by: grouping.names().collect(),
            groups,
            total: Totals::default(),
        })
    }

    /// Sums the requests with several rows in the groups that are not shown. They are counted anew, because a request with
    /// rows in two of these groups is one request.
    fn spanning_rest(
        &self,
        facts: &Facts,
        grouping: &Grouping,
        filter: Option<&Filter>,
    ) -> Result<Totals> {
        let keys = Keys::new(facts, grouping.by.iter().copied());
        let keys = keys.with_times(facts, grouping.every);
        let shown: HashSet<Codes> = self.groups.iter().map(|(codes, _)| codes.clone()).collect();
        let mut sums = Sums::new(Vec::new());
        let rows = rows_of(grouping.by.iter().copied(), filter);
        for view in facts.view(keys.columns(), Part::Spanning, filter, rows) {
            let rows = view?.collect()?;
            let of_row = codes_of(&rows, &keys.all())?;
            let is_hidden = |row: usize| {
                let key: Codes = of_row.iter().map(|codes| codes[row]).collect();
                !shown.contains(&key)
            };
            let hidden =
                BooleanChunked::from_iter_values("".into(), (0..rows.height()).map(is_hidden));
            let hidden = rows.filter(&hidden)?;
            sums.add_spanning(&hidden)?;
        }
        Ok(sums.finish()?.total())
    }
}

/// Returns the label of an interval of length `every`, which begins at this Unix time in µs; it is empty if the trace has no
/// wall clock. All labels of a table have as many digits, so that they sort as texts.
fn moment(unix_us: u64, every: Duration) -> Label {
    let digits = match every.subsec_nanos() {
        0 => SecondsFormat::Secs,
        nanos if nanos % 1_000_000 == 0 => SecondsFormat::Millis,
        _ => SecondsFormat::Micros,
    };
    let time = i64::try_from(unix_us).ok();
    match time.and_then(DateTime::from_timestamp_micros) {
        Some(time) => Label::Text(time.to_rfc3339_opts(digits, true)),
        None => Label::Empty,
    }
}

/// The label of a group in one column, without a copy of its text.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Name<'w> {
    Id(u64),
    Text(&'w str),
    Empty,
}

impl Name<'_> {
    fn label(self) -> Label {
        match self {
            Name::Id(id) => Label::Id(id),
            Name::Text(text) => Label::Text(text.to_owned()),
            Name::Empty => Label::Empty,
        }
    }
}

fn named<'w>(codes: &[u64], words: &'w [Option<Words>]) -> impl Iterator<Item = Name<'w>> {
    let name = |(&code, words): (&u64, &'w Option<Words>)| match words {
        Some(words) => match words.get(code as usize).and_then(Option::as_deref) {
            Some(word) => Name::Text(word),
            None => Name::Empty,
        },
        None if code == NOTHING => Name::Empty,
        None => Name::Id(code),
    };
    codes.iter().zip(words).map(name)
}

/// Returns the keys of a column.
fn codes(keys: &Values) -> Result<Codes> {
    Ok(match keys.dtype() {
        DataType::UInt32 => keys
            .u32()?
            .iter()
            .map(|code| code.map_or(NOTHING, u64::from))
            .collect(),
        _ => {
            let id = |id: Option<i64>| id.and_then(|id| u64::try_from(id).ok());
            keys.i64()?
                .iter()
                .map(|key| id(key).unwrap_or(NOTHING))
                .collect()
        }
    })
}

/// Returns the labels of a column's keys.
pub(super) fn labels(keys: &Values, words: Option<&Words>) -> Result<Vec<Label>> {
    let words = [words.cloned()];
    let label = |code: &u64| {
        named(&[*code], &words)
            .next()
            .map_or(Label::Empty, Name::label)
    };
    Ok(codes(keys)?.iter().map(label).collect())
}
